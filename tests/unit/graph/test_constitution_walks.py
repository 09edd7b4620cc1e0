from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.constitution.paths import BridgeConcepts, ClimbLadder, ExpandPath, Near, Step, Subgraph
from phronesis_contracts.constitution.values import MAX_TOKENS, ConstitutionNode
from phronesis_graph.constitution.budgets import count_tokens
from phronesis_graph.constitution.walks import WalkHandlers
from phronesis_tokens import count
from tests.support.constitutions import thing, things
from tests.unit.graph.fakes_constitution import ANN, Graph

LADDER = (thing("a", "goal"), thing("b", "goal"), thing("c", "vision"))


def rungs(told: Any) -> tuple[list[str], int]:
    return [rung.id for rung in told.ladder], told.depth


@pytest.mark.req("O-275", "O-224")
async def test_a_ladder_goes_up_to_the_vision_and_five_rungs_at_most() -> None:
    graph = Graph(LADDER, "a SUPPORTED_BY b", "b SUPPORTED_BY c")
    assert rungs(await WalkHandlers(graph).ladder(ANN, ClimbLadder(id="a"))) == (["a", "b", "c"], 2)
    chain = [f"g{place} SUPPORTED_BY g{place + 1}" for place in range(8)]
    high = Graph(things("goal", *(f"g{place}" for place in range(9))), *chain)
    assert rungs(await WalkHandlers(high).ladder(ANN, ClimbLadder(id="g0"))) == ([f"g{place}" for place in range(6)], 5)


@pytest.mark.req("O-276")
async def test_a_rung_is_told_by_id_type_and_title() -> None:
    told = await WalkHandlers(Graph(LADDER, "a SUPPORTED_BY c")).ladder(ANN, ClimbLadder(id="a"))
    assert [rung.model_dump(exclude={"status"}) for rung in told.ladder] == [
        {"id": "a", "type": "goal", "title": "The a"},
        {"id": "c", "type": "vision", "title": "The c"},
    ]
    assert told.token_estimate > 0


@pytest.mark.req("O-277")
async def test_every_ladder_is_told_where_all_are_asked_for() -> None:
    graph = Graph((*LADDER, thing("d", "vision")), "a SUPPORTED_BY b", "b SUPPORTED_BY c", "a SUPPORTED_BY d")
    told = await WalkHandlers(graph).ladder(ANN, ClimbLadder(id="a", all_ladders=True))
    assert rungs(told) == (["a", "b", "c"], 2)
    assert [([rung.id for rung in other.rungs], other.depth) for other in told.others] == [(["a", "d"], 1)]
    assert not told.truncated


@pytest.mark.req("O-278")
@pytest.mark.parametrize("status", ["archived", "deprecated"])
async def test_a_ladder_stops_below_an_inactive_rung(status: str) -> None:
    graph = Graph((LADDER[0], thing("b", "goal", status=status), LADDER[2]), "a SUPPORTED_BY b", "b SUPPORTED_BY c")
    assert rungs(await WalkHandlers(graph).ladder(ANN, ClimbLadder(id="a"))) == (["a"], 0)
    assert rungs(await WalkHandlers(graph).ladder(ANN, ClimbLadder(id="b"))) == ([], 0)


@pytest.mark.req("O-279")
async def test_a_circle_of_goals_ends_with_each_of_them_once() -> None:
    graph = Graph(LADDER, "a SUPPORTED_BY b", "b SUPPORTED_BY a", "b SUPPORTED_BY c")
    assert rungs(await WalkHandlers(graph).ladder(ANN, ClimbLadder(id="a"))) == (["a", "b", "c"], 2)


@pytest.mark.req("O-280")
async def test_a_ladder_of_no_goal_is_an_error_and_no_empty_ladder() -> None:
    graph = Graph((*LADDER, thing("t", "task")))
    with pytest.raises(NotFound):
        await WalkHandlers(graph).ladder(ANN, ClimbLadder(id="nobody"))
    with pytest.raises(BadRequest):
        await WalkHandlers(graph).ladder(ANN, ClimbLadder(id="t"))


@pytest.mark.req("O-069", "C-11")
async def test_what_supports_a_goal_from_another_layer_is_no_rung() -> None:
    graph = Graph((LADDER[0], thing("v", "value"), thing("i", "insight")), "a SUPPORTED_BY v", "a SUPPORTED_BY i")
    assert rungs(await WalkHandlers(graph).ladder(ANN, ClimbLadder(id="a"))) == (["a"], 0)


NEIGHBOURS = (
    thing("a", "goal"),
    thing("s", "strategy", at=1),
    thing("t", "strategy", at=2),
    thing("i", "initiative"),
    thing("old", "strategy", status="archived"),
    thing("behind", "initiative"),
)
LINKS = (
    "s SERVES a",
    "t ALIGNS_WITH a",
    "s SUPPORTED_BY i",
    "t SUPPORTED_BY i",
    "old SERVES a",
    "old SUPPORTED_BY behind",
)


def reached(found: Any) -> list[tuple[str, int]]:
    return [(one.node.id, one.hops) for one in found.reached]


@pytest.mark.req("O-228", "C-60")
async def test_neighbours_come_nearest_first_each_with_the_steps_to_it() -> None:
    found = await WalkHandlers(Graph(NEIGHBOURS, *LINKS)).expand(ANN, ExpandPath(id="a", depth=3))
    assert reached(found) == [("t", 1), ("s", 1), ("i", 2)]
    assert found.reached[2].path == (
        Step(node_id="t", type="strategy", title="The t", relationship="ALIGNS_WITH", direction="in"),
        Step(node_id="i", type="initiative", title="The i", relationship="SUPPORTED_BY", direction="out"),
    )
    assert (found.stats.total_nodes, found.stats.by_type, found.truncated) == (3, {"strategy": 2, "initiative": 1}, False)


@pytest.mark.req("O-228")
@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ({"relationship_types": ["SERVES"]}, ["s"]),
        ({"direction": "out"}, []),
        ({"direction": "in", "depth": 1}, ["t", "s"]),
        ({"types": ["Initiative"]}, ["i"]),
        ({"layers": ["vision"]}, []),
    ],
)
async def test_neighbours_are_narrowed_by_relationship_direction_type_and_layer(question: Any, ids: list[str]) -> None:
    request = ExpandPath.model_validate({"id": "a", "depth": 2, **question})
    found = await WalkHandlers(Graph(NEIGHBOURS, *LINKS)).expand(ANN, request)
    assert [one.node.id for one in found.reached] == ids


async def test_an_answer_with_less_than_there_is_says_so() -> None:
    found = await WalkHandlers(Graph(NEIGHBOURS, *LINKS)).expand(ANN, ExpandPath(id="a", depth=2, limit=2))
    assert (reached(found), found.truncated) == ([("t", 1), ("s", 1)], True)


@pytest.mark.req("O-351")
async def test_a_relationship_type_that_is_no_name_is_refused() -> None:
    with pytest.raises(BadRequest):
        await WalkHandlers(Graph(NEIGHBOURS)).expand(ANN, ExpandPath(id="a", relationship_types=("X]->() DETACH",)))


@pytest.mark.req("O-012", "O-228", "C-55")
async def test_no_neighbourhood_passes_the_greatest_answer() -> None:
    leaves = [thing(f"s{place}", "strategy", summary="much to say " * 150) for place in range(300)]
    graph = Graph((NEIGHBOURS[0], *leaves), *(f"{leaf.id} SERVES a" for leaf in leaves))
    found = await WalkHandlers(graph).expand(ANN, ExpandPath(id="a", limit=300))
    assert found.truncated
    assert MAX_TOKENS * 0.9 < count(found.model_dump_json()) <= MAX_TOKENS
    around = await WalkHandlers(graph).subgraph(ANN, Subgraph(ids=("a",), limit=300))
    assert around.truncated
    assert count(around.model_dump_json()) <= MAX_TOKENS


@pytest.mark.req("O-228", "C-55")
async def test_a_subgraph_is_the_nodes_around_and_what_joins_them() -> None:
    found = await WalkHandlers(Graph(NEIGHBOURS, *LINKS)).subgraph(ANN, Subgraph(ids=("s", "a"), depth=1))
    assert [node.id for node in found.nodes] == ["s", "a", "t", "i"]
    assert {link.id for link in found.relationships} == {
        "s SERVES a",
        "t ALIGNS_WITH a",
        "s SUPPORTED_BY i",
        "t SUPPORTED_BY i",
    }
    assert found.stats.token_estimate == count_tokens((*found.nodes, *found.relationships))


async def test_a_subgraph_around_what_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFound):
        await WalkHandlers(Graph(NEIGHBOURS)).subgraph(ANN, Subgraph(ids=("a", "nobody")))


@pytest.mark.req("O-228", "C-55")
async def test_a_bridge_is_the_shortest_ways_between_two_and_who_stands_on_them() -> None:
    found = await WalkHandlers(Graph(NEIGHBOURS, *LINKS)).bridge(ANN, BridgeConcepts(from_id="a", to_id="i"))
    assert [[(step.node_id, step.relationship, step.direction) for step in path] for path in found.paths] == [
        [("a", None, None), ("s", "SERVES", "in"), ("i", "SUPPORTED_BY", "out")],
        [("a", None, None), ("t", "ALIGNS_WITH", "in"), ("i", "SUPPORTED_BY", "out")],
    ]
    assert [node.id for node in found.between] == ["s", "t"]


async def test_there_is_no_bridge_over_what_is_archived_nor_over_more_steps_than_asked() -> None:
    walks = WalkHandlers(Graph(NEIGHBOURS, *LINKS))
    assert (await walks.bridge(ANN, BridgeConcepts(from_id="a", to_id="behind"))).paths == ()
    assert (await walks.bridge(ANN, BridgeConcepts(from_id="a", to_id="i", max_depth=1))).paths == ()
    with pytest.raises(BadRequest):
        await walks.bridge(ANN, BridgeConcepts(from_id="a", to_id="a"))


@pytest.mark.req("O-177", "O-179", "O-183")
async def test_what_is_near_is_active_over_active_nodes_alone() -> None:
    walks = WalkHandlers(Graph(NEIGHBOURS, *LINKS))
    found = await walks.near(ANN, Near(id="a", max_depth=2))
    assert reached(found) == [("t", 1), ("s", 1), ("i", 2)]
    assert all(len(one.path) == one.hops and one.path[-1].node_id == one.node.id for one in found.reached)


@pytest.mark.req("O-184")
async def test_what_is_near_is_narrowed_before_it_is_cut() -> None:
    walks = WalkHandlers(Graph(NEIGHBOURS, *LINKS))
    assert reached(await walks.near(ANN, Near(id="a", types=("initiative",), limit=1))) == [("i", 2)]
    assert reached(await walks.near(ANN, Near.model_validate({"id": "a", "status": "archived"}))) == [("old", 1)]


async def test_an_anchor_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFound):
        await WalkHandlers(Graph(NEIGHBOURS)).near(ANN, Near(id="nobody"))


async def test_a_repeat_gives_the_same_order() -> None:
    nodes: list[ConstitutionNode] = [thing("a", "goal"), *(thing(f"s{place}", "strategy") for place in range(20))]
    links = [f"{node.id} SERVES a" for node in nodes[1:]]
    one, other = Graph(nodes, *links), Graph(nodes[::-1], *links[::-1])
    question = Near(id="a", limit=7)
    assert await WalkHandlers(one).near(ANN, question) == await WalkHandlers(other).near(ANN, question)
