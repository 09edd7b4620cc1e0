"""What a calendar's events take of a window: each hour once, clipped to the window, day by day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from phronesis_contracts.constitution.session import CalendarEvent

from .domain import Occurrence
from .windows import Window, midnight

_DAY = timedelta(days=1)
_TITLE = 200
"""Characters of an event's title that are told."""


@dataclass(frozen=True)
class Busy:
    """The events of a window and the hours that they take."""

    events: tuple[CalendarEvent, ...] = ()
    """By their beginning, with what of their length falls into the window; nothing else of them is told (O-202)."""
    hours: float = 0.0
    full: tuple[tuple[date, float, float], ...] = ()
    """Working days whose events take all their hours: the day, the hours of its events, its working hours."""


def busy(occurrences: Iterable[Occurrence], window: Window, hours: Sequence[float]) -> Busy:
    """What events take of a window.

    An hour counts once, however many events lie on it. A day on which an event of a whole day lies, or one of 24 hours and
    more, counts with its working hours at least: nobody works through a conference's nights.

    Args:
        occurrences: the events.
        window: the days; what lies outside is cut off.
        hours: working hours of Monday to Sunday.
    """
    inside = sorted(filter(None, (_clipped(one, window) for one in occurrences)), key=lambda one: (one.start, one.title))
    taken: dict[date, float] = {}
    for start, end in _merged((one.start, one.end) for one in inside if not one.whole_day):
        for day, part in _by_day(start, end, window):
            taken[day] = taken.get(day, 0.0) + part
    for one in inside:
        if one.whole_day:
            for day, _ in _by_day(one.start, one.end, window):
                taken[day] = max(taken.get(day, 0.0), hours[day.weekday()])
    days = ((day, round(taken[day], 2), hours[day.weekday()]) for day in sorted(taken))
    full = tuple(one for one in days if 0 < one[2] <= one[1])
    return Busy(tuple(_told(one) for one in inside), round(sum(taken.values()), 2), full)


def _clipped(one: Occurrence, window: Window) -> Occurrence | None:
    start, stop = window.start.astimezone(UTC), window.stop.astimezone(UTC)
    begins, ends = one.start.astimezone(UTC), max(one.start.astimezone(UTC), one.end.astimezone(UTC))
    # what only touches the window is outside; what takes no time is inside from its first moment on
    if begins >= stop or (ends <= start and begins < start):
        return None
    whole = one.whole_day or ends - begins >= _DAY
    return Occurrence(one.title, max(begins, start), min(ends, stop), whole)


def _merged(spans: Iterable[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, datetime]]:
    """The spans, in order of their beginning, with those that overlap as one."""
    current: tuple[datetime, datetime] | None = None
    for start, end in spans:
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current


def _by_day(start: datetime, end: datetime, window: Window) -> Iterator[tuple[date, float]]:
    """The days that a span touches, each with the hours of it that the span takes."""
    day = start.astimezone(window.zone).date()
    while start < end:
        day += timedelta(days=1)
        until = min(end, midnight(day, window.zone).astimezone(UTC))
        if until > start:
            yield day - timedelta(days=1), (until - start).total_seconds() / 3600
            start = until


def _told(one: Occurrence) -> CalendarEvent:
    hours = round((one.end - one.start).total_seconds() / 3600, 2)
    return CalendarEvent(title=one.title[:_TITLE], start=one.start, duration_hours=hours)
