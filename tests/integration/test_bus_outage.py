"""A broker that goes away, for longer than every limit of the library (seconds here), or without its store."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from nats.aio.transport import TcpTransport

from phronesis_bus import Bus, Call, News, Relay, Sendable, ask, follow, sendable, serve, serve_basics, show, take, tell
from phronesis_bus.declare import keep
from phronesis_contracts import Nothing, ServiceError, TimedOut, Unavailable
from phronesis_contracts.memory import RECALL, Recall, Recalled
from phronesis_contracts.orchestrator import PROGRESS, TURN, TURN_ENDED, SubmitTurn, TurnEndedNews, TurnProgress, TurnStatus
from phronesis_contracts.service import HEALTH
from tests.support.bus import broker, connected, eventually, jetstream, restarted, somebody
from tests.support.servers import NatsServer

pytestmark = pytest.mark.verify

AWAY = 3.0
"""Seconds of outage: longer than a connect, a ping and a dozen reconnects are given."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    async with broker(tmp_path) as server:
        yield server


@asynccontextmanager
async def keeping(server: NatsServer) -> AsyncIterator[Bus]:
    """The declaring program, staying up."""
    async with connected(server, "declare") as (admin,):
        keeper = asyncio.create_task(keep(admin))
        yield admin
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)


async def away(server: NatsServer, *buses: Bus, seconds: float = AWAY) -> None:
    await server.kill()
    await eventually(lambda: not any(bus.connected for bus in buses))
    over = time.monotonic() + seconds
    await eventually(lambda: time.monotonic() > over)


class Rows:
    """An outbox in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, Sendable] = {}
        self._ids = itertools.count(1)

    def write(self, tenant: str, text: str) -> None:
        id = str(next(self._ids))
        self.rows[id] = sendable("orchestrator", id, tenant, TURN_ENDED, an_end(text))

    async def unsent(self, limit: int) -> list[Sendable]:
        return list(self.rows.values())[:limit]

    async def sent(self, ids: list[str]) -> None:
        for id in ids:
            del self.rows[id]


def an_end(text: str) -> TurnEndedNews:
    return TurnEndedNews(
        turn_id=uuid4().hex, conversation_id="c", user="ann", agent="dialogue", status=TurnStatus.COMPLETED, user_text=text
    )


async def told(bus: Bus, text: str) -> None:
    """Tell a turn, again and again until it is stored."""

    async def stored() -> bool:
        try:
            await tell(bus, somebody(), TURN, SubmitTurn(idempotency_key=uuid4().hex, text=text))
        except ServiceError:
            return False
        return True

    await eventually(stored, within=20)


async def test_a_long_outage_leaves_every_loop_alive(server: NatsServer) -> None:
    async with connected(server, "gateway", "memory", "orchestrator") as (gateway, memory, orchestrator):
        turns: list[str] = []
        ends: list[str] = []

        async def recall(call: Call, request: Recall) -> Recalled:
            return Recalled(items=())

        async def on_turn(call: Call, turn: SubmitTurn) -> None:
            turns.append(turn.text)

        async def on_end(news: News, event: TurnEndedNews) -> None:
            ends.append(event.user_text)

        await serve(memory, RECALL, recall)
        await take(orchestrator, TURN, on_turn)
        await follow(memory, TURN_ENDED, on_end)
        outbox = Rows()
        relay = Relay(orchestrator, outbox)
        relay.start()
        await away(server, gateway, memory, orchestrator)
        outbox.write("acme", "while away")
        relay.wake()
        await server.start()
        await told(gateway, "afterwards")
        await eventually(lambda: turns == ["afterwards"], within=20)
        await eventually(lambda: ends == ["while away"], within=20)
        assert await ask(gateway, somebody(), RECALL, Recall(query="x")) == Recalled(items=())
        assert outbox.rows == {}


async def test_a_restart_of_a_moment_does_not_leave_a_worker_waiting(server: NatsServer) -> None:
    async with connected(server, "gateway", "orchestrator") as (gateway, orchestrator):
        turns: list[str] = []

        async def on_turn(call: Call, turn: SubmitTurn) -> None:
            turns.append(turn.text)

        await take(orchestrator, TURN, on_turn)
        await told(gateway, "before")
        await eventually(lambda: turns == ["before"])
        await server.kill()
        await server.start()
        await eventually(lambda: gateway.connected and orchestrator.connected)
        began = time.monotonic()
        await told(gateway, "after")
        await eventually(lambda: turns == ["before", "after"])
        assert time.monotonic() - began < 15, "a request that the broker forgot would have run for twenty seconds"


async def test_what_is_asked_while_the_broker_is_away_fails_at_once(server: NatsServer) -> None:
    async with connected(server, "gateway") as (gateway,):
        await away(server, gateway, seconds=0)
        async with asyncio.timeout(2):
            with pytest.raises(Unavailable, match="the broker is away"):
                await ask(gateway, somebody(), RECALL, Recall(query="x"), timeout=30)
            with pytest.raises(Unavailable, match="the broker is away"):
                await tell(gateway, somebody(), TURN, SubmitTurn(idempotency_key="k"))
            with pytest.raises(Unavailable):
                await gateway.ping()


async def test_a_question_on_its_way_when_the_broker_dies_ends_with_its_deadline(server: NatsServer) -> None:
    async with connected(server, "gateway", "memory") as (gateway, memory):
        begun = asyncio.Event()

        async def wait(call: Call, request: Recall) -> Recalled:
            begun.set()
            await asyncio.Event().wait()
            return Recalled(items=())

        await serve(memory, RECALL, wait)
        asked = asyncio.create_task(ask(gateway, somebody(), RECALL, Recall(query="x"), timeout=1))
        await begun.wait()
        await server.kill()
        with pytest.raises((TimedOut, Unavailable)):
            await asyncio.wait_for(asked, 5)


async def test_progress_is_dropped_while_the_broker_is_away_and_hurts_nobody(server: NatsServer) -> None:
    async with connected(server, "orchestrator") as (orchestrator,):
        await away(server, orchestrator, seconds=0)
        await show(orchestrator, somebody(), PROGRESS, "t", TurnProgress(turn_id="t", kind="accepted"))


async def test_a_service_may_start_before_its_broker(server: NatsServer) -> None:
    await server.kill()
    async with asyncio.TaskGroup() as group:

        async def serve_and_answer() -> None:
            async with connected(server, "memory", "gateway") as (memory, gateway):
                await serve_basics(memory, {"bus": memory.ping})
                health = await ask(gateway, somebody(), HEALTH["memory"], Nothing())
                assert health.ready

        group.create_task(serve_and_answer())
        await server.start()


async def test_streams_and_consumers_are_declared_anew_when_the_store_is_gone(server: NatsServer, tmp_path: Path) -> None:
    async with keeping(server), connected(server, "gateway", "orchestrator") as (gateway, orchestrator):
        turns: list[str] = []

        async def on_turn(call: Call, turn: SubmitTurn) -> None:
            turns.append(turn.text)

        await take(orchestrator, TURN, on_turn)
        await told(gateway, "before")
        await eventually(lambda: turns == ["before"])
        await server.kill()
        for store in tmp_path.rglob("jetstream"):
            shutil.rmtree(store, ignore_errors=True)
        await restarted(server)
        await told(gateway, "after")
        await eventually(lambda: turns == ["before", "after"], within=20)


@pytest.mark.parametrize("gone", [f"CONSUMER.DELETE.JOB.{TURN.durable}", "STREAM.DELETE.JOB"])
async def test_what_somebody_deletes_is_declared_anew(server: NatsServer, gone: str) -> None:
    async with keeping(server) as admin, connected(server, "gateway", "orchestrator") as (gateway, orchestrator):
        turns: list[str] = []

        async def on_turn(call: Call, turn: SubmitTurn) -> None:
            turns.append(turn.text)

        async def acknowledged() -> bool:
            return bool((await jetstream(admin, f"CONSUMER.INFO.JOB.{TURN.durable}"))["num_ack_pending"] == 0)

        await take(orchestrator, TURN, on_turn)
        await told(gateway, "before")
        await eventually(lambda: turns == ["before"])
        await eventually(acknowledged)  # else it is given again
        assert (await jetstream(admin, gone))["success"]
        await told(gateway, "after")
        await eventually(lambda: turns == ["before", "after"], within=60)


async def test_the_relay_sends_after_an_outage_what_was_written_in_it_once_each(server: NatsServer) -> None:
    async with connected(server, "orchestrator", "memory") as (orchestrator, memory):
        seen: list[str] = []

        async def on_end(news: News, event: TurnEndedNews) -> None:
            seen.append(event.user_text)

        await follow(memory, TURN_ENDED, on_end)
        outbox = Rows()
        relay = Relay(orchestrator, outbox)
        relay.start()
        await away(server, orchestrator, memory, seconds=0)
        for i in range(250):
            outbox.write("acme", str(i))
        relay.wake()
        await server.start()
        await eventually(lambda: len(seen) >= 250, within=30)
        await eventually(lambda: outbox.rows == {})
        assert sorted(seen, key=int) == [str(i) for i in range(250)]


async def test_a_row_that_goes_out_twice_is_followed_once(server: NatsServer) -> None:
    class Forgetful(Rows):
        forgot = False

        async def sent(self, ids: list[str]) -> None:
            if not self.forgot:
                self.forgot = True
                raise ConnectionError("the store went away before it noted what was sent")
            await super().sent(ids)

    async with connected(server, "orchestrator", "memory") as (orchestrator, memory):
        seen: list[str] = []

        async def on_end(news: News, event: TurnEndedNews) -> None:
            seen.append(event.user_text)

        await follow(memory, TURN_ENDED, on_end)
        outbox = Forgetful()
        outbox.write("acme", "one")
        Relay(orchestrator, outbox).start()
        await eventually(lambda: outbox.rows == {})
        outbox.write("acme", "two")
        await eventually(lambda: "two" in seen)
        assert seen == ["one", "two"]


async def test_a_connection_that_ends_for_good_says_so(server: NatsServer) -> None:
    async with connected(server, "memory") as (memory,):
        # The library closes for ever on an error line of the server that it does not know.
        await memory.nats._process_err("'Maximum Connections Exceeded'")
        await asyncio.wait_for(memory.lost.wait(), 3)


async def test_stopping_in_order_is_no_loss(server: NatsServer) -> None:
    async with connected(server, "memory") as (memory,):
        await memory.stop()
        assert not memory.lost.is_set()


async def test_a_stopped_connection_knocks_no_more_though_its_cancellation_was_lost(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    knocks: list[asyncio.Task[Any] | None] = []

    async def deaf(*_: object, **__: object) -> None:
        knocks.append(asyncio.current_task())
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionRefusedError from None

    async with connected(server, "memory") as (memory,):
        monkeypatch.setattr(TcpTransport, "connect", deaf)
        await server.kill()
        await eventually(lambda: knocks != [])
        await memory.stop()
        knocking = knocks[-1]
        assert knocking is not None
        await eventually(knocking.done, within=3)


async def test_a_stop_that_is_cancelled_closes_the_connection_all_the_same(server: NatsServer) -> None:
    async with connected(server, "memory") as (memory,):
        begun = asyncio.Event()

        async def never() -> None:
            begun.set()
            await asyncio.Event().wait()

        memory.on_stop(never)
        stopping = asyncio.create_task(memory.stop())
        await begun.wait()
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        assert memory.nats.is_closed
