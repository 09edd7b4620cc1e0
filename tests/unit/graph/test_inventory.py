from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from phronesis_contracts import Nothing
from phronesis_contracts.constitution.lists import IndexState, Inventory
from phronesis_contracts.constitution.registry import RELATIONSHIPS, TYPES, Layer
from phronesis_graph.constitution.lists import InventoryHandlers
from phronesis_graph.constitution.pages import message_tokens
from phronesis_graph.constitution.ports import GraphCounts
from tests.support.bus import somebody
from tests.support.listed import call

INDEX = IndexState(name="odei_node_layer", type="RANGE", state="ONLINE", population_percent=100.0)


@dataclass
class Store:
    """A `Survey` that says what a test gives it."""

    types: Mapping[str, int] = field(default_factory=dict)
    relationships: Mapping[str, int] = field(default_factory=dict)
    bags: list[tuple[str, str]] = field(default_factory=list)

    async def counted(self, tenant: str, bags: int) -> GraphCounts:
        return GraphCounts(self.types, self.relationships, self.bags[:bags])

    async def indexes(self) -> list[IndexState]:
        return [INDEX]


async def inventory(store: Store) -> Inventory:
    return await InventoryHandlers(store).inventory(call(somebody()), Nothing())


@pytest.mark.req("O-009", "O-014", "O-119")
async def test_layers_types_and_how_they_are_read_come_from_the_registry() -> None:
    found = await inventory(Store())
    assert found.layers == tuple(Layer)
    assert [one.type for one in found.types] == list(TYPES)
    assert found.retrieval == {
        "foundation": "always",
        "vision": "always",
        "strategy": "semantic",
        "tactics": "semantic",
        "execution": "time and semantic",
        "track": "aggregate only",
        "mind": "semantic",
    }
    assert {one.type: one.retrieval for one in found.types} == {name: found.retrieval[t.layer] for name, t in TYPES.items()}
    tiers = {one.type: one.tier for one in found.types}
    assert (tiers["value"], tiers["task"], tiers["human"]) == ("P0", "P3", None)


@pytest.mark.req("O-119", "O-069", "C-11", "C-12")
async def test_what_there_is_is_counted_and_every_relationship_type_is_there_with_its_ends() -> None:
    found = await inventory(Store({"value": 3, "goal": 2}, {"SERVES": 4, "LIKES": 1, "ADMIRES": 1, "KNOWS": 5}))
    assert {one.type: one.count for one in found.types if one.count} == {"value": 3, "goal": 2}
    assert [(one.type, one.declared) for one in found.relationship_types] == [
        *((name, True) for name in RELATIONSHIPS),
        ("KNOWS", False),
        ("ADMIRES", False),
        ("LIKES", False),
    ]
    assert {one.type: one.count for one in found.relationship_types if one.count} == {
        "SERVES": 4,
        "KNOWS": 5,
        "ADMIRES": 1,
        "LIKES": 1,
    }
    [measures] = [one for one in found.relationship_types if one.type == "MEASURES"]
    assert measures.ends[0] == {"from": ["observation"], "to": ["metric"], "meaning": "a measured value of a metric"}
    assert (found.total_nodes, found.total_relationships, found.indexes, found.truncated) == (5, 11, (INDEX,), False)


@pytest.mark.req("C-08")
async def test_names_that_a_type_does_not_declare_are_told_of_it() -> None:
    bags = [("value", json.dumps({"b": 1, "a": 2})), ("value", json.dumps({"c": 1})), ("goal", json.dumps({"a" * 500: 1}))]
    found = await inventory(Store(bags=bags))
    assert {one.type: one.undeclared for one in found.types if one.undeclared} == {
        "value": ("a", "b", "c"),
        "goal": ("a" * 64,),
    }


@pytest.mark.req("O-012")
async def test_an_inventory_is_never_larger_than_an_answer() -> None:
    bags = [(name, json.dumps({f"{i} 知識 {j}": 1 for j in range(40)})) for i, name in enumerate(TYPES)]
    strange = {f"TYPE_{i}_OF_MANY": 2_000 - i for i in range(2_000)}
    found = await inventory(Store(relationships=strange, bags=bags))
    others = [one.type for one in found.relationship_types if not one.declared]
    assert message_tokens(found) <= 25_000
    assert (found.truncated, found.total_relationships) == (True, sum(strange.values()))
    assert others == list(strange)[: len(others)]
    assert len(others) > 100
