"""The section of tracing: turns of two stacks, one that exports its spans to a sink on this machine and one that does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from time import process_time

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from phronesis_bus.settings import TelemetrySettings
from phronesis_bus.tracing import Tracing
from tests.chaos.stack import SERVICES, ChaosStack
from tests.support.collector import Collector
from tests.support.people import town

from .load import Timed, measure
from .processes import cpu_seconds
from .progress import say
from .stacks import running
from .turns import DIRECT, TOPICS

_PATH = "/api/v1/conversations/messages"
_SETTLE = 6.0
"""Seconds after which every batch of spans is out: the exporter waits five."""
_SPANS = 20_000


class Sink(Collector):
    """Takes what comes and looks at it later: it shares a processor with what is measured."""

    def __init__(self) -> None:
        super().__init__()
        self._bodies: list[bytes] = []

    def _take(self, body: bytes) -> None:
        self._bodies.append(body)

    def count(self) -> int:
        """Spans that have come since this was asked for the last time."""
        requests = [ExportTraceServiceRequest.FromString(body) for body in self._bodies]
        self._bodies.clear()
        return sum(len(scope.spans) for each in requests for resource in each.resource_spans for scope in resource.scope_spans)


@dataclass
class Cost:
    """One kind of turn, exported and not."""

    name: str
    body: Callable[[int], bytes]
    off: list[Timed] = field(default_factory=list)
    on: list[Timed] = field(default_factory=list)
    off_cpu: float = 0.0
    """Processor seconds of the six services in all rounds."""
    on_cpu: float = 0.0
    spans: int = 0

    @property
    def turns(self) -> int:
        """Turns of each side."""
        return sum(len(t.seconds) for t in self.off)


def _direct(number: int) -> bytes:
    return json.dumps({"currentMessageText": DIRECT}).encode()


def _query(number: int) -> bytes:
    return json.dumps({"currentMessageText": f"What is {TOPICS[number % len(TOPICS)]} for? Case {number} of memory."}).encode()


async def section(quick: bool) -> list[str]:
    """Its lines."""
    rounds, each = (1, 5) if quick else (6, 50)
    costs = [Cost("direct reply", _direct), Cost("query_memory reply", _query)]
    span = _span_seconds()
    async with _sink() as sink, running() as off, running({"OTEL_EXPORTER_OTLP_ENDPOINT": sink.url}) as on:
        await asyncio.gather(_facts(off), _facts(on))
        for cost in costs:
            say(f"tracing: {cost.name}")
            for stack in (off, on):
                await _turns(stack, cost, max(5, each // 2))
            await asyncio.sleep(_SETTLE)
            sink.count()
            for _ in range(rounds):
                cost.off_cpu += await _round(off, cost, cost.off, each)
                cost.on_cpu += await _round(on, cost, cost.on, each)
            await asyncio.sleep(_SETTLE)
            cost.spans = sink.count()
    return _table(costs, span)


async def _round(stack: ChaosStack, cost: Cost, into: list[Timed], each: int) -> float:
    before = _services(stack)
    into.append(await _turns(stack, cost, each))
    return _services(stack) - before


async def _turns(stack: ChaosStack, cost: Cost, count: int) -> Timed:
    return await measure(stack.url, {"Authorization": f"Bearer {stack.key}"}, _PATH, cost.body, count, 1)


def _services(stack: ChaosStack) -> float:
    used = cpu_seconds(stack)
    return sum(used[name] for name in SERVICES)


async def _facts(stack: ChaosStack) -> None:
    """Something to find, the same in both."""
    async with town(stack.url, stack.key) as people:
        for topic in TOPICS:
            await people.owner.remember(topic, f"{topic} is a programme that is on time and within its budget.")


def _span_seconds() -> float:
    """Processor seconds of one span that nobody exports."""
    tracing = Tracing("bench", TelemetrySettings(exporter_otlp_endpoint=None, exporter_otlp_traces_endpoint=None))
    for _ in range(2):
        with tracing.span("turn"):
            began = process_time()
            for _ in range(_SPANS):
                with tracing.span("ask", rpc__system="nats", rpc__method="memory.v1.recall", messaging__message__id=1):
                    pass
            taken = process_time() - began
    return taken / _SPANS


@asynccontextmanager
async def _sink() -> AsyncIterator[Sink]:
    sink = Sink()
    server = await asyncio.start_server(sink.answer, "127.0.0.1", 0)
    sink.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield sink
    finally:
        server.close()


def _table(costs: list[Cost], span: float) -> list[str]:
    lines = [
        "Two stacks side by side, alternating: one exports every span by OTLP to a sink on this machine, which discards them.",
        "Processor time is of the six services together, for each turn; the work that follows a reply is in it as far as it is",
        "done before the next round. Spans of statements and the like are made only where spans are exported; the others are",
        f"made in both stacks, and one that nobody exports takes {1e6 * span:.0f} µs of a processor.",
        "",
        "| turn | off, median ms | on, median ms | ratio | off, p95 ms | on, p95 ms | processor, off, ms | on, ms | ratio "
        "| spans exported a turn |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in costs:
        off, on = median(t.p50 for t in c.off), median(t.p50 for t in c.on)
        off95, on95 = median(t.p95 for t in c.off), median(t.p95 for t in c.on)
        lines.append(
            f"| {c.name} | {off:.1f} | {on:.1f} | {on / off:.2f} | {off95:.1f} | {on95:.1f} "
            f"| {1e3 * c.off_cpu / c.turns:.1f} | {1e3 * c.on_cpu / c.turns:.1f} | {c.on_cpu / c.off_cpu:.2f} "
            f"| {c.spans / c.turns:.1f} |"
        )
    return lines
