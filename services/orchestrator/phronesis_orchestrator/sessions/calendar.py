"""Calendars: the values and ports of sessions, the window of a workload, and what events take of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, Protocol
from zoneinfo import ZoneInfo

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Principal, Rpc, ServiceError
from phronesis_contracts.constitution.session import CalendarEvent
from phronesis_contracts.messages import In, Out_

HOURS = (8.0, 8.0, 8.0, 8.0, 8.0, 0.0, 0.0)
"""Working hours of Monday to Sunday of who never set any."""
Source = Literal["none", "ics", "caldav"]


@dataclass(frozen=True)
class Calendar:
    """Where a user's events are, and when the user works."""

    source: Source = "none"
    url: str | None = None
    ics: str | None = field(default=None, repr=False)
    username: str | None = None
    sealed: bytes | None = field(default=None, repr=False)
    """The password, encrypted."""
    hours: tuple[float, ...] = HOURS
    time_zone: str = "UTC"
    version: int = 0
    """Grows with each setting; 0 where nothing was ever set."""


@dataclass(frozen=True)
class Occurrence:
    title: str
    start: datetime
    end: datetime
    whole_day: bool


@dataclass(frozen=True)
class WindowEvents:
    """What of a calendar falls into a window."""

    occurrences: tuple[Occurrence, ...] = ()
    unreadable: int = 0
    """Events that could not be understood."""


DAYS = 7
"""Days of a window whose end nobody states."""
_LONGEST = 366


@dataclass(frozen=True)
class Window:
    """The days from `first` to the one before `end`."""

    first: date
    end: date
    zone: ZoneInfo
    whole: bool = False
    """Whether the end was made to take in the day that was named, and so nothing of `end` itself is due inside."""

    @property
    def due(self) -> str:
        """The last date, ISO 8601, at which a task is due inside: both ends of a window are."""
        return (self.end - timedelta(days=1)).isoformat() if self.whole else f"{self.end.isoformat()}T00:00:00Z"

    @property
    def start(self) -> datetime:
        return midnight(self.first, self.zone)

    @property
    def stop(self) -> datetime:
        return midnight(self.end, self.zone)

    def days(self) -> Iterator[date]:
        return (self.first + timedelta(days=day) for day in range((self.end - self.first).days))


def midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone)


def parse_window(start: str | None, end: str | None, zone: ZoneInfo, now: datetime) -> Window:
    """The window from one ISO 8601 text to another: 7 days from today where nothing is stated.

    Args:
        start, end: days, or times, which stand for their days in `zone`; an end that is a time has its day inside.

    Raises:
        BadRequest: no ISO 8601, an end before the start, or more than 366 days.
    """
    first = now.astimezone(zone).date() if start is None else _day(start, zone, "startDate")[0]
    try:
        if end is None:
            last, whole = first + timedelta(days=DAYS), False
        else:
            last, is_time = _day(end, zone, "endDate")
            if last < first:
                raise BadRequest("the window ends before it begins", field="endDate")
            whole = is_time or last == first  # a window from a day to the same day is meant to be that day
            last += timedelta(days=whole)
        if last - first > timedelta(days=_LONGEST):
            raise BadRequest(f"a window has at most {_LONGEST} days", field="endDate")
        return Window(first, last, zone, whole)
    except OverflowError as error:
        raise BadRequest("the window leaves the calendar", field="endDate") from error


def _day(text: str, zone: ZoneInfo, field: str) -> tuple[date, bool]:
    """The day that a text names, and whether it names a time of that day after its beginning."""
    try:
        if len(text) <= len("2026-11-22"):
            return date.fromisoformat(text), False
        moment = datetime.fromisoformat(text)
        local = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)
    except (ValueError, OverflowError) as error:
        raise BadRequest("not a day or a time of ISO 8601", field=field) from error
    return local.date(), local.time() != time()


class Ask(Protocol):
    """Asks the owner of a contract."""

    async def __call__(self, who: Principal, rpc: Rpc[In, Out_], request: In, limit: float) -> Out_:
        """The answer within `limit` seconds. Raises the `ServiceError` that the owner answers with."""


class Calendars(Protocol):
    """The calendars that users have set."""

    async def of(self, who: Principal) -> Calendar:
        """The caller's, or the one of who never set any."""

    async def keep(self, call: Call, calendar: Calendar) -> Calendar:
        """Set the caller's, with an entry in the audit trail; it comes back with its version."""


class Seal(Protocol):
    """Encrypts what is kept of a password."""

    def shut(self, text: str, owner: Principal) -> bytes:
        """The text, encrypted for its owner. Raises `BadRequest` where the installation has no key."""

    def open(self, sealed: bytes, owner: Principal) -> str:
        """The text again. Raises `Unavailable` where the key is not the one that it was encrypted with."""


class CalendarReader(Protocol):
    """Understands foreign calendars."""

    async def read(self, form: Literal["ics", "caldav"], data: bytes, window: Window) -> WindowEvents:
        """What falls into the window.

        Args:
            form: a file of iCalendar, or the answer to a CalDAV report.
            data: its bytes.
            window: the days that are asked for.

        Raises:
            UnsupportedMedia: this is no calendar.
            TooLarge: too many events.
            TimedOut: understanding it takes too long.
            Unavailable: no process to read it.
        """


async def ask_twice(ask: Ask, who: Principal, rpc: Rpc[In, Out_], request: In, limit: float) -> Out_:
    """The answer, asked for once more where the first try failed and the question is not to blame.

    Args:
        limit: seconds that each try may take.

    Raises:
        ServiceError: what the second try failed with, or the first one where a repeat would change nothing.
    """
    try:
        return await ask(who, rpc, request, limit)
    except ServiceError as error:
        if error.status < 500:
            raise
    return await ask(who, rpc, request, limit)


_DAY = timedelta(days=1)
_TITLE = 200
"""Characters of an event's title that are told."""


@dataclass(frozen=True)
class BusyTime:
    """The events of a window and the hours that they take."""

    events: tuple[CalendarEvent, ...] = ()
    """By their beginning, with what of their length falls into the window; nothing else of them is told."""
    hours: float = 0.0
    full: tuple[tuple[date, float, float], ...] = ()
    """Working days whose events take all their hours: the day, the hours of its events, its working hours."""


def measure_busy_time(occurrences: Iterable[Occurrence], window: Window, hours: Sequence[float]) -> BusyTime:
    """What events take of a window.

    An hour counts once, however many events lie on it. A day on which an event of a whole day lies, or one of 24 hours and
    more, counts with its working hours at least: nobody works through a conference's nights.

    Args:
        hours: working hours of Monday to Sunday.
    """
    inside = sorted(filter(None, (_clip(one, window) for one in occurrences)), key=lambda one: (one.start, one.title))
    taken: dict[date, float] = {}
    for start, end in _merge_spans((one.start, one.end) for one in inside if not one.whole_day):
        for day, part in _by_day(start, end, window):
            taken[day] = taken.get(day, 0.0) + part
    for one in inside:
        if one.whole_day:
            for day, _ in _by_day(one.start, one.end, window):
                taken[day] = max(taken.get(day, 0.0), hours[day.weekday()])
    days = ((day, round(taken[day], 2), hours[day.weekday()]) for day in sorted(taken))
    full = tuple(one for one in days if 0 < one[2] <= one[1])
    return BusyTime(tuple(_calendar_event(one) for one in inside), round(sum(taken.values()), 2), full)


def _clip(one: Occurrence, window: Window) -> Occurrence | None:
    start, stop = window.start.astimezone(UTC), window.stop.astimezone(UTC)
    begins, ends = one.start.astimezone(UTC), max(one.start.astimezone(UTC), one.end.astimezone(UTC))
    # what only touches the window is outside; what takes no time is inside from its first moment on
    if begins >= stop or (ends <= start and begins < start):
        return None
    whole = one.whole_day or ends - begins >= _DAY
    return Occurrence(one.title, max(begins, start), min(ends, stop), whole)


def _merge_spans(spans: Iterable[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, datetime]]:
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


def _calendar_event(one: Occurrence) -> CalendarEvent:
    hours = round((one.end - one.start).total_seconds() / 3600, 2)
    return CalendarEvent(title=one.title[:_TITLE], start=one.start, duration_hours=hours)
