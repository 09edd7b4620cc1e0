"""Relationships of the constitutional graph, written on a real store, and the graph made to be again as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from phronesis_contracts import BadRequest, Forbidden, KeyReused, NotFound
from phronesis_contracts.constitution.registry import RELATIONSHIPS, Layer
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import RegistryRefused
from tests.support.constitution_writes import Constitution
from tests.support.graph import Stores, opened
from tests.support.personas import Persona
from tests.support.servers import GraphServer

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("graph")) as found:
        yield found


@pytest.fixture
def graph(stores: Stores) -> Constitution:
    return Constitution(stores)


@pytest.mark.req("O-068", "O-113", "O-115")
async def test_a_relationship_has_an_id_a_type_and_two_ends_and_is_made_once(graph: Constitution) -> None:
    goal, vision = await graph.node("goal"), await graph.node("vision")
    made = await graph.relate(goal, "SUPPORTED_BY", vision)
    link = made.relationship
    assert (link.type, link.from_id, link.to_id, made.created) == ("SUPPORTED_BY", goal, vision, True)
    again = await graph.relate(goal, "SUPPORTED_BY", vision)
    assert (again.relationship, again.created) == (link, False)
    assert await graph.links() == [link]
    assert [news.model_dump(mode="json")["relationships"] for news in (await graph.news())[2:]] == [
        [
            {
                "id": link.id,
                "type": "SUPPORTED_BY",
                "from_id": goal,
                "to_id": vision,
                "operation": "create",
                "layers": ["vision"],
            }
        ]
    ]


@pytest.mark.req("O-069", "O-070", "O-071", "O-072", "O-073", "O-074")
@pytest.mark.parametrize("name", list(RELATIONSHIPS))
async def test_each_declared_type_joins_each_pair_of_ends_that_it_names(graph: Constitution, name: str) -> None:
    for ends in RELATIONSHIPS[name].ends:
        source, target = await graph.node(min(ends.source)), await graph.node(max(ends.target))
        assert (await graph.relate(source, name, target)).created
    assert {link.type for link in await graph.links()} == {name}


@pytest.mark.req("O-074", "C-12")
async def test_a_type_that_is_not_declared_joins_any_two(graph: Constitution) -> None:
    note, human = await graph.node("note"), await graph.node("human")
    assert (await graph.relate(note, "SPEAKS_OF", human)).created
    assert (await graph.relate(human, "SPEAKS_OF", note)).created
    assert len(await graph.links()) == 2


async def test_ends_that_do_not_fit_are_refused_and_nothing_is_written(graph: Constitution) -> None:
    goal, metric = await graph.node("goal"), await graph.node("metric")
    for source, name, target in ((goal, "MEASURES", metric), (goal, "SERVE", metric), (goal, "SERVES", goal)):
        with pytest.raises(RegistryRefused):
            await graph.relate(source, name, target)
    assert (await graph.links(), len(await graph.news())) == ([], 2)


@pytest.mark.req("O-075")
async def test_an_end_that_is_not_there_or_is_another_tenants_is_not_found(graph: Constitution) -> None:
    mine, theirs = await graph.node("goal"), await Constitution(graph.stores).node("vision")
    for other in ("nothing", theirs, f"../{theirs}"):
        for ends, field in (((mine, other), "toId"), ((other, mine), "fromId")):
            with pytest.raises(NotFound) as caught:
                await graph.relate(ends[0], "SERVES", ends[1])
            assert caught.value.field == field
    assert await graph.links() == []


async def test_a_chain_does_not_come_back_to_where_it_began(graph: Constitution) -> None:
    a, b, c = [await graph.node("goal", title=title) for title in "abc"]
    await graph.relate(a, "SUPPORTED_BY", b)
    await graph.relate(b, "SUPPORTED_BY", c)
    for source, chain in ((c, "c -SUPPORTED_BY-> a -SUPPORTED_BY-> b -SUPPORTED_BY-> c"), (b, "b -SUPPORTED_BY-> a")):
        with pytest.raises(RegistryRefused) as caught:
            await graph.relate(source, "SUPPORTED_BY", a)
        assert chain in caught.value.detail
    assert (await graph.relate(c, "ALIGNS_WITH", a)).created
    assert len(await graph.links()) == 3


async def test_a_wide_ladder_is_looked_through_by_nodes_and_not_by_paths(graph: Constitution) -> None:
    rows = [[await graph.node("goal", title=f"{step}/{n}") for n in range(3)] for step in range(6)]
    for lower, upper in pairwise(rows):
        for one in lower:
            for other in upper:
                await graph.relate(one, "SERVES", other)
    with pytest.raises(RegistryRefused) as caught:
        await graph.relate(rows[5][0], "SERVES", rows[0][0])
    assert caught.value.detail.count("-SERVES->") == 6


async def test_of_two_that_would_close_a_chain_at_once_one_is_refused(graph: Constitution) -> None:
    a, b = await graph.node("goal"), await graph.node("goal")
    tries = [graph.relate(a, "SERVES", b), Constitution(graph.stores, graph.who).relate(b, "SERVES", a)]
    found = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(type(one).__name__ for one in found) == ["RegistryRefused", "Related"]
    assert len(await graph.links()) == 1


@pytest.mark.req("O-108")
async def test_a_repeated_key_is_the_same_write(graph: Constitution) -> None:
    a, b = await graph.node("goal"), await graph.node("goal")
    first = await graph.relate(a, "SERVES", b, "k")
    assert await graph.relate(a, "SERVES", b, "k") == first
    with pytest.raises(KeyReused):
        await graph.relate(a, "ALIGNS_WITH", b, "k")
    gone = await graph.unrelate(first.relationship.id, "k2")
    assert await graph.unrelate(first.relationship.id, "k2") == gone == first.relationship


@pytest.mark.req("O-115", "C-24")
async def test_a_relationship_is_removed_by_its_id_and_its_ends_stay(graph: Constitution) -> None:
    goal, strategy = await graph.node("goal"), await graph.node("strategy")
    kept = (await graph.relate(strategy, "ALIGNS_WITH", goal)).relationship
    link = (await graph.relate(strategy, "SERVES", goal)).relationship
    with pytest.raises(NotFound):
        await Constitution(graph.stores).unrelate(link.id)
    assert await graph.unrelate(link.id) == link
    assert (await graph.links(), len(await graph.nodes())) == ([kept], 2)
    news = (await graph.news())[-1].relationships
    assert [(one.id, one.operation, one.layers) for one in news] == [(link.id, "delete", (Layer.STRATEGY, Layer.VISION))]


@pytest.mark.req("O-013")
async def test_only_who_may_write_the_node_that_it_leads_from_joins_it(graph: Constitution) -> None:
    task, goal, value = await graph.node("task"), await graph.node("goal"), await graph.node("value")
    principle = await graph.node("principle")
    execute = graph.by(Persona.EXECUTE)
    assert (await execute.relate(task, "SERVES", goal)).created
    link = (await graph.relate(value, "ENFORCED_BY", principle)).relationship
    with pytest.raises(Forbidden):
        await execute.relate(goal, "SUPPORTED_BY", value)
    with pytest.raises(Forbidden):
        await execute.unrelate(link.id)
    assert len(await graph.links()) == 2


@pytest.mark.parametrize("name", ["AI", "GOAL", "VALUE", "CREATE", "MATCH", "ORDER_BY", "X1", "A" * 64])
async def test_a_name_that_a_store_might_stumble_over_is_taken_or_refused_in_words(graph: Constitution, name: str) -> None:
    a, b = await graph.node("note"), await graph.node("human")
    try:
        made = (await graph.relate(a, name, b)).created
    except BadRequest:
        made = False
    assert len(await graph.links()) == int(made)
    assert made or name == "AI"


def backup(nodes: list[ConstitutionNode], links: list[ConstitutionLink]) -> dict[str, object]:
    return {"nodes": tuple(nodes), "relationships": tuple(links)}


async def planted(graph: Constitution) -> tuple[list[ConstitutionNode], list[ConstitutionLink]]:
    goal = await graph.node("goal", title="G", deadline="2026-11-22", properties={"a": 1})
    vision, task = await graph.node("vision", title="V"), await graph.node("task", title="T", effortHours=2)
    await graph.relate(goal, "SUPPORTED_BY", vision)
    await graph.relate(task, "SERVES", goal)
    return await graph.nodes(), await graph.links()


def content(nodes: list[ConstitutionNode]) -> list[dict[str, object]]:
    return [node.model_dump(mode="json", exclude={"version"}) for node in nodes]


@pytest.mark.req("O-121", "C-94")
async def test_a_restored_graph_is_as_it_was(graph: Constitution) -> None:
    nodes, links = await planted(graph)
    by_type = {node.type: node.id for node in nodes}
    await graph.update("goal", by_type["goal"], title="Changed", properties=None)
    await graph.delete(by_type["task"])
    stranger = await graph.node("note")
    await graph.relate(stranger, "SPEAKS_OF", by_type["goal"])
    before = len(await graph.news())
    done = await graph.restore("r1", **backup(nodes, links), last=True)
    assert done.model_dump() == {"nodes": 2, "relationships": 1, "removed_nodes": 1}
    assert content(await graph.nodes()) == content(nodes)
    assert await graph.links() == links
    told = (await graph.news())[before:]
    assert len(told) == 1
    assert {(node.id, node.operation.value, node.version) for node in told[0].nodes} == {
        (by_type["goal"], "update", 3),
        (by_type["task"], "create", 1),
        (stranger, "delete", 2),
    }
    assert sorted(link.operation.value for link in told[0].relationships) == ["create", "delete"]


@pytest.mark.req("O-121")
async def test_a_restore_in_parts_removes_with_the_last_one_what_stood_in_none(graph: Constitution) -> None:
    nodes, links = await planted(graph)
    others = Constitution(graph.stores)
    theirs = await others.node("goal")
    extra = await graph.node("note")
    for node in nodes:
        await graph.restore("r1", key=node.id, nodes=(node,))
    assert len(await graph.nodes()) == 4
    with pytest.raises(BadRequest):
        await graph.restore("r2", relationships=tuple(links))
    done = await graph.restore("r1", relationships=tuple(links), last=True)
    assert done.model_dump() == {"nodes": 0, "relationships": 0, "removed_nodes": 1}
    assert (await graph.nodes(), await graph.links()) == (nodes, links)
    assert extra not in {node.id for node in await graph.nodes()}
    assert [node.id for node in await others.nodes()] == [theirs]


@pytest.mark.req("O-121")
async def test_a_graph_is_restored_into_nothing_and_the_same_again_changes_nothing(graph: Constitution) -> None:
    nodes, links = await planted(graph)
    empty = Constitution(graph.stores)
    done = await empty.restore("r1", **backup(nodes, links), last=True)
    assert done.model_dump() == {"nodes": 3, "relationships": 2, "removed_nodes": 0}
    assert (await empty.nodes(), await empty.links()) == (nodes, links)
    told = len(await empty.news())
    again = await empty.restore("r2", **backup(nodes, links), last=True)
    assert again.model_dump() == {"nodes": 0, "relationships": 0, "removed_nodes": 0}
    assert len(await empty.news()) == told


@pytest.mark.req("O-121")
async def test_an_id_that_has_another_type_by_now_gets_its_own_back(graph: Constitution) -> None:
    nodes, _ = await planted(graph)
    goal = next(node for node in nodes if node.type == "goal")
    await graph.delete(goal.id)
    await graph.create("note", id=goal.id, title="Another")
    await graph.restore("r1", nodes=tuple(nodes))
    assert content(await graph.nodes()) == content(nodes)


@pytest.mark.req("O-347")
async def test_nobody_but_an_admin_restores(graph: Constitution) -> None:
    with pytest.raises(Forbidden):
        await graph.by(Persona.MAESTRO).restore("r1", last=True)


@pytest.mark.req("O-351")
async def test_what_no_registry_knows_is_not_restored(graph: Constitution) -> None:
    node = ConstitutionNode.model_validate({"id": "x", "type": "gaol", "layer": "vision", "title": "x"})
    with pytest.raises(RegistryRefused):
        await graph.restore("r1", nodes=(node,))
    bad = ConstitutionNode.model_validate({"id": "x", "type": "task", "layer": "execution", "title": "x", "effortHours": -1})
    with pytest.raises(RegistryRefused):
        await graph.restore("r1", nodes=(bad,))
    link = ConstitutionLink(id="l", type="X`]->() MATCH (n) DETACH DELETE n //", from_id="a", to_id="b")
    with pytest.raises(RegistryRefused):
        await graph.restore("r1", relationships=(link,))
    assert await graph.nodes() == []
