from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from phronesis_bus import Call
from phronesis_contracts import NotFound
from phronesis_contracts.constitution.paths import AggregateTrack, DecisionsSince, DueWork, LeadsTo, RelateFoundation
from phronesis_graph.constitution.figures import FigureHandlers
from phronesis_graph.constitution.walk_store import BoltFigures, BoltWalks
from tests.support.bus import somebody
from tests.support.constitutions import plant, thing
from tests.support.graph import Stores, opened
from tests.support.servers import GraphServer

WEEK = {"start_date": "2026-11-16", "end_date": "2026-11-22"}


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("figures")) as found:
        await found.schema.declared()
        yield found


@pytest.fixture
def figures(stores: Stores) -> FigureHandlers:
    return FigureHandlers(BoltFigures(stores.bolt), BoltWalks(stores.bolt))


@pytest.fixture
async def call(stores: Stores) -> Call:
    """A caller with an empty graph; another tenant has a task, a metric, a decision and a value."""
    await plant(
        stores,
        somebody(),
        (
            thing("theirs", "task", dueDate="2026-11-18"),
            thing("metric", "metric"),
            thing("seen", "observation", observedAt="2026-11-18", value=1.0),
            thing("paid", "decision", roi={"total": 99.0}, decidedAt="2026-11-18"),
            thing("value", "value"),
        ),
        "seen MEASURES metric",
    )
    return Call(somebody(), "gateway")


@pytest.mark.req("O-261", "O-067")
async def test_what_is_due_is_open_and_dated_within_both_ends(stores: Stores, figures: FigureHandlers, call: Call) -> None:
    tasks = (
        thing("first", "task", dueDate="2026-11-16", priority=1, effortHours=2.0),
        thing("low", "task", dueDate="2026-11-18", priority=2),
        thing("high", "task", dueDate="2026-11-18", priority=5, status="in_progress", effortHours=3.0),
        thing("none", "task", dueDate="2026-11-18"),
        thing("last", "task", dueDate="2026-11-22T23:30:00.000000Z"),
        thing("done", "task", dueDate="2026-11-18", status="done", effortHours=8.0),
        thing("old", "task", dueDate="2026-11-18", status="archived"),
        thing("late", "task", dueDate="2026-11-15"),
        thing("later", "task", dueDate="2026-11-23"),
        thing("undated", "task"),
    )
    await plant(stores, call.who, tasks)
    found = await figures.due(call, DueWork(**WEEK))
    assert [task.id for task in found.items] == ["first", "high", "low", "none", "last"]
    assert found.model_dump(exclude={"items"}, by_alias=False) == {
        "total": 5,
        "by_status": {"in_progress": 1, "todo": 4},
        "total_effort_hours": 5.0,
        "unestimated": 3,
        "overdue": 1,
    }


@pytest.mark.req("O-261", "C-48")
async def test_fifty_tasks_are_told_and_all_are_counted(stores: Stores, figures: FigureHandlers, call: Call) -> None:
    await plant(stores, call.who, [thing(f"t{place:02}", "task", dueDate="2026-11-18", effortHours=0.5) for place in range(60)])
    found = await figures.due(call, DueWork(**WEEK))
    assert [task.id for task in found.items] == [f"t{place:02}" for place in range(50)]
    assert (found.total, found.total_effort_hours) == (60, 30.0)
    assert (await figures.due(call, DueWork(limit=0, **WEEK))).items == ()


@pytest.mark.req("O-265", "O-266", "O-267", "O-270", "O-072")
async def test_each_active_metric_is_summed_up_over_the_time_asked_for(
    stores: Stores, figures: FigureHandlers, call: Call
) -> None:
    seen = {"before": ("2026-11-15", 50.0), "a": ("2026-11-16", 1.0), "b": ("2026-11-18T09:00:00.000000Z", 2.0)}
    seen |= {"c": ("2026-11-22", 6.0), "after": ("2026-11-23", 50.0)}
    nodes = [thing(id, "observation", observedAt=at, value=value) for id, (at, value) in seen.items()]
    nodes += [thing("lost", "observation", observedAt="2026-11-18", value=50.0, status="archived")]
    metrics = (thing("m", "metric", title="Zeal", unit="points"), thing("quiet", "metric", title="Calm"))
    gone = thing("gone", "metric", title="Gone", status="archived")
    await plant(stores, call.who, (*nodes, *metrics, gone), *(f"{node.id} MEASURES m" for node in nodes))
    found = await figures.aggregate(call, AggregateTrack(**WEEK))
    assert [metric.id for metric in found.metrics] == ["quiet", "m"]
    assert found.metrics[0].model_dump() == {"id": "quiet", "title": "Calm", "count": 0, "series": ()}
    assert found.metrics[1].model_dump() == {
        "id": "m",
        "title": "Zeal",
        "unit": "points",
        "count": 3,
        "average": 3.0,
        "minimum": 1.0,
        "maximum": 6.0,
        "series": (
            (datetime(2026, 11, 16, tzinfo=UTC), 1.0),
            (datetime(2026, 11, 18, 9, tzinfo=UTC), 2.0),
            (datetime(2026, 11, 22, tzinfo=UTC), 6.0),
        ),
    }


@pytest.mark.req("O-269", "C-65")
async def test_metrics_may_be_named(stores: Stores, figures: FigureHandlers, call: Call) -> None:
    await plant(stores, call.who, (thing("one", "metric"), thing("two", "metric")))
    found = await figures.aggregate(call, AggregateTrack(metric_ids=("two",), **WEEK))
    assert [metric.id for metric in found.metrics] == ["two"]
    with pytest.raises(NotFound):
        await figures.aggregate(call, AggregateTrack(metric_ids=("two", "metric"), **WEEK))


@pytest.mark.req("O-284", "O-262", "O-082", "C-72")
async def test_decisions_come_by_their_return_with_what_was_done(stores: Stores, figures: FigureHandlers, call: Call) -> None:
    nodes = (
        thing("best", "decision", roi={"total": 9.5}, decidedAt="2026-11-20"),
        thing("good", "decision", roi={"total": 2.0}, decidedAt="2026-11-16"),
        thing("unpaid", "decision", decidedAt="2026-11-18"),
        thing("early", "decision", roi={"total": 5.0}, decidedAt="2026-11-15"),
        thing("old", "decision", roi={"total": 7.0}, decidedAt="2026-11-18", status="archived"),
        thing("done", "task", status="done"),
        thing("open", "task"),
    )
    await plant(stores, call.who, nodes, "best LEADS_TO done", "best LEADS_TO open")
    found = await figures.decisions(call, DecisionsSince(**WEEK))
    assert [node.id for node in found.decisions] == ["best", "good", "unpaid"]
    assert {id: [one.id for one in of] for id, of in found.outcomes.items()} == {"best": ["done"], "good": [], "unpaid": []}
    assert found.decisions[0].model_dump()["roi"] == {"total": 9.5}
    paid = await figures.decisions(call, DecisionsSince(min_roi=5.0, limit=2))
    assert [node.id for node in paid.decisions] == ["best", "early"]


@pytest.mark.req("O-291", "O-074", "O-076")
async def test_the_foundation_has_links_to_its_own_active_nodes_alone(
    stores: Stores, figures: FigureHandlers, call: Call
) -> None:
    nodes = (
        thing("v", "value", summary="Care", description="In full"),
        thing("p", "principle"),
        thing("old", "principle", status="archived"),
        thing("g", "goal"),
    )
    await plant(stores, call.who, nodes, "v ENFORCED_BY p", "v ENFORCED_BY old", "v LEADS_TO g")
    found = await figures.foundation(call, RelateFoundation())
    assert [(node.id, node.title, node.summary, node.description, node.links) for node in found.items] == [
        ("v", "The v", "Care", "In full", (LeadsTo(target_id="p", type="ENFORCED_BY"),)),
        ("p", "The p", None, None, ()),
    ]
