"""What to do about a workload, in plain words (O-203)."""

from __future__ import annotations

from collections.abc import Iterator

from phronesis_contracts.constitution.paths import DueFound
from phronesis_contracts.constitution.session import Capacity

from .busy import Busy
from .capacity import YELLOW

_DAYS = 3
"""Full days that are named; the others are counted."""


def recommendations(capacity: Capacity, due: DueFound, busy: Busy, unreadable: int, read: bool) -> tuple[str, ...]:
    """What to do, the most pressing first.

    Args:
        capacity: what the load comes to.
        due: the tasks that are due.
        busy: what the calendar's events take.
        unreadable: events that could not be understood.
        read: whether the calendar could be read.
    """
    return tuple([_load(capacity), *_tasks(due), *_days(busy), *_calendar(unreadable, read)])


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


def _tasks(due: DueFound) -> Iterator[str]:
    if due.unestimated:
        verb = "has" if due.unestimated == 1 else "have"
        yield f"{due.unestimated} of {due.total} tasks {verb} no estimate and count as 0 hours: the true load is higher."
    if due.overdue == 1:
        yield "1 open task was due before this window; its hours are not counted here."
    elif due.overdue:
        yield f"{due.overdue} open tasks were due before this window; their hours are not counted here."


def _days(busy: Busy) -> Iterator[str]:
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
