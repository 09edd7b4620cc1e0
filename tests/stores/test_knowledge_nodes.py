from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_contracts.knowledge_graph import CreateNode
from phronesis_contracts.twin import Upsert
from phronesis_graph.knowledge.model import KNOWLEDGE
from tests.support.curators import Curators
from tests.support.graph import Stores, node, opened, stored
from tests.support.servers import GraphServer

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("graph")) as found:
        yield found


@pytest.fixture
def curator(stores: Stores) -> Curators:
    return Curators(stores)


async def entries(stores: Stores, tenant: str) -> list[dict[str, Any]]:
    """What waits in the outbox for the audit trail, oldest first."""
    rows = await stores.outbox.unsent(10_000)
    return [json.loads(row.body) for row in rows if row.tenant == tenant and row.subject.endswith("audited")]


@pytest.mark.req("K-010", "K-011", "K-012", "K-013", "K-014", "K-053", "K-054", "K-055", "K-077", "T-011", "KC-003")
async def test_a_node_is_read_as_it_was_created(curator: Curators) -> None:
    values = {
        "name": "Milk",
        "n": 1,
        "f": 1.5,
        "whole": 2.0,
        "b": True,
        "t": "x",
        "list": ["a", "b"],
        "none": [],
        "version": "2023",
    }
    made = await curator.call("create_node", label="Product", properties=values)
    assert made == {"success": True, "node_id": made["node_id"], "message": "Node created successfully."}
    found = await curator.call("get_node_details", node_id=made["node_id"])
    node = {"id": made["node_id"], "labels": ["Product"], "properties": values}
    assert found == {"success": True, "node": node, "message": "Node details retrieved successfully."}
    assert {name: type(value) for name, value in found["node"]["properties"].items()} == {k: type(v) for k, v in values.items()}


@pytest.mark.req("K-010", "K-017")
async def test_a_call_without_properties_twice_makes_two_bare_nodes(curator: Curators) -> None:
    made = [await curator.call("create_node", label="Standard") for _ in range(2)]
    assert len({one["node_id"] for one in made}) == 2
    found = [await curator.call("get_node_details", node_id=one["node_id"]) for one in made]
    assert [one["node"]["properties"] for one in found] == [{}, {}]


@pytest.mark.req("K-009", "KC-005")
@pytest.mark.parametrize("label", ["Product", "Standard", "Concept", "_x1", "Z" * 64])
async def test_labels_of_the_agents_own_are_taken(curator: Curators, label: str) -> None:
    id = await curator.node(label, name="a")
    found = await curator.call("search_nodes", label=label)
    assert [(one["id"], one["labels"]) for one in found["nodes"]] == [(id, [label])]


async def test_a_concept_of_the_agents_and_one_of_a_user_do_not_meet(stores: Stores, curator: Curators) -> None:
    id = await curator.node("Concept", name="mine")
    await stores.knowledge.store(curator.who.tenant, stored(curator.who.user, "c1", "a", links=("a>c1",)))
    found = await curator.call("search_nodes", limit=100)
    assert [one["id"] for one in found["nodes"]] == [id]
    assert [item.id for item in await stores.expand(curator.who, "a")] == ["a", "c1"]


@pytest.mark.req("K-069", "KC-020")
async def test_a_repeated_key_creates_once_and_another_body_is_a_conflict(curator: Curators) -> None:
    made = [await curator.call("create_node", "once", label="Product", properties={"a": 1}) for _ in range(2)]
    assert made[0] == made[1]
    other = await curator.call("create_node", "once", label="Product", properties={"a": 2})
    assert (other["success"], other["node_id"]) == (False, None)
    assert "idempotency key" in other["message"]
    assert len((await curator.call("search_nodes", label="Product"))["nodes"]) == 1


@pytest.mark.req("K-015", "K-025", "K-062", "K-092", "K-093", "T-020", "KC-021", "KC-029")
async def test_each_write_is_audited_with_what_it_touched(stores: Stores, curator: Curators) -> None:
    a, b = await curator.node(name="Milk", api_key="hush"), await curator.node("Standard")
    link = await curator.joined(a, "DEFINES", b, w=1)
    await curator.call("delete_node", node_id=a, force_delete=True)
    assert await curator.rows("MATCH (n:Standard) RETURN n.name AS name") == [{"name": None}]
    found = await entries(stores, curator.who.tenant)
    assert {(one["who"], one["role"], one["outcome"]) for one in found} == {(curator.who.user, "member (curator)", "done")}
    ends = {"from_node_id": a, "to_node_id": b, "type": "DEFINES"}
    assert [(one["action"], one["arguments"]) for one in found] == [
        ("create_node", {"node_id": a, "label": "Product", "properties": {"name": "Milk", "api_key": "***"}}),
        ("create_node", {"node_id": b, "label": "Standard", "properties": {}}),
        ("create_relationship", {"relationship_id": link, **ends, "properties": {"w": 1}}),
        ("delete_node", {"node_id": a, "labels": ["Product"], "relationships": 1}),
    ]
    assert curator.woken == 5


@pytest.mark.req("K-019", "K-021", "K-022", "K-023", "KC-007")
async def test_a_relationship_goes_from_source_to_target(curator: Curators) -> None:
    a, b = await curator.node(name="a"), await curator.node("Standard", name="b")
    id = await curator.joined(a, "DEFINES", b)
    there = "MATCH (x:Product)-[r:DEFINES]->(y:Standard) RETURN x.name AS x, y.name AS y, r AS r"
    assert await curator.rows(there) == [{"x": "a", "y": "b", "r": {"id": id, "type": "DEFINES", "properties": {}}}]
    assert await curator.rows("MATCH (x:Product)<-[r:DEFINES]-(y:Standard) RETURN x.name AS x") == []


@pytest.mark.req("K-026")
async def test_a_node_may_be_joined_to_itself_and_twice_to_another(curator: Curators) -> None:
    a, b = await curator.node(), await curator.node()
    ids = {await curator.joined(a, "RELATES_TO", end, n=n) for n, end in enumerate((a, b, b))}
    assert len(ids) == 3
    assert await curator.rows("MATCH (:Product)-[r:RELATES_TO]->(:Product) RETURN r.n AS n ORDER BY n") == [
        {"n": 0},
        {"n": 1},
        {"n": 2},
    ]


@pytest.mark.req("K-024")
async def test_an_end_that_is_not_the_tenants_own_is_no_end(stores: Stores, curator: Curators) -> None:
    stranger = Curators(stores)
    mine, theirs = await curator.node(), await stranger.node()
    await stores.upsert(curator.who, Upsert(nodes=(node("a"),)))
    for foreign in (theirs, "nothing", "EntityProject/a/2023", f"../{stranger.who.tenant}/{theirs}"):
        for ends in ({"from_node_id": mine, "to_node_id": foreign}, {"from_node_id": foreign, "to_node_id": mine}):
            said = await curator.call("create_relationship", **ends, type="DEFINES")
            assert (said["success"], said["relationship_id"]) == (False, None)
            assert "no such node" in said["message"]
    await curator.joined(mine, "DEFINES", mine)
    found = await stores.run(
        f"MATCH (n:{KNOWLEDGE})-[r]->() WHERE n.tenant IN $tenants RETURN count(r) AS found",
        tenants=[curator.who.tenant, stranger.who.tenant],
    )
    assert found == [{"found": 1}]


@pytest.mark.req("K-056")
async def test_a_node_of_nobody_or_of_another_tenant_is_not_found(stores: Stores, curator: Curators) -> None:
    theirs = await Curators(stores).node(name="secret")
    for id in (theirs, "nothing", "a/b", "EntityProject/a/2023", "MemoryUnit/a"):
        said = await curator.call("get_node_details", node_id=id)
        assert said == {
            "success": False,
            "node": None,
            "message": "node_id: the node was not found. Find ids with search_nodes.",
        }


@pytest.mark.req("K-058", "T-015", "KC-002", "KC-017", "KC-018")
async def test_without_force_nothing_is_deleted(curator: Curators) -> None:
    id = await curator.node()
    said = await curator.call("delete_node", node_id=id, force_delete=False)
    assert said["success"] is False
    assert "only true deletes" in said["message"]
    assert (await curator.call("get_node_details", node_id=id))["success"]


@pytest.mark.req("K-057", "K-059", "K-060", "K-063")
async def test_a_node_goes_with_its_relationships_and_its_neighbours_stay(curator: Curators) -> None:
    hub, left, right = [await curator.node(name=name) for name in ("hub", "left", "right")]
    await curator.joined(hub, "DEFINES", left)
    await curator.joined(right, "DEFINES", hub)
    said = await curator.call("delete_node", node_id=hub, force_delete=True)
    assert said == {"success": True, "message": "Node deleted successfully, with 2 relationships."}
    again = await curator.call("delete_node", node_id=hub, force_delete=True)
    assert again["success"] is False
    assert {one["id"] for one in (await curator.call("search_nodes"))["nodes"]} == {left, right}
    assert await curator.rows("MATCH (a:Product)-[r]-() RETURN count(r) AS links") == [{"links": 0}]


async def test_a_node_of_the_twin_is_not_deleted(stores: Stores, curator: Curators) -> None:
    await stores.upsert(curator.who, Upsert(nodes=(node("a"),)))
    said = await curator.call("delete_node", node_id="EntityProject/a/2023", force_delete=True)
    assert said["success"] is False
    assert (await curator.call("get_node_details", node_id="EntityProject/a/2023"))["success"]


@pytest.mark.req("K-045", "K-046", "K-047", "K-048", "K-049", "K-050", "K-052", "K-075", "T-016", "T-017", "KC-013")
async def test_a_search_finds_what_has_the_label_and_all_the_values(curator: Curators) -> None:
    ids = [await curator.node(name=f"Product {n % 5}", n=n) for n in range(12)]
    await curator.node("Standard", name="Product 1")
    assert len((await curator.call("search_nodes", label="Product"))["nodes"]) == 10
    assert len((await curator.call("search_nodes", label="Product", limit=3))["nodes"]) == 3
    assert len((await curator.call("search_nodes", limit=100))["nodes"]) == 13
    both = await curator.call("search_nodes", label="Product", properties={"name": "Product 1", "n": 6})
    assert both == {
        "success": True,
        "nodes": [{"id": ids[6], "labels": ["Product"], "properties": {"name": "Product 1", "n": 6}}],
        "message": "Search executed successfully: 1 node.",
    }
    none = await curator.call("search_nodes", label="Product", properties={"name": "unknown"})
    assert none == {"success": True, "nodes": [], "message": "Search executed successfully: 0 nodes."}
    assert await curator.call("search_nodes", limit=7) == await curator.call("search_nodes", limit=7)


@pytest.mark.req("XC-008")
async def test_a_search_reads_the_twin_beside_the_agents_nodes(stores: Stores, curator: Curators) -> None:
    await stores.upsert(curator.who, Upsert(nodes=(node("a", budget=5), node("r", type="EntityRisk"))))
    id = await curator.node(name="The a")
    found = await curator.call("search_nodes", properties={"name": "The a"})
    twin = {"id": "a", "name": "The a", "year": 2023, "level": "L3", "budget": 5.0}
    assert found["nodes"] == [
        {"id": id, "labels": ["Product"], "properties": {"name": "The a"}},
        {"id": "EntityProject/a/2023", "labels": ["EntityProject"], "properties": twin},
    ]
    only = await curator.call("search_nodes", label="EntityRisk")
    assert [one["id"] for one in only["nodes"]] == ["EntityRisk/r/2023"]
    assert (await curator.call("get_node_details", node_id="EntityProject/a/2023"))["node"] == found["nodes"][1]


async def test_nobody_sees_another_tenants_nodes(stores: Stores, curator: Curators) -> None:
    await Curators(stores).node(name="secret")
    assert (await curator.call("search_nodes", limit=100))["nodes"] == []
    assert await curator.rows("MATCH (n:Product) RETURN n") == []


@pytest.mark.req("K-090", "K-091", "KC-004")
async def test_values_that_hold_cypher_are_only_values(curator: Curators) -> None:
    bad = "'}) DETACH DELETE n //\\u0027"
    id = await curator.node(name=bad)
    found = await curator.call("search_nodes", properties={"name": bad})
    assert [(one["id"], one["properties"]) for one in found["nodes"]] == [(id, {"name": bad})]


async def test_many_agents_make_new_labels_and_types_at_once(stores: Stores, curator: Curators) -> None:
    """Two copies of the service, with names that the store has never seen."""
    copies = [curator, Curators(stores, curator.who)]
    mark = curator.who.tenant.replace("-", "_")
    ids = await asyncio.gather(*(copies[n % 2].node(f"L_{mark}_{n % 4}", n=n) for n in range(12)))
    await asyncio.gather(*(copies[n % 2].joined(ids[n], f"T_{mark}_{n % 4}", ids[n - 1]) for n in range(12)))
    assert len((await curator.call("search_nodes", limit=100))["nodes"]) == 12


async def test_a_label_and_a_relationship_type_do_not_share_a_name(curator: Curators) -> None:
    mark = curator.who.tenant.replace("-", "_")
    id = await curator.node(f"Both_{mark}")
    said = await curator.call("create_relationship", from_node_id=id, to_node_id=id, type=f"Both_{mark}")
    assert said["success"] is False
    assert said["message"].startswith("type: ")


async def test_a_search_whose_nodes_fit_into_no_answer_gives_fewer(curator: Curators) -> None:
    for n in range(6):
        await curator.node("Long", **{f"p{i}": "x" * 19_000 for i in range(5)}, n=n)
    found = await curator.call("search_nodes", label="Long", limit=100)
    assert len(found["nodes"]) == 5
    assert len(json.dumps(found)) < 512 * 1024


def test_arguments_cross_as_they_came() -> None:
    assert CreateNode.model_validate_json('{"label": 7, "x": [null]}').model_dump() == {"label": 7, "x": [None]}
