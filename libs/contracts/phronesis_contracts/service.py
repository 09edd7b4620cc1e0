"""Contracts that every service serves alike.

Its health, its recent spans, what it audits; and the news that a key was revoked.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from .messages import Event, Message, Nothing, Rpc
from .orchestrator import Audited

SERVICES = ("gateway", "orchestrator", "memory", "instructions", "graph", "media")


class Health(Message):
    """What a service's pings found."""

    service: str
    version: str
    ready: bool
    down: tuple[str, ...] = ()
    """Names of the dependencies that did not answer."""
    offers: tuple[str, ...] = ()
    """What it found at its start that it can do, where that depends on its surroundings, such as `pagerank by service`."""
    breakers: dict[str, str] = Field(default_factory=dict)
    """Services that failed it again and again, each `open` (not asked) or `half_open` (asked by one call)."""


class TraceRef(Message):
    """One trace by id (32 hex digits)."""

    trace_id: str = Field(pattern=r"^[0-9a-f]{32}$")


class Span(Message):
    """A finished span that the service still remembers."""

    trace_id: str
    """The trace that it belongs to."""
    span_id: str
    """Its id in the trace."""
    parent_id: str | None = None
    """The span that it was made in; absent for the first."""
    service: str
    """The service that did the work."""
    name: str
    """What was done."""
    start_ns: int
    """When it began, in nanoseconds since the epoch."""
    end_ns: int
    """When it ended, in nanoseconds since the epoch."""
    attributes: dict[str, Any] = Field(default_factory=dict)
    """What the service noted of it."""
    error: str | None = None
    """What it failed with; absent where it did not."""


class Spans(Message):
    """The spans of one trace, in order of start."""

    spans: tuple[Span, ...] = ()


HEALTH = {name: Rpc(f"{name}.v1.health", Nothing, Health, timeout=2.0) for name in SERVICES}
SPANS = {name: Rpc(f"{name}.v1.spans", TraceRef, Spans, timeout=2.0) for name in SERVICES}
AUDITED = {name: Event(f"{name}.v1.audited", Audited, followers=("orchestrator",)) for name in SERVICES}


class KeyRevoked(Message):
    """A key that must not be acted for any more."""

    key: str


KEY_REVOKED = Event("gateway.v1.key.revoked", KeyRevoked, followers=("gateway", "orchestrator"))
