from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from phronesis_bus import Call
from phronesis_contracts import Agent, Principal, ServiceError, TimedOut, Unavailable
from phronesis_contracts.twin import READ_CYPHER_TOOL, CypherRows, QueryRefused, ReadCypher
from phronesis_graph.guard import READING, Allowed, Rules
from phronesis_graph.twin.handlers import QueryHandlers
from phronesis_graph.twin.ports import StatementResult
from tests.support.logs import logged
from tests.support.ontologies import OneOntology

ANN = Call(Principal(tenant="acme", user="ann"), "orchestrator")
TEXT = "MATCH (p:EntityProject {name: 'Alpha'}) RETURN p.id"


class Store:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self, answer: StatementResult | ServiceError, down: bool = False) -> None:
        self.answer = answer
        self.down = down
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    async def ready(self) -> None:
        if self.down:
            raise Unavailable("the graph store does not answer")

    async def read(self, tenant: str, statement: str, parameters: Mapping[str, Any], most: int) -> StatementResult:
        self.asked.append((tenant, statement, dict(parameters)))
        if isinstance(self.answer, ServiceError):
            raise self.answer
        return self.answer


class Case:
    """The handler with a guard that lets everything through but what holds SKIP."""

    def __init__(self, answer: StatementResult | ServiceError, down: bool = False) -> None:
        self.store = Store(answer, down)
        self.refusals: list[tuple[str, str, dict[str, object], str]] = []
        self.reading = QueryHandlers(OneOntology(check=self._check), self.store, self._refuse)

    def _check(self, statement: str, parameters: Mapping[str, Any], tenant: str, rules: Rules = READING) -> Allowed:
        if "SKIP" in statement:
            raise QueryRefused("paging: page by key")
        return Allowed(f"{statement} LIMIT 501", {**parameters, "tenant": tenant}, ("return id and name",))

    async def _refuse(self, who: Principal, tool: str, arguments: dict[str, object], error: ServiceError) -> None:
        self.refusals.append((who.user, tool, arguments, error.code))

    async def read(self, text: str = TEXT, **parameters: Any) -> CypherRows:
        return await self.reading.read_cypher(ANN, ReadCypher(cypher_query=text, parameters=parameters))


@pytest.mark.req("N-129", "N-130", "N-141", "N-145", "N-146", "N-229")
async def test_a_statement_is_run_as_the_guard_rewrote_it_and_its_warning_comes_with_the_rows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    case = Case(StatementResult(({"p.id": "a"}, {"p.id": "b"}), True))
    with caplog.at_level(logging.INFO):
        said = await case.read(year=2023)
    assert said == CypherRows(rows=({"p.id": "a"}, {"p.id": "b"}), truncated=True, warnings=("return id and name",))
    given = {"year": 2023, "user_id": "ann", "tenant": "acme"}
    assert case.store.asked == [("acme", f"{TEXT} LIMIT 501", given)]
    blank = "MATCH (p:EntityProject {name: '…'}) RETURN p.id"
    assert [(record.levelname, record.message) for record in logged(caplog, "graph")] == [
        ("WARNING", f"a reading query could be better: return id and name; {blank}"),
        ("INFO", "a reading query gave 2 rows"),
    ]


@pytest.mark.req("NC-067")
async def test_whom_a_query_is_about_no_caller_chooses() -> None:
    case = Case(StatementResult((), False))
    await case.read(user_id="bob")
    assert case.store.asked[0][2]["user_id"] == "ann"


@pytest.mark.req("N-132", "N-144", "K-094")
async def test_a_refusal_is_logged_as_an_error_and_audited_and_nothing_is_run(caplog: pytest.LogCaptureFixture) -> None:
    case = Case(StatementResult((), False))
    with pytest.raises(QueryRefused, match="page by key"):
        await case.read("MATCH (p:EntityProject) RETURN 'words' SKIP 5", year=1)
    given = {"cypher_query": "MATCH (p:EntityProject) RETURN '…' SKIP 5", "parameters": {"year": 1}}
    assert case.refusals == [("ann", READ_CYPHER_TOOL.name, given, "graph.query_refused")]
    assert [(record.levelname, record.message) for record in logged(caplog, "graph")] == [
        ("ERROR", "a reading query was refused: paging: page by key; MATCH (p:EntityProject) RETURN '…' SKIP 5")
    ]
    assert case.store.asked == []


@pytest.mark.req("N-147", "N-150")
async def test_what_the_store_refuses_is_audited_and_what_takes_too_long_is_not() -> None:
    for error, audits in ((QueryRefused("syntax: it is wrong"), 1), (TimedOut("the query took too long"), 0)):
        case = Case(error)
        with pytest.raises(type(error)):
            await case.read()
        assert len(case.refusals) == audits


@pytest.mark.req("N-131")
async def test_a_store_that_never_came_is_told_before_what_is_wrong_with_the_query() -> None:
    with pytest.raises(Unavailable):
        await Case(StatementResult((), False), down=True).read("MATCH (p:EntityProject) RETURN p.id SKIP 5")


@pytest.mark.req("N-126", "N-127", "N-128", "N-148", "NC-066", "NC-074", "XC-001")
def test_the_tool_shows_its_rules_and_its_two_arguments() -> None:
    shown = READ_CYPHER_TOOL.function()
    schema = shown["parameters"]
    assert shown["name"] == "read_neo4j_cypher"
    assert (schema["required"], set(schema["properties"]), schema["additionalProperties"]) == (
        ["cypher_query"],
        {"cypher_query", "parameters"},
        False,
    )
    for rule in ("Page by key", "one level only", "embeddings", "id and name"):
        assert rule.lower() in shown["description"].lower()
    assert READ_CYPHER_TOOL.agents == {Agent.NOOR, Agent.MAESTRO}
