"""The window that a workload is about: whole days of one time zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from phronesis_contracts import BadRequest

DAYS = 7
"""Days of a window whose end nobody states (O-190)."""
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
        """The last date, ISO 8601, at which a task is due inside: both ends of a window are (O-200)."""
        return (self.end - timedelta(days=1)).isoformat() if self.whole else f"{self.end.isoformat()}T00:00:00Z"

    @property
    def start(self) -> datetime:
        """The moment at which it begins."""
        return midnight(self.first, self.zone)

    @property
    def stop(self) -> datetime:
        """The moment at which it ends."""
        return midnight(self.end, self.zone)

    def days(self) -> Iterator[date]:
        """Its days in order."""
        return (self.first + timedelta(days=day) for day in range((self.end - self.first).days))


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """The beginning of a day in a time zone."""
    return datetime.combine(day, time(), zone)


def window(start: str | None, end: str | None, zone: ZoneInfo, now: datetime) -> Window:
    """The window from one ISO 8601 text to another: 7 days from today where nothing is stated (O-189, O-190).

    Args:
        start, end: days, or times, which stand for their days in `zone`; an end that is a time has its day inside.
        zone: the time zone whose days they are.
        now: the present moment.

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
