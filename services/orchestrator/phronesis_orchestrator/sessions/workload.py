"""Whether there is room for more: tasks that are due and a calendar's events against working hours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import phronesis_tokens as tokens
from phronesis_bus import Call
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.constitution.paths import DUE_WORK, DueFound, DueWork
from phronesis_contracts.constitution.session import (
    AssessWorkload,
    CalendarFigures,
    TaskFigures,
    TaskShown,
    WorkloadAssessed,
)
from phronesis_contracts.constitution.values import ConstitutionNode

from .advice import recommendations
from .asking import twice
from .busy import Busy, busy
from .capacity import available, capacity
from .domain import Calendar, Found
from .ports import Ask, Calendars
from .sources import Events
from .windows import Window, window

log = logging.getLogger(__name__)

_SHOWN = 50
"""Tasks and events that are told; the figures are of all (C-48)."""
_DUE = 3.0
"""Seconds that the graph may take."""
_CALENDAR = 2.0
"""Seconds that a calendar may take, all in all; then the workload is that of tasks alone (O-206)."""


class Workload:
    """Assesses workloads.

    Args:
        ask: asks the graph.
        calendars: what users have set.
        events: looks into calendars.
        now: the present moment.
    """

    def __init__(self, ask: Ask, calendars: Calendars, events: Events, now: Callable[[], datetime]) -> None:
        self._ask = ask
        self._calendars = calendars
        self._events = events
        self._now = now

    async def assess(self, call: Call, request: AssessWorkload) -> WorkloadAssessed:
        """Capacity, what it is made of, and what to do (O-189 to O-206).

        Raises:
            BadRequest: the window is none.
            Unavailable: the graph or the store is away.
        """
        calendar = await self._calendars.of(call.who)
        return await self.of(call.who, calendar, self.window(calendar, request), request)

    def window(self, calendar: Calendar, request: AssessWorkload) -> Window:
        """The window that a request is about, in days of the calendar's time zone."""
        return window(request.start_date, request.end_date, ZoneInfo(calendar.time_zone), self._now())

    async def of(self, who: Principal, calendar: Calendar, window: Window, request: AssessWorkload) -> WorkloadAssessed:
        """The same for a calendar that is at hand."""
        details = request.include_task_details
        question = DueWork(start_date=window.first.isoformat(), end_date=window.due, limit=_SHOWN if details else 0)
        due, found = await asyncio.gather(
            twice(self._ask, who, DUE_WORK, question, _DUE),
            self._found(who, calendar, window) if request.include_calendar else _none(),
        )
        taken = busy(found.occurrences, window, calendar.hours) if found else Busy()
        load = capacity(available(window, calendar.hours), due.total_effort_hours + taken.hours)
        answer = WorkloadAssessed(
            start_date=window.first,
            end_date=window.end,
            capacity=load,
            tasks=_tasks(due, details),
            calendar=CalendarFigures(
                total=len(taken.events), total_hours=taken.hours, events=taken.events[:_SHOWN] if details else None
            ),
            recommendations=recommendations(load, due, taken, found.unreadable if found else 0, found is not None),
            degraded=() if found is not None else ("calendar",),
        )
        return answer.model_copy(update={"token_estimate": tokens.count(tokens.clean(answer.model_dump_json()))})

    async def _found(self, who: Principal, calendar: Calendar, window: Window) -> Found | None:
        """What the calendar has, or `None` where it could not be read in time (O-206, O-358)."""
        try:
            async with asyncio.timeout(_CALENDAR):
                return await self._events.of(who, calendar, window, _CALENDAR)
        except (ServiceError, TimeoutError) as error:
            log.warning("a calendar could not be read: %s", error.code if isinstance(error, ServiceError) else "timed_out")
            return None


async def _none() -> Found:
    return Found()


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
