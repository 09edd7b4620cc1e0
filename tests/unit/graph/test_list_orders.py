from __future__ import annotations

import random

import pytest

from phronesis_bus import Metrics
from phronesis_contracts import BadRequest, TooLarge
from phronesis_contracts.constitution.lists import WHOLE, ListFoundation, ListVision
from phronesis_graph.constitution.layers import AnswerCache, WholeLayers, horizon_sort_key
from phronesis_graph.constitution.lists import ListMeasures, WholeLayerHandlers
from tests.support.bus import somebody
from tests.support.listed import call, node
from tests.unit.graph.fakes_lists import Graph


def essentials(graph: Graph) -> WholeLayerHandlers:
    return WholeLayerHandlers(WholeLayers(graph), AnswerCache(), ListMeasures(Metrics()))


@pytest.mark.req("O-145", "C-37")
def test_horizons_are_sorted_as_times_then_lengths_then_words_and_empties_last() -> None:
    wanted = [
        "2026",
        "2026-03-01",
        "2026-Q3",
        "2026-08",
        "2027-01-01T10:00:00Z",
        "P2W",
        "90 days",
        "P6M",
        "1 year",
        "P1Y6M",
        "10 years",
        "A long time",
        "some day",
        "",
    ]
    shuffled = random.Random(1).sample(wanted, len(wanted))
    assert sorted(shuffled, key=horizon_sort_key) == wanted
    assert horizon_sort_key(None) == horizon_sort_key("  ") == horizon_sort_key("")


@pytest.mark.parametrize("text", ["2026-13", "2026-02-30", "20260101T10", "P", "1 fortnight", "P9999999Y", "٢٠٢٦-99"])
def test_what_is_no_time_is_sorted_as_words(text: str) -> None:
    assert horizon_sort_key(text) == f"2{text.casefold()}"


@pytest.mark.req("O-130")
async def test_the_foundation_is_sorted_by_type_and_then_by_age() -> None:
    kinds = ["value", "human", "principle", "value", "guardrail", "ai", "policy", "context", "value"]
    nodes = [node(f"n{i}", kind, day=-i) for i, kind in enumerate(kinds)]
    found = await essentials(Graph(random.Random(2).sample(nodes, len(nodes)))).foundation(call(somebody()), ListFoundation())
    assert [one.id for one in found.items] == ["n5", "n7", "n4", "n1", "n6", "n2", "n8", "n3", "n0"]


@pytest.mark.req("O-145", "C-37")
async def test_the_vision_is_sorted_by_rank_of_type_then_horizon_then_age() -> None:
    wanted = [
        node("v2", "vision", day=2, horizon="2030"),
        node("v1", "vision", day=1),
        node("b", "business"),
        node("g1", "goal", day=9, horizon="2026-12-31"),
        node("g2", "goal", day=1, horizon="P1Y"),
        node("g3", "goal", day=1, horizon="soon"),
        node("g4", "goal", day=1),
        node("g5", "goal", day=2),
        node("s", "season", horizon="2026-01-01"),
    ]
    found = await essentials(Graph(random.Random(3).sample(wanted, len(wanted)))).vision(call(somebody()), ListVision())
    assert [one.id for one in found.items] == [one.id for one in wanted]


async def test_a_type_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadRequest, match="guardrail") as caught:
        await essentials(Graph([])).foundation(call(somebody()), ListFoundation(description_types=("value", "guardrails")))
    assert caught.value.field == "descriptionTypes.1"


async def test_a_layer_of_too_many_nodes_is_refused_with_the_list_that_has_pages() -> None:
    graph = Graph([node(f"n{i}") for i in range(WHOLE + 1)])
    with pytest.raises(TooLarge, match=r"foundation\.list\.v1"):
        await essentials(graph).foundation(call(somebody()), ListFoundation())
    del graph.rows["n0"]
    found = await essentials(graph).foundation(call(somebody()), ListFoundation())
    assert found.next_cursor is not None
