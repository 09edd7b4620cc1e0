"""The orchestrator on a real broker and a real Postgres; its neighbours answer from fixed values."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Bus, Call, Relay, announce, ask, connect, serve, tell
from phronesis_bus.envelope import decode
from phronesis_contracts import Conflict, NotFound, Nothing, Principal, TurnEnded
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef
from phronesis_contracts.media import MEDIA_GET, Media, MediaKind, MediaRef
from phronesis_contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, Profile, Retrieve
from phronesis_contracts.orchestrator import (
    CONVERSATION_GET,
    PROGRESS,
    TURN,
    TURN_CANCEL,
    TURN_GET,
    TURN_RETRY,
    ConversationRef,
    SubmitTurn,
    Turn,
    TurnProgress,
    TurnRef,
    TurnStatus,
    turn_id,
)
from phronesis_contracts.service import KEY_REVOKED, KeyRevoked
from phronesis_orchestrator.app import build, open_stores
from phronesis_orchestrator.models.reasoner import Answer, ComposedReply, Fault, RouteDecision, TurnContext
from phronesis_orchestrator.sessions.calendar import CalendarReaders
from phronesis_orchestrator.sessions.store import AesSeal
from phronesis_orchestrator.settings import OrchestratorSettings
from phronesis_postgres import Database, PostgresOutbox
from tests.support.servers import NatsServer, PostgresServer
from tests.unit.orchestrator.fakes import PROFILE


@dataclass
class HeldReasoner:
    """Answers at once, except that a message with `hold` in it waits until it is let go."""

    name: str = "held"
    began: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    go: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    seen: list[TurnContext] = field(default_factory=list)

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[RouteDecision]:
        self.began[turn.user_text].set()
        if "hold" in turn.user_text:
            await self.go[turn.user_text].wait()
        return Answer(RouteDecision(decision="respond_directly", direct_response="ok"))

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[ComposedReply]:
        self.seen.append(turn)
        return Answer(ComposedReply(user_response=f"answer to {turn.user_text}"))


@dataclass
class Front:
    """A gateway reduced to its questions."""

    bus: Bus
    shown: defaultdict[str, asyncio.Queue[TurnProgress]]

    async def submit(self, who: Principal, text: str, conversation: str | None = None, **more: Any) -> str:
        """Submit a turn; its id when it was accepted or refused."""
        key = more.pop("key", uuid4().hex)
        request = SubmitTurn(idempotency_key=key, text=text, conversation_id=conversation, **more)
        await tell(self.bus, who, TURN, request)
        return turn_id(who.tenant, who.user, key)

    async def line(self, turn: str, *kinds: str) -> TurnProgress:
        """The next line of one of these kinds."""
        async with asyncio.timeout(10):
            while True:
                line = await self.shown[turn].get()
                if line.kind in kinds:
                    return line

    async def turn(self, who: Principal, turn: str) -> Turn:
        return await ask(self.bus, who, TURN_GET, TurnRef(turn_id=turn))

    async def ended(self, who: Principal, turn: str) -> Turn:
        """The turn, as soon as it has ended; each look is a question, which is what paces them."""
        async with asyncio.timeout(10):
            while True:
                try:
                    found = await self.turn(who, turn)
                except NotFound:
                    continue  # not accepted yet
                if found.status.ended:
                    return found


@asynccontextmanager
async def neighbours(nats: NatsServer) -> AsyncIterator[Bus]:
    """All that a turn asks but the texts of attachments, which nobody serves; the media service's bus, whose file is `m`."""

    async def agent(call: Call, request: AgentRef) -> AgentProfile:
        if request.agent != "dialogue":
            raise NotFound("no such agent")
        return PROFILE

    async def profile(call: Call, request: Nothing) -> Profile:
        return Profile()

    async def retrieve(call: Call, request: Retrieve) -> AugmentedMemoryContext:
        return AugmentedMemoryContext(user_id=call.who.user, key_phrases=request.key_phrases)

    async def media(call: Call, request: MediaRef) -> Media:
        if request.media_id != "m":
            raise NotFound("no such media")
        return Media(id="m", name="a.txt", type="text/plain", kind=MediaKind.DOCUMENT, size=1, sha256="0" * 64)

    async with (
        connect("instructions", nats.settings("instructions")) as instructions,
        connect("memory", nats.settings("memory")) as memory,
        connect("media", nats.settings("media")) as shelf,
    ):
        await serve(instructions, AGENT_GET, agent)
        await serve(memory, PROFILE_GET, profile)
        await serve(memory, RETRIEVE, retrieve)
        await serve(shelf, MEDIA_GET, media)
        yield shelf


@asynccontextmanager
async def orchestrator(nats: NatsServer, database: Database, reasoner: HeldReasoner, **settings: Any) -> AsyncIterator[Bus]:
    async with connect("orchestrator", nats.settings("orchestrator")) as bus:
        await build(
            bus,
            OrchestratorSettings(**settings),
            open_stores(database),
            Relay(bus, PostgresOutbox(database)),
            reasoner,
            {"postgres": database.ping},
            AesSeal(None),
            CalendarReaders(1),
        )
        yield bus


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
def reasoner() -> HeldReasoner:
    return HeldReasoner()


@pytest.fixture
async def front(nats_server: NatsServer, database: Database, reasoner: HeldReasoner) -> AsyncIterator[Front]:
    async with neighbours(nats_server), opened(nats_server, database, reasoner) as front:
        yield front


@asynccontextmanager
async def opened(nats: NatsServer, database: Database, reasoner: HeldReasoner, **settings: Any) -> AsyncIterator[Front]:
    """A gateway reduced to its questions, and an orchestrator that answers them."""
    async with orchestrator(nats, database, reasoner, **settings), connect("gateway", nats.settings("gateway")) as bus:
        shown: defaultdict[str, asyncio.Queue[TurnProgress]] = defaultdict(asyncio.Queue)

        async def received(msg: Any) -> None:
            shown[msg.subject.rsplit(".", 1)[1]].put_nowait(decode(TurnProgress, msg.data, PROGRESS.max_bytes))

        await bus.nats.subscribe(PROGRESS.on("*", "*", "*"), cb=received)
        await bus.nats.flush()
        yield Front(bus, shown)


def someone(**more: Any) -> Principal:
    return Principal(tenant=f"t{uuid4().hex[:8]}", user="ann", **more)


async def test_a_turn_is_accepted_run_and_ended_with_its_reply(front: Front) -> None:
    who = someone()
    id = await front.submit(who, "hello")
    accepted = await front.line(id, "accepted", "refused")
    turn = await front.ended(who, id)
    assert (accepted.kind, turn.status) == ("accepted", TurnStatus.COMPLETED)
    assert turn.reply is not None
    assert (turn.reply.user_response, turn.reply.conversation_id) == ("answer to hello", accepted.conversation_id)


@pytest.mark.req("D-015", "D-143", "D-152")
@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"text": "  "}, "bad_request", "currentMessageText"),
        ({"text": "hi", "agent": "nobody"}, "bad_request", "agent"),
        ({"text": "hi", "media": ("m1",)}, "not_found", "currentMessageMedia"),
        ({"text": "hi", "conversation": str(uuid4())}, "not_found", "conversation_id"),
        ({"text": "a\x00b"}, "bad_request", "currentMessageText"),
        ({"text": "hi", "fingerprint": "a\x00b"}, "bad_request", "idempotency_key"),
        ({"text": "hi", "retry_of": "no-id"}, "not_found", "retry_of"),
    ],
)
async def test_what_is_wrong_is_refused_and_nothing_is_stored(
    front: Front, reasoner: HeldReasoner, body: dict[str, Any], code: str, field: str
) -> None:
    who = someone()
    id = await front.submit(who, **body)
    refused = await front.line(id, "accepted", "refused")
    assert refused.problem is not None
    assert (refused.kind, refused.problem.code, refused.problem.field) == ("refused", code, field)
    with pytest.raises(NotFound):
        await front.turn(who, id)
    assert reasoner.seen == []


@pytest.mark.req("D-020")
async def test_a_repeated_submission_is_accepted_again_and_run_once(front: Front, reasoner: HeldReasoner) -> None:
    who = someone()
    id = await front.submit(who, "once", key="k")
    first = await front.ended(who, id)
    await front.submit(who, "once", key="k")
    assert (await front.line(id, "accepted")).conversation_id == first.conversation_id
    await front.line(id, "ended")
    assert await front.turn(who, id) == first
    assert len(reasoner.seen) == 1


@pytest.mark.req("D-019", "D-121")
async def test_two_turns_of_a_conversation_are_answered_in_order_and_others_do_not_wait(
    front: Front, reasoner: HeldReasoner
) -> None:
    who = someone()
    first = await front.submit(who, "hold the first")
    conversation = (await front.line(first, "accepted")).conversation_id
    second = await front.submit(who, "the second", conversation)
    await front.line(second, "accepted")
    other = await front.submit(who, "elsewhere")
    await front.ended(who, other)
    assert (await front.turn(who, second)).status is TurnStatus.QUEUED
    reasoner.go["hold the first"].set()
    await front.ended(who, second)
    found = await ask(front.bus, who, CONVERSATION_GET, ConversationRef(conversation_id=str(conversation)))
    assert [m.text for m in found.messages] == [
        "hold the first",
        "answer to hold the first",
        "the second",
        "answer to the second",
    ]


@pytest.mark.req("D-001", "D-018")
async def test_the_second_turn_is_shown_the_first(front: Front, reasoner: HeldReasoner) -> None:
    who = someone()
    first = await front.submit(who, "one")
    conversation = (await front.ended(who, first)).conversation_id
    await front.ended(who, await front.submit(who, "two", conversation))
    assert [(m.role, m.text) for m in reasoner.seen[-1].history] == [("user", "one"), ("assistant", "answer to one")]


async def test_a_cancelled_turn_stops_and_commits_nothing(front: Front, reasoner: HeldReasoner) -> None:
    who = someone()
    id = await front.submit(who, "hold it")
    async with asyncio.timeout(5):
        await reasoner.began["hold it"].wait()
    cancelled = await ask(front.bus, who, TURN_CANCEL, TurnRef(turn_id=id))
    reasoner.go["hold it"].set()
    assert cancelled.status is TurnStatus.CANCELLED
    with pytest.raises(TurnEnded):
        await ask(front.bus, who, TURN_CANCEL, TurnRef(turn_id=id))
    found = await ask(front.bus, who, CONVERSATION_GET, ConversationRef(conversation_id=cancelled.conversation_id))
    assert found.messages == ()


async def test_a_turn_whose_key_was_revoked_fails_at_its_claim(
    front: Front, reasoner: HeldReasoner, database: Database
) -> None:
    who = someone(key=f"key-{uuid4().hex}")
    first = await front.submit(who, "hold for the key")
    conversation = (await front.line(first, "accepted")).conversation_id
    waiting = await front.submit(who, "waits", conversation)
    await front.line(waiting, "accepted")
    await announce(front.bus, who.tenant, KEY_REVOKED, KeyRevoked(key=str(who.key)))
    async with asyncio.timeout(5), database.connection(who.tenant) as connection:
        while not await connection.fetchval("SELECT true FROM revoked_keys WHERE key_id = $1", who.key):
            pass
    reasoner.go["hold for the key"].set()
    turn = await front.ended(who, waiting)
    assert turn.problem is not None
    assert (turn.status, turn.problem.code) == (TurnStatus.FAILED, "unauthorized")


async def test_a_completed_turn_is_not_tried_again(front: Front) -> None:
    who = someone()
    id = await front.submit(who, "fine")
    await front.ended(who, id)
    with pytest.raises(Conflict):
        await ask(front.bus, who, TURN_RETRY, TurnRef(turn_id=id))


@pytest.mark.req("D-122", "D-C16")
async def test_an_orchestrator_that_stops_gives_its_turns_back_and_the_next_one_ends_them(
    nats_server: NatsServer, database: Database, front: Front, reasoner: HeldReasoner
) -> None:
    who = someone()
    other = HeldReasoner()
    for event in (reasoner.go, other.go):
        event["hold and move"].clear()
    async with orchestrator(nats_server, database, other):
        ids = [await front.submit(who, "hold and move") for _ in range(6)]
        for id in ids:
            await front.line(id, "accepted")
    reasoner.go["hold and move"].set()
    turns = [await front.ended(who, id) for id in ids]
    assert [t.status for t in turns] == [TurnStatus.COMPLETED] * 6
