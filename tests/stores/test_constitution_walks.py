from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_bus import Call
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.constitution.paths import (
    BridgeConcepts,
    ClimbLadder,
    ExpandPath,
    Near,
    Outcomes,
    Step,
    StrategiesForGoal,
    Subgraph,
)
from phronesis_graph.constitution.figures import FigureHandlers
from phronesis_graph.constitution.walk_store import BoltFigures, BoltWalks
from phronesis_graph.constitution.walks import WalkHandlers
from tests.support.bus import somebody
from tests.support.constitutions import plant, thing, things
from tests.support.graph import Stores, opened
from tests.support.servers import GraphServer


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("walks")) as found:
        await found.schema.declared()
        yield found


@pytest.fixture(scope="module")
async def call(stores: Stores) -> Call:
    """Whose graph it is; another tenant has nodes with the same ids, joined in other ways."""
    one, other = somebody(), somebody()
    nodes = (
        thing("a", "goal", narrative="Why we do it", description="Long words"),
        thing("b", "goal"),
        thing("c", "vision"),
        thing("gone", "goal", status="archived"),
        thing("beyond", "vision"),
        thing("s", "strategy", at=1),
        thing("t", "strategy", at=2),
        thing("i", "initiative", properties={"kept": "elsewhere"}),
        thing("d", "decision"),
        thing("done", "task", status="done"),
        thing("open", "task"),
        thing("m", "metric"),
        thing("n", "insight"),
        *things("evidence", "e", "f"),
    )
    await plant(
        stores,
        one,
        nodes,
        "a SUPPORTED_BY b",
        "b SUPPORTED_BY c",
        "a SUPPORTED_BY gone",
        "gone SUPPORTED_BY beyond",
        "s SERVES a",
        "t ALIGNS_WITH a",
        "s SUPPORTED_BY i",
        "t SUPPORTED_BY i",
        "d LEADS_TO done",
        "d LEADS_TO open",
        "d LEADS_TO m",
        "n SUPPORTED_BY e",
        "n SUPPORTED_BY f",
    )
    foreign = (thing("a", "goal"), thing("b", "goal"), thing("secret", "strategy"))
    await plant(stores, other, foreign, "secret SERVES a", "b SUPPORTED_BY a")
    return Call(one, "gateway")


@pytest.fixture
def walks(stores: Stores) -> WalkHandlers:
    return WalkHandlers(BoltWalks(stores.bolt))


@pytest.fixture
def figures(stores: Stores) -> FigureHandlers:
    return FigureHandlers(BoltFigures(stores.bolt), BoltWalks(stores.bolt))


def reached(found: Any) -> list[tuple[str, int]]:
    return [(one.node.id, one.hops) for one in found.reached]


@pytest.mark.req("O-275", "O-278")
async def test_a_ladder_climbs_over_active_rungs_alone(walks: WalkHandlers, call: Call) -> None:
    found = await walks.ladder(call, ClimbLadder(id="a", all_ladders=True))
    assert ([rung.id for rung in found.ladder], found.depth, found.others) == (["a", "b", "c"], 2, ())
    with pytest.raises(NotFound):
        await walks.ladder(call, ClimbLadder(id="secret"))


@pytest.mark.req("O-279")
async def test_a_ladder_survives_a_circle_in_the_store(stores: Stores, walks: WalkHandlers) -> None:
    who = somebody()
    await plant(stores, who, things("goal", "a", "b", "c"), "a SUPPORTED_BY b", "b SUPPORTED_BY c", "c SUPPORTED_BY a")
    found = await walks.ladder(Call(who, "gateway"), ClimbLadder(id="a"))
    assert [rung.id for rung in found.ladder] == ["a", "b", "c"]


@pytest.mark.req("O-228")
async def test_neighbours_are_reached_with_their_steps_and_directions(walks: WalkHandlers, call: Call) -> None:
    found = await walks.expand(call, ExpandPath(id="a", depth=2))
    assert reached(found) == [("t", 1), ("s", 1), ("b", 1), ("c", 2), ("i", 2)]
    assert found.reached[-1].path == (
        Step(node_id="t", type="strategy", title="The t", relationship="ALIGNS_WITH", direction="in"),
        Step(node_id="i", type="initiative", title="The i", relationship="SUPPORTED_BY", direction="out"),
    )


@pytest.mark.req("O-228")
@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ({"relationshipTypes": ["SERVES", "ALIGNS_WITH"]}, ["t", "s"]),
        ({"direction": "out"}, ["b", "c"]),
        ({"direction": "in"}, ["t", "s"]),
        ({"types": ["initiative"]}, ["i"]),
        ({"relationshipTypes": ["NEVER_SEEN"]}, []),
    ],
)
async def test_neighbours_are_narrowed_in_the_store(
    walks: WalkHandlers, call: Call, question: dict[str, Any], ids: list[str]
) -> None:
    found = await walks.expand(call, ExpandPath.model_validate({"id": "a", "depth": 2, **question}))
    assert [one.node.id for one in found.reached] == ids


@pytest.mark.req("O-228")
async def test_a_subgraph_has_the_relationships_between_its_nodes(walks: WalkHandlers, call: Call) -> None:
    found = await walks.subgraph(call, Subgraph(ids=("a",), depth=1))
    assert [node.id for node in found.nodes] == ["a", "t", "s", "b"]
    assert sorted((link.from_id, link.type, link.to_id) for link in found.relationships) == [
        ("a", "SUPPORTED_BY", "b"),
        ("s", "SERVES", "a"),
        ("t", "ALIGNS_WITH", "a"),
    ]
    told = found.nodes[0].model_dump()
    assert (told["narrative"], told.get("description"), told["version"]) == ("Why we do it", None, 1)


@pytest.mark.req("O-228")
async def test_a_bridge_joins_two_nodes(walks: WalkHandlers, call: Call) -> None:
    found = await walks.bridge(call, BridgeConcepts(from_id="c", to_id="i"))
    assert [[step.node_id for step in path] for path in found.paths] == [["c", "b", "a", "s", "i"], ["c", "b", "a", "t", "i"]]
    assert [node.id for node in found.between] == ["a", "b", "s", "t"]
    assert (await walks.bridge(call, BridgeConcepts(from_id="a", to_id="d"))).paths == ()


@pytest.mark.req("O-183")
async def test_what_is_near_is_of_the_tenant_and_active(walks: WalkHandlers, call: Call) -> None:
    found = await walks.near(call, Near(id="a"))
    assert reached(found) == [("t", 1), ("s", 1), ("b", 1), ("c", 2), ("i", 2)]
    assert reached(await walks.near(call, Near(id="a", types=("initiative",)))) == [("i", 2)]


@pytest.mark.req("O-253", "O-260")
async def test_strategies_of_a_goal_come_in_full_with_their_initiatives(figures: FigureHandlers, call: Call) -> None:
    found = await figures.strategies(call, StrategiesForGoal(id="a"))
    assert [(one.strategy.id, [i.id for i in one.initiatives]) for one in found.strategies] == [("t", ["i"]), ("s", ["i"])]


@pytest.mark.req("O-282", "O-073")
async def test_outcomes_are_those_of_the_types_and_statuses_asked_for(figures: FigureHandlers, call: Call) -> None:
    asked = Outcomes(ids=("d", "nobody"), relationship="LEADS_TO", types=("task", "metric"), statuses=("done", "active"))
    found = await figures.outcomes(call, asked)
    assert {id: sorted(one.id for one in of) for id, of in found.found.items()} == {"d": ["done", "m"]}


@pytest.mark.req("O-273", "O-069")
async def test_evidence_is_attached_to_what_rests_on_it(figures: FigureHandlers, call: Call) -> None:
    asked = Outcomes(ids=("n", "s"), relationship="SUPPORTED_BY", types=("evidence",), statuses=("active",))
    found = await figures.outcomes(call, asked)
    assert {id: sorted(one.id for one in of) for id, of in found.found.items()} == {"n": ["e", "f"], "s": []}


@pytest.mark.req("O-012", "C-60")
async def test_a_hub_is_walked_within_bounds(stores: Stores, walks: WalkHandlers) -> None:
    who: Principal = somebody()
    leaves = [thing(f"s{place}", "strategy", at=place) for place in range(1_500)]
    await plant(stores, who, (thing("hub", "goal"), *leaves), *(f"{leaf.id} SERVES hub" for leaf in leaves))
    found = await walks.near(Call(who, "memory"), Near(id="hub", limit=20))
    assert [one.node.id for one in found.reached] == [f"s{place}" for place in range(1_499, 1_479, -1)]
    told = await walks.expand(Call(who, "gateway"), ExpandPath(id="s0", depth=2, limit=500))
    assert (told.reached[0].node.id, told.truncated) == ("hub", True)
