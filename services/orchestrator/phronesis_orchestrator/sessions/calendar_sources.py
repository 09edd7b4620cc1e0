"""Where a calendar's bytes come from, a file, an address or a CalDAV collection, and the processes that take them apart."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sys
import zlib
from asyncio.subprocess import DEVNULL, PIPE, Process
from datetime import UTC, datetime
from typing import Any, Literal

from phronesis_contracts import BadRequest, Principal, TimedOut, TooLarge, Unavailable, UnsupportedMedia
from phronesis_contracts.media import MAX_PAGE, READ_WEB, ReadWeb, WebRead

from .calendar import Ask, Calendar, CalendarReader, Occurrence, Seal, Window, WindowEvents

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
