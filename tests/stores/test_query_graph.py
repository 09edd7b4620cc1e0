from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.twin import Upsert
from phronesis_graph.bolt.schema import WRITES
from phronesis_graph.knowledge.model import KNOWLEDGE
from tests.support.bus import somebody
from tests.support.curators import Curators
from tests.support.graph import Stores, joined, node, opened, ref, stored
from tests.support.personas import Persona
from tests.support.servers import GraphServer

pytestmark = pytest.mark.timeout(300)

TWIN = Upsert(
    nodes=(node("a", budget=5, aims="To build it"), node("r", type="EntityRisk")),
    relationships=(joined("RATED", ref("a"), ref("r", "EntityRisk")),),
)


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("graph")) as found:
        yield found


@pytest.fixture
def curator(stores: Stores) -> Curators:
    return Curators(stores)


async def everything(stores: Stores, who: Principal) -> list[dict[str, Any]]:
    """All that a tenant has, so that what changed can be seen."""
    nodes = await stores.run("MATCH (n) WHERE n.tenant = $tenant RETURN labels(n) AS l, properties(n) AS p", tenant=who.tenant)
    links = await stores.run(
        "MATCH (n)-[r]->(m) WHERE n.tenant = $tenant OR m.tenant = $tenant RETURN type(r) AS t, properties(r) AS p",
        tenant=who.tenant,
    )
    return sorted([*nodes, *links], key=repr)


@pytest.mark.req("K-008", "K-030", "K-040", "K-042", "T-012")
async def test_the_seeds_example_reads_what_was_created(curator: Curators) -> None:
    await curator.node(name="Milk")
    said = await curator.call("query_graph", cypher_query="MATCH (p:Product) RETURN p.name AS ProductName", read_only=True)
    assert said == {"success": True, "results": [{"ProductName": "Milk"}], "message": "Query executed successfully."}


@pytest.mark.req("K-003", "K-028")
async def test_two_hops_are_grouped_with_bound_values(curator: Curators) -> None:
    shop, milk, bread = [await curator.node(label, name=label) for label in ("Shop", "Product", "Product")]
    standard = await curator.node("Standard", name="GS1")
    for product in (milk, bread):
        await curator.joined(shop, "SELLS", product)
        await curator.joined(product, "FOLLOWS", standard)
    path = "(s:Shop {name: $n})-[:SELLS]->(p:Product)-[:FOLLOWS]->(t:Standard)"
    statement = f"MATCH {path} RETURN t.name AS name, count(p) AS sold"
    assert await curator.rows(statement, n="Shop") == [{"name": "GS1", "sold": 2}]
    assert await curator.rows(statement, n="x' OR 1=1") == []


@pytest.mark.req("K-043", "KC-015")
async def test_nodes_relationships_paths_and_times_come_as_json(curator: Curators) -> None:
    a, b = await curator.node(name="a"), await curator.node("Standard", name="b")
    link = await curator.joined(a, "DEFINES", b, w=1)
    [row] = await curator.rows(
        "MATCH p = (x:Product)-[r:DEFINES]->(y:Standard) RETURN p AS path, x AS x, [r] AS links,"
        " date('2020-01-02') AS day, datetime('2020-01-02T03:04:05Z') AS time, duration('P1DT2H') AS span, 1.5 AS f"
    )
    first = {"id": a, "labels": ["Product"], "properties": {"name": "a"}}
    second = {"id": b, "labels": ["Standard"], "properties": {"name": "b"}}
    relationship = {"id": link, "type": "DEFINES", "properties": {"w": 1}}
    assert row.pop("time").startswith("2020-01-02T03:04:05")
    assert row == {
        "path": {"nodes": [first, second], "relationships": [relationship]},
        "x": first,
        "links": [relationship],
        "day": "2020-01-02",
        "span": "P1DT2H",
        "f": 1.5,
    }
    assert json.loads(json.dumps(row)) == row


@pytest.mark.req("K-041")
async def test_no_rows_are_an_empty_list(curator: Curators) -> None:
    assert await curator.rows("MATCH (p:Product {name: 'nobody'}) RETURN p.name AS name") == []


WRITES_OF_EACH_KIND = [
    "CREATE (n:Product {name: 'x'})",
    "MERGE (n:Product {name: 'x'})",
    "MATCH (n:Product) SET n.name = 'x'",
    "MATCH (n:Product) DELETE n",
    "MATCH (n:Product) DETACH DELETE n",
    "MATCH (n:Product) REMOVE n.name",
    "create(n:Product)",
    "MATCH (n:Product) DELETE\nn",
    "MATCH (n:Product) MER/**/GE (m:Product)",
    "/* MATCH */ CREATE (n:Product) RETURN n",
    "MATCH (n:Product) CALL { CREATE (x:Product) RETURN x } RETURN x",
    "MATCH (n:Product) FOREACH (x IN [1] | SET n.pwn = 1)",
    "CREATE INDEX evil FOR (n:Product) ON (n.name)",
    "LOAD CSV FROM 'file:///etc/hostname' AS r RETURN r",
    "CALL db.createLabel('Evil')",
    "MATCH (n:Product) RETURN n; CREATE (x:Product)",
]


@pytest.mark.req("K-031", "K-032", "K-039", "T-013")
@pytest.mark.parametrize("statement", WRITES_OF_EACH_KIND)
async def test_a_reading_call_changes_nothing(stores: Stores, curator: Curators, statement: str) -> None:
    await curator.node(name="Milk")
    before = await everything(stores, curator.who)
    said = await curator.call("query_graph", cypher_query=statement, read_only=True)
    assert (said["success"], said["results"]) == (False, [])
    assert await everything(stores, curator.who) == before
    assert [(tool, code) for tool, _, code in curator.refusals] == [("query_graph", "graph.query_refused")]


@pytest.mark.req("K-044")
async def test_a_word_in_a_text_is_no_write(curator: Curators) -> None:
    await curator.node(name="SET TOP BOX")
    statement = "MATCH (n:Product) WHERE n.name = 'SET TOP BOX' RETURN n.name AS name"
    assert await curator.rows(statement) == [{"name": "SET TOP BOX"}]


@pytest.mark.req("K-038", "KC-012")
@pytest.mark.parametrize("statement", ["MATCH (n RETURN n", "MATCH (n:Product) RETURN m", "RETURN", "SELECT 1"])
async def test_a_statement_that_is_none_is_told_from_others(curator: Curators, statement: str) -> None:
    said = await curator.call("query_graph", cypher_query=statement, read_only=True)
    assert said["success"] is False
    assert "Change the statement" in said["message"]


@pytest.mark.req("K-002", "K-033", "KC-001")
async def test_an_agent_creates_changes_and_deletes_by_statement(curator: Curators) -> None:
    statement = "CREATE (p:Product {name: $n})-[:DEFINES {w: 1}]->(s:Standard {name: 'GS1'}) RETURN p"
    made = await curator.changed(statement, n="Milk")
    found = await curator.call("search_nodes", label="Product")
    [one] = found["nodes"]
    assert (one["labels"], one["properties"]) == (["Product"], {"name": "Milk"})
    assert made == {"success": True, "results": [{"p": one}], "message": "Query executed successfully."}
    renamed = "MATCH (p:Product {node_id: $id}) SET p.name = 'Oat milk' RETURN p.name AS name"
    changed = await curator.changed(renamed, id=one["id"])
    assert changed == {"success": True, "results": [{"name": "Oat milk"}], "message": "Query executed successfully."}
    assert (await curator.call("get_node_details", node_id=one["id"]))["node"]["properties"] == {"name": "Oat milk"}
    gone = await curator.changed("MATCH (p:Product {name: 'Oat milk'})-[r:DEFINES]->(s:Standard {name: 'GS1'}) DELETE r")
    assert gone["success"], gone
    assert await curator.rows("MATCH (p:Product)-[r]-() RETURN count(r) AS links") == [{"links": 0}]


@pytest.mark.req("K-034", "K-092", "K-093")
async def test_a_change_by_statement_is_audited_without_its_literal_texts(stores: Stores, curator: Curators) -> None:
    await curator.changed("CREATE (p:Product {name: $n, pin: '1234'})-[:DEFINES]->(s:Standard {a: 1})", n="Milk", secret="x")
    rows = await stores.outbox.unsent(10_000)
    [entry] = [json.loads(row.body) for row in rows if row.tenant == curator.who.tenant]
    changed = entry["arguments"].pop("changed")
    assert (changed["nodes_created"], changed["relationships_created"]) == (2, 1)
    assert (entry["who"], entry["action"], entry["outcome"]) == (curator.who.user, "query_graph", "done")
    assert entry["arguments"] == {
        "cypher_query": "CREATE (p:Product {name: $n, pin: '…'})-[:DEFINES]->(s:Standard {a: 1})",
        "parameters": {"n": "Milk", "secret": "***"},
        "read_only": False,
    }


@pytest.mark.req("KC-006")
async def test_what_a_statement_creates_is_the_tenants_and_has_an_id(stores: Stores, curator: Curators) -> None:
    for _ in range(2):
        assert (await curator.changed("MERGE (p:Product:Food {name: 'Milk'}) ON CREATE SET p.n = 1"))["success"]
    found = await curator.call("search_nodes", limit=100)
    [one] = found["nodes"]
    assert one["labels"] == ["Food", "Product"]
    assert (await Curators(stores).call("search_nodes", limit=100))["nodes"] == []
    a = await curator.node(name="a")
    linked = await curator.changed(
        "MATCH (a:Product {node_id: $a}), (b:Product {node_id: $b}) CREATE (a)-[:NEXT]->(b)", a=a, b=one["id"]
    )
    assert linked["success"], linked
    [row] = await curator.rows("MATCH (:Product)-[r:NEXT]->(:Product) RETURN r")
    assert row["r"]["id"]
    assert (await curator.call("delete_node", node_id=one["id"], force_delete=True))["success"]


@pytest.mark.req("K-036", "T-014")
async def test_match_all_and_delete_is_refused(stores: Stores, curator: Curators) -> None:
    await curator.node(name="Milk")
    said = await curator.changed("MATCH (n) DETACH DELETE n")
    assert said["success"] is False
    assert len((await curator.call("search_nodes"))["nodes"]) == 1


def token_of(said: dict[str, Any]) -> str:
    return str(said["message"]).rsplit(" ", 1)[1].rstrip(".")


WIPE = "MATCH (n:Product) DETACH DELETE n"


@pytest.mark.req("K-036", "T-014", "KC-009")
async def test_a_dangerous_statement_is_run_once_it_is_confirmed(curator: Curators) -> None:
    await curator.node(name="Milk")
    said = await curator.changed(WIPE)
    assert (said["success"], curator.refusals[0][2]) == (False, "graph.confirmation_needed")
    assert len((await curator.call("search_nodes"))["nodes"]) == 1
    token = token_of(said)
    assert token not in str(curator.refusals)
    done = await curator.call("query_graph", cypher_query=WIPE, read_only=False, confirm_token=token)
    assert done["success"], done
    assert (await curator.call("search_nodes"))["nodes"] == []
    again = await curator.call("query_graph", cypher_query=WIPE, read_only=False, confirm_token=token)
    assert (again["success"], "confirms nothing" in again["message"]) == (False, True)


async def test_a_token_confirms_nothing_else(stores: Stores, curator: Curators) -> None:
    await curator.node(name="Milk")
    token = token_of(await curator.changed(WIPE))
    mate = Curators(stores, somebody(tenant=curator.who.tenant, **Persona.CURATOR.rights))
    await stores.run(f"MATCH (w:{WRITES}) WHERE w.key ENDS WITH $token SET w.at = w.at - 100", token=token)
    other = "MATCH (n:Product) WHERE n.name > '' DETACH DELETE n"
    for who, given in (
        (curator, {"cypher_query": other}),
        (curator, {"cypher_query": WIPE, "parameters": {"x": 1}}),
        (curator, {"cypher_query": WIPE, "confirm_token": "x"}),
        (mate, {"cypher_query": WIPE}),
    ):
        said = await who.call("query_graph", **({"read_only": False, "confirm_token": token} | given))
        assert (said["success"], "confirms nothing" in said["message"]) == (False, True), given
    await stores.run(f"MATCH (w:{WRITES}) WHERE w.key ENDS WITH $token SET w.at = w.at - 600", token=token)
    late = await curator.call("query_graph", cypher_query=WIPE, read_only=False, confirm_token=token)
    assert (late["success"], len((await curator.call("search_nodes"))["nodes"])) == (False, 1)


TWINS_OWN = [
    "MATCH (a:EntityProject {id: 'a'}) SET a.budget = 9",
    "MATCH (a:EntityProject {id: 'a'}) DETACH DELETE a",
    "CREATE (a:EntityProject {id: 'b', year: 2023, name: 'b', level: 'L3'})",
    "MATCH (a:EntityProject {id: 'a'}), (r:EntityRisk {id: 'r'}) CREATE (r)-[:INFORMS]->(a)",
    "MATCH (a:EntityProject {id: 'a'}), (r:EntityRisk {id: 'r'}) CREATE (r)-[:MINE]->(a)",
    "MATCH (a:EntityProject {id: 'a'}), (p:Product {name: 'Milk'}) CREATE (p)-[:ABOUT]->(a)",
    "MATCH (a:EntityProject {id: 'a'})-[r:RATED]->() DELETE r",
    "MATCH (a:EntityProject {id: 'a'})-[r]->(b:EntityRisk) DELETE r",
    "MATCH (a:EntityProject {id: 'a'})-[r:RATED]->(b:EntityRisk {id: 'r'}) SET r.w = 1",
    "MATCH (a:EntityProject {id: 'a'})-[r]->(b:EntityRisk {id: 'r'}) SET r.w = 1",
    "MATCH (a:Product {name: 'Milk'}), (b:Product {name: 'Milk'}) CREATE (a)-[:RATED]->(b)",
    "MATCH (a:Product {name: 'Milk'}) SET a:EntityProject",
    "MATCH (a:Product {name: 'Milk'}) SET a.tenant = 'other'",
    "MATCH (a:Product {name: 'Milk'}) SET a.key = 'x'",
    "MATCH (a:Product {name: 'Milk'}) REMOVE a:PlatformKnowledge",
    "MATCH (a:Product {name: 'Milk'}) SET a = {name: 'x'}",
    "CREATE (n:PlatformLock {key: 'x'})",
    "CREATE (n:MemoryUnit {id: 'x'})",
    "CREATE (n {name: 'x'})",
    "MATCH (m:MemoryUnit) DETACH DELETE m",
]


@pytest.mark.req("K-036")
@pytest.mark.parametrize("statement", TWINS_OWN)
async def test_what_is_not_the_agents_own_is_not_changed(stores: Stores, curator: Curators, statement: str) -> None:
    await stores.upsert(curator.who, TWIN)
    await stores.knowledge.store(curator.who.tenant, stored(curator.who.user, "m", "c1", links=("m>c1",)))
    await curator.node(name="Milk")
    before = await everything(stores, curator.who)
    said = await curator.changed(statement)
    assert said["success"] is False, said
    assert await everything(stores, curator.who) == before


async def test_a_change_may_read_the_twin(stores: Stores, curator: Curators) -> None:
    await stores.upsert(curator.who, TWIN)
    said = await curator.changed("MATCH (a:EntityProject {id: 'a'}) CREATE (p:Product {name: a.name, cost: a.budget})")
    assert said["success"], said
    found = await curator.call("search_nodes", label="Product")
    assert [one["properties"] for one in found["nodes"]] == [{"name": "The a", "cost": 5.0}]


async def test_the_twin_is_read_by_statement_and_users_items_are_not(stores: Stores, curator: Curators) -> None:
    await stores.upsert(curator.who, TWIN)
    await stores.knowledge.store(curator.who.tenant, stored(curator.who.user, "m", "c1", links=("m>c1",)))
    rows = await curator.rows("MATCH (a:EntityProject)-[:RATED]->(r:EntityRisk) RETURN a.name AS name, r AS risk")
    risk = {"id": "r", "name": "The r", "year": 2023, "level": "L3"}
    assert rows == [{"name": "The a", "risk": {"id": "EntityRisk/r/2023", "labels": ["EntityRisk"], "properties": risk}}]
    for label in ("MemoryUnit", "Concept", "PlatformNews", "PlatformKnowledge"):
        said = await curator.call("query_graph", cypher_query=f"MATCH (n:{label}) RETURN n", read_only=True)
        assert (said["success"], said["results"]) == (False, []), label


@pytest.mark.req("K-084", "KC-020")
async def test_a_statement_that_fails_midway_leaves_nothing(stores: Stores, curator: Curators) -> None:
    said = await curator.changed("CREATE (p:Product {name: 'half'}) WITH p UNWIND [1, 0] AS x SET p.n = 1 / x")
    assert said["success"] is False
    assert await everything(stores, curator.who) == []


async def test_a_repeated_key_changes_once(curator: Curators) -> None:
    given = {"cypher_query": "CREATE (p:Product {name: 'Milk'}) RETURN p.name AS name", "read_only": False}
    first, second = [await curator.call("query_graph", "once", **given) for _ in range(2)]
    assert first == second
    assert len((await curator.call("search_nodes"))["nodes"]) == 1


async def many(stores: Stores, curator: Curators, count: int) -> None:
    tenant = curator.who.tenant
    rows = [{"n": n, "tenant": tenant, "key": f"{tenant}/many-{n}"} for n in range(count)]
    await stores.run(f"UNWIND $rows AS row CREATE (n:{KNOWLEDGE}:Many) SET n = row", rows=rows)


@pytest.mark.req("K-037", "KC-011")
async def test_a_runaway_statement_is_stopped(curator: Curators, stores: Stores) -> None:
    await many(stores, curator, 400)
    usual, stores.bolt.query_timeout = stores.bolt.query_timeout, 2.0
    try:
        said = await curator.call(
            "query_graph",
            cypher_query="MATCH (a:Many), (b:Many), (c:Many), (d:Many) WHERE a.n + b.n + c.n + d.n = -1 RETURN count(a) AS n",
            read_only=True,
        )
    finally:
        stores.bolt.query_timeout = usual
    assert (said["success"], said["results"]) == (False, [])
    assert "took too long" in said["message"]


@pytest.mark.req("KC-011")
async def test_more_rows_than_an_answer_takes_are_cut_and_told(stores: Stores, curator: Curators) -> None:
    await many(stores, curator, 600)
    said = await curator.call("query_graph", cypher_query="MATCH (m:Many) RETURN m.n AS n", read_only=True)
    assert (said["success"], len(said["results"])) == (True, 500)
    assert "only the first 500 rows" in said["message"]
