from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from phronesis_contracts import Internal, TimedOut
from phronesis_contracts.twin import QueryRefused, Upsert
from phronesis_graph.knowledge.model import KNOWLEDGE
from phronesis_graph.twin.ports import StatementResult
from tests.support.bus import somebody
from tests.support.curators import Curators
from tests.support.graph import Stores, joined, node, opened, ref, stored
from tests.support.personas import Persona
from tests.support.servers import GraphServer

pytestmark = pytest.mark.timeout(300)

TWIN = Upsert(
    nodes=(
        *(node(f"p{number:02}", status="Active" if number % 2 else "Closed", budget=number) for number in range(65)),
        node("r", type="EntityRisk"),
    ),
    relationships=(joined("RATED", ref("p01"), ref("r", "EntityRisk")),),
)
PAGE = "MATCH (n:EntityProject) WHERE n.id > $last_seen_id RETURN n.id AS id, n.name AS name ORDER BY n.id LIMIT 30"


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("graph")) as found:
        yield found


@pytest.fixture(scope="module")
async def noor(stores: Stores) -> Curators:
    """An analyst of a tenant with 65 projects; another tenant has the same."""
    analyst = Curators(stores, somebody(**Persona.NOOR.rights))
    for who in (analyst.who, somebody()):
        await stores.upsert(who, TWIN)
    return analyst


@pytest.mark.req("N-133", "T-008")
async def test_pages_by_key_hold_every_row_once(noor: Curators) -> None:
    pages, last = list[list[str]](), ""
    while page := [row["id"] for row in (await noor.read(PAGE, last_seen_id=last)).rows]:
        pages.append(page)
        last = page[-1]
    assert [len(page) for page in pages] == [30, 30, 5]
    assert [id for page in pages for id in page] == [f"p{number:02}" for number in range(65)]


@pytest.mark.req("N-129", "N-130")
async def test_values_are_bound_and_rows_come_by_their_names(noor: Curators) -> None:
    statement = "MATCH (n:EntityProject {status: $status}) RETURN n.status AS status, count(n) AS found"
    assert (await noor.read(statement, status="Active")).rows == ({"status": "Active", "found": 32},)
    assert (await noor.read(statement, status="x' OR 1=1")).rows == ()


async def test_another_tenants_twin_is_not_counted(noor: Curators) -> None:
    assert (await noor.read("MATCH (n:EntityProject) RETURN count(n) AS found")).rows == ({"found": 65},)


@pytest.mark.req("NC-070", "XC-006")
@pytest.mark.parametrize("label", ["MemoryUnit", "Concept", "Memory", "PlatformNews", "Product"])
async def test_memories_and_knowledge_of_agents_are_out_of_reach(stores: Stores, noor: Curators, label: str) -> None:
    await stores.knowledge.store(noor.who.tenant, stored(noor.who.user, "m", "c1"))
    with pytest.raises(QueryRefused):
        await noor.read(f"MATCH (m:{label}) RETURN m.id AS id")


@pytest.mark.req("N-134", "N-136", "N-138")
@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (n:EntityProject) RETURN n.id SKIP 5",
        "MATCH (a:EntityCapability {level: 'L2'})-[:MONITORED_BY]-(b:EntityRisk {level: 'L3'}) RETURN a.id, b.id",
        "MATCH (n:EntityProject) RETURN n.embedding",
        *(f"MATCH (n:EntityProject) {write}" for write in ("SET n.a = 1", "DELETE n", "DETACH DELETE n", "REMOVE n.a")),
        "CREATE (n:EntityProject)",
        "MERGE (n:EntityProject {id: 'x'})",
        "MATCH (n:EntityProject) FOREACH (x IN [1] | SET n.a = 1)",
    ],
)
async def test_what_the_rules_forbid_changes_and_reads_nothing(noor: Curators, statement: str) -> None:
    refused = len(noor.refusals)
    with pytest.raises(QueryRefused, match="MCP Constraint Violation:"):
        await noor.read(statement)
    assert len(noor.refusals) == refused + 1
    assert (await noor.read("MATCH (n:EntityProject) RETURN count(n) AS found")).rows == ({"found": 65},)


@pytest.mark.req("N-139")
@pytest.mark.parametrize("statement", ["CREATE (n:EntityProject {key: 'evil'})", "MATCH (n:EntityProject) SET n.evil = 1"])
async def test_behind_the_guard_the_store_itself_lets_nobody_write(stores: Stores, noor: Curators, statement: str) -> None:
    with suppress(QueryRefused):  # ArcadeDB tells a change from a reading only when it is committed, which it never is
        await noor.stores.queries.read(noor.who.tenant, statement, {}, 10)
    rows = await stores.run("MATCH (n:EntityProject) WHERE n.key = 'evil' OR n.evil = 1 RETURN count(n) AS found")
    assert rows == [{"found": 0}]


@pytest.mark.req("N-140", "N-145")
async def test_a_list_of_more_than_id_and_name_is_given_with_a_warning(noor: Curators) -> None:
    good = await noor.read(PAGE, last_seen_id="p62")
    more = await noor.read("MATCH (n:EntityProject {id: 'p01'}) RETURN n.status AS status LIMIT 5")
    assert (good.warnings, more.rows, len(more.warnings)) == ((), ({"status": "Active"},), 1)


@pytest.mark.req("N-147")
async def test_what_the_store_cannot_compile_is_told_without_its_text(noor: Curators) -> None:
    with pytest.raises(QueryRefused, match="syntax: ") as caught:
        await noor.stores.queries.read(noor.who.tenant, "MATCH (n:EntityProject) RETURN m.id", {}, 10)
    assert caught.value.__cause__ is not None
    assert "line" not in caught.value.detail


@pytest.mark.req("N-149", "XC-004", "N-070")
async def test_embeddings_and_the_platforms_own_properties_are_taken_out_of_whole_nodes(stores: Stores, noor: Curators) -> None:
    who = noor.who.tenant
    row = {"tenant": who, "key": f"{who}/v", "name": "v", "embedding": [0.1, 0.2], "x_vector": [1.0]}
    await stores.run(f"CREATE (n:{KNOWLEDGE}:Vectors) SET n = $row", row=row)
    whole = "MATCH (n:Vectors) WHERE n.tenant = $t RETURN n, properties(n) AS p, [n] AS l, n.embedding AS embedding"
    found = await noor.stores.queries.read(who, whole, {"t": who}, 10)
    shown = {"id": "v", "labels": ["Vectors"], "properties": {"name": "v"}}
    assert found.rows == ({"n": shown, "p": {"name": "v"}, "l": [shown]},)


async def test_a_node_of_another_tenant_ends_the_call(stores: Stores, noor: Curators) -> None:
    """A statement that no guard let through."""
    statement, who = "MATCH (n:EntityProject) WHERE n.tenant <> $t RETURN n", noor.who.tenant
    with pytest.raises(Internal, match="withheld"):
        await noor.stores.queries.read(who, statement, {"t": who}, 10)


@pytest.mark.req("N-150")
async def test_rows_are_cut_at_the_number_asked(noor: Curators) -> None:
    found = await noor.stores.queries.read(noor.who.tenant, "UNWIND range(1, 20) AS i RETURN i AS i", {}, 3)
    assert found == StatementResult(({"i": 1}, {"i": 2}, {"i": 3}), True)
    whole = await noor.stores.queries.read(noor.who.tenant, "UNWIND range(1, 3) AS i RETURN i AS i", {}, 3)
    assert whole == StatementResult(({"i": 1}, {"i": 2}, {"i": 3}), False)


@pytest.mark.req("N-150")
async def test_bytes_are_cut_at_what_a_message_takes(noor: Curators) -> None:
    found = await noor.stores.queries.read(noor.who.tenant, "UNWIND range(1, 9) AS i RETURN $x AS x", {"x": "x" * 100_000}, 100)
    assert (len(found.rows), found.truncated) == (4, True)


@pytest.mark.req("N-150")
async def test_a_cross_product_is_stopped(stores: Stores, noor: Curators) -> None:
    usual, stores.bolt.query_timeout = stores.bolt.query_timeout, 2.0
    try:
        with pytest.raises(TimedOut, match="took too long"):
            await noor.read(
                "MATCH (a:EntityProject), (b:EntityProject), (c:EntityProject), (d:EntityProject), (e:EntityProject)"
                " WHERE a.budget + b.budget + c.budget + d.budget + e.budget = -1 RETURN count(a) AS found"
            )
    finally:
        stores.bolt.query_timeout = usual
