"""What there is in the constitutional graph, counted over a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from phronesis_contracts import Nothing, Principal
from phronesis_contracts.constitution.lists import Inventory
from phronesis_contracts.constitution.registry import TYPES
from phronesis_graph.bolt.schema import INDEXES, KEY, Schema
from phronesis_graph.constitution.list_store import BoltSurvey
from phronesis_graph.constitution.lists import InventoryHandlers
from tests.support.bus import somebody
from tests.support.graph import Stores, opened
from tests.support.listed import call, keep, link, node
from tests.support.servers import GraphServer


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("inventory")) as found:
        yield found


@pytest.mark.req("O-119")
async def test_counts_are_those_of_the_tenant(stores: Stores) -> None:
    who = somebody()
    few = ("value", "goal", "vision", "task", "insight")
    nodes = [*(node(f"a-{name}", name) for name in few), node("b", status="archived", properties={"mood": "calm"})]
    links = [link("a-goal", "SERVES", "a-value"), link("a-vision", "SERVES", "a-value"), link("a-goal", "LIKES", "a-task")]
    await keep(stores, who, nodes, links)
    await keep(stores, somebody(), nodes, links)
    found = await inventory(stores, who)
    assert {one.type: one.count for one in found.types} == dict.fromkeys(TYPES, 0) | dict.fromkeys(few, 1) | {"value": 2}
    assert {one.type: (one.count, one.declared) for one in found.relationship_types if one.count} == {
        "SERVES": (2, True),
        "LIKES": (1, False),
    }
    assert (found.total_nodes, found.total_relationships) == (6, 3)
    assert {one.type: one.undeclared for one in found.types if one.undeclared} == {"value": ("mood",)}


@pytest.mark.req("O-077", "O-078", "O-079", "O-080", "O-081", "O-082", "O-084")
async def test_the_indexes_are_online_and_hold_everything(stores: Stores) -> None:
    found = (await inventory(stores, somebody())).indexes
    assert [one.name for one in found] == [index.name for index in (KEY, *INDEXES)]
    assert {"odei_node_status", "odei_node_layer", "odei_node_type", "odei_node_updated", "task_due_date", "decision_roi"} <= {
        one.name for one in found
    }
    assert {(one.state, one.population_percent) for one in found} == {("ONLINE", 100.0)}
    assert all(one.type for one in found)


@pytest.mark.req("O-083")
async def test_the_schema_declared_twice_is_the_same(stores: Stores) -> None:
    before = (await inventory(stores, somebody())).indexes
    await Schema(stores.bolt, stores.ontology, stores.dialect).declared()
    assert (await inventory(stores, somebody())).indexes == before


async def inventory(stores: Stores, who: Principal) -> Inventory:
    return await InventoryHandlers(BoltSurvey(stores.bolt, stores.schema)).inventory(call(who), Nothing())
