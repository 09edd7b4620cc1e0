"""The processes that take calendars apart: they answer, they are ended when they do not, and the next ones are as good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from phronesis_contracts import TimedOut, UnsupportedMedia
from phronesis_orchestrator.sessions.calendar import CalendarReaders, Occurrence, Window, WindowEvents

WEEK = Window(date(2026, 11, 23), date(2026, 11, 30), ZoneInfo("Europe/Berlin"))
_EVENT = "BEGIN:VEVENT\r\nUID:1\r\nSUMMARY:Board\r\nDTSTART:20261124T090000Z\r\nDURATION:PT1H\r\n{}END:VEVENT\r\n"
FOUND = WindowEvents((Occurrence("Board", *(datetime(2026, 11, 24, hour, tzinfo=UTC) for hour in (9, 10)), False),), 0)
BOMBS = {
    "an interval of nothing": "RRULE:FREQ=MONTHLY;INTERVAL=0;BYHOUR=0;BYDAY=MO;BYMONTHDAY=1\r\n",
    "each second": "RRULE:FREQ=SECONDLY\r\n",
    "a day that never comes": "RRULE:FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30\r\n",
    "a count without end": "RRULE:FREQ=SECONDLY;COUNT=999999999;BYMONTH=1;BYYEARDAY=366\r\n",
}


def calendar(more: str = "") -> bytes:
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{_EVENT.format(more)}END:VCALENDAR\r\n".encode()


@pytest.fixture
async def readers() -> AsyncIterator[CalendarReaders]:
    made = CalendarReaders(1, seconds=1.5)
    yield made
    await made.close()


def pid(readers: CalendarReaders) -> int:
    """The one process that waits."""
    [process] = readers._idle
    return process.pid


async def test_a_calendar_is_read_and_its_process_stays_for_the_next_one(readers: CalendarReaders) -> None:
    assert await readers.read("ics", calendar(), WEEK) == FOUND
    first = pid(readers)
    assert await readers.read("ics", calendar(), WEEK) == FOUND
    assert pid(readers) == first


async def test_what_is_no_calendar_is_refused_and_the_process_stays(readers: CalendarReaders) -> None:
    await readers.read("ics", calendar(), WEEK)
    first = pid(readers)
    with pytest.raises(UnsupportedMedia):
        await readers.read("ics", b"hello", WEEK)
    assert pid(readers) == first


@pytest.mark.parametrize("rule", BOMBS.values(), ids=BOMBS.keys())
async def test_a_rule_without_end_ends_its_process_and_the_next_calendar_is_read(readers: CalendarReaders, rule: str) -> None:
    await readers.read("ics", calendar(), WEEK)
    first = pid(readers)
    with pytest.raises(TimedOut):
        await readers.read("ics", calendar(rule), WEEK)
    assert await readers.read("ics", calendar(), WEEK) == FOUND
    assert pid(readers) != first


async def test_who_stops_waiting_leaves_no_answer_behind_for_the_next_one(readers: CalendarReaders) -> None:
    await readers.read("ics", calendar(), WEEK)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await readers.read("ics", calendar(BOMBS["each second"]), WEEK)
    assert await readers.read("ics", calendar(), WEEK) == FOUND


async def test_a_process_that_is_killed_is_made_good_for(readers: CalendarReaders) -> None:
    await readers.read("ics", calendar(), WEEK)
    [process] = readers._idle
    process.kill()
    await process.wait()
    assert await readers.read("ics", calendar(), WEEK) == FOUND


async def test_many_at_once_wait_for_their_turn(readers: CalendarReaders) -> None:
    assert await asyncio.gather(*(readers.read("ics", calendar(), WEEK) for _ in range(20))) == [FOUND] * 20
    assert len(readers._idle) == 1


async def test_when_they_are_closed_no_process_is_left(readers: CalendarReaders) -> None:
    await readers.read("ics", calendar(), WEEK)
    [process] = readers._idle
    await readers.close()
    assert process.returncode is not None
