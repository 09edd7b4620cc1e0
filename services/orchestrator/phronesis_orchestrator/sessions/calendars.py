"""Setting a calendar, and telling what is set; never its password, nor what stands in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Nothing
from phronesis_contracts.constitution.session import CalendarSet, SetCalendar

from .domain import Calendar
from .ports import Calendars, Seal
from .sources import Events
from .windows import window

_DAY = 24


class CalendarHandlers:
    """Sets and tells calendars.

    Args:
        calendars: where they are kept.
        events: looks into them.
        seal: encrypts passwords.
        now: the present moment.
        wake: says that there is news to send.
    """

    def __init__(
        self, calendars: Calendars, events: Events, seal: Seal, now: Callable[[], datetime], wake: Callable[[], None]
    ) -> None:
        self._calendars = calendars
        self._events = events
        self._seal = seal
        self._now = now
        self._wake = wake

    async def set_calendar(self, call: Call, request: SetCalendar) -> CalendarSet:
        """Set the caller's calendar, once a look into it has worked. The same again changes nothing.

        Raises:
            BadRequest: it contradicts itself, or the look failed for good; `field` says where.
            Unavailable, TimedOut: the look failed, and may succeed later.
        """
        _check(request)
        zone = _zone(request.time_zone)
        sealed = None if request.password is None else self._seal.shut(request.password, call.who)
        calendar = Calendar(
            source=request.source,
            url=request.url,
            ics=request.ics,
            username=request.username,
            sealed=sealed,
            hours=request.hours,
            time_zone=request.time_zone,
        )
        found = await self._events.of(call.who, calendar, window(None, None, zone, self._now()))
        kept = await self._calendars.keep(call, calendar)
        self._wake()
        return _told(kept).model_copy(update={"events": len(found.occurrences)})

    async def get_calendar(self, call: Call, request: Nothing) -> CalendarSet:
        """What the caller has set."""
        return _told(await self._calendars.of(call.who))


def _told(calendar: Calendar) -> CalendarSet:
    return CalendarSet(source=calendar.source, url=calendar.url, hours=calendar.hours, time_zone=calendar.time_zone)


def _check(request: SetCalendar) -> None:
    given = {name for name in ("url", "ics", "username", "password") if getattr(request, name) is not None}
    match request.source:
        case "none" if given:
            raise BadRequest("without a calendar there is nothing to say of it", field=min(given))
        case "ics" if len(given & {"url", "ics"}) != 1:
            raise BadRequest("give either the address of an ICS file, or the file itself", field="url")
        case "caldav" if "url" not in given or "ics" in given:
            raise BadRequest("give the address of a CalDAV collection", field="url")
    if "password" in given and not (request.url or "").lower().startswith("https://"):
        raise BadRequest("a password is sent over https alone", field="url")
    if "username" in given and "password" not in given:
        raise BadRequest("a user name goes with a password", field="password")
    if not all(0 <= hours <= _DAY for hours in request.hours):
        raise BadRequest("a day has 0 to 24 working hours", field="hours")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest("no such time zone; one is named like Europe/Berlin", field="timeZone") from error
