"""Where a calendar's bytes come from: the file that was given, an address, or a CalDAV collection."""

from __future__ import annotations

import base64
import zlib
from datetime import UTC, datetime

from phronesis_contracts import BadRequest, Principal, Unavailable
from phronesis_contracts.media import MAX_PAGE, READ_WEB, ReadWeb, WebRead

from .domain import Calendar, Found
from .ports import Ask, Reader, Seal
from .windows import Window

_REPORT = """<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><C:calendar-data/></D:prop><C:filter>\
<C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="{start}" end="{end}"/></C:comp-filter>\
</C:comp-filter></C:filter></C:calendar-query>"""
_OK = {"ics": 200, "caldav": 207}
_LIMIT = 10.0
"""Seconds that an address may take where nobody waits for less."""


class Events:
    """Looks into users' calendars. Addresses are asked by the media service alone, which knows which it may."""

    def __init__(self, ask: Ask, reader: Reader, seal: Seal) -> None:
        self._ask = ask
        self._reader = reader
        self._seal = seal

    async def of(self, who: Principal, calendar: Calendar, window: Window, limit: float = _LIMIT) -> Found:
        """The events of a window.

        Args:
            who: whose calendar it is.
            calendar: where it is.
            window: the days.
            limit: seconds that its address may take.

        Raises:
            BadRequest: the address or the login is refused, or what it gives is no calendar.
            Unavailable: it cannot be reached or read at this time.
            TimedOut: it takes too long.
        """
        if calendar.source == "none":
            return Found()
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
