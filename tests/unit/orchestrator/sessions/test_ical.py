"""iCalendar: what of a calendar takes time in a window, whatever its bytes are."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_orchestrator.sessions import ical_child
from phronesis_orchestrator.sessions.ical_child import IcalEvent, NotACalendar, TooManyEvents, drop_far_events, find_events
from tests.support.cases import for_each

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 23, tzinfo=BERLIN)
NEXT = MONDAY + timedelta(days=7)


def calendar(*events: str, head: str = "") -> bytes:
    """A calendar of events, each given by its lines."""
    body = "".join(f"BEGIN:VEVENT\n{event.strip()}\nEND:VEVENT\n" for event in events)
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//tests//EN\n{head}{body}END:VCALENDAR\n"
    return text.replace("\n", "\r\n").encode()


def found(*events: str, head: str = "") -> list[IcalEvent]:
    times, unreadable = find_events("ics", calendar(*events, head=head), MONDAY, NEXT)
    assert unreadable == 0
    return sorted(times, key=lambda one: one.start)


def starts(*events: str, head: str = "") -> list[str]:
    return [one.start.astimezone(UTC).strftime("%d %H:%M") for one in found(*events, head=head)]


def test_of_an_event_title_and_times_come_out_and_nothing_else() -> None:
    event = """UID:1
SUMMARY:Board\\, first
 part
DESCRIPTION:secret
ATTENDEE:mailto:ann@example.org
LOCATION:Room 1
DTSTART:20261124T090000Z
DTEND:20261124T103000Z
BEGIN:VALARM
TRIGGER:-PT15M
ACTION:DISPLAY
END:VALARM"""
    start = datetime(2026, 11, 24, 9, tzinfo=UTC)
    assert found(event) == [IcalEvent("Board, firstpart", start, start + timedelta(minutes=90), False)]


@pytest.mark.parametrize(
    ("times", "start", "hours"),
    [
        ("DTSTART:20261124T090000Z\nDTEND:20261124T100000Z", "24 09:00", 1.0),
        ("DTSTART;TZID=Europe/Berlin:20261124T090000\nDTEND;TZID=Europe/Berlin:20261124T100000", "24 08:00", 1.0),
        ("DTSTART;TZID=America/New_York:20261124T090000\nDURATION:PT45M", "24 14:00", 0.75),
        ("DTSTART:20261124T090000\nDTEND:20261124T100000", "24 08:00", 1.0),
        ("DTSTART;VALUE=DATE:20261124\nDTEND;VALUE=DATE:20261126", "23 23:00", 48.0),
        ("DTSTART;VALUE=DATE:20261124", "23 23:00", 24.0),
        ("DTSTART:20261124T090000Z", "24 09:00", 0.0),
    ],
)
def test_times_are_understood_with_their_zones_and_without(times: str, start: str, hours: float) -> None:
    [one] = found(f"UID:1\n{times}")
    assert one.start.astimezone(UTC).strftime("%d %H:%M") == start
    assert (one.end - one.start).total_seconds() / 3600 == hours
    assert one.whole_day == ("VALUE=DATE" in times)


def test_a_zone_that_the_calendar_describes_itself_is_understood() -> None:
    zone = """BEGIN:VTIMEZONE
TZID:Somewhere
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:+0500
TZOFFSETTO:+0500
TZNAME:XST
END:STANDARD
END:VTIMEZONE
"""
    assert starts("UID:1\nDTSTART;TZID=Somewhere:20261124T090000\nDURATION:PT1H", head=zone) == ["24 04:00"]


def test_the_calendar_s_own_zone_is_that_of_times_without_one() -> None:
    head = "X-WR-TIMEZONE:America/New_York\n"
    assert starts("UID:1\nDTSTART:20261124T090000\nDURATION:PT1H", head=head) == ["24 14:00"]


@pytest.mark.parametrize(
    "line", ["STATUS:CANCELLED", "TRANSP:TRANSPARENT", "TRANSP:transparent"], ids=["cancelled", "free", "free in small letters"]
)
def test_what_takes_no_time_is_left_out(line: str) -> None:
    assert found(f"UID:1\nDTSTART:20261124T090000Z\nDURATION:PT1H\n{line}") == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("RRULE:FREQ=DAILY;COUNT=1000", [f"{day} 08:00" for day in range(23, 30)]),
        ("RRULE:FREQ=WEEKLY;BYDAY=TU,TH", ["24 08:00", "26 08:00"]),
        ("RRULE:FREQ=MONTHLY;BYDAY=-1FR", ["27 08:00"]),
        ("RRULE:FREQ=WEEKLY;BYDAY=TU;UNTIL=20261101T000000Z", []),
        ("RRULE:FREQ=YEARLY", []),
        ("RDATE;TZID=Europe/Berlin:20261125T090000,20261225T090000", ["25 08:00"]),
        (
            "RRULE:FREQ=WEEKLY;BYDAY=TU,WE\nEXDATE;TZID=Europe/Berlin:20261124T090000",
            ["25 08:00"],
        ),
    ],
)
def test_what_recurs_falls_on_its_days_and_at_its_hour_though_clocks_changed(rule: str, expected: list[str]) -> None:
    assert starts(f"UID:1\nDTSTART;TZID=Europe/Berlin:20260303T090000\nDURATION:PT1H\n{rule}") == expected


def test_one_of_a_series_that_was_moved_stands_where_it_was_moved_to() -> None:
    series = "UID:1\nDTSTART:20261103T090000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY"
    moved = "UID:1\nRECURRENCE-ID:20261124T090000Z\nDTSTART:20261126T150000Z\nDURATION:PT2H"
    assert starts(series, moved) == ["26 15:00"]


def test_one_of_a_series_that_was_cancelled_is_gone_and_the_others_stay() -> None:
    series = "UID:1\nDTSTART:20261123T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3"
    cancelled = "UID:1\nRECURRENCE-ID:20261124T090000Z\nDTSTART:20261124T090000Z\nDURATION:PT1H\nSTATUS:CANCELLED"
    assert starts(series, cancelled) == ["23 09:00", "25 09:00"]


def test_a_series_that_ended_but_for_one_that_was_moved_into_the_window_has_that_one() -> None:
    series = "UID:1\nDTSTART:20260901T090000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;UNTIL=20261001T000000Z"
    moved = "UID:1\nRECURRENCE-ID:20260908T090000Z\nDTSTART:20261126T150000Z\nDURATION:PT2H"
    assert starts(series, moved) == ["26 15:00"]


def test_an_event_that_cannot_be_read_is_counted_and_takes_no_other_with_it() -> None:
    good = "UID:1\nDTSTART:20261124T090000Z\nDURATION:PT1H"
    for bad in ("UID:2\nSUMMARY:no start", "UID:2\nDTSTART:nonsense", "UID:2\nDTSTART:20261124T090000Z\nDURATION:nonsense"):
        times, unreadable = find_events("ics", calendar(good, bad), MONDAY, NEXT)
        assert (len(times), unreadable) == (1, 1), bad


def test_several_calendars_in_one_file_are_one() -> None:
    both = calendar("UID:1\nDTSTART:20261124T090000Z\nDURATION:PT1H") + calendar(
        "UID:1\nDTSTART:20261125T090000Z\nDURATION:PT1H"
    )
    assert len(find_events("ics", both, MONDAY, NEXT)[0]) == 2


def test_an_answer_to_a_report_holds_calendars() -> None:
    one = calendar("UID:1\nDTSTART:20261124T090000Z\nDURATION:PT1H").decode()
    answer = f"""<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
<d:response><d:href>/a</d:href><d:propstat><d:prop><c:calendar-data>{one}</c:calendar-data></d:prop></d:propstat></d:response>
<d:response><d:href>/b</d:href><d:propstat><d:prop><c:calendar-data>{one}</c:calendar-data></d:prop></d:propstat></d:response>
</d:multistatus>"""
    assert len(find_events("caldav", answer.encode(), MONDAY, NEXT)[0]) == 2


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("ics", b""),
        ("ics", b"hello"),
        ("ics", b"/etc/hostname"),
        ("ics", b"<html><body>Sign in</body></html>"),
        ("ics", b"BEGIN:VCARD\r\nEND:VCARD\r\n"),
        ("ics", b"\xff\xfe\x00\x00"),
        ("caldav", b""),
        ("caldav", b"<html/>"),
        ("caldav", b"<d:multistatus xmlns:d='DAV:'>"),
        ("caldav", b"<!DOCTYPE x [<!ENTITY a 'aaaa'>]><d:multistatus xmlns:d='DAV:'>&a;</d:multistatus>"),
    ],
)
def test_what_is_no_calendar_is_said_to_be_none(form: str, data: bytes) -> None:
    with pytest.raises(NotACalendar):
        find_events(form, data, MONDAY, NEXT)


def test_an_empty_collection_has_no_events() -> None:
    assert find_events("caldav", b"<d:multistatus xmlns:d='DAV:'/>", MONDAY, NEXT) == ([], 0)


def test_more_events_than_are_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ical_child, "_OCCURRENCES", 10)
    with pytest.raises(TooManyEvents):
        found("UID:1\nDTSTART:20261123T000000Z\nDURATION:PT1M\nRRULE:FREQ=HOURLY")
    monkeypatch.setattr(ical_child, "_EVENTS", 2)
    with pytest.raises(TooManyEvents):
        found(*(f"UID:{n}\nDTSTART:20261124T090000Z" for n in range(3)))


@for_each(
    ("event", "stays"),
    [
        ("DTSTART:20200101T090000Z\nDTEND:20200101T100000Z", False),
        ("DTSTART:20300101T090000Z", False),
        ("DTSTART;VALUE=DATE:20200101", False),
        ("DTSTART:20261125T090000Z", True),
        ("DTSTART:20261121T230000Z\nDTEND:20261122T230000Z", True),
        ("DTSTART:20200101T090000Z\nDTEND:20300101T090000Z", True),
        ("DTSTART:20200101T090000Z\nDURATION:P3000D", True),
        ("DTSTART:20200101T090000Z\nRRULE:FREQ=DAILY", True),
        ("DTSTART:20200101T090000Z\nRRULE:FREQ=DAILY;UNTIL=20210101T000000Z", False),
        ("DTSTART:20200101T090000Z\nDTEND:20260601T090000Z\nRRULE:FREQ=YEARLY;UNTIL=20210101T000000Z", True),
        ("DTSTART:20200101T090000Z\nRRULE:FREQ=DAILY;UNTIL=20210101T000000Z\nRDATE:20261124T090000Z", True),
        ("DTSTART:20200101T090000Z\nRECURRENCE-ID:20200101T090000Z", True),
        ("SUMMARY:no start", True),
        ("DTSTART:99999999T090000Z", True),
    ],
)
def test_of_a_long_history_what_plainly_lies_outside_is_not_even_read(event: str, stays: bool) -> None:
    text = calendar(f"UID:1\n{event}", "UID:2\nDTSTART:20261124T090000Z")
    kept = drop_far_events(text, date(2026, 11, 21), date(2026, 12, 2))
    assert (b"UID:1" in kept, b"UID:2" in kept, kept.endswith(b"END:VCALENDAR\r\n")) == (stays, True, True)
    assert not stays or kept == text


_LINE = st.one_of(
    st.sampled_from(
        [
            *("BEGIN:VEVENT", "END:VEVENT", "BEGIN:VCALENDAR", "END:VCALENDAR", "BEGIN:VTIMEZONE", "END:VTIMEZONE"),
            *("BEGIN:STANDARD", "END:STANDARD", "TZID:X", "UID:1", "UID:2", "STATUS:CANCELLED", "TRANSP:OPAQUE", "SEQUENCE:2"),
            *("DTSTART:20261124T090000Z", "DTSTART;TZID=X:20261124T090000", "DTSTART;VALUE=DATE:20261124", "DTSTART:2026"),
            *("DTEND:20261124T100000Z", "DTEND;VALUE=DATE:20261125", "DTEND:nonsense", "DURATION:PT1H", "DURATION:-P1D"),
            *("RRULE:FREQ=WEEKLY", "RRULE:FREQ=WEEKLY;COUNT=-1", "RRULE:UNTIL=2026", "RRULE:FREQ=NEVER", "RRULE:BYDAY=9XX"),
            *("EXDATE:20261124T090000Z", "RDATE;VALUE=PERIOD:20261124T090000Z/PT1H", "RECURRENCE-ID:20261124T090000Z"),
            *(
                "RECURRENCE-ID;RANGE=THISANDFUTURE:20261124T090000Z",
                "X-WR-TIMEZONE:Mars/Olympus",
                "SUMMARY:x",
                " folded",
                ":",
                ";",
            ),
        ]
    ),
    st.text(max_size=20),
)


@given(st.lists(_LINE, max_size=25).map(lambda lines: "\r\n".join(lines).encode("utf-8", "replace")))
def test_whatever_lines_a_calendar_has_it_is_read_or_is_none(body: bytes) -> None:
    read(b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n" + body + b"\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")


@given(st.binary(max_size=400))
def test_whatever_bytes_there_are_they_are_read_or_are_no_calendar(data: bytes) -> None:
    read(data)
    read(b"BEGIN:VCALENDAR\r\n" + data + b"\r\nEND:VCALENDAR\r\n")
    read(b"<d:multistatus xmlns:d='DAV:' xmlns:c='urn:ietf:params:xml:ns:caldav'>" + data + b"</d:multistatus>", "caldav")


def read(data: bytes, form: str = "ics") -> None:
    """Read bytes; anything but a result, or the word that they are no calendar or too many, is a failure of the test."""
    try:
        times, unreadable = find_events(form, data, MONDAY, NEXT)
    except (NotACalendar, TooManyEvents):
        return
    assert unreadable >= 0
    assert all(one.start.tzinfo and one.end.tzinfo and len(one.title) <= 500 for one in times)
