"""Processes that take foreign calendars apart. They stay for the next calendar, and one that takes too long is ended."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from datetime import datetime
from typing import Any, Literal

from phronesis_contracts import TimedOut, TooLarge, Unavailable, UnsupportedMedia

from ..sessions.domain import Found, Occurrence
from ..sessions.windows import Window

log = logging.getLogger(__name__)

_SECONDS = 1.5
"""What reading one calendar may take."""
_LINE = 8 * 1024 * 1024
"""Bytes of an answer."""


class CalendarReaders:
    """Reads calendars in processes of their own, without this one's environment.

    Args:
        processes: how many, side by side.
        seconds: what reading one calendar may take.
    """

    def __init__(self, processes: int, seconds: float = _SECONDS) -> None:
        self._slots = asyncio.Semaphore(processes)
        self._seconds = seconds
        self._idle: list[Process] = []
        self._starting: asyncio.Task[None] | None = None

    async def read(self, form: Literal["ics", "caldav"], data: bytes, window: Window) -> Found:
        """What of a calendar falls into the window; see `Reader`."""
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
                    told = await _asked(process, question)
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
        return _found(told)

    async def close(self) -> None:
        """End the processes."""
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


async def _asked(process: Process, question: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    process.stdin.write(json.dumps(question).encode() + b"\n")
    await process.stdin.drain()
    return await _line(process)


async def _line(process: Process) -> dict[str, Any]:
    """The next answer. Raises `ValueError` where the process has ended, or says more than it may."""
    assert process.stdout is not None
    told: dict[str, Any] = json.loads(await process.stdout.readline())
    return told


def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()


def _found(told: dict[str, Any]) -> Found:
    match told.get("failed"):
        case "no_calendar":
            raise UnsupportedMedia("this is no calendar in the iCalendar format", field="url")
        case "too_much":
            raise TooLarge("the calendar has too many events", field="url")
    times = (
        Occurrence(title, datetime.fromisoformat(start), datetime.fromisoformat(end), whole)
        for title, start, end, whole in told["found"]
    )
    return Found(tuple(times), told["unreadable"])
