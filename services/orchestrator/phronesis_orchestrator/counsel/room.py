"""Whether there is room for new work: capacity, what takes it, and what was left over from before."""

from __future__ import annotations

import re
from datetime import date, timedelta

from phronesis_contracts.constitution.paths import DUE_WORK_TOOL, DueFound, DueWork
from phronesis_contracts.constitution.session import (
    ASSESS_WORKLOAD_TOOL,
    AssessWorkload,
    Capacity,
    TaskShown,
    WorkloadAssessed,
)

from .desk import Desk
from .saying import cite, hours, listed, paragraphs

_HOURS = re.compile(r"\b(\d{1,3}(?:\.\d)?)\s*(?:more |further |extra )?(?:h|hours?)\b", re.I)
_BACK = 365
"""Days before the window in which tasks are looked for that are open still."""
_SAID = {"green": "Yes, there is room", "yellow": "There is little room", "red": "No, there is no room"}


async def room(desk: Desk, text: str, today: date) -> str:
    """The answer.

    Args:
        desk: the tools of the turn.
        text: the question; `next week`, `this month` and a number of hours in it are understood.
        today: the day it is.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed.
    """
    start, end = window(text, today)
    asked = AssessWorkload(start_date=start.isoformat(), end_date=end.isoformat(), include_task_details=True)
    found = await desk.ask(ASSESS_WORKLOAD_TOOL, asked)
    tasks = found.tasks.items or ()
    late = await _late(desk, found.start_date)
    return paragraphs(
        _verdict(found.capacity, text, f"from {found.start_date} to {found.end_date}"),
        f"Due in that time:\n{listed(map(_told, tasks))}" if tasks else "No open task is due in that time.",
        late,
        _calendar(found),
        listed(found.recommendations),
    )


def window(text: str, today: date) -> tuple[date, date]:
    """The days that a question is about, the second of them outside; the seven from today on where it names none."""
    if re.search(r"\bnext week\b", text, re.I):
        monday = today + timedelta(days=7 - today.weekday())
        return monday, monday + timedelta(days=7)
    days = 30 if re.search(r"\b(?:this|the|next) month\b", text, re.I) else 7
    return today, today + timedelta(days=days)


def _verdict(capacity: Capacity, text: str, when: str) -> str:
    free = capacity.available_hours - capacity.scheduled_hours
    if capacity.utilization_percent is None:
        return f"There are no working hours {when}, and {hours(capacity.scheduled_hours)} of work."
    figures = (
        f"{hours(capacity.scheduled_hours)} of {hours(capacity.available_hours)} are taken {when}"
        f" ({capacity.utilization_percent:.0f} %, {capacity.zone})"
    )
    if wanted := _HOURS.search(text):
        fits = float(wanted[1]) <= free
        return f"{'Yes' if fits else 'No'}: {figures}; {hours(max(0.0, free))} are free, and {wanted[1]} are asked for."
    return f"{_SAID[capacity.zone]}: {figures}, so {hours(max(0.0, free))} are free."


async def _late(desk: Desk, start: date) -> str:
    """Open tasks that were due before; nothing where the agent has no tool for it."""
    if not desk.has(DUE_WORK_TOOL):
        return ""
    before = DueWork(
        start_date=(start - timedelta(days=_BACK)).isoformat(), end_date=(start - timedelta(days=1)).isoformat(), limit=5
    )
    found: DueFound = await desk.ask(DUE_WORK_TOOL, before)
    left = "overdue and open still, which the figures above do not hold"
    return f"{found.total} {left}:\n{listed(map(cite, found.items))}" if found.items else ""


def _told(task: TaskShown) -> str:
    said = [hours(task.effort_hours)] if task.effort_hours is not None else ["no estimate"]
    said += [f"due {task.due_date[:10]}"] if task.due_date else []
    return f"{cite(task)} ({', '.join(said)}, {task.status.replace('_', ' ')})"


def _calendar(found: WorkloadAssessed) -> str:
    if "calendar" in found.degraded:
        return "The calendar could not be read, so its events are not in the figures."
    if not found.calendar.total:
        return ""
    return f"The calendar has {found.calendar.total} events in that time, {hours(found.calendar.total_hours)} together."
