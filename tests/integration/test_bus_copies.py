"""Several copies of one service: a question to all of them, and what each process answers for itself."""

from __future__ import annotations

from phronesis_bus import ask_each, serve_basics
from phronesis_contracts import Nothing, ServiceError
from phronesis_contracts.service import HEALTH, SPANS, TraceRef
from tests.support.bus import connected, somebody
from tests.support.servers import NatsServer


async def _ill() -> None:
    raise ServiceError("ill")


async def test_every_copy_answers_for_itself(nats_server: NatsServer) -> None:
    async with connected(nats_server, "gateway", "memory", "memory") as (asker, first, second):
        first.process, second.process = "host-1", "host-2"
        await serve_basics(first, {})
        await serve_basics(second, {"postgres": _ill})
        found = await ask_each(asker, somebody(), HEALTH["memory"], Nothing())
        assert {name: health.down for name, health in found.items()} == {"host-1": (), "host-2": ("postgres",)}


async def test_one_copy_can_be_waited_for(nats_server: NatsServer) -> None:
    async with connected(nats_server, "gateway", "memory", "memory") as (asker, first, second):
        first.process, second.process = "host-1", "host-2"
        await serve_basics(first, {})
        assert set(await ask_each(asker, somebody(), HEALTH["memory"], Nothing(), only="host-2")) == {"host-1"}
        await serve_basics(second, {})
        assert "host-2" in await ask_each(asker, somebody(), HEALTH["memory"], Nothing(), only="host-2")


async def test_where_no_copy_runs_nobody_answers(nats_server: NatsServer) -> None:
    async with connected(nats_server, "gateway") as (asker,):
        assert await ask_each(asker, somebody(), HEALTH["memory"], Nothing()) == {}


async def test_a_copy_that_stops_answers_no_more_and_the_other_one_does(nats_server: NatsServer) -> None:
    async with connected(nats_server, "gateway", "memory", "memory") as (asker, first, second):
        first.process, second.process = "host-1", "host-2"
        await serve_basics(first, {})
        await serve_basics(second, {})
        await first.stop()
        assert set(await ask_each(asker, somebody(), HEALTH["memory"], Nothing())) == {"host-2"}


async def test_a_gateway_hears_what_its_other_copies_remember_of_a_trace(nats_server: NatsServer) -> None:
    async with connected(nats_server, "gateway", "gateway") as (first, second):
        first.process, second.process = "host-1", "host-2"
        await serve_basics(second, {})
        with second.tracing.span("a request") as span:
            trace = f"{span.get_span_context().trace_id:032x}"
        found = await ask_each(first, somebody(), SPANS["gateway"], TraceRef(trace_id=trace))
        assert [one.name for one in found["host-2"].spans] == ["a request"]
