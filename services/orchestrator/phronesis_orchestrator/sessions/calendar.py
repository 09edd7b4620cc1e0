"""Calendars: where their bytes come from, the window of a workload, and what events take of it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sys
import zlib
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, Protocol
from zoneinfo import ZoneInfo

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Principal, Rpc, ServiceError, TimedOut, TooLarge, Unavailable, UnsupportedMedia
from phronesis_contracts.constitution.session import CalendarEvent
from phronesis_contracts.media import MAX_PAGE, READ_WEB, ReadWeb, WebRead
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


_REPORT = """<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><C:calendar-data/></D:prop><C:filter>\
<C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="{start}" end="{end}"/></C:comp-filter>\
</C:comp-filter></C:filter></C:calendar-query>"""
_OK = {"ics": 200, "caldav": 207}
_LIMIT = 10.0
"""Seconds that an address may take where nobody waits for less."""


class CalendarLookup:
    """Looks into users' calendars. Addresses are asked by the media service alone, which knows which it may."""

    def __init__(self, ask: Ask, reader: CalendarReader, seal: Seal) -> None:
        self._ask, self._reader, self._seal = ask, reader, seal

    async def of(self, who: Principal, calendar: Calendar, window: Window, limit: float = _LIMIT) -> WindowEvents:
        """The events of a window.

        Args:
            calendar: where it is.
            limit: seconds that its address may take.

        Raises:
            BadRequest: the address or the login is refused, or what it gives is no calendar.
            Unavailable: it cannot be reached or read at this time.
            TimedOut: it takes too long.
        """
        if calendar.source == "none":
            return WindowEvents()
        if calendar.ics is not None:
            return await self._reader.read("ics", calendar.ics.encode(), window)
        if calendar.url is None:
            raise Unavailable("the calendar has no address")
        page = await self._ask(who, READ_WEB, self._question(who, calendar, calendar.url, window, limit), limit)
        _judge(page, _OK[calendar.source])
        return await self._reader.read(calendar.source, _bytes(page), window)

    def _question(self, who: Principal, calendar: Calendar, url: str, window: Window, limit: float) -> ReadWeb:
        login = None
        if calendar.sealed is not None:
            password = self._seal.open(calendar.sealed, who)
            login = "Basic " + base64.b64encode(f"{calendar.username or ''}:{password}".encode()).decode()
        if calendar.source == "ics":
            return ReadWeb(url=url, authorization=login, seconds=limit)
        body = _REPORT.format(start=_moment(window.start), end=_moment(window.stop))
        return ReadWeb(url=url, method="REPORT", depth="1", body=body, authorization=login, seconds=limit)


def _judge(page: WebRead, expected: int) -> None:
    if page.status == expected:
        return
    if page.status in (401, 403):
        raise BadRequest("the calendar refuses the login", field="password")
    if page.status >= 500 or page.status in (408, 429):
        raise Unavailable(f"the calendar's address answered {page.status}")
    raise BadRequest(f"the calendar's address answered {page.status}", field="url")


def _bytes(page: WebRead) -> bytes:
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(base64.b64decode(page.content), MAX_PAGE)
    if unpacking.unconsumed_tail:
        raise Unavailable("the calendar is over its limit of size")
    return data


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


log = logging.getLogger(__name__)

_SECONDS = 1.5
"""What reading one calendar may take."""
_LINE = 8 * 1024 * 1024
"""Bytes of an answer."""


class CalendarReaders:
    """Reads calendars in processes of their own, without this one's environment.

    Args:
        seconds: what reading one calendar may take.
    """

    def __init__(self, processes: int, seconds: float = _SECONDS) -> None:
        self._slots = asyncio.Semaphore(processes)
        self._seconds = seconds
        self._idle: list[Process] = []
        self._starting: asyncio.Task[None] | None = None

    async def read(self, form: Literal["ics", "caldav"], data: bytes, window: Window) -> WindowEvents:
        question = {
            "form": form,
            "data": base64.b64encode(data).decode("ascii"),
            "start": window.start.isoformat(),
            "stop": window.stop.isoformat(),
            "zone": window.zone.key,
        }
        async with self._slots:
            process = await self._process()
            try:
                async with asyncio.timeout(self._seconds):
                    reply = await _ask_process(process, question)
            except TimeoutError as error:
                _kill(process)
                raise TimedOut("the calendar takes too long to read") from error
            except (OSError, ValueError) as error:
                _kill(process)
                raise Unavailable("the calendar could not be read", retry_after=1) from error
            except BaseException:  # nobody waits for the answer any more, and the next one would be given it
                _kill(process)
                raise
            self._idle.append(process)
        return _events_from_answer(reply)

    async def close(self) -> None:
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        for process in self._idle:
            _kill(process)
            await process.wait()
        self._idle.clear()

    async def _process(self) -> Process:
        """One that is ready. What is being started goes on though nobody waits: the next question finds it."""
        while True:
            while self._idle:
                process = self._idle.pop()
                if process.returncode is None:
                    return process
            if self._starting is None:
                self._starting = asyncio.create_task(self._start(), name="calendar-reader")
            await asyncio.shield(self._starting)

    async def _start(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-B", "-m", f"{__package__}.ical_child"),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env={},
                limit=_LINE,
            )
            if await _line(process) != {"ready": True}:
                raise ValueError("a process that is not ready")
            self._idle.append(process)
        except (OSError, ValueError) as error:
            log.exception("no process to read calendars")
            raise Unavailable("no process to read calendars", retry_after=1) from error
        finally:
            self._starting = None


async def _ask_process(process: Process, question: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    process.stdin.write(json.dumps(question).encode() + b"\n")
    await process.stdin.drain()
    return await _line(process)


async def _line(process: Process) -> dict[str, Any]:
    """The next answer. Raises `ValueError` where the process has ended, or says more than it may."""
    assert process.stdout is not None
    reply: dict[str, Any] = json.loads(await process.stdout.readline())
    return reply


def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()


def _events_from_answer(reply: dict[str, Any]) -> WindowEvents:
    match reply.get("failed"):
        case "no_calendar":
            raise UnsupportedMedia("this is no calendar in the iCalendar format", field="url")
        case "too_much":
            raise TooLarge("the calendar has too many events", field="url")
    times = (
        Occurrence(title, datetime.fromisoformat(start), datetime.fromisoformat(end), whole)
        for title, start, end, whole in reply["found"]
    )
    return WindowEvents(tuple(times), reply["unreadable"])
