"""What the handlers need from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from phronesis_contracts import Principal

from .domain import Destination, Fetched, Order, Page, Reading

Audit = Callable[[Principal, str, dict[str, Any]], Awaitable[None]]
"""Announce that the principal did a thing with these arguments."""


class Bucket(Protocol):
    """Objects by name."""

    async def put(self, name: str, data: bytes) -> None:
        """Store `data` under `name`, in place of what was there."""
        ...

    async def get(self, name: str) -> bytes:
        """The bytes under `name`; `NotFound` where there are none."""
        ...

    async def delete(self, name: str) -> None:
        """Remove `name`; it is no error when it is not there."""
        ...


class Reader(Protocol):
    """Reads media."""

    async def read(self, data: bytes, type: str) -> Reading:
        """The text of the medium in `data`.

        Raises:
            TooLarge: over a limit of pages, pixels, length, memory or processor time.
            UnsupportedMedia: damaged, protected, or without text.
            Unavailable: no process or no engine to read it; not the content's fault, as is
            TimedOut: not read in time.
        """
        ...


class Web(Protocol):
    """Fetches public addresses."""

    async def fetch(self, url: str) -> Fetched:
        """What `url` gives.

        Raises:
            BadRequest: the address is refused; `field` is `url`.
            TooLarge: more than an upload may have.
            Unavailable: it could not be fetched.
            TimedOut: it took too long.
        """
        ...

    async def read(self, order: Order) -> Page:
        """What an address answers to `order`, whatever its status; raises what `fetch` does but for a status."""
        ...


class Places(Protocol):
    """Says where addresses lead."""

    async def resolve(self, text: str) -> Destination:
        """The IP addresses behind an address. Raises `BadRequest` where it is refused, `Unavailable` for no answer."""
        ...


class Resolver(Protocol):
    """Looks names of hosts up."""

    async def addresses(self, host: str) -> tuple[str, ...]:
        """Every address of `host`; none for a name that does not exist.

        Raises:
            Unavailable: no answer at this time.
        """
        ...
