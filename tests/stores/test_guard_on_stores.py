"""The guard's statements on a real store: the honest ones run and stay inside their tenant, the hostile ones change nothing."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.twin import Level, Upsert, UpsertNode
from phronesis_graph.bolt.driver import Bolt, Row, Transaction
from phronesis_graph.guard import Guard, Rules
from phronesis_graph.twin.ontology import LevelRule
from phronesis_graph.twin.ontology_file import load
from tests.guard.corpus import VALUES, honest, hostile
from tests.support.bus import somebody
from tests.support.graph import Stores, joined, ref, settings
from tests.support.servers import GraphServer

pytestmark = [
    pytest.mark.verify,
    pytest.mark.timeout(900),
]  # a busy Neo4j takes half a second to plan a statement that is new to it

_CHANGES = re.compile(r"create|merge|set\b|delete|remove|insert|foreach", re.IGNORECASE)
_CUT = re.compile(r"limit \d+$", re.IGNORECASE)
_OF_SERVERS = re.compile(r"\b(user|role|database|index|constraint)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    # Whole twins are written here, on machines that may be busy.
    limits = settings(graph_server, tmp_path_factory.mktemp("guard"), read_timeout=60.0, write_timeout=60.0)
    async with Bolt.open(limits) as bolt:
        yield Stores(bolt, load(), graph_server.dialect)


async def fill(stores: Stores, who: Principal, batch: Upsert) -> None:
    """Write a batch, its nodes first."""
    await stores.upsert(who, Upsert(nodes=batch.nodes))
    await stores.upsert(who, Upsert(relationships=batch.relationships))


def twin(word: str, *ids: str) -> Upsert:
    """A small twin: each type in two years, joined in every way that the ontology knows."""
    ontology = load()
    nodes = [
        UpsertNode(type=name, id=id, year=year, name=f"{word} {id}", level=Level.L3, properties=_properties(name, len(word)))
        for name in ontology.nodes
        for id in ids
        for year in (2021, 2022)
    ]
    relationships = [
        joined(each.name, ref(ids[0], source, 2022), ref(id, target, 2022))
        for each in ontology.relationships.values()
        if each.rule is not LevelRule.DOWN
        for source in each.sources
        for target in each.targets
        for id in ids[:2]
    ]
    return Upsert(nodes=tuple(nodes), relationships=tuple(relationships))


def _properties(name: str, number: int) -> dict[str, Any]:
    if name != "EntityProject":
        return {}
    return {
        "budget": number * 100,
        "status": "Active" if number < 5 else "Closed",
        "start_date": "2021-04-01",
        "end_date": "2024-03-31",
        "rating": "Green" if number < 5 else "Red",
        "category": "ours" if number < 5 else "theirs",
    }


async def rows(stores: Stores, statement: str, parameters: dict[str, Any]) -> list[Row]:
    async def work(transaction: Transaction) -> list[Row]:
        return await transaction.rows(statement, **parameters)

    return await stores.bolt.read(work)


async def answers(stores: Stores, who: Principal, guard: Guard) -> dict[str, list[str]]:
    """What every honest statement gives, without the order that none of them promises, and without a cut that picks by it."""
    found = {}
    for statement in honest():
        allowed = guard.check(_CUT.sub("LIMIT 9000", statement.text), VALUES, who.tenant)
        got = await rows(stores, allowed.statement, dict(allowed.parameters))
        found[statement.text] = sorted(json.dumps(_plain(row), sort_keys=True, default=str) for row in got)
    return found


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(part) for key, part in value.items()}
        case list():
            return sorted((_plain(part) for part in value), key=str)
    return value


async def join_tenants(stores: Stores, who: Principal, other: Principal) -> None:
    """Relationships that lead out of a tenant, as none of the service's writes makes them."""
    for each in load().relationships.values():
        source, target = each.sources[0], each.targets[0]
        await stores.run(
            f"MATCH (a:{source} {{tenant: $one}}) MATCH (b:{target} {{tenant: $other, id: 'p-1'}}) "
            f"MERGE (a)-[:{each.name}]->(b)",
            one=who.tenant,
            other=other.tenant,
        )


@pytest.mark.req("N-129", "N-130", "N-133")
async def test_every_honest_statement_runs_and_reads_nothing_of_another_tenant(stores: Stores) -> None:
    """The answers of a tenant are the same before another tenant's nodes are there and after they were joined to its own."""
    who, other, guard = somebody(), somebody(), Guard(load())
    await fill(stores, who, twin("The", "p-1", "p-2", "p-9"))
    alone = await answers(stores, who, guard)
    await fill(stores, other, twin("Foreign", "p-1", "p-2", "p-9", "s-1"))
    await join_tenants(stores, who, other)
    await join_tenants(stores, other, who)
    assert await answers(stores, who, guard) == alone
    assert sum(bool(answer) for answer in alone.values()) > 200


@pytest.mark.req("N-138", "N-139", "K-031", "K-032")
async def test_no_hostile_statement_changes_a_store_when_the_guard_is_off(stores: Stores) -> None:
    """The reading user, or a read transaction, is a fence of its own."""
    who = somebody()
    await fill(stores, who, twin("The", "p-1", "p-2"))
    before = await fingerprint(stores)
    tried = refused = 0
    for statement in hostile():
        if statement.rules == Rules.KNOWLEDGE_WRITING.value or not _CHANGES.search(statement.text):
            continue
        if _OF_SERVERS.search(statement.text) or any("\ud800" <= sign <= "\udfff" for sign in statement.text):
            continue
        tried += 1
        try:
            await rows(stores, statement.text, VALUES)
        except ServiceError:
            refused += 1
    assert await fingerprint(stores) == before
    assert tried > 80
    assert refused > 60


async def fingerprint(stores: Stores) -> list[Row]:
    """How many nodes and relationships there are, and what the nodes say."""
    counted = await rows(stores, "MATCH (n) RETURN labels(n) AS labels, count(n) AS many ORDER BY labels", {})
    joins = await rows(stores, "MATCH ()-[r]->() RETURN type(r) AS type, count(r) AS many ORDER BY type", {})
    said = await rows(stores, "MATCH (n:EntityProject) RETURN properties(n) AS node ORDER BY n.key", {})
    return [*counted, *joins, *said]
