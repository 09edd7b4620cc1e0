"""The trace of a turn: what every service remembers of it, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pydantic import BaseModel

from phronesis.bus import Bus, ask
from phronesis.contracts import Principal, ServiceError
from phronesis.contracts.service import SERVICES, SPANS, Span, TraceRef

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
        others = [name for name in SERVICES if name != self._bus.name]
        answers = await asyncio.gather(*(self._ask(who, name, ref) for name in others))
        spans = [*self._bus.tracing.recent.of(ref).spans, *(span for found in answers for span in found or ())]
        return TurnTrace(
            turn_id=turn_id,
            trace_id=trace_id,
            spans=tuple(sorted(_of(owner(who), spans), key=lambda span: span.start_ns)),
            missing=tuple(name for name, found in zip(others, answers, strict=True) if found is None),
        )

    async def _ask(self, who: Principal, service: str, ref: TraceRef) -> tuple[Span, ...] | None:
        try:
            return (await ask(self._bus, who, SPANS[service], ref, timeout=LIMIT)).spans
        except ServiceError:
            return None


def _of(owner: str, spans: Iterable[Span]) -> list[Span]:
    """The spans without those that another caller's request began: callers choose trace ids, and may choose the same."""
    left = list(spans)
    foreign = {span.span_id for span in left if span.attributes.get(OWNER, owner) != owner}
    while foreign:
        left = [span for span in left if span.span_id not in foreign]
        foreign = {span.span_id for span in left if span.parent_id in foreign}
    return left
