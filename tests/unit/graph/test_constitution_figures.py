from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.constitution.paths import (
    AggregateTrack,
    DecisionsSince,
    LeadsTo,
    Outcomes,
    RelateFoundation,
    StrategiesForGoal,
)
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_graph.constitution.budgets import shorten_texts
from phronesis_graph.constitution.figures import (
    DueTasks,
    FigureHandlers,
    MetricSeries,
    Window,
    parse_open_window,
    parse_time,
    parse_window,
    summarize_metric,
    thin_series,
)
from phronesis_graph.constitution.traversal import WalkNode
from phronesis_tokens import count
from tests.support.constitutions import thing, things
from tests.unit.graph.fakes_constitution import ANN, Graph

WEEK = {"start_date": "2026-11-16", "end_date": "2026-11-22"}


class Figured:
    """The figures' port, with answers that were given before."""

    def __init__(self, *measured: MetricSeries, decisions: Sequence[ConstitutionNode] = (), nodes: Sequence[Any] = ()) -> None:
        self._measured = list(measured)
        self._decisions = list(decisions)
        self._nodes = list(nodes)

    async def due(self, tenant: str, window: Window, limit: int) -> DueTasks:
        return DueTasks([], {}, 0.0, 0, 0)

    async def measured(self, tenant: str, window: Window, metrics: Sequence[str]) -> list[MetricSeries]:
        return self._measured

    async def decisions(self, tenant: str, min_roi: float | None, window: Window | None, limit: int) -> list[ConstitutionNode]:
        return self._decisions

    async def outcomes(self, tenant: str, request: Outcomes) -> dict[str, list[WalkNode]]:
        done = WalkNode("t", "task", "The t", "done", "active", "2026-01-01T00:00:00.000000Z")
        return {id: [done] for id in request.ids}

    async def foundation(self, tenant: str, limit: int) -> list[Any]:
        return self._nodes


def figures(store: Figured | None = None, graph: Graph | None = None) -> FigureHandlers:
    return FigureHandlers(store or Figured(), graph or Graph(()))


def hourly(id: str, observations: int) -> MetricSeries:
    times = [
        f"2026-{1 + place // 672:02}-{1 + place // 24 % 28:02}T{place % 24:02}:00:00.000000Z" for place in range(observations)
    ]
    return MetricSeries(id, f"Metric {id}", "hours", [(at, 100 + place / 7) for place, at in enumerate(times)])


@pytest.mark.req("O-265")
def test_three_observations_have_a_count_an_average_a_range_and_a_series() -> None:
    days = [("2026-11-16", 1.0), ("2026-11-17T08:00:00.000000Z", 2.0), ("2026-11-18", 6.0)]
    found = summarize_metric(MetricSeries("m", "Slips", "days", days), 24)
    assert found.model_dump() == {
        "id": "m",
        "title": "Slips",
        "unit": "days",
        "count": 3,
        "average": 3.0,
        "minimum": 1.0,
        "maximum": 6.0,
        "series": (
            (datetime(2026, 11, 16, tzinfo=UTC), 1.0),
            (datetime(2026, 11, 17, 8, tzinfo=UTC), 2.0),
            (datetime(2026, 11, 18, tzinfo=UTC), 6.0),
        ),
    }


@pytest.mark.req("O-267", "C-63")
def test_a_metric_without_observations_counts_none_and_has_no_average() -> None:
    assert summarize_metric(MetricSeries("m", "Slips", None, ()), 24).model_dump() == {
        "id": "m",
        "title": "Slips",
        "count": 0,
        "series": (),
    }


@pytest.mark.req("O-268", "C-64")
@given(st.integers(0, 200), st.integers(0, 60))
def test_a_thinned_series_keeps_its_order_its_ends_and_no_more_points_than_asked(size: int, points: int) -> None:
    series = [(f"{place:04}", float(place)) for place in range(size)]
    found = thin_series(series, points)
    assert len(found) == min(size, points)
    assert found == sorted(set(found))
    assert points < 2 or not series or (found[0], found[-1]) == (series[0], series[-1])
    gaps = [b[1] - a[1] for a, b in pairwise(found)]
    assert not gaps or max(gaps) - min(gaps) <= 1


@pytest.mark.req("O-268", "O-269")
async def test_twenty_metrics_with_two_thousand_observations_stay_within_five_thousand_tokens() -> None:
    found = await figures(Figured(*(hourly(f"m{place}", 100) for place in range(20)))).aggregate(ANN, AggregateTrack(**WEEK))
    assert 3_000 <= count(found.model_dump_json()) <= 5_000
    assert ([metric.count for metric in found.metrics], found.truncated) == ([100] * 20, False)
    assert all(metric.series[0][1] == 100 for metric in found.metrics)


@pytest.mark.req("O-268", "C-64")
async def test_the_full_series_is_told_where_it_is_asked_for() -> None:
    store = Figured(hourly("m", 300))
    assert len((await figures(store).aggregate(ANN, AggregateTrack(**WEEK))).metrics[0].series) == 24
    assert len((await figures(store).aggregate(ANN, AggregateTrack(points=1_000, **WEEK))).metrics[0].series) == 300


@pytest.mark.req("O-012")
async def test_series_that_pass_the_greatest_answer_are_cut_by_whole_metrics() -> None:
    store = Figured(*(hourly(f"m{place}", 600) for place in range(10)))
    found = await figures(store).aggregate(ANN, AggregateTrack(points=1_000, **WEEK))
    assert found.truncated
    assert 0 < len(found.metrics) < 10
    assert count(found.model_dump_json()) <= 25_000


@pytest.mark.req("O-266", "O-261")
@pytest.mark.parametrize(
    ("start", "end", "inside", "outside"),
    [
        ("2026-11-16", "2026-11-22", ["2026-11-16", "2026-11-22", "2026-11-22T23:59:59.999999Z"], ["2026-11-15", "2026-11-23"]),
        (
            "2026-11-16T12:00:00Z",
            "2026-11-17T12:00:00Z",
            ["2026-11-16", "2026-11-16T12:00:00.000000Z", "2026-11-17", "2026-11-17T12:00:00.000000Z"],
            ["2026-11-16T11:59:59.999999Z", "2026-11-17T12:00:00.000001Z"],
        ),
    ],
)
def test_both_ends_of_a_window_are_inside_and_an_end_day_to_its_last_moment(
    start: str, end: str, inside: list[str], outside: list[str]
) -> None:
    over = parse_window(start, end)

    def holds(date: str) -> bool:
        return over.first <= date <= over.last or date == over.day

    assert [date for date in (*inside, *outside) if holds(date)] == inside


@pytest.mark.parametrize(("start", "end"), [("soon", "2026-11-22"), ("2026-11-22", "2026-11-21"), ("2026-13-01", "2026-12-01")])
def test_a_window_needs_two_dates_in_their_order(start: str, end: str) -> None:
    with pytest.raises(BadRequest):
        parse_window(start, end)


def test_a_window_may_be_open() -> None:
    assert parse_open_window("2026-11-16", None) == Window("2026-11-16", "2026-11-16", "9999-12-31T23:59:59.999999Z")
    assert parse_time("2026-11-16") == datetime(2026, 11, 16, tzinfo=UTC)


GOAL = thing("g", "goal")


@pytest.mark.req("O-253", "O-258")
async def test_the_ten_strategies_that_changed_last_are_those_of_a_goal() -> None:
    strategies = [thing(f"s{place:02}", "strategy", at=place) for place in range(12)]
    strategies[3] = thing("s03", "strategy", at=99)
    old = [thing(f"old{place}", "strategy", at=200, status="archived") for place in range(2)]
    links = [f"{one.id} {'SERVES' if place % 2 else 'ALIGNS_WITH'} g" for place, one in enumerate((*strategies, *old))]
    found = await figures(graph=Graph((GOAL, *strategies, *old), *links)).strategies(ANN, StrategiesForGoal(id="g", max_hops=1))
    assert [one.strategy.id for one in found.strategies] == [
        "s03",
        *(f"s{place:02}" for place in (11, 10, 9, 8, 7, 6, 5, 4, 2)),
    ]


@pytest.mark.req("O-260")
async def test_a_strategy_two_hops_away_is_found_with_its_active_initiatives() -> None:
    nodes = (
        GOAL,
        thing("h", "goal"),
        thing("near", "strategy", at=1),
        thing("far", "strategy"),
        *things("initiative", "i", "j"),
    )
    old, other = thing("old", "initiative", status="archived"), thing("other", "strategy")
    links = (
        "near SERVES g",
        "h SERVES g",
        "far SERVES h",
        "near SUPPORTED_BY i",
        "near SUPPORTED_BY old",
        "near SUPPORTED_BY j",
    )
    graph = Graph((*nodes, old, other, thing("v", "vision")), *links, "g SERVES v", "other SERVES v")
    found = await figures(graph=graph).strategies(ANN, StrategiesForGoal(id="g"))
    assert [(one.strategy.id, one.hops, [i.id for i in one.initiatives]) for one in found.strategies] == [
        ("near", 1, ["i", "j"]),
        ("far", 2, []),
    ]
    with pytest.raises(NotFound):
        await figures(graph=graph).strategies(ANN, StrategiesForGoal(id="nobody"))


@pytest.mark.req("O-256", "C-62")
async def test_strategies_of_many_words_stay_within_fifteen_thousand_tokens() -> None:
    texts = {"description": "what is meant by it " * 500, "narrative": "how it came about " * 500}
    strategies = [thing(f"s{place}", "strategy", **texts) for place in range(20)]
    graph = Graph((GOAL, *strategies), *(f"{one.id} SERVES g" for one in strategies))
    found = await figures(graph=graph).strategies(ANN, StrategiesForGoal(id="g", limit=20))
    assert found.truncated
    assert 5_000 <= count(found.model_dump_json()) <= 15_000


@pytest.mark.req("O-283")
async def test_ten_decisions_with_outcomes_stay_within_fifteen_thousand_tokens() -> None:
    decisions = [thing(f"d{place}", "decision", reasoning="because of this " * 900) for place in range(10)]
    found = await figures(Figured(decisions=decisions)).decisions(ANN, DecisionsSince())
    assert 5_000 <= count(found.model_dump_json()) <= 15_000
    assert found.outcomes.keys() == {one.id for one in found.decisions}
    few = await figures(Figured(decisions=decisions[:2])).decisions(ANN, DecisionsSince())
    assert ([one.id for one in few.decisions], few.truncated) == (["d0", "d1"], False)
    assert [one.id for one in few.outcomes["d0"]] == ["t"]


def test_a_text_of_a_node_that_is_told_with_others_is_cut() -> None:
    found = shorten_texts(thing("s", "strategy", narrative="word " * 5_000, description="short"))
    assert count(found.model_dump()["narrative"]) <= 1_000
    assert (found.id, found.description) == ("s", "short")


@pytest.mark.req("O-291")
async def test_the_foundation_is_told_by_type_and_title_each_node_with_its_links() -> None:
    store = Figured(nodes=[(thing("p", "principle", summary="Keep it"), []), (thing("v", "value"), [("ENFORCED_BY", "p")])])
    found = await figures(store).foundation(ANN, RelateFoundation())
    assert [(node.id, node.summary, node.links) for node in found.items] == [
        ("v", None, (LeadsTo(target_id="p", type="ENFORCED_BY"),)),
        ("p", "Keep it", ()),
    ]
