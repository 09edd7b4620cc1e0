"""Setting a calendar, and where its bytes come from."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Nothing, ServiceError, Unavailable, UnsupportedMedia
from phronesis_contracts.constitution.session import AssessWorkload, CalendarSet, SetCalendar
from phronesis_contracts.media import READ_WEB, ReadWeb, WebRead
from phronesis_orchestrator.sessions.calendar import Calendar, CalendarLookup
from phronesis_orchestrator.sessions.handlers import CalendarHandlers
from phronesis_orchestrator.sessions.store import AesSeal
from tests.unit.orchestrator.sessions.fakes import Diary, PlainSeal, Stage, at, caller

FILE = b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
HOURS = (8.0, 8.0, 8.0, 8.0, 8.0, 0.0, 0.0)


def page(status: int = 200, data: bytes = FILE) -> WebRead:
    content = base64.b64encode(zlib.compress(data)).decode() if data else ""
    return WebRead(status=status, url="https://calendar.example/ann", content=content)


class Desk:
    """The handlers, and whether news was to be sent."""

    def __init__(self, stage: Stage, seal: Any = None) -> None:
        self.woken = 0
        seal = seal or PlainSeal()
        events = CalendarLookup(stage.owners, stage.diary, seal)
        self.handlers = CalendarHandlers(stage.calendars, events, seal, stage.clock.now, self._wake)

    def _wake(self) -> None:
        self.woken += 1


async def set_calendar(stage: Stage, call: Call, seal: Any = None, **request: Any) -> CalendarSet:
    return await Desk(stage, seal).handlers.set_calendar(call, SetCalendar(**request))


async def test_a_file_is_kept_once_a_look_into_it_has_worked() -> None:
    stage, who = Stage(diary=Diary((at(1, 9, 4), at(2, 9, 1)))), caller()
    desk = Desk(stage)
    told = await desk.handlers.set_calendar(who, SetCalendar(ics=FILE.decode(), time_zone="Europe/London"))
    assert told == CalendarSet(source="ics", url=None, hours=HOURS, time_zone="Europe/London", events=2)
    assert stage.diary.read_forms == [("ics", FILE)]
    assert await stage.calendars.of(who.who) == Calendar("ics", ics=FILE.decode(), time_zone="Europe/London", version=1)
    assert desk.woken == 1


async def test_what_is_told_of_it_later_is_where_it_is_and_never_the_password() -> None:
    stage, who = Stage(), caller()
    stage.owners.answers[READ_WEB.subject] = page()
    url = "https://calendar.example/ann"
    await set_calendar(stage, who, source="ics", url=url, username="ann", password="open sesame", hours=(1.0,) * 7)
    told = await Desk(stage).handlers.get_calendar(who, Nothing())
    assert told == CalendarSet(source="ics", url=url, hours=(1.0,) * 7, time_zone="UTC", events=None)
    kept = await stage.calendars.of(who.who)
    assert "sesame" not in f"{told!r}{kept!r}{SetCalendar(password='open sesame')!r}"


@pytest.mark.req("C-47")
async def test_who_never_set_one_has_the_usual_hours_and_no_calendar() -> None:
    told = await Desk(Stage()).handlers.get_calendar(caller(), Nothing())
    assert told == CalendarSet(source="none", url=None, hours=HOURS, time_zone="UTC", events=None)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"source": "ics"}, "url"),
        ({"source": "ics", "url": "https://a.example", "ics": "x"}, "url"),
        ({"source": "caldav"}, "url"),
        ({"source": "caldav", "url": "https://a.example", "ics": "x"}, "url"),
        ({"source": "none", "url": "https://a.example"}, "url"),
        ({"source": "caldav", "url": "http://a.example", "username": "ann", "password": "p"}, "url"),
        ({"source": "ics", "ics": "x", "username": "ann", "password": "p"}, "url"),
        ({"source": "caldav", "url": "https://a.example", "username": "ann"}, "password"),
        ({"ics": "x", "hours": (8, 8, 8, 8, 8, 0, 25)}, "hours"),
        ({"ics": "x", "hours": (-1, 8, 8, 8, 8, 0, 0)}, "hours"),
        ({"ics": "x", "hours": (float("nan"), 8, 8, 8, 8, 0, 0)}, "hours"),
        ({"ics": "x", "time_zone": "Mars/Olympus"}, "timeZone"),
        ({"ics": "x", "time_zone": "../../etc/passwd"}, "timeZone"),
        ({"ics": "x", "time_zone": ""}, "timeZone"),
    ],
)
async def test_what_contradicts_itself_is_refused_and_nothing_is_kept(request_: dict[str, Any], field: str) -> None:
    stage, who = Stage(), caller()
    with pytest.raises(BadRequest) as refused:
        await set_calendar(stage, who, **request_)
    assert (refused.value.field, stage.calendars.kept, stage.owners.asked) == (field, {}, [])


async def test_without_a_key_a_password_is_refused_and_nothing_is_kept() -> None:
    stage, who = Stage(), caller()
    request = {"source": "caldav", "url": "https://a.example/c", "username": "ann", "password": "p"}
    with pytest.raises(BadRequest) as refused:
        await set_calendar(stage, who, AesSeal(None), **request)
    assert (refused.value.field, stage.calendars.kept, stage.owners.asked) == ("password", {}, [])


async def test_an_address_is_read_by_the_media_service_on_behalf_of_its_owner() -> None:
    stage, who = Stage(), caller()
    stage.owners.answers[READ_WEB.subject] = page()
    await set_calendar(stage, who, url="https://calendar.example/ann.ics")
    assert stage.owners.asked == [(READ_WEB.subject, ReadWeb(url="https://calendar.example/ann.ics", seconds=10.0))]
    assert (stage.owners.callers, stage.diary.read_forms) == ([who.who], [("ics", FILE)])


async def test_a_collection_is_asked_for_the_events_of_the_window_in_one_report() -> None:
    stage, who = Stage(), caller()
    stage.owners.answers[READ_WEB.subject] = page(207, b"<multistatus/>")
    await set_calendar(
        *(stage, who),
        source="caldav",
        url="https://calendar.example/ann/",
        username="ann",
        password="open sesame",
        time_zone="America/Lima",
    )
    [(subject, asked)] = stage.owners.asked
    assert subject == READ_WEB.subject
    assert (asked.method, asked.depth, asked.url, asked.authorization) == (
        *("REPORT", "1", "https://calendar.example/ann/"),
        "Basic " + base64.b64encode(b"ann:open sesame").decode(),
    )
    assert '<C:time-range start="20261123T050000Z" end="20261130T050000Z"/>' in asked.body
    assert stage.diary.read_forms == [("caldav", b"<multistatus/>")]
    assert "sesame" not in repr(asked)
    assert base64.b64encode(b"ann:open sesame").decode() not in repr(asked)


@pytest.mark.parametrize(
    ("status", "error", "field"),
    [
        (401, BadRequest, "password"),
        (403, BadRequest, "password"),
        (404, BadRequest, "url"),
        (207, BadRequest, "url"),
        (302, BadRequest, "url"),
        (429, Unavailable, None),
        (503, Unavailable, None),
    ],
)
async def test_an_address_that_does_not_answer_with_a_calendar_is_a_typed_error(
    status: int, error: type[ServiceError], field: str | None
) -> None:
    stage, who = Stage(), caller()
    stage.owners.answers[READ_WEB.subject] = page(status)
    with pytest.raises(error) as failed:
        await set_calendar(stage, who, url="https://calendar.example/ann.ics")
    assert (type(failed.value), failed.value.field, stage.calendars.kept) == (error, field, {})


async def test_a_calendar_that_is_none_is_not_kept() -> None:
    stage, who = Stage(diary=Diary(failure=UnsupportedMedia("no calendar"))), caller()
    with pytest.raises(UnsupportedMedia):
        await set_calendar(stage, who, ics="hello")
    assert stage.calendars.kept == {}


async def test_content_that_unpacks_to_more_than_a_page_is_not_read() -> None:
    stage, who = Stage(), caller()
    stage.owners.answers[READ_WEB.subject] = page(200, bytes(5 * 1024 * 1024))
    with pytest.raises(Unavailable):
        await set_calendar(stage, who, url="https://calendar.example/ann.ics")
    assert stage.diary.read_forms == []


async def test_setting_none_takes_the_calendar_away_and_keeps_the_hours() -> None:
    stage, who = Stage(diary=Diary((at(1, 9, 4),))), caller()
    await set_calendar(stage, who, ics=FILE.decode())
    told = await set_calendar(stage, who, source="none", hours=(4.0,) * 7)
    found = await stage.workload.assess(who, AssessWorkload())
    assert (told.events, found.calendar.total, found.capacity.available_hours) == (0, 0, 28.0)
