"""The process that takes foreign calendars apart: a question a line, an answer a line, as JSON."""

from __future__ import annotations

import base64
import json
import re
import resource
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events

_DATA = "{urn:ietf:params:xml:ns:caldav}calendar-data"
_EVENTS, _OCCURRENCES = 20_000, 5_000
"""Events of a calendar near the window, and how often they may take place in it."""
_TITLE = 500
_NEAR = timedelta(days=2)
"""What times may be apart that are of one moment, with all the world's time zones."""
_BEGIN, _END = b"BEGIN:VEVENT", b"END:VEVENT"
_REPEATED = re.compile(rb"^(?:RDATE|RECURRENCE-ID|DURATION)[;:]", re.MULTILINE | re.IGNORECASE)
_RULE = re.compile(rb"^RRULE[;:]", re.MULTILINE | re.IGNORECASE)
_UNTIL = re.compile(rb"^RRULE[^\n]*UNTIL=(\d{8})", re.MULTILINE | re.IGNORECASE)
_STARTS = re.compile(rb"^DTSTART(?:;[^:\n]*)?:(\d{8})", re.MULTILINE | re.IGNORECASE)
_ENDS = re.compile(rb"^DTEND(?:;[^:\n]*)?:(\d{8})", re.MULTILINE | re.IGNORECASE)


class NotACalendar(Exception):
    """The bytes are no calendar."""


class TooManyEvents(Exception):
    """The calendar has more events than are read."""


@dataclass(frozen=True)
class IcalEvent:
    title: str
    start: datetime
    end: datetime
    whole_day: bool


def find_events(form: str, data: bytes, start: datetime, stop: datetime) -> tuple[list[IcalEvent], int]:
    """What takes time between two moments, and how many events could not be understood.

    Args:
        form: `ics` for a file, `caldav` for the answer to a report.
        data: its bytes.
        start, stop: the window; a time without a time zone is one of `start`'s.

    Raises:
        NoCalendar: it is none.
        TooMuch: more than 20,000 events near the window, or 5,000 times in it.
    """
    found: list[IcalEvent] = []
    unreadable = 0
    for series in _series([data] if form == "ics" else _caldav_calendars(data), start, stop):
        try:
            # as a list: an event that fails half-way has no times at all
            times = [_event_from_component(one, start.tzinfo) for one in recurring_ical_events.of(series).between(start, stop)]
        except Exception:  # the libraries raise whatever foreign bytes bring about; the event is counted and told
            unreadable += 1
            continue
        found += [one for one in times if one is not None]
        if len(found) > _OCCURRENCES:
            raise TooManyEvents
    return found, unreadable


def _caldav_calendars(data: bytes) -> list[bytes]:
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise NotACalendar
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise NotACalendar from error
    if root.tag != "{DAV:}multistatus":
        raise NotACalendar
    return [(one.text or "").encode() for one in root.iter(_DATA)]


def _series(texts: list[bytes], start: datetime, stop: datetime) -> Iterator[icalendar.Calendar]:
    """A calendar of its own for each event with its exceptions, so that one which cannot be read takes no other with it."""
    events = 0
    for text in texts:
        for calendar in _calendars(drop_far_events(text, start.date() - _NEAR, stop.date() + _NEAR)):
            by_id: dict[str, list[Any]] = defaultdict(list)
            for event in calendar.walk("VEVENT"):
                events += 1
                if events > _EVENTS:
                    raise TooManyEvents
                by_id[str(event.get("UID", id(event)))].append(event)
            for together in by_id.values():
                series = icalendar.Calendar()
                if "X-WR-TIMEZONE" in calendar:
                    series["X-WR-TIMEZONE"] = calendar["X-WR-TIMEZONE"]
                series.subcomponents.extend(together)
                yield series


def _calendars(text: bytes) -> list[Any]:
    # Bytes, and no text: a text of one line would be taken for the name of a file, and read.
    try:
        found = icalendar.Calendar.from_ical(text, multiple=True)
    except Exception as error:  # the library raises whatever foreign bytes bring about
        raise NotACalendar from error
    if not found or any(one.name != "VCALENDAR" for one in found):
        raise NotACalendar
    return found


def drop_far_events(text: bytes, first: date, last: date) -> bytes:
    """The calendar without single events that plainly lie outside of two days: of a long history, most."""
    head, *pieces = text.split(_BEGIN)
    kept = [head]
    for piece in pieces:
        event, end, rest = piece.partition(_END)
        kept.append(rest.lstrip(b"\r\n") if end and _far(event, first, last) else _BEGIN + piece)
    return b"".join(kept)


def _far(event: bytes, first: date, last: date) -> bool:
    begins = _STARTS.search(event)
    if begins is None or _REPEATED.search(event):
        return False
    ends, until = _ENDS.search(event) or begins, _UNTIL.search(event)
    try:
        start, end = _date(begins[1]), _date(ends[1])
        if _RULE.search(event):
            return until is not None and _date(until[1]) + (end - start) < first
    except (ValueError, OverflowError):
        return False
    return end < first or start > last


def _date(text: bytes) -> date:
    return date.fromisoformat(text.decode("ascii"))


def _event_from_component(event: Any, zone: tzinfo | None) -> IcalEvent | None:
    """What an event takes of time; `None` where it takes none."""
    if str(event.get("STATUS", "")).upper() == "CANCELLED" or str(event.get("TRANSP", "")).upper() == "TRANSPARENT":
        return None
    start, end = event["DTSTART"].dt, event["DTEND"].dt
    title = " ".join(str(event.get("SUMMARY", "")).split())[:_TITLE]
    return IcalEvent(title, _moment(start, zone), _moment(end, zone), not isinstance(start, datetime))


def _moment(when: date | datetime, zone: tzinfo | None) -> datetime:
    if not isinstance(when, datetime):
        return datetime.combine(when, time(), zone)
    return when.replace(tzinfo=zone) if when.tzinfo is None else when


_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space."""
_FILES = 32


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What a calendar has, or `failed` with the reason.

    Args:
        question: `form`, `data` in base64, `start` and `stop` as ISO 8601, and `zone`.
    """
    zone = ZoneInfo(question["zone"])
    start, stop = (datetime.fromisoformat(question[name]).astimezone(zone) for name in ("start", "stop"))
    try:
        found, unreadable = find_events(question["form"], base64.b64decode(question["data"]), start, stop)
    except NotACalendar:
        return {"failed": "no_calendar"}
    except (TooManyEvents, MemoryError, RecursionError):
        return {"failed": "too_much"}
    reply = [[one.title, one.start.isoformat(), one.end.isoformat(), one.whole_day] for one in found]
    return {"found": reply, "unreadable": unreadable}


def main() -> None:
    """Answer until nobody asks."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    _write_line({"ready": True})
    for line in sys.stdin.buffer:
        _write_line(answer(json.loads(line)))


def _write_line(reply: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
