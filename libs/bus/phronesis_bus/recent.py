"""The finished spans that a process remembers for a while, so that a trace can be shown without a collector."""

from __future__ import annotations

from collections import OrderedDict

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode

from phronesis_contracts.service import Span, Spans, TraceRef

_TRACES = 2_000
_SPANS_OF_ONE = 500
CONTENT = frozenset(
    {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.memory.query.text",
        "gen_ai.retrieval.query.text",
    }
)
"""Attributes that hold what people said: set where that is switched on, exported, and never remembered here."""


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
            spans.append(span if CONTENT.isdisjoint(span.attributes or ()) else _without_content(span))
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
