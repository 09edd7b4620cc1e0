"""What a process counts, in the form that Prometheus reads. A metric is a value; how many series it has is bounded."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

log = logging.getLogger(__name__)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TOKENS = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576)
"""The buckets that the GenAI conventions advise, up to the longest prompt there is."""
SERIES = 1_000
"""Series of one metric by default."""
TENANTS = 100
"""Series of a metric that names tenants."""
OTHER = "other"
"""Stands for the label values beyond that."""
_PROBE = 1.0
"""Seconds that the probes have to look, together; a figure that cannot be had stays as it was."""


class Kind(Enum):
    COUNTER = Counter
    HISTOGRAM = Histogram
    GAUGE = Gauge


@dataclass(frozen=True)
class Metric:
    """One metric. Labels never name a user or an id, and a tenant only where its series are few."""

    name: str
    """As Prometheus shows it; a counter's `_total` is added there."""
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = SECONDS
    """Upper bounds; of histograms alone."""
    series: int = SERIES
    """Series that there may be; further values of its labels are counted together."""


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._made: dict[str, Any] = {}
        self._series: dict[str, dict[tuple[str, ...], Any]] = {}
        self._probes: list[Callable[[], Awaitable[None]]] = []

    def count(self, metric: Metric, *labels: str, by: float = 1.0) -> None:
        self._at(metric, labels).inc(by)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        self._at(metric, labels).observe(value)

    @contextmanager
    def timed(self, metric: Metric, *labels: str) -> Iterator[None]:
        """Enter a block's seconds in a histogram, whose last label is the class or code of what the block raised, or empty."""
        began, failed = time.perf_counter(), ""
        try:
            yield
        except BaseException as error:
            failed = getattr(error, "code", None) or type(error).__name__
            raise
        finally:
            self.observe(metric, time.perf_counter() - began, *labels, failed)

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        self._at(metric, labels).set(value)

    def watch(self, metric: Metric, value: Callable[[], float], *labels: str) -> None:
        """Let a gauge show what `value` gives at each reading."""
        self._at(metric, labels).set_function(value)

    def probe(self, look: Callable[[], Awaitable[None]]) -> None:
        """Run `look` before each reading: it sets the gauges that a store has to be asked for."""
        self._probes.append(look)

    async def text(self) -> bytes:
        await asyncio.gather(*(self._looked(look) for look in self._probes))
        return generate_latest(self.registry)

    async def _looked(self, look: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(_PROBE):
                await look()
        except Exception as error:
            log.warning("a figure could not be had: %s", type(error).__name__)

    def _at(self, metric: Metric, labels: tuple[str, ...]) -> Any:
        series = self._series.setdefault(metric.name, {})
        found = series.get(labels)
        if found is None:
            if len(series) >= metric.series:
                labels = (OTHER,) * len(labels)
            found = series[labels] = self._new(metric, labels)
        return found

    def _new(self, metric: Metric, labels: tuple[str, ...]) -> Any:
        made = self._made.get(metric.name)
        if made is None:
            more = {"buckets": metric.buckets} if metric.kind is Kind.HISTOGRAM else {}
            made = metric.kind.value(metric.name, metric.text, metric.labels, registry=self.registry, **more)
            self._made[metric.name] = made
        return made.labels(*labels) if labels else made


RPC = Metric(
    "phronesis_rpc_seconds",
    Kind.HISTOGRAM,
    "Time of answers to questions on the bus, by what came of them.",
    ("method", "outcome"),
)
TOOL = Metric(
    "gen_ai_execute_tool_duration_seconds",
    Kind.HISTOGRAM,
    "Time of calls of tools, whoever made them; the kinds of media are tools of their own.",
    ("gen_ai_tool_name", "outcome"),
)
RPC_WAITED = Metric(
    "phronesis_rpc_waiting_seconds",
    Kind.HISTOGRAM,
    "Time that requests waited for a slot, where none was free at once.",
    ("tenant",),
    series=TENANTS,
)
RPC_REFUSED = Metric(
    "phronesis_rpc_refused",
    Kind.COUNTER,
    "Requests that were not worked on: no room (busy), over a key's rate (rate), far over it and not answered (dropped).",
    ("tenant", "reason"),
    series=TENANTS,
)
HANDLED = Metric(
    "phronesis_consumer_seconds", Kind.HISTOGRAM, "Time of jobs and events, by what came of them.", ("consumer", "outcome")
)
PARKED = Metric("phronesis_parked_messages", Kind.COUNTER, "Messages given up, for an operator to look at.", ("consumer",))
CONNECTED = Metric("phronesis_bus_connected", Kind.GAUGE, "1 while the broker can be reached.")
UNSENT = Metric("phronesis_outbox_unsent", Kind.GAUGE, "News that is written down and not sent yet.")
MODEL_SECONDS = Metric(
    "gen_ai_client_operation_duration_seconds",
    Kind.HISTOGRAM,
    "Time of calls to models, each try by itself.",
    ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "purpose", "error_type"),
)
MODEL_TOKENS = Metric(
    "gen_ai_client_token_usage",
    Kind.HISTOGRAM,
    "Tokens that calls to models used; cached and reasoning tokens are part of input and output.",
    ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "purpose", "gen_ai_token_type"),
    TOKENS,
)
POOL = Metric("db_client_connection_count", Kind.GAUGE, "Connections to the database.", ("pool", "state"))
POOL_MOST = Metric("db_client_connection_max", Kind.GAUGE, "Connections that there may be.", ("pool",))
POOL_WAITING = Metric("db_client_connection_pending_requests", Kind.GAUGE, "Who waits for a connection.", ("pool",))
