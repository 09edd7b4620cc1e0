"""The order of horizons: free texts, most of which are a day, a year or a length of time (C-37)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

_LONGEST = 64
"""Characters of another text that count for its place."""
_PART = re.compile(r"(\d{4})(?:-(\d{2}))?")
_QUARTER = re.compile(r"(\d{4})[- ]?Q([1-4])", re.IGNORECASE)
_LENGTH = re.compile(
    r"P(?=.)(?:(\d{1,6})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:\d{1,6}[HMS])+)?", re.IGNORECASE
)
_SAID = re.compile(r"(\d{1,6})[\s-]*(year|quarter|month|week|day)s?", re.IGNORECASE)
_DAYS = {"year": 365.25, "quarter": 91.3125, "month": 30.4375, "week": 7.0, "day": 1.0}


def horizon_place(given: str | None) -> str:
    """A text whose order is the order of horizons: days and times, then lengths of time, then other texts, then none."""
    text = (given or "").strip()
    if not text:
        return "3"
    if (when := _when(text)) is not None:
        return f"0{when}"
    if (days := _days(text)) is not None:
        return f"1{days:012.4f}"
    return f"2{text.casefold()[:_LONGEST]}"


def _when(text: str) -> str | None:
    if (part := _PART.fullmatch(text)) is not None:
        return text if part[2] is None or 1 <= int(part[2]) <= 12 else None
    if (quarter := _QUARTER.fullmatch(text)) is not None:
        return f"{quarter[1]}-{3 * int(quarter[2]) - 2:02}"
    try:
        if len(text) == 10:
            return date.fromisoformat(text).isoformat()
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat() if "-" in text[:5] else None


def _days(text: str) -> float | None:
    if (length := _LENGTH.fullmatch(text)) is not None:
        counts = zip(length.groups(), (_DAYS["year"], _DAYS["month"], _DAYS["week"], _DAYS["day"]), strict=True)
        return sum(int(number or 0) * days for number, days in counts)
    if (said := _SAID.fullmatch(text)) is not None:
        return int(said[1]) * _DAYS[said[2].lower()]
    return None
