"""What an outside system can do on the bus, on the real broker: its own turns and tools, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from nats.errors import TimeoutError as NatsTimeout

from phronesis_bus import Bus, Call, News, follow, revoke, serve, show, take
from phronesis_contracts import Agent, Nothing, Principal, Role
from phronesis_contracts.memory import PROFILE_GET_TOOL, RECALL_TOOL, Profile, Recall, Recalled
from phronesis_contracts.orchestrator import PROGRESS, TURN, Audited, SubmitTurn, TurnProgress
from phronesis_contracts.service import AUDITED
from tests.support.bus import connected, eventually, somebody
from tests.support.outside import Outside, access, admitting, is_let_in, outside, spied_broker
from tests.support.personas import Persona, persona_of
from tests.support.servers import NatsServer


@pytest.fixture(scope="module")
async def server(nats_server: NatsServer) -> AsyncIterator[NatsServer]:
    """A broker with somebody who answers whom it may let in."""
    async with admitting(nats_server):
        yield nats_server


@pytest.fixture(scope="module")
async def services(server: NatsServer) -> AsyncIterator[dict[str, Bus]]:
    """The services that an outside system meets."""
    names = ("gateway", "orchestrator", "memory", "graph")
    async with connected(server, *names) as found:
        yield dict(zip(names, found, strict=True))


@pytest.fixture
async def system(server: NatsServer, services: dict[str, Bus]) -> AsyncIterator[Outside]:
    """A connected outside system with the role `noor`, in a tenant of its own."""
    async with outside(server, *access(services["gateway"])) as found:
        yield found


@pytest.fixture(scope="module")
async def recalled(services: dict[str, Bus]) -> list[Call]:
    """The calls of a tool that reach its owner."""
    calls: list[Call] = []

    async def recall(call: Call, request: Recall) -> Recalled:
        calls.append(call)
        return Recalled(items=())

    await serve(services["memory"], RECALL_TOOL, recall)
    return calls


@pytest.fixture(scope="module")
async def told(services: dict[str, Bus]) -> list[tuple[Principal, SubmitTurn]]:
    """The turns that reach the orchestrator, which says that it took them."""
    turns: list[tuple[Principal, SubmitTurn]] = []

    async def turn(call: Call, request: SubmitTurn) -> None:
        turns.append((call.who, request))
        await show(services["orchestrator"], call.who, PROGRESS, "t1", TurnProgress(turn_id="t1", kind="accepted"))

    await take(services["orchestrator"], TURN, turn)
    return turns


@pytest.fixture(scope="module")
async def audit(services: dict[str, Bus]) -> list[tuple[str, Audited]]:
    """What memory and the orchestrator enter in the audit trail, with the tenant."""
    entries: list[tuple[str, Audited]] = []

    async def entered(news: News, event: Audited) -> None:
        entries.append((news.tenant, event))

    for name in ("memory", "orchestrator"):
        await follow(services["orchestrator"], AUDITED[name], entered)
    return entries


def recall_on(who: Principal) -> str:
    return RECALL_TOOL.rpc.on(who.tenant)


def turns_of(who: Principal) -> str:
    return TURN.from_outside(who.tenant, who.user)


def turn(key: str = "k") -> bytes:
    return SubmitTurn(idempotency_key=key, text="hello").model_dump_json().encode()


async def test_it_calls_a_tool_as_the_user_that_its_token_names(system: Outside, recalled: list[Call]) -> None:
    answer = await system.ask(recall_on(system.who), b'{"query": "x"}')
    who = system.who.model_copy(update={"inbox": system.made.inbox})
    assert json.loads(answer.data)["items"] == []
    assert recalled[-1] == Call(who=who, service=f"bus/{who.user}", key=None)


async def test_its_key_of_a_write_meets_no_services_even_where_its_user_has_a_services_name(
    server: NatsServer, services: dict[str, Bus], recalled: list[Call]
) -> None:
    who, made = access(services["gateway"], user="gateway")
    async with outside(server, who, made) as system:
        await system.ask(recall_on(who), b'{"query": "x"}', **{"Idempotency-Key": "http/bob/1", "Phronesis-Service": "gateway"})
    assert (recalled[-1].service, recalled[-1].key) == ("bus/gateway", "http/bob/1")


async def test_it_hands_a_turn_in_and_hears_its_progress(system: Outside, told: list[tuple[Principal, SubmitTurn]]) -> None:
    heard = await system.nats.subscribe(PROGRESS.on(system.who.tenant, system.who.user, ">"))
    await system.nats.publish(turns_of(system.who), turn("mine"), headers=system.headers)
    progress = await heard.next_msg(timeout=5)
    assert json.loads(progress.data)["kind"] == "accepted"
    assert (system.who.user, "mine") in [(who.user, request.idempotency_key) for who, request in told]


async def test_a_question_carries_its_deadline_and_an_answer_its_error(system: Outside, recalled: list[Call]) -> None:
    before = len(recalled)
    late = await system.ask(recall_on(system.who), b'{"query": "x"}', **{"Phronesis-Deadline": str(time.time() - 1)})
    wrong = await system.ask(recall_on(system.who), b'{"query": 5}')
    assert len(recalled) == before
    assert late.headers is not None
    assert wrong.headers is not None
    assert (late.headers["Nats-Service-Error"], late.headers["Nats-Service-Error-Code"]) == ("timed_out", "504")
    problem = json.loads(wrong.data)
    assert (problem["code"], problem["status"], problem["field"]) == ("bad_request", 400, "query")


@pytest.mark.parametrize(
    "subject",
    [
        "rpc.{other}.memory.v1.recall",
        "rpc.*.memory.v1.recall",
        "rpc.{tenant}.memory.v1.retrieve",
        "rpc.{tenant}.memory.v1.health",
        "rpc.{tenant}.memory.v1.spans",
        "rpc.{tenant}.media.v1.upload.accept",
        "rpc.{tenant}.orchestrator.v1.turn.cancel",
        "rpc.{tenant}.instructions.v1.agent.get",
        "rpc.{tenant}.graph.v1.upsert",
        "rpc.{tenant}.graph.v1.nodes",
        "rpc.system.memory.v1.health",
        "job.{tenant}.orchestrator.v1.turn",
        "job.{other}.orchestrator.v1.turn",
        "job.{other}.orchestrator.v1.turn.{user}",
        "job.{tenant}.orchestrator.v1.turn.another",
        "job.{tenant}.orchestrator.v1.turn.{user}.more",
        "job.{tenant}.orchestrator.v1.other",
        "evt.{tenant}.gateway.v1.key.revoked",
        "evt.{tenant}.graph.v1.node.changed",
        "evt.{tenant}.{user}.v1.mine",
        "out.{tenant}.orchestrator.v1.turn.{user}.t1",
        "out.{other}.orchestrator.v1.turn.u.t1",
        "parked.mine",
        "revoked.{key}",
        "_INBOX.gateway.x",
        "_INBOX.out.{key}.x",
        "$O.media.C.x",
        "$O.media.M.x",
        "$KV.x.y",
        "$JS.API.INFO",
        "$JS.API.STREAM.NAMES",
        "$JS.API.STREAM.LIST",
        "$JS.API.STREAM.INFO.JOB",
        "$JS.API.STREAM.CREATE.MINE",
        "$JS.API.STREAM.UPDATE.JOB",
        "$JS.API.STREAM.DELETE.JOB",
        "$JS.API.STREAM.PURGE.EVT",
        "$JS.API.STREAM.SNAPSHOT.EVT",
        "$JS.API.STREAM.RESTORE.EVT",
        "$JS.API.STREAM.MSG.GET.OUT",
        "$JS.API.STREAM.MSG.DELETE.REVOKED",
        "$JS.API.DIRECT.GET.OUT",
        "$JS.API.CONSUMER.CREATE.EVT",
        "$JS.API.CONSUMER.CREATE.OUT.mine.out.>",
        "$JS.API.CONSUMER.DURABLE.CREATE.JOB.mine",
        "$JS.API.CONSUMER.MSG.NEXT.JOB.orchestrator-orchestrator-v1-turn",
        "$JS.API.CONSUMER.DELETE.JOB.orchestrator-orchestrator-v1-turn",
        "$JS.ACK.JOB.orchestrator-orchestrator-v1-turn.1.1.1.1.1",
        "$JS.FC.OUT.x",
        "$SYS.REQ.SERVER.PING",
        "$SYS.REQ.SERVER.PING.CONNZ",
        "$SYS.REQ.SERVER.x.KICK",
        "$SYS.REQ.USER.AUTH",
        "$SYS.REQ.ACCOUNT.PING.CONNZ",
        "$SRV.PING",
        "anything",
    ],
)
async def test_it_cannot_publish(system: Outside, subject: str) -> None:
    filled = subject.format(tenant=system.who.tenant, user=system.who.user, key=system.who.key, other="acme")
    await system.nats.publish(filled, b"{}", reply=f"{system.made.inbox}.x", headers=system.headers)
    await eventually(lambda: system.refused(f'for publish to "{filled}"'), within=5)


@pytest.mark.parametrize("queue", ["", "q", "memory"])
@pytest.mark.parametrize(
    "subject",
    [
        ">",
        "*",
        "*.>",
        "_INBOX.>",
        "_INBOX.out.>",
        "_INBOX.*.>",
        "_INBOX.memory.>",
        "_INBOX.out.*.x",
        "out.>",
        "out.{tenant}.>",
        "out.{tenant}.orchestrator.v1.turn.>",
        "out.{tenant}.orchestrator.v1.turn.another.>",
        "out.{tenant}.orchestrator.v1.turn.*.>",
        "out.*.orchestrator.v1.turn.{user}.>",
        "rpc.{tenant}.memory.>",
        "rpc.{tenant}.memory.v1.recall",
        "job.{tenant}.>",
        "evt.{tenant}.>",
        "evt.>",
        "parked.>",
        "revoked.>",
        "$O.>",
        "$JS.>",
        "$JS.EVENT.ADVISORY.>",
        "$SYS.>",
        "$SYS.REQ.USER.AUTH",
    ],
)
async def test_it_cannot_subscribe(system: Outside, subject: str, queue: str) -> None:
    filled = subject.format(tenant=system.who.tenant, user=system.who.user)
    await system.nats.subscribe(filled, queue=queue)
    await eventually(lambda: system.refused(f'for subscription to "{filled}"'), within=5)


async def test_a_tool_that_its_role_may_not_use_has_no_subject_for_it(services: dict[str, Bus], server: NatsServer) -> None:
    for role, may in ((Persona.NOOR, False), (Persona.CURATOR, True)):
        async with outside(server, *access(services["gateway"], **role.rights)) as system:
            await system.nats.publish(f"rpc.{system.who.tenant}.graph.v1.upsert", b"{}", headers=system.headers)
            await system.nats.publish("behind", b"")
            await eventually(lambda: system.refused('"behind"'), within=5)
            assert system.refused("graph.v1.upsert") is not may


async def test_a_reader_has_the_subjects_of_tools_that_read_and_none_for_turns(
    services: dict[str, Bus], server: NatsServer
) -> None:
    who, made = access(services["gateway"], role=Role.READER, agents=(Agent.CURATOR, Agent.NOOR))
    async with outside(server, who, made) as system:
        for subject in (turns_of(who), f"rpc.{who.tenant}.graph.v1.upsert", f"rpc.{who.tenant}.memory.v1.recall", "behind"):
            await system.nats.publish(subject, b"{}", headers=system.headers)
        await eventually(lambda: system.refused('"behind"'), within=5)
        assert [system.refused(part) for part in (turns_of(who), "graph.v1.upsert", "memory.v1.recall")] == [True, True, False]


async def test_a_spoofed_reply_subject_makes_the_broker_say_nothing_to_it(tmp_path: Path) -> None:
    """The broker acknowledges what a stream takes on whatever subject the sender wrote, permitted or not."""
    async with spied_broker(tmp_path) as (server, spy), connected(server, "gateway") as (gateway,):
        heard = await spy.subscribe("spoofed.>")
        async with outside(server, *access(gateway)) as system:
            await system.nats.publish(turns_of(system.who), turn(), reply="spoofed.outsider", headers=system.headers)
            await system.nats.flush()
            await gateway.nats.publish(TURN.on("acme"), turn(), reply="spoofed.service")
            assert (await heard.next_msg(timeout=5)).subject == "spoofed.service"
        assert heard.pending_msgs == 0


async def test_a_question_with_a_spoofed_reply_subject_is_not_worked_on(
    system: Outside, server: NatsServer, recalled: list[Call]
) -> None:
    before = len(recalled)
    spoofed = (
        "",
        "rpc.acme.graph.v1.upsert",
        turns_of(system.who),
        "_INBOX.memory.x",
        "_INBOX.out.another.x",
        system.made.inbox,
    )
    for reply in spoofed:
        await system.nats.publish(recall_on(system.who), b'{"query": "x"}', reply=reply, headers=system.headers)
    await system.ask(recall_on(system.who), b'{"query": "x"}')
    assert len(recalled) == before + 1


async def test_a_flood_to_its_own_inbox_keeps_others_waiting_and_no_more(
    system: Outside, server: NatsServer, services: dict[str, Bus], recalled: list[Call]
) -> None:
    for _ in range(3_000):
        await system.nats.publish(recall_on(system.who), b"{}", reply=f"{system.made.inbox}.x", headers=system.headers)
    who, made = access(services["gateway"])

    async def answered() -> bool:
        answer = await another.ask(recall_on(who), b'{"query": "x"}')
        return "Nats-Service-Error" not in (answer.headers or {})

    async with outside(server, who, made) as another:
        await eventually(answered)
    assert recalled[-1].who.user == who.user


async def test_a_key_over_its_rate_is_told_so_far_over_it_not_answered_and_others_are(
    server: NatsServer, services: dict[str, Bus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUS_KEY_RATE", "0.001")
    monkeypatch.setenv("BUS_KEY_BURST", "2")
    worked = 0

    async def profile(call: Call, request: Nothing) -> Profile:
        nonlocal worked
        worked += 1
        return Profile(profile={})

    who, made = access(services["gateway"])
    other, others = access(services["gateway"])
    owner, owners = access(services["gateway"], tenant="local", user="owner", role=Role.OWNER)
    async with (
        connected(server, "memory") as (memory,),
        outside(server, who, made) as system,
        outside(server, other, others) as calm,
        outside(server, owner, owners) as free,
    ):
        await serve(memory, PROFILE_GET_TOOL, profile)
        subject = PROFILE_GET_TOOL.rpc.on(who.tenant)
        codes = [(await system.ask(subject)).headers or {} for _ in range(4)]
        assert [found.get("Nats-Service-Error") for found in codes] == [None, None, "too_many_requests", "too_many_requests"]
        with pytest.raises(NatsTimeout):
            await system.nats.request(subject, b"{}", timeout=0.5, headers=system.headers)
        assert "Nats-Service-Error" not in ((await calm.ask(PROFILE_GET_TOOL.rpc.on(other.tenant))).headers or {})
        for _ in range(6):
            assert "Nats-Service-Error" not in ((await free.ask(PROFILE_GET_TOOL.rpc.on(owner.tenant))).headers or {})
        text = (await memory.tracing.metrics.text()).decode()
    assert worked == 9
    for reason, many in (("rate", 2), ("dropped", 1)):
        assert f'phronesis_rpc_refused_total{{reason="{reason}",tenant="{who.tenant}"}} {many}.0' in text


async def test_a_message_over_its_contracts_limit_is_refused(system: Outside) -> None:
    answer = await system.ask(recall_on(system.who), b"x" * 1_200_000)
    assert json.loads(answer.data)["code"] == "too_large"


async def test_a_message_over_the_brokers_limit_ends_its_connection_and_no_other(
    system: Outside, services: dict[str, Bus]
) -> None:
    system.nats._max_payload = 10_000_000
    await system.nats.publish(recall_on(system.who), b"x" * 2_200_000, headers=system.headers)
    await eventually(lambda: not system.nats.is_connected, within=10)
    assert services["memory"].connected


async def test_its_subscriptions_have_an_end(system: Outside) -> None:
    for _ in range(1_010):
        await system.nats.subscribe(f"{system.made.inbox}.{uuid4().hex}")
    await eventually(lambda: any("subscriptions" in error for error in system.errors) or not system.nats.is_connected, within=5)


@pytest.mark.parametrize("key", ["x" * 401, "é"])
async def test_a_key_that_no_store_could_keep_is_refused(system: Outside, recalled: list[Call], key: str) -> None:
    before = len(recalled)
    answer = await system.ask(recall_on(system.who), b'{"query": "x"}', **{"Idempotency-Key": key})
    assert json.loads(answer.data)["field"] == "Idempotency-Key"
    assert len(recalled) == before


async def test_a_text_with_nul_is_refused(system: Outside, recalled: list[Call]) -> None:
    before = len(recalled)
    answer = await system.ask(recall_on(system.who), b'{"query": "a\\u0000b"}')
    assert json.loads(answer.data)["code"] == "bad_request"
    assert len(recalled) == before
    await system.ask(recall_on(system.who), b'{"query": "a\\\\u0000b"}')
    assert len(recalled) == before + 1, "a backslash and five characters are a text like any other"


async def test_headers_grant_it_nothing(system: Outside, recalled: list[Call]) -> None:
    claimed = {
        "Phronesis-Service": "orchestrator",
        "Phronesis-Tenant": "acme",
        "Phronesis-User": "ann",
        "Phronesis-Persona": "admin",
        "Nats-Service-Error": "none",
    }
    await system.ask(recall_on(system.who), b'{"query": "x"}', **claimed)
    assert (recalled[-1].who.user, persona_of(recalled[-1].who), recalled[-1].service) == (
        system.who.user,
        Persona.NOOR,
        f"bus/{system.who.user}",
    )


async def test_another_tenants_token_is_refused_and_audited(
    system: Outside, services: dict[str, Bus], recalled: list[Call], told: list[object], audit: list[tuple[str, Audited]]
) -> None:
    victim, stolen = access(services["gateway"])
    before = len(recalled), len(told)
    headers = {"Phronesis-Principal": stolen.token}
    await system.nats.publish(recall_on(system.who), b"{}", reply=f"{system.made.inbox}.x", headers=headers)
    await system.nats.publish(turns_of(system.who), turn(), headers=headers)
    await eventually(lambda: len([entry for tenant, entry in audit if tenant == victim.tenant]) == 2)
    entries = [entry for tenant, entry in audit if tenant == victim.tenant]
    assert {(e.who, e.action, e.outcome, e.code) for e in entries} == {
        (victim.user, "memory.v1.recall", "refused", "forbidden"),
        (victim.user, "orchestrator.v1.turn", "refused", "forbidden"),
    }
    assert {e.arguments["subject"] for e in entries} == {recall_on(system.who), turns_of(system.who)}
    assert (len(recalled), len(told)) == before


async def test_a_principal_on_another_tenants_subject_is_told_so_and_audited(
    services: dict[str, Bus], recalled: list[Call], audit: list[tuple[str, Audited]]
) -> None:
    who, gateway = somebody(), services["gateway"]
    headers = {"Phronesis-Principal": gateway.token(who)}
    answer = await gateway.nats.request("rpc.acme.memory.v1.recall", b'{"query": "x"}', timeout=5, headers=headers)
    assert json.loads(answer.data)["code"] == "forbidden"
    await eventually(lambda: who.tenant in [tenant for tenant, _ in audit])
    assert [(e.who, e.action, e.code) for t, e in audit if t == who.tenant] == [(who.user, "memory.v1.recall", "forbidden")]


async def test_what_it_logs_in_with_is_no_principal_and_its_principal_no_login(
    system: Outside, server: NatsServer, services: dict[str, Bus]
) -> None:
    answer = await system.nats.request(
        recall_on(system.who), b"{}", timeout=5, headers={"Phronesis-Principal": system.made.password}
    )
    assert json.loads(answer.data)["code"] == "unauthorized"
    assert not await is_let_in(server, system.made, password=system.made.token)


@pytest.mark.parametrize(
    "changes",
    [
        {"password": ""},
        {"password": "x"},
        {"password": "a.b.c"},
        {"password": "x" * 3_000},
        {"user": "gateway"},
        {"user": "declare"},
        {"user": "system"},
        {"user": "*"},
        {"user": ""},
        {"user": None, "password": None},
    ],
)
async def test_nobody_comes_in_with_less_than_its_own_login(
    server: NatsServer, services: dict[str, Bus], changes: dict[str, str]
) -> None:
    _, made = access(services["gateway"])
    assert not await is_let_in(server, made, **changes)
    assert await is_let_in(server, made)


async def test_a_login_that_is_anothers_expired_unsigned_or_a_services_is_not_let_in(
    server: NatsServer, services: dict[str, Bus]
) -> None:
    gateway, memory = services["gateway"], services["memory"]
    who, mine = access(gateway)
    _, other = access(gateway)
    assert gateway.signer is not None
    assert memory.signer is not None
    logins = [
        other.password,
        access(gateway, -1)[1].password,
        gateway.signer.login(who, 60),  # it names no inbox: a principal of the platform's own
        mine.password[:-4] + "AAAA",
        mine.password.rpartition(".")[0] + ".",
    ]
    assert [await is_let_in(server, mine, password=login) for login in logins] == [False] * len(logins)


async def test_a_login_that_ends_ends_its_connection(server: NatsServer, services: dict[str, Bus]) -> None:
    async with outside(server, *access(services["gateway"], 2)) as system:
        await eventually(lambda: system.nats.is_closed, within=10)


async def test_a_revoked_system_is_put_out_and_believed_by_nobody(
    server: NatsServer,
    services: dict[str, Bus],
    recalled: list[Call],
    told: list[tuple[Principal, SubmitTurn]],
) -> None:
    who, made = access(services["gateway"])
    async with outside(server, who, made) as system:
        await system.ask(recall_on(who), b'{"query": "x"}')
        await revoke(services["gateway"], str(who.key))
        await eventually(lambda: system.nats.is_closed, within=15)
    assert not await is_let_in(server, made)
    # Somebody of the same tenant who has the token may still publish there, and is not believed.
    before = len(recalled)
    accomplice, own = access(services["gateway"], tenant=who.tenant, user=who.user)
    async with outside(server, accomplice, own) as system:
        headers = {"Phronesis-Principal": made.token}
        answer = await system.nats.request(recall_on(who), b'{"query": "x"}', timeout=5, headers=headers)
        assert json.loads(answer.data)["code"] == "unauthorized"
        await system.nats.publish(turns_of(who), turn("revoked"), headers=headers)
        await system.nats.publish(turns_of(who), turn("after"), headers=system.headers)
        await eventually(lambda: "after" in [request.idempotency_key for _, request in told])
    assert len(recalled) == before
    assert "revoked" not in [request.idempotency_key for _, request in told]


async def test_a_service_that_starts_later_knows_who_is_revoked(server: NatsServer, services: dict[str, Bus]) -> None:
    who, _ = access(services["gateway"])
    await revoke(services["gateway"], str(who.key))
    async with connected(server, "media") as (media,):
        assert (media.revoked.known, who.key in media.revoked) == (True, True)


@pytest.mark.usefixtures("recalled")
async def test_until_it_is_known_who_is_revoked_outside_systems_are_told_to_wait_and_their_turns_kept(
    server: NatsServer, services: dict[str, Bus], system: Outside, told: list[tuple[Principal, SubmitTurn]]
) -> None:
    orchestrator, memory, key = services["orchestrator"], services["memory"], uuid4().hex
    orchestrator.revoked.known = memory.revoked.known = False
    try:
        answer = await system.ask(recall_on(system.who), b'{"query": "x"}')
        assert json.loads(answer.data)["code"] == "unavailable"
        await system.nats.publish(turns_of(system.who), turn(key), headers=system.headers)
        await system.nats.flush()
    finally:
        orchestrator.revoked.known = memory.revoked.known = True
    await eventually(lambda: key in [request.idempotency_key for _, request in told])


async def test_services_come_in_while_nobody_answers_the_broker(nats_server: NatsServer) -> None:
    async with connected(nats_server, "graph") as (graph,):
        await graph.ping()
