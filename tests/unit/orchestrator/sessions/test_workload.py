"""Workloads: figures, advice, and what a calendar that fails changes."""

from __future__ import annotations

import time
from typing import Any

import pytest

import phronesis_tokens as tokens
from phronesis_contracts import BadRequest, Forbidden, TimedOut, Unavailable
from phronesis_contracts.constitution.paths import DUE_WORK, DueFound, DueWork
from phronesis_contracts.constitution.session import (
    AssessWorkload,
    CalendarEvent,
    CalendarFigures,
    Capacity,
    TaskFigures,
    TaskShown,
    WorkloadAssessed,
)
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_orchestrator.sessions import workload as workload_module
from phronesis_orchestrator.sessions.calendar import Occurrence
from tests.unit.orchestrator.sessions.fakes import Diary, Owners, Stage, at, caller


async def assess(stage: Stage, due: DueFound | None = None, **request: Any) -> WorkloadAssessed:
    """The workload of somebody whose calendar has the diary's events."""
    who = caller()
    stage.give_calendar(who)
    if due is not None:
        stage.owners.answers[DUE_WORK.subject] = due
    return await stage.workload.assess(who, AssessWorkload(**request))


@pytest.mark.req("O-193", "O-195", "O-196", "O-197", "O-199", "O-204", "O-430", "O-375")
async def test_tasks_and_events_are_held_against_the_week_s_hours() -> None:
    stage = Stage(diary=Diary((at(1, 9, 4), at(2, 9, 6))))
    found = await assess(stage)
    assert found == WorkloadAssessed(
        start_date="2026-11-23",
        end_date="2026-11-30",
        capacity=Capacity(available_hours=40.0, scheduled_hours=30.0, utilization_percent=75.0, zone="yellow"),
        tasks=TaskFigures(total=2, by_status={"todo": 1, "in_progress": 1}, total_effort_hours=20.0),
        calendar=CalendarFigures(total=2, total_hours=10.0),
        recommendations=("75 % of your capacity is taken: take on small things only.",),
        degraded=(),
        token_estimate=found.token_estimate,
    )


@pytest.mark.req("O-189", "O-190", "O-200")
@pytest.mark.parametrize(
    ("end", "last"),
    [
        ("2026-12-04", "2026-12-04T00:00:00Z"),
        ("2026-12-01", "2026-12-01"),
        ("2026-12-03T17:00:00Z", "2026-12-03"),
        (None, "2026-12-08T00:00:00Z"),
    ],
)
async def test_the_graph_is_asked_for_what_is_due_up_to_the_window_s_end(end: str | None, last: str) -> None:
    stage = Stage()
    await assess(stage, start_date="2026-12-01", end_date=end)
    assert stage.owners.asked == [(DUE_WORK.subject, DueWork(start_date="2026-12-01", end_date=last, limit=0))]


@pytest.mark.req("O-191")
async def test_without_the_calendar_nobody_looks_into_it() -> None:
    stage = Stage(diary=Diary((at(1, 9, 4),)))
    found = await assess(stage, include_calendar=False)
    assert (found.calendar, found.degraded, stage.diary.read_forms) == (CalendarFigures(), (), [])


@pytest.mark.req("O-192", "O-199", "O-202", "O-349")
async def test_single_tasks_and_events_are_told_when_asked_for_and_with_few_words() -> None:
    task = ConstitutionNode(
        id="t1",
        type="task",
        layer="execution",
        title="Write",
        status="todo",
        description="long",
        effortHours=3.0,
        dueDate="2026-11-24",
    )
    due = DueFound(items=(task,), total=1, by_status={"todo": 1}, total_effort_hours=3.0)
    plain = await assess(Stage(diary=Diary((at(0, 9, 1),))), due)
    detailed = await assess(Stage(diary=Diary((at(0, 9, 1),))), due, include_task_details=True)
    assert (plain.tasks.items, plain.calendar.events) == (None, None)
    assert detailed.tasks.items == (TaskShown(id="t1", title="Write", status="todo", effort_hours=3.0, due_date="2026-11-24"),)
    assert detailed.calendar.events == (CalendarEvent(title="Meeting", start=at(0, 9, 1).start, duration_hours=1.0),)
    assert "items" not in plain.model_dump_json()


@pytest.mark.req("O-200")
async def test_fifty_tasks_and_events_are_told_at_most_and_the_figures_are_of_all() -> None:
    items = tuple(ConstitutionNode(id=f"t{n}", type="task", layer="execution", title="x") for n in range(50))
    stage = Stage(diary=Diary(tuple(at(1, n / 10, 0.05) for n in range(60))))
    found = await assess(stage, DueFound(items=items, total=250, total_effort_hours=500.0), include_task_details=True)
    assert (found.tasks.total, len(found.tasks.items or ()), found.calendar.total, len(found.calendar.events or ())) == (
        *(250, 50),
        *(60, 50),
    )
    assert stage.owners.asked[0][1].limit == 50


@pytest.mark.req("O-203", "O-432")
async def test_red_warns_with_the_percentage_and_advises_against_more() -> None:
    found = await assess(Stage(), DueFound(total=1, total_effort_hours=35.2))
    assert (found.capacity.zone, found.recommendations) == (
        "red",
        ("88 % of your capacity is taken: take on no new commitments unless you trade something off for them.",),
    )


@pytest.mark.req("O-432")
async def test_green_says_how_much_room_there_is() -> None:
    found = await assess(Stage(), DueFound(total=1, total_effort_hours=10.0))
    assert found.recommendations == ("25 % of your capacity is taken: there is room for about 20 h more before it gets tight.",)


@pytest.mark.req("O-200", "O-201", "O-432", "C-48")
async def test_what_is_not_estimated_and_what_is_overdue_is_said() -> None:
    due = DueFound(total=5, by_status={"todo": 5}, total_effort_hours=4.0, unestimated=2, overdue=3)
    found = await assess(Stage(), due)
    assert (found.tasks.total, found.recommendations[1:]) == (
        5,
        (
            "2 of 5 tasks have no estimate and count as 0 hours: the true load is higher.",
            "3 open tasks were due before this window; their hours are not counted here.",
        ),
    )


@pytest.mark.req("O-432")
async def test_full_days_are_named_and_the_fourth_is_counted() -> None:
    found = await assess(Stage(diary=Diary(tuple(at(day, 8, 9) for day in range(4)))), DueFound())
    assert found.recommendations[1:] == (
        "Monday 23 November is full: 9 h of events in 8 h of work.",
        "Tuesday 24 November is full: 9 h of events in 8 h of work.",
        "Wednesday 25 November is full: 9 h of events in 8 h of work.",
        "1 more day is full.",
    )


@pytest.mark.req("O-198")
async def test_work_on_a_weekend_without_hours_is_red_and_has_no_percentage() -> None:
    found = await assess(Stage(), start_date="2026-11-28", end_date="2026-11-30")
    assert found.capacity == Capacity(available_hours=0.0, scheduled_hours=20.0, utilization_percent=None, zone="red")
    assert found.recommendations == (
        "There are no working hours in this window, and 20 h of work are in it: move that work, or set your working hours.",
    )


@pytest.mark.req("O-204", "O-358", "C-49")
@pytest.mark.parametrize("failure", [Unavailable("away"), TimedOut("late"), BadRequest("no calendar")])
async def test_a_calendar_that_fails_leaves_the_tasks_and_says_so(failure: Any) -> None:
    found = await assess(Stage(diary=Diary((at(1, 9, 4),), failure=failure)))
    assert (found.capacity.scheduled_hours, found.calendar, found.degraded) == (20.0, CalendarFigures(), ("calendar",))
    assert found.recommendations[-1] == "Your calendar could not be read: these hours are those of tasks alone."


@pytest.mark.req("O-206")
async def test_a_calendar_that_takes_half_a_second_is_waited_for() -> None:
    found = await assess(Stage(diary=Diary((at(1, 9, 4),), delay=0.5)))
    assert (found.calendar.total_hours, found.degraded) == (4.0, ())


@pytest.mark.req("O-206")
async def test_a_calendar_that_hangs_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workload_module._CALENDAR == 2.0
    monkeypatch.setattr(workload_module, "_CALENDAR", 0.05)
    began = time.monotonic()
    found = await assess(Stage(diary=Diary(delay=60.0)))
    assert (found.degraded, time.monotonic() - began < 30) == (("calendar",), True)


async def test_events_that_were_not_understood_are_counted() -> None:
    found = await assess(Stage(diary=Diary((at(1, 9, 1),), unreadable=2)))
    assert found.recommendations[-1] == "2 events of your calendar were not understood and not counted."


@pytest.mark.req("C-49")
async def test_who_never_set_a_calendar_has_no_events_and_nothing_is_degraded() -> None:
    stage = Stage(diary=Diary((at(1, 9, 4),)))
    found = await stage.workload.assess(caller(), AssessWorkload())
    assert (found.calendar.total, found.degraded, found.capacity.available_hours) == (0, (), 40.0)


async def test_hours_and_days_are_the_user_s_own() -> None:
    stage, who = Stage(), caller()
    stage.give_calendar(who, source="none", ics=None, hours=(0.0, 6.0, 6.0, 6.0, 0.0, 0.0, 0.0), time_zone="Pacific/Auckland")
    stage.clock.moment = stage.clock.moment.replace(hour=20)
    found = await stage.workload.assess(who, AssessWorkload())
    assert (found.start_date.isoformat(), found.capacity.available_hours) == ("2026-11-24", 18.0)


async def test_the_graph_is_asked_again_after_a_fault_and_not_after_a_refusal() -> None:
    stage = Stage(owners=Owners({DUE_WORK.subject: [Unavailable("away"), DueFound()]}))
    assert (await stage.workload.assess(caller(), AssessWorkload())).tasks.total == 0
    refusing = Stage(owners=Owners({DUE_WORK.subject: Forbidden("no")}))
    with pytest.raises(Forbidden):
        await refusing.workload.assess(caller(), AssessWorkload())
    assert (stage.owners.times(DUE_WORK), refusing.owners.times(DUE_WORK)) == ((2,), (1,))


@pytest.mark.req("O-205", "C-57")
async def test_the_answer_for_many_tasks_is_small_and_its_tokens_are_counted() -> None:
    due = DueFound(total=250, by_status={"todo": 200, "in_progress": 50}, total_effort_hours=900.0, unestimated=40, overdue=12)
    events = tuple(Occurrence("A long title " * 20, one.start, one.end, False) for one in (at(d, 8, 9) for d in range(7)))
    found = await assess(Stage(diary=Diary(events)), due)
    told = found.model_copy(update={"token_estimate": 0}).model_dump_json()
    assert found.token_estimate == tokens.count(told)
    assert 0 < found.token_estimate < 2_000
