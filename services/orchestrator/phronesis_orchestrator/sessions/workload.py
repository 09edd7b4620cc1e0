"""Whether there is capacity for more: tasks that are due and events against working hours, and advice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

import phronesis_tokens as tokens
from phronesis_bus import Call
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.constitution.paths import DUE_WORK, DueFound, DueWork
from phronesis_contracts.constitution.session import (
    AssessWorkload,
    CalendarFigures,
    Capacity,
    TaskFigures,
    TaskShown,
    WorkloadAssessed,
)
from phronesis_contracts.constitution.values import ConstitutionNode

from .calendar import (
    Ask,
    BusyTime,
    Calendar,
    CalendarLookup,
    Calendars,
    Window,
    WindowEvents,
    ask_twice,
    measure_busy_time,
    parse_window,
)

YELLOW, RED = 75.0, 85.0
"""Percent: yellow from the first to the second, both included."""


def count_available_hours(window: Window, hours: Sequence[float]) -> float:
    return round(sum(hours[day.weekday()] for day in window.days()), 2)


def compute_capacity(available_hours: float, scheduled_hours: float) -> Capacity:
    """What a load comes to.

    The percentage has two decimals, and its zone is that of the figure that is told. Where there are no working hours there
    is no percentage: red with work, green without.
    """
    scheduled = round(scheduled_hours, 2)
    if available_hours > 0:
        percent: float | None = round(100 * scheduled / available_hours, 2)
    else:
        percent = None if scheduled > 0 else 0.0
    return Capacity(
        available_hours=available_hours, scheduled_hours=scheduled, utilization_percent=percent, zone=capacity_zone(percent)
    )


def capacity_zone(percent: float | None) -> Literal["green", "yellow", "red"]:
    """The zone of a percentage; `None` is work where there are no hours for it."""
    if percent is None or percent > RED:
        return "red"
    return "green" if percent < YELLOW else "yellow"


_DAYS = 3
"""Full days that are named; the others are counted."""


def recommend(capacity: Capacity, due: DueFound, busy: BusyTime, unreadable: int, read: bool) -> tuple[str, ...]:
    """What to do, the most pressing first.

    Args:
        unreadable: events that could not be understood.
        read: whether the calendar could be read.
    """
    return tuple([_load(capacity), *_task_advice(due), *_days(busy), *_calendar(unreadable, read)])


def _load(capacity: Capacity) -> str:
    percent, scheduled = capacity.utilization_percent, capacity.scheduled_hours
    if percent is None:
        return (
            f"There are no working hours in this window, and {_hours(scheduled)} of work are in it: move that work, "
            "or set your working hours."
        )
    if capacity.zone == "red":
        return f"{percent:g} % of your capacity is taken: take on no new commitments unless you trade something off for them."
    if capacity.zone == "yellow":
        return f"{percent:g} % of your capacity is taken: take on small things only."
    room = max(0.0, capacity.available_hours * YELLOW / 100 - scheduled)
    return f"{percent:g} % of your capacity is taken: there is room for about {_hours(room)} more before it gets tight."


def _task_advice(due: DueFound) -> Iterator[str]:
    if due.unestimated:
        verb = "has" if due.unestimated == 1 else "have"
        yield f"{due.unestimated} of {due.total} tasks {verb} no estimate and count as 0 hours: the true load is higher."
    if due.overdue == 1:
        yield "1 open task was due before this window; its hours are not counted here."
    elif due.overdue:
        yield f"{due.overdue} open tasks were due before this window; their hours are not counted here."


def _days(busy: BusyTime) -> Iterator[str]:
    for day, taken, hours in busy.full[:_DAYS]:
        yield f"{day:%A} {day.day} {day:%B} is full: {_hours(taken)} of events in {_hours(hours)} of work."
    if len(busy.full) > _DAYS:
        rest = len(busy.full) - _DAYS
        yield f"{rest} more {'day is' if rest == 1 else 'days are'} full."


def _calendar(unreadable: int, read: bool) -> Iterator[str]:
    if not read:
        yield "Your calendar could not be read: these hours are those of tasks alone."
    if unreadable:
        verb = "event of your calendar was" if unreadable == 1 else "events of your calendar were"
        yield f"{unreadable} {verb} not understood and not counted."


def _hours(hours: float) -> str:
    return f"{round(hours, 1):g} h"


log = logging.getLogger(__name__)

_SHOWN = 50
"""Tasks and events that are told; the figures are of all."""
_DUE = 3.0
"""Seconds that the graph may take."""
_CALENDAR = 2.0
"""Seconds that a calendar may take, all in all; then the workload is that of tasks alone."""


class Workload:
    def __init__(self, ask: Ask, calendars: Calendars, events: CalendarLookup, now: Callable[[], datetime]) -> None:
        self._ask, self._calendars, self._events, self._now = ask, calendars, events, now

    async def assess(self, call: Call, request: AssessWorkload) -> WorkloadAssessed:
        """Capacity, what it is made of, and what to do.

        Raises:
            BadRequest: the window is none.
            Unavailable: the graph or the store is away.
        """
        calendar = await self._calendars.of(call.who)
        return await self.of(call.who, calendar, self.window(calendar, request), request)

    def window(self, calendar: Calendar, request: AssessWorkload) -> Window:
        """The window that a request is about, in days of the calendar's time zone."""
        return parse_window(request.start_date, request.end_date, ZoneInfo(calendar.time_zone), self._now())

    async def of(self, who: Principal, calendar: Calendar, window: Window, request: AssessWorkload) -> WorkloadAssessed:
        """The same for a calendar that is at hand."""
        details = request.include_task_details
        question = DueWork(start_date=window.first.isoformat(), end_date=window.due, limit=_SHOWN if details else 0)
        due, found = await asyncio.gather(
            ask_twice(self._ask, who, DUE_WORK, question, _DUE),
            self._found(who, calendar, window) if request.include_calendar else _none(),
        )
        taken = measure_busy_time(found.occurrences, window, calendar.hours) if found else BusyTime()
        load = compute_capacity(count_available_hours(window, calendar.hours), due.total_effort_hours + taken.hours)
        answer = WorkloadAssessed(
            start_date=window.first,
            end_date=window.end,
            capacity=load,
            tasks=_tasks(due, details),
            calendar=CalendarFigures(
                total=len(taken.events), total_hours=taken.hours, events=taken.events[:_SHOWN] if details else None
            ),
            recommendations=recommend(load, due, taken, found.unreadable if found else 0, found is not None),
            degraded=() if found is not None else ("calendar",),
        )
        return answer.model_copy(update={"token_estimate": tokens.count(tokens.clean(answer.model_dump_json()))})

    async def _found(self, who: Principal, calendar: Calendar, window: Window) -> WindowEvents | None:
        """What the calendar has, or `None` where it could not be read in time."""
        try:
            async with asyncio.timeout(_CALENDAR):
                return await self._events.of(who, calendar, window, _CALENDAR)
        except (ServiceError, TimeoutError) as error:
            log.warning("a calendar could not be read: %s", error.code if isinstance(error, ServiceError) else "timed_out")
            return None


async def _none() -> WindowEvents:
    return WindowEvents()


def _tasks(due: DueFound, details: bool) -> TaskFigures:
    return TaskFigures(
        total=due.total,
        by_status=due.by_status,
        total_effort_hours=round(due.total_effort_hours, 2),
        items=tuple(_task(node) for node in due.items[:_SHOWN]) if details else None,
    )


def _task(node: ConstitutionNode) -> TaskShown:
    more = node.model_extra or {}
    return TaskShown(
        id=node.id,
        title=node.title,
        status=node.status or "",
        effort_hours=more.get("effortHours"),
        due_date=more.get("dueDate"),
    )
