"""A time between two dates, both included, as the store compares them: by text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.kinds import Kind, Property

from .records import moment
from .typed import typed

_DAY = len("2026-11-22")
_ENDLESS = "9999-12-31T23:59:59.999999Z"


@dataclass(frozen=True)
class Window:
    """What lies in it has a date `d` with `first <= d <= last`, or the day `day` that it begins in.

    A day is less than every time in it, so a window that ends with a day goes to that day's last moment, and what is only
    known to be of the day that the window begins in counts as inside.
    """

    first: str
    day: str
    last: str


def window(start: str, end: str) -> Window:
    """The time from one date to another.

    Args:
        start: ISO 8601, a day or a time; a time without a zone is taken for UTC.
        end: the same; a day is meant to its end.

    Raises:
        BadRequest: one of them is no date, or they are the wrong way round.
    """
    first, last = _normal(start, "startDate"), _normal(end, "endDate")
    day, last = first[:_DAY], _end(last)
    if last < first:
        raise BadRequest("the end lies before the start", field="endDate")
    return Window(first, day, last)


def since(start: str | None, end: str | None) -> Window:
    """The same where either end may be open.

    Raises:
        BadRequest: one of them is no date, or they are the wrong way round.
    """
    return window(start or "0001-01-01", end or _ENDLESS)


def instant(text: str) -> datetime:
    """A date of the store as a time; a day begins at midnight, UTC."""
    return datetime.fromisoformat(text if len(text) > _DAY else f"{text}T00:00:00Z")


def _normal(text: str, field: str) -> str:
    return str(typed(Property(field, Kind.DATE), text))


def _end(text: str) -> str:
    if len(text) > _DAY:
        return text
    day = date.fromisoformat(text)
    return moment(datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1, microseconds=-1))
