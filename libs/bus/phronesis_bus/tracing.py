"""Spans.

Made with OpenTelemetry, carried as `traceparent`, remembered for a while, and exported by OTLP where an address is set.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context, attach, create_key, detach, get_value, set_value
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from phronesis_contracts.service import Span, Spans, TraceRef

from .metrics import Metrics
from .settings import TelemetrySettings

_TRACES = 2_000
_SPANS_OF_ONE = 500
CONTENT = frozenset(
    {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.memory.query.text", "gen_ai.retrieval.query.text"}
)
"""Attributes that hold what people said: set where that is switched on, exported, and never remembered here."""


class RecentSpans(SpanProcessor):
    """The finished spans of the newest traces, bounded in number."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._traces: OrderedDict[int, list[ReadableSpan | SmallSpan]] = OrderedDict()

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a finished span; the oldest trace goes when there are too many."""
        self.keep(span if CONTENT.isdisjoint(span.attributes or ()) else _without_content(span))

    def keep(self, span: ReadableSpan | SmallSpan) -> None:
        """Keep a finished span that holds no content."""
        context = span.get_span_context()
        if context is None:
            return
        spans = self._traces.setdefault(context.trace_id, [])
        if len(spans) < _SPANS_OF_ONE:
            spans.append(span)
        while len(self._traces) > _TRACES:
            self._traces.popitem(last=False)

    def of(self, ref: TraceRef) -> Spans:
        found = [self._as_message(span) for span in self._traces.get(int(ref.trace_id, 16), ())]
        return Spans(spans=tuple(sorted(found, key=lambda span: span.start_ns)))

    def _as_message(self, span: ReadableSpan | SmallSpan) -> Span:
        context = span.get_span_context()
        assert context is not None
        return Span(
            trace_id=f"{context.trace_id:032x}",
            span_id=f"{context.span_id:016x}",
            parent_id=f"{span.parent.span_id:016x}" if span.parent else None,
            service=self._service,
            name=span.name,
            start_ns=span.start_time or 0,
            end_ns=span.end_time or 0,
            attributes=dict(span.attributes or {}),
            error=span.status.description if span.status.status_code is StatusCode.ERROR else None,
        )


class SmallSpan(trace.Span):
    """A span that never leaves the process. The SDK's own costs ten times as much: locks, limits, events and links."""

    def __init__(self, name: str, context: SpanContext, parent: SpanContext | None, attributes: dict[str, Any]) -> None:
        self.name, self.parent = name, parent
        self.attributes: dict[str, Any] = {}
        self.status = Status()
        self.start_time, self.end_time = time.time_ns(), 0
        self._context = context
        self.set_attributes(attributes)

    def get_span_context(self) -> SpanContext:
        return self._context

    def is_recording(self) -> bool:
        return not self.end_time

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        for key, value in attributes.items():
            self.set_attribute(key, value)

    def set_attribute(self, key: str, value: Any) -> None:
        match value:
            case str():
                self.attributes[key] = value[:_LONGEST]
            case list():
                self.attributes[key] = tuple(value)
            case _:
                self.attributes[key] = value

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        self.status = status if isinstance(status, Status) else Status(status, description)

    def update_name(self, name: str) -> None:
        self.name = name

    def end(self, end_time: int | None = None) -> None:
        self.end_time = end_time or time.time_ns()

    def add_event(self, *args: Any, **named: Any) -> None:
        """Nobody asks for events."""

    def record_exception(self, *args: Any, **named: Any) -> None:
        """The texts of exceptions stand in no span."""


def _without_content(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        span.name,
        span.get_span_context(),
        span.parent,
        attributes={key: value for key, value in (span.attributes or {}).items() if key not in CONTENT},
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
    )


VERSION = "0.1.0"
"""Version of the platform; every service says it of itself."""
_CLOSE = 3.0
"""Seconds in which the last spans have to be sent."""
_LONGEST = 8_192
"""Characters of an attribute; captured content is cut to as much."""
correlation: ContextVar[str | None] = ContextVar("correlation", default=None)
"""Correlation id of the work at hand; it travels in the envelope."""
turn: ContextVar[str | None] = ContextVar("turn", default=None)
"""Id of the turn at hand, where it is known; logs carry it, and the envelope to whoever is asked."""
conversation: ContextVar[str | None] = ContextVar("conversation", default=None)
"""Id of the turn's conversation; it travels as the turn's does."""
user: ContextVar[str | None] = ContextVar("user", default=None)
"""Id of the user for whom the work at hand is done; logs carry it."""
_TRACING = create_key("tracing")
_IDS = RandomIdGenerator()


class _RecordingSampler(Sampler):
    """Another sampler's choice of what is exported; what it leaves out is still remembered here."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def should_sample(self, *args: Any, **named: Any) -> SamplingResult:
        chosen = self._sampler.should_sample(*args, **named)
        if chosen.decision is Decision.DROP:
            return SamplingResult(Decision.RECORD_ONLY, chosen.attributes, chosen.trace_state)
        return chosen

    def get_description(self) -> str:
        return self._sampler.get_description()


class Tracing:
    """What one service tells of itself: its spans, and its metrics.

    Args:
        settings: where spans are exported to, if anywhere; from the environment by default.
    """

    def __init__(self, service: str, settings: TelemetrySettings | None = None) -> None:
        settings = settings or TelemetrySettings()
        self.metrics = Metrics()
        self.recent = RecentSpans(service)
        self.exports = settings.exports
        """Whether spans leave the process; only then are the small ones made, such as one for each statement."""
        self.captures = self.exports and settings.capture_message_content
        """Whether exported spans may hold what people said."""
        about = {"service.name": f"phronesis-{service}", "service.version": VERSION}
        resource = Resource.create(about) if self.exports else Resource(about)
        limits = SpanLimits(max_span_attribute_length=_LONGEST)
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False, span_limits=limits)
        self._sampler = self.provider.sampler
        self.provider.sampler = _RecordingSampler(self._sampler)
        self.provider.add_span_processor(self.recent)
        if self.exports:
            self.provider.add_span_processor(_exporting(settings))
        self._tracer = self.provider.get_tracer("phronesis")

    @contextmanager
    def span(
        self, name: str, *, kind: SpanKind = SpanKind.INTERNAL, parent: str | None = None, **attributes: Any
    ) -> Iterator[trace.Span]:
        """A span around a block; an exception that leaves the block marks it by its class, never by its text.

        Args:
            parent: a `traceparent` from another process; the current span by default.
            attributes: attributes; `__` in a name stands for a dot.
        """
        context = _context(parent) if parent else None
        named = {key.replace("__", "."): value for key, value in attributes.items() if value is not None}
        span: trace.Span = (
            self._tracer.start_span(name, context, kind, named, record_exception=False, set_status_on_exception=False)
            if self.exports
            else self._small(name, context, named)
        )
        token = attach(set_value(_TRACING, self, trace.set_span_in_context(span)))
        try:
            yield span
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            if "error.type" not in (getattr(span, "attributes", None) or ()):
                span.set_attribute("error.type", getattr(error, "code", None) or type(error).__name__)
            raise
        finally:
            span.end()
            detach(token)
            if isinstance(span, SmallSpan):
                self.recent.keep(span)

    def _small(self, name: str, context: Context | None, attributes: dict[str, Any]) -> SmallSpan:
        parent = trace.get_current_span(context).get_span_context()
        if parent.is_valid:
            of_trace, flags, state = parent.trace_id, parent.trace_flags, parent.trace_state
        else:
            of_trace = _IDS.generate_trace_id()
            sampled = self._sampler.should_sample(None, of_trace, name).decision is Decision.RECORD_AND_SAMPLE
            flags, state = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT), TraceState()
        own = SpanContext(of_trace, _IDS.generate_span_id(), False, flags, state)
        return SmallSpan(name, own, parent if parent.is_valid else None, attributes)

    def note(self, span: trace.Span, name: str, content: str) -> None:
        """Write what people said on a span, cut, where that is switched on; `name` is one of `CONTENT`."""
        if self.captures:
            span.set_attribute(name, content[:_LONGEST])

    async def close(self) -> None:
        """Send what is not exported yet, for some seconds at most."""
        if self.exports:
            # A thread that nobody waits for: a collector that does not answer holds no process up.
            ending = threading.Thread(target=self.provider.shutdown, name="spans-end", daemon=True)
            ending.start()
            await asyncio.to_thread(ending.join, _CLOSE)


def _exporting(settings: TelemetrySettings) -> SpanProcessor:
    """Batches to the address that is set; imported here, since it takes a third of a second."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    base = (settings.exporter_otlp_endpoint or "").rstrip("/")
    return BatchSpanProcessor(OTLPSpanExporter(settings.exporter_otlp_traces_endpoint or f"{base}/v1/traces"))


def current_tracing() -> Tracing | None:
    """The tracing of the work at hand, for what is too deep inside to be given it."""
    found = get_value(_TRACING)
    return found if isinstance(found, Tracing) else None


@contextmanager
def inner_span(name: str, *, kind: SpanKind = SpanKind.INTERNAL, **attributes: Any) -> Iterator[trace.Span]:
    """A span inside the work at hand, as `Tracing.span` makes it; none where no traced work is at hand."""
    tracing = current_tracing()
    if tracing is None:
        yield INVALID_SPAN
        return
    with tracing.span(name, kind=kind, **attributes) as span:
        yield span


def record_span(name: str, seconds: float, error: str | None = None, **attributes: Any) -> None:
    """A small span of the work at hand, told after its end: made where spans are exported, and nowhere else.

    Args:
        seconds: how long it took.
    """
    tracing = current_tracing()
    if tracing is None or not tracing.exports:
        return
    now = time.time_ns()
    named = {key.replace("__", "."): value for key, value in attributes.items() if value is not None}
    span = tracing._tracer.start_span(name, None, SpanKind.CLIENT, named, start_time=now - int(seconds * 1e9))
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR, error))
    span.end(now)


def traceparent() -> str | None:
    """The W3C `traceparent` of the current span, if there is one."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def trace_id(parent: str | None) -> str | None:
    """The trace id inside a `traceparent`."""
    parts = (parent or "").split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else None


def _context(parent: str) -> Context | None:
    parts = parent.split("-")
    try:
        _, trace_hex, span_hex, flags = parts
        remote = SpanContext(int(trace_hex, 16), int(span_hex, 16), True, TraceFlags(int(flags, 16)))
    except ValueError:
        return None
    return trace.set_span_in_context(NonRecordingSpan(remote), Context()) if remote.is_valid else None
