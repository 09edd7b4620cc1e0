"""The trace of a turn: what every process of every service remembers of it, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pydantic import BaseModel

from phronesis_bus import Bus, ask_each
from phronesis_contracts import Principal
from phronesis_contracts.service import SERVICES, SPANS, Span, TraceRef

LIMIT = 1.5
"""Seconds that a service has to answer."""
OWNER = "phronesis.owner"
"""Attribute of a request's span: tenant and user it acted for."""


class TurnTrace(BaseModel):
    """Every span of a turn that is still remembered, in order of start."""

    turn_id: str
    trace_id: str | None
    spans: tuple[Span, ...] = ()
    missing: tuple[str, ...] = ()
    """Services that did not answer."""


def owner(who: Principal) -> str:
    """How a span names the caller."""
    return f"{who.tenant}/{who.user}"


class Traces:
    """Puts traces together.

    Args:
        bus: the connected bus.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def of(self, who: Principal, turn_id: str, trace_id: str | None) -> TurnTrace:
        """The trace of a turn of `who`."""
        if trace_id is None:
            return TurnTrace(turn_id=turn_id, trace_id=None)
        ref = TraceRef(trace_id=trace_id)
        answers = await asyncio.gather(*(self._ask(who, name, ref) for name in SERVICES))
        # Other copies of this service answer like any other; what this one knows is there without the broker.
        known = {span.span_id: span for found in answers for span in found or ()}
        known |= {span.span_id: span for span in self._bus.tracing.recent.of(ref).spans}
        return TurnTrace(
            turn_id=turn_id,
            trace_id=trace_id,
            spans=tuple(sorted(_of(owner(who), known.values()), key=lambda span: span.start_ns)),
            missing=tuple(
                name for name, found in zip(SERVICES, answers, strict=True) if found is None and name != self._bus.name
            ),
        )

    async def _ask(self, who: Principal, service: str, ref: TraceRef) -> list[Span] | None:
        """What the copies of a service know; `None` where none answers."""
        answers = await ask_each(self._bus, who, SPANS[service], ref, timeout=LIMIT)
        return [span for found in answers.values() for span in found.spans] if answers else None


def _of(owner: str, spans: Iterable[Span]) -> list[Span]:
    """The spans without those that another caller's request began: callers choose trace ids, and may choose the same."""
    left = list(spans)
    foreign = {span.span_id for span in left if span.attributes.get(OWNER, owner) != owner}
    while foreign:
        left = [span for span in left if span.span_id not in foreign]
        foreign = {span.span_id for span in left if span.parent_id in foreign}
    return left
