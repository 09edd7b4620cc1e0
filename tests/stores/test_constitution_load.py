"""Parts of a constitutional graph, written many nodes at a time on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.writes import ConstitutionLoaded, Operation, RegistryRefused
from tests.support.constitution_writes import Constitution, declared
from tests.support.graph import Stores, opened
from tests.support.servers import GraphServer

pytestmark = pytest.mark.timeout(300)
ONE_OF_EACH = [
    {"id": f"n{number}", "type": kind.name, "title": f"A {kind.name}", **declared(kind)}
    for number, kind in enumerate(TYPES.values())
]


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("graph")) as found:
        yield found


@pytest.fixture
def graph(stores: Stores) -> Constitution:
    return Constitution(stores)


def _goal(id: str, **given: Any) -> dict[str, Any]:
    return {"id": id, "type": "goal", "title": f"Goal {id}", **given}


def _joined(source: str, target: str, name: str = "SUPPORTED_BY") -> dict[str, str]:
    return {"fromId": source, "toId": target, "type": name}


async def test_a_part_writes_what_the_single_tools_would(graph: Constitution) -> None:
    assert await graph.load(nodes=ONE_OF_EACH) == ConstitutionLoaded(created=len(TYPES))
    for given in ONE_OF_EACH:
        alone = await graph.create(
            given["type"], **{k: v for k, v in given.items() if k not in ("id", "type")}, override="a copy"
        )
        loaded = await graph.read(given["id"])
        assert loaded is not None
        ours, theirs = loaded.model_dump(mode="json"), alone.node.model_dump(mode="json")
        for kept in ("id", "createdAt", "updatedAt", "provenance"):
            assert (ours.pop(kept) is None) == (theirs.pop(kept) is None)
        assert ours == theirs


async def test_the_same_part_again_changes_nothing_and_announces_nothing(graph: Constitution) -> None:
    part = {"nodes": [_goal("a"), _goal("b")], "relationships": [_joined("a", "b")]}
    assert await graph.load(**part) == ConstitutionLoaded(created=2, relationships=1)
    before = (await graph.nodes(), await graph.links(), await graph.news())
    assert await graph.load(**part) == ConstitutionLoaded(unchanged=2)
    assert (await graph.nodes(), await graph.links(), await graph.news()) == before


async def test_a_node_that_is_there_gets_what_is_given_and_keeps_the_rest(graph: Constitution) -> None:
    await graph.load(nodes=[_goal("a", summary="first", target="ten")])
    assert await graph.load(nodes=[_goal("a", summary="second")]) == ConstitutionLoaded(updated=1)
    found = await graph.read("a")
    assert found is not None
    told = found.model_dump(mode="json")
    assert (told["summary"], told["target"], told["version"]) == ("second", "ten", 2)
    last = (await graph.news())[-1].nodes[0]
    assert (last.operation, last.version, last.changed) == (Operation.UPDATE, 2, ("summary",))


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"nodes": [_goal("a"), _goal("b", deadline="soonish")]}, "nodes.1.deadline"),
        ({"nodes": [_goal("a"), {"id": "b", "type": "gaol", "title": "b"}]}, "nodes.1.type"),
        ({"nodes": [_goal("a"), _goal("a")]}, "nodes.1.id"),
        ({"nodes": [_goal("a")], "relationships": [_joined("a", "a")]}, "relationships.0.toId"),
        ({"nodes": [_goal("a"), _goal("b")], "relationships": [_joined("a", "b", "MEASURES")]}, "type"),
    ],
    ids=["value", "type", "twice", "itself", "ends"],
)
async def test_one_thing_that_breaks_the_registry_stops_the_whole_part(
    graph: Constitution, part: dict[str, Any], field: str
) -> None:
    with pytest.raises(RegistryRefused) as caught:
        await graph.load(**part)
    assert (caught.value.field, await graph.nodes(), await graph.news()) == (field, [], [])


async def test_an_end_that_is_not_there_stops_the_whole_part(graph: Constitution) -> None:
    with pytest.raises(NotFound) as caught:
        await graph.load(nodes=[_goal("a")], relationships=[_joined("a", "elsewhere")])
    assert (caught.value.field, await graph.nodes()) == ("relationships.0.toId", [])


async def test_a_chain_that_comes_back_is_refused_in_one_part_and_across_parts(graph: Constitution) -> None:
    chain = [_joined("a", "b"), _joined("b", "c")]
    nodes = [_goal(id) for id in "abc"]
    with pytest.raises(RegistryRefused) as caught:
        await graph.load(nodes=nodes, relationships=[*chain, _joined("c", "a")])
    assert ("comes back" in caught.value.detail or "come back" in caught.value.detail, await graph.nodes()) == (True, [])
    await graph.load(nodes=nodes, relationships=chain)
    with pytest.raises(RegistryRefused):
        await graph.load(relationships=[_joined("c", "a")])
    assert len(await graph.links()) == 2


async def test_what_is_to_go_goes_with_its_relationships_before_the_rest_is_written(graph: Constitution) -> None:
    await graph.load(nodes=[_goal("a"), _goal("b")], relationships=[_joined("a", "b")])
    done = await graph.load(remove=["a", "unknown"], nodes=[_goal("c")], relationships=[_joined("c", "b")])
    assert done == ConstitutionLoaded(created=1, removed=1, relationships=1)
    assert ([node.id for node in await graph.nodes()], len(await graph.links())) == (["b", "c"], 1)
    assert [(one.id, one.operation) for one in (await graph.news())[-1].nodes] == [
        ("a", Operation.DELETE),
        ("c", Operation.CREATE),
    ]


async def test_a_part_that_comes_twice_under_one_key_is_written_once(graph: Constitution) -> None:
    first = await graph.load("key", nodes=[_goal("a")])
    assert (await graph.load("key", nodes=[_goal("a")]), len(await graph.news())) == (first, 1)
