"""Questions and answers over a real broker."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from nats.aio.msg import Msg

from phronesis_bus import Bus, Call, Verifier, ask, serve, serve_basics
from phronesis_bus.connection import INBOX
from phronesis_bus.envelope import remaining
from phronesis_bus.tracing import correlation
from phronesis_contracts import (
    BadRequest,
    Busy,
    Conflict,
    Forbidden,
    Internal,
    KeyReused,
    NotFound,
    Nothing,
    ServiceError,
    TimedOut,
    TooLarge,
    TooManyRequests,
    TurnEnded,
    Unauthorized,
    Unavailable,
    UnsupportedMedia,
)
from phronesis_contracts.memory import (
    PROFILE_GET,
    RECALL,
    RECALL_TOOL,
    REMEMBER,
    REMEMBER_TOOL,
    Profile,
    Recall,
    Recalled,
    Remember,
    Remembered,
    RememberItem,
)
from phronesis_contracts.service import HEALTH, SPANS, TraceRef
from phronesis_contracts.twin import EXPAND, Expand, Expanded
from tests.support.bus import broker, connected, eventually, somebody
from tests.support.personas import Persona
from tests.support.servers import NatsServer


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    async with broker(tmp_path_factory.mktemp("rpc")) as server:
        yield server


@pytest.fixture
async def asker(server: NatsServer) -> AsyncIterator[Bus]:
    async with connected(server, "gateway") as (bus,):
        yield bus


@pytest.fixture
async def owner(server: NatsServer) -> AsyncIterator[Bus]:
    async with connected(server, "memory") as (bus,):
        yield bus


async def nothing_found(call: Call, request: Recall) -> Recalled:
    return Recalled(items=())


async def _raw(bus: Bus, subject: str, body: bytes, **headers: str) -> dict[str, object]:
    reply = await bus.nats.request(subject, body, timeout=3, headers=headers or None)
    found: dict[str, object] = json.loads(reply.data)
    return found


@pytest.mark.parametrize(
    "error",
    [
        BadRequest("that is wrong", field="query"),
        TooLarge("too much"),
        UnsupportedMedia("not that"),
        Unauthorized("who are you"),
        Forbidden("not you"),
        NotFound("no such thing"),
        Conflict("not now"),
        KeyReused("another body"),
        TurnEnded("too late"),
        TooManyRequests("slower", retry_after=3),
        Unavailable("the store is down", retry_after=2.5),
        Busy("full"),
        TimedOut("too slow"),
        Internal("broken"),
    ],
    ids=lambda error: error.code,
)
async def test_an_error_crosses_the_bus_as_the_same_class(asker: Bus, owner: Bus, error: ServiceError) -> None:
    async def fail(call: Call, request: Recall) -> Recalled:
        raise error

    await serve(owner, RECALL, fail)
    with pytest.raises(ServiceError) as caught:
        await ask(asker, somebody(), RECALL, Recall(query="x"))
    assert type(caught.value) is type(error)
    assert caught.value.body() == error.body()


async def test_an_exception_of_a_handler_leaves_as_internal_without_its_text(
    asker: Bus, owner: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(call: Call, request: Recall) -> Recalled:
        raise ValueError("password=hunter2")

    await serve(owner, RECALL, fail)
    with caplog.at_level(logging.ERROR), pytest.raises(Internal) as caught:
        await ask(asker, somebody(), RECALL, Recall(query="x"))
    assert caught.value.body() == {"code": "internal", "status": 500, "detail": "memory failed"}
    assert "hunter2" in caplog.text, "the cause stands in the log of the service that failed"


async def test_a_validation_error_inside_a_handler_is_no_bad_request(asker: Bus, owner: Bus) -> None:
    async def fail(call: Call, request: Recall) -> Recalled:
        Recall(query="")
        return Recalled(items=())

    await serve(owner, RECALL, fail)
    with pytest.raises(Internal):
        await ask(asker, somebody(), RECALL, Recall(query="x"))


async def test_a_body_that_does_not_fit_names_its_field(asker: Bus, owner: Bus) -> None:
    async def stored(call: Call, request: Remember) -> Remembered:
        return Remembered(items=())

    await serve(owner, REMEMBER, stored)
    bad = Remember.model_construct(items=(RememberItem.model_construct(text=""),))
    with pytest.raises(BadRequest) as caught:
        await ask(asker, somebody(), REMEMBER, bad)
    assert caught.value.field == "items.0.text"


async def test_a_body_that_is_no_json_is_a_bad_request(asker: Bus, owner: Bus) -> None:
    await serve(owner, RECALL, nothing_found)
    who = somebody()
    found = await _raw(asker, RECALL.on(who.tenant), b"{", **{"Phronesis-Principal": asker.token(who)})
    assert (found["code"], found["status"]) == ("bad_request", 400)


async def test_an_error_reply_has_the_headers_of_nats_services(asker: Bus, owner: Bus) -> None:
    await serve(owner, RECALL, nothing_found)
    reply = await asker.nats.request(RECALL.on("acme"), b"{}", timeout=3)
    assert reply.headers is not None
    assert {k: reply.headers[k] for k in ("Nats-Service-Error", "Nats-Service-Error-Code")} == {
        "Nats-Service-Error": "unauthorized",
        "Nats-Service-Error-Code": "401",
    }


async def test_no_principal_is_unauthorized(asker: Bus, owner: Bus) -> None:
    await serve(owner, RECALL, nothing_found)
    assert (await _raw(asker, RECALL.on("acme"), b"{}"))["code"] == "unauthorized"


async def test_a_principal_may_not_ask_on_the_subject_of_another_tenant(asker: Bus, owner: Bus) -> None:
    await serve(owner, RECALL, nothing_found)
    token = asker.token(somebody())
    found = await _raw(asker, RECALL.on("another"), b'{"query": "x"}', **{"Phronesis-Principal": token})
    assert found["code"] == "forbidden"


async def test_a_token_that_a_service_was_handed_opens_no_other_service_and_no_other_request(asker: Bus, owner: Bus) -> None:
    handed: list[str] = []

    async def received(msg: Msg) -> None:
        handed.append((msg.headers or {})["Phronesis-Principal"])

    who = somebody()
    listening = await owner.nats.subscribe(RECALL.on(who.tenant), cb=received)
    await owner.settled()
    correlation.set("the one request")
    with pytest.raises(TimedOut):
        await ask(asker, who, RECALL, Recall(query="x"), timeout=0.5)
    await listening.unsubscribe()
    await owner.settled()

    await serve(owner, RECALL, nothing_found)
    shown = {"Phronesis-Principal": handed[0], "Correlation-Id": "the one request"}
    body, subject = b'{"query": "x"}', RECALL.on(who.tenant)
    assert "items" in await _raw(asker, subject, body, **shown)
    assert (await _raw(asker, subject, body, **shown | {"Correlation-Id": "another"}))["code"] == "unauthorized"
    with pytest.raises(Unauthorized, match="for another service"):
        Verifier.load(owner.settings.trust_dir or Path(), audience="graph").principal(handed[0], request="the one request")


async def test_a_subscription_is_known_to_the_broker_once_it_has_settled(asker: Bus, owner: Bus) -> None:
    async def answer(msg: Msg) -> None:
        await msg.respond(b"here")

    much = b"x" * (owner.nats.max_payload - 1)
    for _ in range(50):
        subject = RECALL.on(somebody().tenant)
        await owner.nats.publish(f"{INBOX}.gateway.nobody", much)
        subscription = await owner.nats.subscribe(subject, cb=answer)
        await owner.settled()
        assert (await asker.nats.request(subject, b"", timeout=3)).data == b"here"
        await subscription.unsubscribe()


async def test_no_header_but_the_principal_names_the_caller(asker: Bus, owner: Bus) -> None:
    seen: list[Call] = []

    async def note(call: Call, request: Recall) -> Recalled:
        seen.append(call)
        return Recalled(items=())

    await serve(owner, RECALL, note)
    who = somebody()
    body = json.dumps({"query": "x", "tenant": "another", "user": "root", "role": "admin"}).encode()
    headers = {"Phronesis-Principal": asker.token(who), "Tenant": "another", "Phronesis-Service": "nobody"}
    await _raw(asker, RECALL.on(who.tenant), body, **headers)
    assert seen == [Call(who=who, service=f"bus/{who.user}", key=None)]


async def test_a_role_that_may_not_use_a_tool_is_refused_and_audited(server: NatsServer, asker: Bus, owner: Bus) -> None:
    async def stored(call: Call, request: Remember) -> Remembered:
        return Remembered(items=())

    await serve(owner, REMEMBER_TOOL, stored)
    who = somebody(**Persona.EDITOR.rights)
    with pytest.raises(Forbidden):
        await ask(asker, who, REMEMBER, Remember(items=(RememberItem(text="secret plans"),)))
    async with connected(server, "declare") as (admin,):
        request = json.dumps({"last_by_subj": f"evt.{who.tenant}.memory.v1.audited"}).encode()

        async def audited() -> bool:
            reply = await admin.nats.request("$JS.API.STREAM.MSG.GET.EVT", request, timeout=2)
            return "error" not in json.loads(reply.data)

        await eventually(audited)


async def test_a_request_whose_reply_goes_elsewhere_is_dropped(asker: Bus, owner: Bus) -> None:
    seen: list[str] = []

    async def note(call: Call, request: Recall) -> Recalled:
        seen.append(request.query)
        return Recalled(items=())

    await serve(owner, RECALL, note)
    who = somebody()
    headers = {"Phronesis-Principal": asker.token(who)}
    for reply in ("", f"job.{who.tenant}.orchestrator.v1.turn", "rpc.acme.graph.v1.upsert"):
        await asker.nats.publish(RECALL.on(who.tenant), b'{"query": "elsewhere"}', reply=reply, headers=headers)
    await ask(asker, who, RECALL, Recall(query="afterwards"))
    assert seen == ["afterwards"]


async def test_an_outsider_is_answered_below_its_own_prefix_alone(asker: Bus, owner: Bus) -> None:
    seen: list[str] = []

    async def note(call: Call, request: Recall) -> Recalled:
        seen.append(request.query)
        return Recalled(items=())

    await serve(owner, RECALL, note)
    who = somebody(inbox="_INBOX.gateway.outside", key="k1")
    assert asker.signer is not None
    headers = {"Phronesis-Principal": asker.signer.long_lived(who, 60)}
    stolen = await asker.nats.subscribe("_INBOX.gateway.another")
    own = await asker.nats.subscribe("_INBOX.gateway.outside.1")
    subject = RECALL.on(who.tenant)
    await asker.nats.publish(subject, b'{"query": "stolen"}', reply="_INBOX.gateway.another", headers=headers)
    await asker.nats.publish(subject, b'{"query": "own"}', reply="_INBOX.gateway.outside.1", headers=headers)
    await own.next_msg(timeout=3)
    assert seen == ["own"]
    assert stolen.pending_msgs == 0, "not even an error goes to a subject that is not the caller's"


async def test_a_deadline_travels_to_the_next_service(server: NatsServer) -> None:
    left: list[float] = []

    async def expand(call: Call, request: Expand) -> Expanded:
        left.append(remaining(60))
        return Expanded(items=())

    async with connected(server, "gateway", "memory", "graph") as (gateway, memory, graph):

        async def recall(call: Call, request: Recall) -> Recalled:
            await ask(memory, call.who, EXPAND, Expand(ids=("a",)), timeout=30)
            return Recalled(items=())

        await serve(memory, RECALL, recall)
        await serve(graph, EXPAND, expand)
        await ask(gateway, somebody(), RECALL, Recall(query="x"), timeout=2)
    assert len(left) == 1
    assert 1 < left[0] <= 2, "30 seconds were asked for, but the first caller waits two"


async def test_a_handler_that_outlives_the_deadline_is_cancelled_and_answered_for(asker: Bus, owner: Bus) -> None:
    ended = asyncio.Event()

    async def slow(call: Call, request: Recall) -> Recalled:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Recalled(items=())

    await serve(owner, RECALL, slow)
    with pytest.raises(TimedOut):
        await ask(asker, somebody(), RECALL, Recall(query="x"), timeout=0.3)
    await asyncio.wait_for(ended.wait(), 3)


async def test_a_deadline_that_has_passed_runs_nothing(asker: Bus, owner: Bus) -> None:
    seen: list[str] = []

    async def note(call: Call, request: Recall) -> Recalled:
        seen.append(request.query)
        return Recalled(items=())

    await serve(owner, RECALL, note)
    who = somebody()
    headers = {"Phronesis-Principal": asker.token(who), "Phronesis-Deadline": str(time.time() - 1)}
    assert (await _raw(asker, RECALL.on(who.tenant), b'{"query": "late"}', **headers))["code"] == "timed_out"
    assert seen == []


@pytest.mark.parametrize("deadline", ["soon", "nan", "inf", ""])
async def test_a_deadline_that_is_no_time_is_a_bad_request(asker: Bus, owner: Bus, deadline: str) -> None:
    await serve(owner, RECALL, nothing_found)
    who = somebody()
    headers = {"Phronesis-Principal": asker.token(who), "Phronesis-Deadline": deadline}
    assert (await _raw(asker, RECALL.on(who.tenant), b'{"query": "x"}', **headers))["code"] == "bad_request"


async def test_handlers_run_side_by_side_and_no_more_than_their_limit(asker: Bus, owner: Bus) -> None:
    running = 0
    most = 0
    full = asyncio.Event()

    async def wait(call: Call, request: Recall) -> Recalled:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 5:
            full.set()
        await full.wait()
        running -= 1
        return Recalled(items=())

    await serve(owner, RECALL, wait, workers=5)
    who = somebody()
    await asyncio.gather(*(ask(asker, who, RECALL, Recall(query=str(i))) for i in range(10)))
    assert most == 5


async def test_more_questions_than_can_wait_are_refused_as_busy(asker: Bus, owner: Bus) -> None:
    go = asyncio.Event()

    async def wait(call: Call, request: Recall) -> Recalled:
        await go.wait()
        return Recalled(items=())

    await serve(owner, RECALL, wait, workers=1)
    who = somebody()
    asked = [asyncio.create_task(ask(asker, who, RECALL, Recall(query=str(i)))) for i in range(20)]
    done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    assert isinstance(done.pop().exception(), Busy)
    go.set()
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(r) for r in results].count(Recalled) == 16
    assert [type(r) for r in results].count(Busy) == 4


async def test_a_tenant_that_floods_is_refused_and_no_other_waits_behind_its_queue(asker: Bus, owner: Bus) -> None:
    go = asyncio.Semaphore(0)
    order: list[str] = []

    async def wait(call: Call, request: Recall) -> Recalled:
        await go.acquire()
        order.append(call.who.tenant)
        return Recalled(items=())

    await serve(owner, RECALL, wait, workers=2)
    flooding, calm = somebody(), somebody()
    flood = [asyncio.create_task(ask(asker, flooding, RECALL, Recall(query=str(i)))) for i in range(40)]
    await eventually(lambda: sum(task.done() for task in flood) == 8)
    assert {(type(task.exception()), getattr(task.exception(), "retry_after", 0)) for task in flood if task.done()} == {
        (Busy, 1)
    }
    asked = [asyncio.create_task(ask(asker, calm, RECALL, Recall(query=str(i)))) for i in range(3)]
    for bus in (asker, owner):
        await bus.settled()
    for _ in range(40):
        go.release()
    await asyncio.gather(*asked)
    assert order[:9].count(calm.tenant) == len(asked)
    await asyncio.gather(*flood, return_exceptions=True)


async def test_an_answer_over_the_brokers_limit_is_an_error_and_not_a_silence(asker: Bus, owner: Bus) -> None:
    async def huge(call: Call, request: Nothing) -> Profile:
        return Profile(profile={"text": "x" * 3_000_000})

    await serve(owner, PROFILE_GET, huge)
    with pytest.raises(Internal):
        await ask(asker, somebody(), PROFILE_GET, Nothing())


async def test_a_message_over_its_contracts_limit_is_not_sent(asker: Bus) -> None:
    with pytest.raises(TooLarge):
        await ask(asker, somebody(), RECALL, Recall.model_construct(query="x" * RECALL.max_bytes))


async def test_a_question_that_nobody_serves_fails_at_once(asker: Bus) -> None:
    async with asyncio.timeout(2):
        with pytest.raises(Unavailable, match="memory is not there"):
            await ask(asker, somebody(), RECALL, Recall(query="x"), timeout=30)


async def test_an_idempotency_key_and_the_asking_service_reach_the_handler(asker: Bus, owner: Bus) -> None:
    seen: list[Call] = []

    async def note(call: Call, request: Recall) -> Recalled:
        seen.append(call)
        return Recalled(items=())

    await serve(owner, RECALL, note)
    who, key = somebody(), uuid4().hex
    await ask(asker, who, RECALL, Recall(query="x"), key=key)
    assert seen == [Call(who=who, service="gateway", key=key)]


async def test_two_copies_share_the_questions(server: NatsServer, asker: Bus) -> None:
    seen: list[str] = []
    async with connected(server, "memory", "memory") as copies:
        for number, copy in enumerate(copies):

            async def note(call: Call, request: Recall, number: int = number) -> Recalled:
                seen.append(f"{number}-{request.query}")
                return Recalled(items=())

            await serve(copy, RECALL_TOOL, note)
        who = somebody()
        for i in range(40):
            await ask(asker, who, RECALL, Recall(query=str(i)))
    assert sorted(int(entry.split("-")[1]) for entry in seen) == list(range(40)), "each question is answered once"
    assert {entry.split("-")[0] for entry in seen} == {"0", "1"}


async def test_a_service_names_the_dependencies_that_are_down(asker: Bus, owner: Bus) -> None:
    async def down() -> None:
        raise Unavailable("the store does not answer")

    await serve_basics(owner, {"bus": owner.ping, "postgres": down})
    health = await ask(asker, somebody(), HEALTH["memory"], Nothing())
    assert (health.ready, health.down) == (False, ("postgres",))


async def test_the_spans_of_a_question_stand_in_one_trace(asker: Bus, owner: Bus) -> None:
    await serve(owner, RECALL, nothing_found)
    await serve_basics(owner, {})
    who = somebody()
    with asker.tracing.span("test") as span:
        trace = f"{span.get_span_context().trace_id:032x}"
        await ask(asker, who, RECALL, Recall(query="x"))
    spans = await ask(asker, who, SPANS["memory"], TraceRef(trace_id=trace))
    assert [s.name for s in spans.spans] == ["serve memory.v1.recall"]
    own = {s.span_id: s.name for s in asker.tracing.recent.of(TraceRef(trace_id=trace)).spans}
    assert own[spans.spans[0].parent_id or ""] == "ask memory.v1.recall"


async def test_stopping_lets_running_handlers_answer(server: NatsServer, asker: Bus) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def wait(call: Call, request: Recall) -> Recalled:
        begun.set()
        await go.wait()
        return Recalled(items=())

    async with connected(server, "memory") as (copy,):
        await serve(copy, RECALL, wait)
        asked = asyncio.create_task(ask(asker, somebody(), RECALL, Recall(query="x")))
        await begun.wait()
        stopping = asyncio.create_task(copy.stop())
        await eventually(lambda: copy.stopping.is_set())
        go.set()
        assert await asked == Recalled(items=())
        await stopping
