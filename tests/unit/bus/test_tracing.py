"""Spans: remembered without content, exported only where that is set, and cheap where it is not."""

from __future__ import annotations

import threading

import pytest

from phronesis_bus import current_tracing, inner_span, record_span, traceparent
from phronesis_bus.settings import TelemetrySettings
from phronesis_bus.tracing import Tracing
from phronesis_contracts import Unavailable
from phronesis_contracts.service import Span, TraceRef
from tests.support.bus import eventually
from tests.support.collector import collecting

ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{ID}-b7ad6b7169203331-"
QUIET = TelemetrySettings(exporter_otlp_endpoint=None, exporter_otlp_traces_endpoint=None, capture_message_content=False)


def remembered(tracing: Tracing) -> list[Span]:
    return list(tracing.recent.of(TraceRef(trace_id=ID)).spans)


def test_a_span_belongs_to_the_trace_that_it_was_given() -> None:
    tracing = Tracing("memory", QUIET)
    with tracing.span("serve", parent=f"{PARENT}01", rpc__method="m", left__out=None):
        assert (traceparent() or "").startswith(f"00-{ID}-")
    assert [(span.name, span.parent_id, span.attributes) for span in remembered(tracing)] == [
        ("serve", "b7ad6b7169203331", {"rpc.method": "m"})
    ]


def test_an_error_marks_a_span_by_its_code_and_never_by_its_text() -> None:
    tracing = Tracing("memory", QUIET)
    with pytest.raises(Unavailable), tracing.span("serve", parent=f"{PARENT}01"):
        raise Unavailable("what somebody said")
    assert [(span.error, span.attributes) for span in remembered(tracing)] == [("Unavailable", {"error.type": "unavailable"})]


def test_a_trace_that_its_caller_does_not_sample_is_remembered_and_told_on_as_such() -> None:
    tracing = Tracing("memory", QUIET)
    with tracing.span("serve", parent=f"{PARENT}00"):
        told = traceparent()
    assert (told or "").endswith("-00")
    assert [span.name for span in remembered(tracing)] == ["serve"]


def test_a_span_that_stays_in_the_process_is_remembered_as_one_that_is_exported() -> None:
    away = QUIET.model_copy(update={"exporter_otlp_endpoint": "http://127.0.0.1:9"})
    seen = []
    for tracing in (Tracing("memory", QUIET), Tracing("memory", away)):
        with tracing.span("serve", parent=f"{PARENT}01", rpc__method="m", many=["a", "b"], long="x" * 10_000) as span:
            span.set_attribute("n", 1)
            with tracing.span("inside"):
                span.update_name("served")
        inside, outer = sorted(remembered(tracing), key=lambda one: one.name)
        assert (inside.parent_id, outer.start_ns <= inside.start_ns <= inside.end_ns <= outer.end_ns) == (outer.span_id, True)
        seen.append((outer.name, outer.parent_id, outer.attributes, outer.error, inside.name, inside.attributes))
    assert seen[0] == seen[1]


def test_work_deep_inside_finds_the_tracing_at_hand() -> None:
    tracing = Tracing("memory", QUIET)
    with tracing.span("serve", parent=f"{PARENT}01"), inner_span("search", db__system__name="postgresql"):
        assert current_tracing() is tracing
    with inner_span("nobody's") as span:
        assert (current_tracing(), span.is_recording()) == (None, False)
    assert [span.name for span in remembered(tracing)] == ["serve", "search"]


def test_without_an_address_nothing_is_exported_and_no_thread_is_begun() -> None:
    before = threading.active_count()
    tracing = Tracing("memory", QUIET)
    with tracing.span("serve", parent=f"{PARENT}01") as span:
        record_span("SELECT", 0.1)
        tracing.note(span, "gen_ai.input.messages", "what somebody said")
    assert (tracing.exports, threading.active_count(), len(remembered(tracing))) == (False, before, 1)
    assert remembered(tracing)[0].attributes == {}


async def test_an_exported_span_has_its_service_its_statements_and_no_content() -> None:
    async with collecting() as collector:
        tracing = Tracing("memory", QUIET.model_copy(update={"exporter_otlp_endpoint": collector.url}))
        with tracing.span("serve", parent=f"{PARENT}01") as span:
            record_span("SELECT", 0.1, "42P01", db__operation__name="SELECT")
            tracing.note(span, "gen_ai.input.messages", "what somebody said")
        await tracing.close()
        await eventually(lambda: len(collector.spans) == 2, within=5)
        assert {(span.service, span.name, *span.attributes.items()) for span in collector.spans} == {
            ("memory", "serve"),
            ("memory", "SELECT", ("db.operation.name", "SELECT"), ("error.type", "42P01")),
        }


async def test_switched_on_content_is_cut_exported_and_not_remembered() -> None:
    async with collecting() as collector:
        on = {"exporter_otlp_endpoint": collector.url, "capture_message_content": True}
        tracing = Tracing("memory", QUIET.model_copy(update=on))
        with tracing.span("chat", parent=f"{PARENT}01", kept=1) as span:
            tracing.note(span, "gen_ai.input.messages", "x" * 10_000)
        await tracing.close()
        await eventually(lambda: len(collector.spans) == 1, within=5)
        assert collector.spans[0].attributes == {"kept": 1, "gen_ai.input.messages": "x" * 8_192}
        assert [span.attributes for span in remembered(tracing)] == [{"kept": 1}]


async def test_a_collector_that_is_away_holds_nothing_up() -> None:
    tracing = Tracing("memory", QUIET.model_copy(update={"exporter_otlp_endpoint": "http://127.0.0.1:9"}))
    with tracing.span("serve", parent=f"{PARENT}01"):
        pass
    await tracing.close()
    assert [span.name for span in remembered(tracing)] == ["serve"]
