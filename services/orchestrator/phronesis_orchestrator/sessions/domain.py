"""The values that sessions are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

HOURS = (8.0, 8.0, 8.0, 8.0, 8.0, 0.0, 0.0)
"""Working hours of Monday to Sunday of who never set any (C-47)."""
Source = Literal["none", "ics", "caldav"]


@dataclass(frozen=True)
class Calendar:
    """Where a user's events are, and when the user works."""

    source: Source = "none"
    url: str | None = None
    ics: str | None = field(default=None, repr=False)
    username: str | None = None
    sealed: bytes | None = field(default=None, repr=False)
    """The password, encrypted."""
    hours: tuple[float, ...] = HOURS
    time_zone: str = "UTC"
    version: int = 0
    """Grows with each setting; 0 where nothing was ever set."""


@dataclass(frozen=True)
class Occurrence:
    """One event at one time."""

    title: str
    start: datetime
    end: datetime
    whole_day: bool


@dataclass(frozen=True)
class Found:
    """What of a calendar falls into a window."""

    occurrences: tuple[Occurrence, ...] = ()
    unreadable: int = 0
    """Events that could not be understood."""
