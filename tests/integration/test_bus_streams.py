"""Jobs, events and their redelivery over a real broker; each test has a server of its own."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from nats.aio.subscription import Subscription

from phronesis_bus import Bus, Call, News, announce, delivery, follow, take, tell
from phronesis_bus.envelope import PARKED_FROM, PARKED_REASON
from phronesis_contracts import Busy, NotFound, ServiceError, TimedOut, Unauthorized, Unavailable
from phronesis_contracts.orchestrator import TURN, TURN_ENDED, SubmitTurn, TurnEndedNews, TurnStatus
from tests.support.bus import broker, connected, eventually, jetstream, somebody
from tests.support.servers import NatsServer


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    async with broker(tmp_path) as server:
        yield server


@pytest.fixture
async def gateway(server: NatsServer) -> AsyncIterator[Bus]:
    async with connected(server, "gateway") as (bus,):
        yield bus


@pytest.fixture
async def worker(server: NatsServer) -> AsyncIterator[Bus]:
    async with connected(server, "orchestrator") as (bus,):
        yield bus


@pytest.fixture
async def admin(server: NatsServer) -> AsyncIterator[Bus]:
    async with connected(server, "declare") as (bus,):
        yield bus


def a_turn(text: str = "hi") -> SubmitTurn:
    return SubmitTurn(idempotency_key=uuid4().hex, text=text)


def an_end(text: str = "") -> TurnEndedNews:
    return TurnEndedNews(
        turn_id=uuid4().hex, conversation_id="c", user="ann", agent="dialogue", status=TurnStatus.COMPLETED, user_text=text
    )


async def waiting(admin: Bus, seconds: float) -> None:
    """Let the broker wait that long for an acknowledgement of a turn."""
    consumer = (await jetstream(admin, f"CONSUMER.INFO.JOB.{TURN.durable}"))["config"] | {"ack_wait": int(seconds * 1e9)}
    await jetstream(admin, f"CONSUMER.DURABLE.CREATE.JOB.{TURN.durable}", stream_name="JOB", config=consumer)


async def messages(admin: Bus, stream: str) -> int:
    return int((await jetstream(admin, f"STREAM.INFO.{stream}"))["state"]["messages"])


async def test_a_job_reaches_a_worker_with_its_caller_and_is_gone_after_it(gateway: Bus, worker: Bus, admin: Bus) -> None:
    seen: list[tuple[Call, SubmitTurn]] = []

    async def note(call: Call, turn: SubmitTurn) -> None:
        seen.append((call, turn))

    await take(worker, TURN, note)
    who, turn = somebody(), a_turn()
    await tell(gateway, who, TURN, turn)
    await eventually(lambda: seen == [(Call(who, "gateway"), turn)])

    async def gone() -> bool:
        return await messages(admin, "JOB") == 0

    await eventually(gone)


async def test_a_job_told_while_nobody_takes_it_waits(gateway: Bus, worker: Bus) -> None:
    who = somebody()
    await tell(gateway, who, TURN, a_turn("early"))
    seen: list[str] = []

    async def note(call: Call, turn: SubmitTurn) -> None:
        seen.append(turn.text)

    await take(worker, TURN, note)
    await eventually(lambda: seen == ["early"])


async def test_a_failing_handler_is_tried_again_with_growing_delay_and_then_parked(
    gateway: Bus, worker: Bus, admin: Bus
) -> None:
    tries: list[float] = []

    async def fail(call: Call, turn: SubmitTurn) -> None:
        tries.append(time.monotonic())
        raise RuntimeError("poison")

    await take(worker, TURN, fail)
    who = somebody()
    await tell(gateway, who, TURN, a_turn())

    async def parked() -> bool:
        return await messages(admin, "PARKED") == 1

    await eventually(parked)
    assert len(tries) == worker.settings.redelivery_limit
    gaps = [after - before for before, after in itertools.pairwise(tries)]
    least = [worker.settings.redelivery_delay * 2**n for n in range(len(gaps))]
    assert all(gap >= floor for gap, floor in zip(gaps, least, strict=True)), (gaps, least)


async def test_a_parked_message_keeps_its_body_and_says_where_it_came_from(gateway: Bus, worker: Bus, admin: Bus) -> None:
    async def fail(call: Call, turn: SubmitTurn) -> None:
        raise NotFound("gone")

    await take(worker, TURN, fail)
    who, turn = somebody(), a_turn("keep me")
    await tell(gateway, who, TURN, turn)

    async def parked() -> bool:
        return await messages(admin, "PARKED") == 1 and await messages(admin, "JOB") == 0

    await eventually(parked)
    found = await admin.nats.jetstream().get_msg("PARKED", 1)
    assert found.data is not None
    assert SubmitTurn.model_validate_json(found.data) == turn
    assert found.headers is not None
    assert (found.headers[PARKED_FROM], found.headers[PARKED_REASON]) == (TURN.on(who.tenant), "not_found")
    assert found.subject == f"parked.{TURN.durable}"


async def test_a_handler_that_succeeds_later_leaves_nothing_behind(gateway: Bus, worker: Bus, admin: Bus) -> None:
    tries: list[str] = []

    async def fail_twice(call: Call, turn: SubmitTurn) -> None:
        tries.append(turn.text)
        if len(tries) < 3:
            raise RuntimeError("not yet")

    await take(worker, TURN, fail_twice)
    await tell(gateway, somebody(), TURN, a_turn("again"))

    async def gone() -> bool:
        return await messages(admin, "JOB") == 0

    await eventually(gone)
    assert tries == ["again"] * 3
    assert await messages(admin, "PARKED") == 0


@pytest.mark.parametrize(
    "error", [Unavailable("the store is down"), TimedOut("slow"), TimeoutError()], ids=lambda e: type(e).__name__
)
async def test_a_passing_error_is_never_parked(server: NatsServer, gateway: Bus, admin: Bus, error: Exception) -> None:
    async with connected(server, "orchestrator", redelivery_delay=0.01, redelivery_limit=2) as (worker,):
        tries: list[str] = []

        async def fail(call: Call, turn: SubmitTurn) -> None:
            tries.append(turn.text)
            if len(tries) < 6:
                raise error

        await take(worker, TURN, fail)
        await tell(gateway, somebody(), TURN, a_turn())
        await eventually(lambda: len(tries) == 6)
        assert await messages(admin, "PARKED") == 0


async def test_a_body_that_does_not_parse_is_parked_at_once(gateway: Bus, worker: Bus, admin: Bus) -> None:
    seen: list[SubmitTurn] = []

    async def note(call: Call, turn: SubmitTurn) -> None:
        seen.append(turn)

    await take(worker, TURN, note)
    who = somebody()
    headers = {"Phronesis-Principal": gateway.token(who)}
    await gateway.nats.request(TURN.on(who.tenant), b'{"text": 7', timeout=3, headers=headers)

    async def parked() -> bool:
        return await messages(admin, "PARKED") == 1 and await messages(admin, "JOB") == 0

    await eventually(parked)
    assert seen == []


@pytest.mark.parametrize("case", ["no principal", "a forged one", "another tenant's"])
async def test_a_job_without_a_good_principal_is_terminated_and_handed_to_nobody(
    gateway: Bus, worker: Bus, admin: Bus, case: str
) -> None:
    seen: list[str] = []

    async def note(call: Call, turn: SubmitTurn) -> None:
        seen.append(turn.text)

    await take(worker, TURN, note, workers=1)
    who = somebody()
    token = {"no principal": "", "a forged one": "e30.e30.e30", "another tenant's": gateway.token(somebody())}[case]
    await gateway.nats.request(
        TURN.on(who.tenant), a_turn("bad").model_dump_json().encode(), timeout=3, headers={"Phronesis-Principal": token}
    )
    await tell(gateway, who, TURN, a_turn("good"))
    await eventually(lambda: seen == ["good"])

    async def gone() -> bool:
        return await messages(admin, "JOB") == 0 and await messages(admin, "PARKED") == 0

    await eventually(gone)


async def test_a_jobs_principal_may_expire_while_the_job_waits(gateway: Bus, worker: Bus) -> None:
    assert gateway.signer is not None
    who = somebody()
    token = gateway.signer.long_lived(who, 0.2)
    await gateway.nats.request(
        TURN.on(who.tenant), a_turn("old").model_dump_json().encode(), timeout=3, headers={"Phronesis-Principal": token}
    )
    expired = time.time() + 0.2
    await eventually(lambda: time.time() > expired)
    seen: list[str] = []

    async def note(call: Call, turn: SubmitTurn) -> None:
        seen.append(turn.text)

    await take(worker, TURN, note)
    await eventually(lambda: seen == ["old"])


async def test_a_full_queue_is_busy_for_its_tenant_and_for_no_other(gateway: Bus, admin: Bus) -> None:
    full, other = somebody(), somebody()
    limit = max(TURN.backlog, 1)
    for start in range(0, limit, 100):
        await asyncio.gather(*(tell(gateway, full, TURN, a_turn()) for _ in range(start, min(start + 100, limit))))
    with pytest.raises(Busy):
        await tell(gateway, full, TURN, a_turn())
    assert await messages(admin, "JOB") == limit, "a full queue refuses and forgets nothing"
    await tell(gateway, other, TURN, a_turn())


async def test_jobs_run_side_by_side_and_no_more_than_the_workers(gateway: Bus, worker: Bus) -> None:
    running = most = done = 0
    full = asyncio.Event()

    async def wait(call: Call, turn: SubmitTurn) -> None:
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await full.wait()
        running -= 1
        done += 1

    await take(worker, TURN, wait, workers=3)
    who = somebody()
    for _ in range(9):
        await tell(gateway, who, TURN, a_turn())
    await eventually(lambda: done == 9)
    assert most == 3


async def test_a_worker_asks_for_no_more_than_it_can_begin(gateway: Bus, worker: Bus, admin: Bus) -> None:
    go, begun = asyncio.Event(), asyncio.Event()

    async def wait(call: Call, turn: SubmitTurn) -> None:
        begun.set()
        await go.wait()

    await take(worker, TURN, wait, workers=2)
    for _ in range(10):
        await tell(gateway, somebody(), TURN, a_turn())
    await begun.wait()

    async def two_out() -> bool:
        info = await jetstream(admin, f"CONSUMER.INFO.JOB.{TURN.durable}")
        return bool(info["num_ack_pending"] == 2 and info["num_pending"] == 8)

    await eventually(two_out)
    go.set()


async def test_a_handler_longer_than_the_ack_wait_is_not_given_to_another(server: NatsServer, gateway: Bus, admin: Bus) -> None:
    await waiting(admin, 0.5)
    async with connected(server, "orchestrator", "orchestrator", ack_wait=0.5) as copies:
        begun: list[str] = []
        go = asyncio.Event()

        async def wait(call: Call, turn: SubmitTurn) -> None:
            begun.append(turn.text)
            await go.wait()

        for copy in copies:
            await take(copy, TURN, wait)
        await tell(gateway, somebody(), TURN, a_turn("long"))
        await eventually(lambda: begun == ["long"])
        three_waits = time.monotonic() + 1.5
        await eventually(lambda: time.monotonic() > three_waits)
        assert begun == ["long"]
        go.set()


async def test_stopping_hands_back_what_it_has_not_begun(server: NatsServer, gateway: Bus, admin: Bus) -> None:
    await waiting(admin, 60)
    async with connected(server, "orchestrator", "orchestrator") as (first, second):
        begun, seen = asyncio.Event(), []

        async def wait(call: Call, turn: SubmitTurn) -> None:
            begun.set()
            await asyncio.Event().wait()

        async def note(call: Call, turn: SubmitTurn) -> None:
            seen.append(turn.text)

        await take(first, TURN, wait, workers=1)
        who = somebody()
        await tell(gateway, who, TURN, a_turn("begun"))
        await begun.wait()
        await tell(gateway, who, TURN, a_turn("waiting"))
        stopping = asyncio.create_task(first.stop())
        await take(second, TURN, note)
        await eventually(lambda: seen == ["waiting"])
        stopping.cancel()


class Hanging:
    """A handler that does not end by itself."""

    def __init__(self) -> None:
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def handle(self, call: Call, turn: SubmitTurn) -> None:
        """Begin, and wait to be ended."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def test_a_handler_that_outlasts_the_time_to_stop_is_ended_and_its_message_comes_again(
    server: NatsServer, gateway: Bus, admin: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_GRACE", 0.1)
    await waiting(admin, 1)
    async with connected(server, "orchestrator", "orchestrator") as (first, second):
        hanging, seen = Hanging(), []

        async def note(call: Call, turn: SubmitTurn) -> None:
            seen.append(turn.text)

        await take(first, TURN, hanging.handle, workers=1)
        await tell(gateway, somebody(), TURN, a_turn("begun"))
        await hanging.begun.wait()
        await first.stop()
        assert hanging.ended.is_set()
        await take(second, TURN, note)
        await eventually(lambda: seen == ["begun"])


async def test_a_stop_that_is_cancelled_leaves_no_handler_at_work(server: NatsServer, gateway: Bus) -> None:
    async with connected(server, "orchestrator") as (first,):
        hanging = Hanging()
        await take(first, TURN, hanging.handle, workers=1)
        await tell(gateway, somebody(), TURN, a_turn("begun"))
        await hanging.begun.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await first.stop()
        await eventually(hanging.ended.is_set, within=5)


async def test_a_message_on_its_way_when_the_service_stops_is_handed_back(
    server: NatsServer, gateway: Bus, admin: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await waiting(admin, 60)
    async with connected(server, "orchestrator", "orchestrator") as (first, second):
        seen: list[tuple[str, str]] = []

        async def note(call: Call, turn: SubmitTurn) -> None:
            seen.append(("first", turn.text))

        async def note_second(call: Call, turn: SubmitTurn) -> None:
            seen.append(("second", turn.text))

        async def delivered() -> bool:
            return bool((await jetstream(admin, f"CONSUMER.INFO.JOB.{TURN.durable}"))["num_ack_pending"] == 1)

        drain = first.drain

        async def late(*subscriptions: Subscription) -> None:
            monkeypatch.setattr(first, "drain", drain)  # the worker of turns stops first, other parts after it
            await tell(gateway, somebody(), TURN, a_turn("on its way"))
            await eventually(delivered)
            await drain(*subscriptions)

        await take(first, TURN, note, workers=1)
        await first.settled()
        monkeypatch.setattr(first, "drain", late)
        await first.stop()
        await take(second, TURN, note_second)
        await eventually(lambda: seen == [("second", "on its way")])


async def test_news_reaches_each_follower_once_and_its_copies_share_it(server: NatsServer, worker: Bus) -> None:
    async with connected(server, "memory", "memory") as copies:
        seen: list[tuple[str, str]] = []

        async def note(news: News, event: TurnEndedNews) -> None:
            seen.append((news.tenant, event.user_text))

        for copy in copies:
            await follow(copy, TURN_ENDED, note)
        for i in range(20):
            await announce(worker, "acme", TURN_ENDED, an_end(str(i)))
        await eventually(lambda: len(seen) >= 20)
        assert sorted(seen) == sorted(("acme", str(i)) for i in range(20))


async def test_the_same_news_twice_is_stored_once(worker: Bus, admin: Bus) -> None:
    for _ in range(3):
        await announce(worker, "acme", TURN_ENDED, an_end(), id="7")
    assert await messages(admin, "EVT") == 1


async def test_news_of_two_tenants_with_one_id_are_both_stored(worker: Bus, admin: Bus) -> None:
    for tenant in ("acme", "other"):
        await announce(worker, tenant, TURN_ENDED, an_end(), id="7")
    assert await messages(admin, "EVT") == 2


async def test_news_without_its_envelope_is_terminated(server: NatsServer, worker: Bus) -> None:
    async with connected(server, "memory") as (memory,):
        seen: list[str] = []

        async def note(news: News, event: TurnEndedNews) -> None:
            seen.append(event.user_text)

        await follow(memory, TURN_ENDED, note, workers=1)
        subject = TURN_ENDED.on("acme")
        await worker.nats.request(subject, an_end("bare").model_dump_json().encode(), timeout=3)
        await announce(worker, "acme", TURN_ENDED, an_end("good"))
        await eventually(lambda: seen == ["good"])


async def test_an_error_of_a_handler_that_asks_others_terminates_nothing(server: NatsServer, worker: Bus) -> None:
    async with connected(server, "memory") as (memory,):
        seen: list[int] = []

        async def refused_once(news: News, event: TurnEndedNews) -> None:
            seen.append(news.deliveries)
            if news.deliveries == 1:
                raise Unauthorized("the graph does not know me yet")

        await follow(memory, TURN_ENDED, refused_once)
        await announce(worker, "acme", TURN_ENDED, an_end())
        await eventually(lambda: seen == [1, 2])


async def test_a_new_stream_forgets_nothing_before_its_consumers_stand(server: NatsServer, worker: Bus, admin: Bus) -> None:
    await jetstream(admin, "STREAM.DELETE.EVT")
    accepted: list[str] = []
    declared = asyncio.Event()

    async def announce_all_the_time() -> None:
        number = 0
        while not declared.is_set() or not accepted:
            number += 1
            try:
                await announce(worker, "acme", TURN_ENDED, an_end(str(number)))
            except ServiceError:
                continue
            accepted.append(str(number))

    telling = asyncio.create_task(announce_all_the_time())
    await server.declare()
    declared.set()
    await telling
    async with connected(server, "memory") as (memory,):
        seen: list[str] = []

        async def note(news: News, event: TurnEndedNews) -> None:
            seen.append(event.user_text)

        await follow(memory, TURN_ENDED, note)
        await eventually(lambda: len(seen) == len(accepted))
        assert sorted(seen) == sorted(accepted)
