"""What sessions need from outside."""

from __future__ import annotations

from typing import Literal, Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal, Rpc
from phronesis_contracts.messages import In, Out_

from .domain import Calendar, Found
from .windows import Window


class Ask(Protocol):
    """Asks the owner of a contract."""

    async def __call__(self, who: Principal, rpc: Rpc[In, Out_], request: In, limit: float) -> Out_:
        """The answer within `limit` seconds. Raises the `ServiceError` that the owner answers with."""
        ...


class Calendars(Protocol):
    """The calendars that users have set."""

    async def of(self, who: Principal) -> Calendar:
        """The caller's, or the one of who never set any."""
        ...

    async def keep(self, call: Call, calendar: Calendar) -> Calendar:
        """Set the caller's, with an entry in the audit trail; it comes back with its version."""
        ...


class Seal(Protocol):
    """Encrypts what is kept of a password."""

    def shut(self, text: str, owner: Principal) -> bytes:
        """The text, encrypted for its owner. Raises `BadRequest` where the installation has no key."""
        ...

    def open(self, sealed: bytes, owner: Principal) -> str:
        """The text again. Raises `Unavailable` where the key is not the one that it was encrypted with."""
        ...


class Reader(Protocol):
    """Understands foreign calendars."""

    async def read(self, form: Literal["ics", "caldav"], data: bytes, window: Window) -> Found:
        """What falls into the window.

        Args:
            form: a file of iCalendar, or the answer to a CalDAV report.
            data: its bytes.
            window: the days that are asked for.

        Raises:
            UnsupportedMedia: this is no calendar.
            TooLarge: too many events.
            TimedOut: understanding it takes too long.
            Unavailable: no process to read it.
        """
        ...
