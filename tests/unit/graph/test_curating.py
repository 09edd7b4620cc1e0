from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from phronesis_bus import Call
from phronesis_contracts import Agent, BadRequest, Internal, Principal, ServiceError, Unavailable
from phronesis_contracts.catalog import TOOLS as CATALOG
from phronesis_contracts.knowledge_graph import FoundNode, NodeCreated, NodeDeleted, QueryExecuted, RelationshipCreated
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.twin import QueryRefused
from phronesis_graph.guard import KNOWLEDGE, READING, Allowed, Rules
from phronesis_graph.knowledge.handlers import KnowledgeHandlers
from phronesis_graph.knowledge.ports import ChangeStatement, DeletedNode, KnowledgeStores, NewRelationship
from phronesis_graph.twin.ports import StatementResult
from tests.support.curators import TOOLS
from tests.support.logs import logged
from tests.support.ontologies import OneOntology
from tests.support.personas import Persona

ANN = Call(Principal(tenant="acme", user="ann", **Persona.CURATOR.rights), "gateway")
EMPTY: dict[str, dict[str, Any]] = {
    "create_node": {"node_id": None},
    "create_relationship": {"relationship_id": None},
    "query_graph": {"results": []},
    "search_nodes": {"nodes": []},
    "get_node_details": {"node": None},
    "delete_node": {},
}
GOOD: dict[str, dict[str, Any]] = {
    "create_node": {"label": "Product"},
    "create_relationship": {"from_node_id": "a", "to_node_id": "b", "type": "T"},
    "query_graph": {"cypher_query": "RETURN 1", "read_only": True},
    "search_nodes": {},
    "get_node_details": {"node_id": "a"},
    "delete_node": {"node_id": "a", "force_delete": True},
}


class Store:
    """All three ports: answers, or fails as it is told."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails
        self.calls: list[str] = []

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.fails is not None:
            raise self.fails

    async def create(
        self, call: Call, arguments: str, node_id: str, label: str, properties: Mapping[str, object], audit: Audited
    ) -> NodeCreated:
        self._called("create")
        return NodeCreated(success=True, node_id=node_id, message="created")

    async def join(self, call: Call, arguments: str, wanted: NewRelationship, audit: Audited) -> RelationshipCreated:
        self._called("join")
        return RelationshipCreated(success=True, relationship_id=wanted.id, message="created")

    async def delete(self, call: Call, arguments: str, node_id: str, audit: Callable[[DeletedNode], Audited]) -> NodeDeleted:
        self._called("delete")
        return NodeDeleted(success=True, message="deleted")

    async def details(self, tenant: str, node_id: str) -> FoundNode | None:
        self._called("details")
        return FoundNode(id=node_id, labels=("Product",))

    async def search(self, tenant: str, label: str | None, wanted: Mapping[str, object], limit: int) -> Sequence[FoundNode]:
        self._called("search")
        return [FoundNode.model_validate({"id": 7})] if label == "Malformed" else []

    async def ready(self) -> None:
        self._called("ready")

    async def read(self, tenant: str, statement: str, parameters: Mapping[str, Any], most: int) -> StatementResult:
        self._called("read")
        return StatementResult((), False)

    async def run(
        self, call: Call, arguments: str, change: ChangeStatement, audit: Callable[[Mapping[str, int]], Audited]
    ) -> QueryExecuted:
        self._called("run")
        return QueryExecuted(success=True, message="Query executed successfully.")

    async def ask_to_confirm(self, call: Call, digest: str) -> str:
        self._called("ask_to_confirm")
        return "t0ken"


class Case:
    """The handlers over a store, with a guard that refuses CREATE in a reading call and finds WIPE dangerous."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.store = Store(fails)
        self.refusals: list[tuple[str, dict[str, Any], str]] = []
        self.woken = 0
        stores = KnowledgeStores(self.store, self.store, self.store)
        self.curating = KnowledgeHandlers(OneOntology(check=self._check), stores, self._refuse, self._wake)

    def _check(self, statement: str, parameters: Mapping[str, Any], tenant: str, rules: Rules = READING) -> Allowed:
        if rules is KNOWLEDGE and "CREATE" in statement:
            raise QueryRefused("writing: it only reads", field="cypher_query")
        if rules is KNOWLEDGE:
            return Allowed(statement, parameters)
        return Allowed(statement, parameters, dangerous="it wipes" if "WIPE" in statement else None)

    async def _refuse(self, who: Principal, tool: str, arguments: dict[str, Any], error: ServiceError) -> None:
        self.refusals.append((tool, arguments, error.code))

    def _wake(self) -> None:
        self.woken += 1

    async def call(self, tool: str, **given: Any) -> dict[str, Any]:
        answer = await getattr(self.curating, tool)(ANN, TOOLS[tool].model_validate(given))
        found: dict[str, Any] = answer.model_dump(mode="json")
        return found


@pytest.mark.req("K-001", "K-007", "K-004", "K-005", "K-006", "XC-001", "N-154", "KC-001")
def test_there_are_six_tools_and_no_other_of_this_mode() -> None:
    mine = {name: tool for name, tool in CATALOG.items() if tool.rpc.subject.startswith("graph.v1.knowledge.")}
    assert set(mine) == set(TOOLS)
    assert {tool.agents for tool in mine.values()} == {frozenset({Agent.CURATOR, Agent.MAESTRO})}
    assert {name for name, tool in mine.items() if tool.irreversible} == {"query_graph", "delete_node"}
    assert all(tool.function()["parameters"]["additionalProperties"] is False for tool in mine.values())


@pytest.mark.req("K-064", "K-066", "K-067", "K-075", "KC-022", "T-018", "KC-016")
@pytest.mark.parametrize("tool", TOOLS)
async def test_an_unknown_argument_ends_in_the_envelope_and_reaches_no_store(tool: str) -> None:
    case = Case()
    said = await case.call(tool, **GOOD[tool], color="red")
    message = "color: there is no such argument. Correct the argument and call again."
    assert said == {"success": False, "message": message, **EMPTY[tool]}
    assert (case.store.calls, case.woken) == ([], 0)
    assert case.refusals == [(tool, {"reason": "there is no such argument", **GOOD[tool], "color": "red"}, "bad_request")]


@pytest.mark.req("K-064", "K-065", "K-094")
@pytest.mark.parametrize("tool", TOOLS)
async def test_a_store_that_is_down_ends_in_the_envelope(tool: str) -> None:
    case = Case(Unavailable("the graph store does not answer"))
    said = await case.call(tool, **GOOD[tool])
    assert "The database is unavailable" in said.pop("message")
    assert said == {"success": False, **EMPTY[tool]}
    assert [code for _, _, code in case.refusals] == ["unavailable"]


@pytest.mark.req("K-064", "K-076")
@pytest.mark.parametrize("tool", TOOLS)
async def test_a_good_call_ends_in_the_envelope_and_in_no_refusal(tool: str) -> None:
    case = Case()
    said = await case.call(tool, **GOOD[tool])
    assert (said["success"], set(said)) == (True, {"success", "message", *EMPTY[tool]})
    assert (case.refusals, case.woken) == ([], 1)


@pytest.mark.req("K-074")
async def test_an_answer_that_is_none_ends_in_the_envelope_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    said = await Case().call("search_nodes", label="Malformed")
    assert (said["success"], said["nodes"]) == (False, [])
    assert [record.levelname for record in logged(caplog, "graph")] == ["ERROR"]


@pytest.mark.req("K-031", "K-067")
async def test_a_reading_call_that_would_write_reaches_no_store() -> None:
    case = Case()
    said = await case.call("query_graph", cypher_query="CREATE (n:P {a: 'b'})", read_only=True)
    assert (said["success"], case.store.calls) == (False, [])
    given = {"reason": "writing: it only reads", "cypher_query": "CREATE (n:P {a: '…'})", "read_only": True}
    assert case.refusals == [("query_graph", given, "graph.query_refused")]


@pytest.mark.req("K-036")
async def test_a_dangerous_change_is_answered_with_a_token_that_no_record_holds(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()
    with caplog.at_level(logging.DEBUG):
        said = await case.call("query_graph", cypher_query="WIPE", read_only=False)
    assert said["message"].endswith("To run it, repeat the call with confirm_token t0ken.")
    assert case.store.calls == ["ask_to_confirm"]
    assert "t0ken" not in f"{case.refusals}{caplog.text}"
    assert (await case.call("query_graph", cypher_query="WIPE", read_only=False, confirm_token="t0ken"))["success"]


@pytest.mark.req("K-006", "K-036")
async def test_a_harmless_change_needs_no_token() -> None:
    case = Case()
    assert (await case.call("query_graph", cypher_query="SET x", read_only=False))["success"]
    assert case.store.calls == ["run"]


@pytest.mark.req("K-065", "K-068")
async def test_each_kind_of_failure_has_a_message_of_its_own() -> None:
    failures = (QueryRefused("a"), Unavailable("a"), Internal("a"), BadRequest("a"))
    said = {(await Case(error).call("query_graph", **GOOD["query_graph"]))["message"] for error in failures}
    assert len(said) == len(failures)
