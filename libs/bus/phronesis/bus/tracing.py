"""Spans: made with OpenTelemetry, carried as `traceparent`, remembered for a while so that no collector is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from phronesis.contracts.service import Span, Spans, TraceRef

_TRACES = 2_000
_SPANS_OF_ONE = 500

correlation: ContextVar[str | None] = ContextVar("correlation", default=None)
"""Correlation id of the work at hand; it travels in the envelope."""


class RecentSpans(SpanProcessor):
    """The finished spans of the newest traces, bounded in number."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._traces: OrderedDict[int, list[ReadableSpan]] = OrderedDict()

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a finished span; the oldest trace goes when there are too many."""
        context = span.get_span_context()
        if context is None:
            return
        spans = self._traces.setdefault(context.trace_id, [])
        if len(spans) < _SPANS_OF_ONE:
            spans.append(span)
        while len(self._traces) > _TRACES:
            self._traces.popitem(last=False)

    def of(self, ref: TraceRef) -> Spans:
        """The spans of one trace, in order of start."""
        found = [self._as_message(span) for span in self._traces.get(int(ref.trace_id, 16), ())]
        return Spans(spans=tuple(sorted(found, key=lambda span: span.start_ns)))

    def _as_message(self, span: ReadableSpan) -> Span:
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


class Tracing:
    """The spans of one service.

    Args:
        service: the service's name.
    """

    def __init__(self, service: str) -> None:
        self.recent = RecentSpans(service)
        self.provider = TracerProvider(resource=Resource({"service.name": f"phronesis-{service}"}), shutdown_on_exit=False)
        self.provider.add_span_processor(self.recent)
        self._tracer = self.provider.get_tracer("phronesis")

    @contextmanager
    def span(
        self, name: str, *, kind: SpanKind = SpanKind.INTERNAL, parent: str | None = None, **attributes: Any
    ) -> Iterator[trace.Span]:
        """A span around a block; an exception that leaves the block marks it by its class, never by its text.

        Args:
            name: what is done.
            kind: the OpenTelemetry kind.
            parent: a `traceparent` from another process; the current span by default.
            attributes: attributes; `__` in a name stands for a dot.
        """
        context = _context(parent) if parent else None
        named = {key.replace("__", "."): value for key, value in attributes.items() if value is not None}
        span = self._tracer.start_span(name, context, kind, named)
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except BaseException as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise


def traceparent() -> str | None:
    """The W3C `traceparent` of the current span, if there is one."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-01"


def trace_id(parent: str | None) -> str | None:
    """The trace id inside a `traceparent`."""
    parts = (parent or "").split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else None


def _context(parent: str) -> Context | None:
    parts = parent.split("-")
    try:
        _, trace_hex, span_hex, _ = parts
        remote = SpanContext(int(trace_hex, 16), int(span_hex, 16), True, TraceFlags(TraceFlags.SAMPLED))
    except ValueError:
        return None
    return trace.set_span_in_context(NonRecordingSpan(remote), Context()) if remote.is_valid else None
