"""An orchestrator that does as a test says: it accepts turns, shows their progress and answers for their rows."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import uuid4

from phronesis_bus import Bus, Call, serve, serve_basics, show, take, trace_id, traceparent
from phronesis_contracts import BadRequest, NotFound, Principal, TurnEnded
from phronesis_contracts.deletions import DeleteConversation, Deletion, DeletionRef, DeletionState
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETE,
    CONVERSATION_FIND,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    DELETION_GET,
    PROGRESS,
    TURN,
    TURN_CANCEL,
    TURN_GET,
    TURN_LIST,
    TURN_RETRY,
    Conversation,
    ConversationMessage,
    ConversationPage,
    ConversationRef,
    ConversationSummary,
    Directive,
    FindConversation,
    FoundConversation,
    ListConversations,
    ListTurns,
    Problem,
    Reply,
    SubmitTurn,
    Turn,
    TurnProgress,
    TurnRef,
    Turns,
    TurnStatus,
    turn_id,
)
from phronesis_gateway.openai.questions import exchange_digest

KEY_REUSED = Problem(code="idempotency_key_reused", status=409, detail="this key was used with another message")


class ScriptedOrchestrator:
    """Turns by tenant and user, in memory. Tests set how it behaves; its defaults answer every turn at once.

    Args:
        bus: a bus connected as `orchestrator`.
    """

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.submitted: dict[str, list[SubmitTurn]] = defaultdict(list)
        """Every copy of a turn that came, by the turn's id."""
        self.callers: dict[str, Principal] = {}
        self.asked: list[str] = []
        """Ids of the turns that were asked for."""
        self.refuse: Callable[[SubmitTurn], Problem | None] = lambda turn: None
        self.deaf_to: set[str] = set()
        """Texts whose turns are taken and answered with nothing."""
        self.slow: set[str] = set()
        """Texts whose turns are accepted and stay queued until `end` is called."""
        self.ends: dict[str, Problem] = {}
        """Problems, by text, that turns end with."""
        self.reply: Callable[[SubmitTurn], str] = lambda turn: f"You said: {turn.text}"
        self.finish: Callable[[SubmitTurn, Reply], Reply] = lambda turn, reply: reply
        """What a reply holds beside its text."""
        self._turns: dict[str, tuple[Principal, SubmitTurn, Turn]] = {}
        self._deletions: dict[str, tuple[Principal, Deletion]] = {}
        self._news = asyncio.Condition()

    async def start(self) -> None:
        """Take turns and answer for them."""
        await take(self.bus, TURN, self.on_turn)
        await serve(self.bus, TURN_GET, self.get)
        await serve(self.bus, TURN_LIST, self.list)
        await serve(self.bus, TURN_CANCEL, self.cancel)
        await serve(self.bus, TURN_RETRY, self.retry)
        await serve(self.bus, CONVERSATION_GET, self.conversation)
        await serve(self.bus, CONVERSATION_LIST, self.conversations)
        await serve(self.bus, CONVERSATION_FIND, self.find)
        await serve(self.bus, CONVERSATION_DELETE, self.delete)
        await serve(self.bus, DELETION_GET, self.deletion)
        await serve_basics(self.bus, {})

    async def on_turn(self, call: Call, turn: SubmitTurn) -> None:
        """Accept a turn, or refuse it, and answer it where it is not to be slow."""
        who, id = call.who, turn_id(call.who.tenant, call.who.user, turn.idempotency_key)
        async with self._news:
            self.submitted[id].append(turn)
            self.callers[id] = who
            self._news.notify_all()
        if turn.text in self.deaf_to:
            return
        problem = self.refuse(turn)
        if known := self._turns.get(id):
            problem = KEY_REUSED if known[1].fingerprint != turn.fingerprint else None
        if problem is not None:
            await self.say(who, TurnProgress(turn_id=id, kind="refused", problem=problem))
            return
        if not known:
            self._turns[id] = (who, turn, _queued(id, turn))
        state = self._turns[id][2]
        await self.say(who, TurnProgress(turn_id=id, kind="accepted", conversation_id=state.conversation_id))
        if state.status.ended:
            await self.say(who, TurnProgress(turn_id=id, kind="ended"))
        elif turn.text not in self.slow:
            await self.end(id)

    async def phase(self, id: str, phase: str) -> None:
        """Show that a turn has reached a phase."""
        await self.say(self._turns[id][0], TurnProgress(turn_id=id, kind="phase", phase=phase))

    async def live(self, id: str, text: str, offset: int, attempt: int = 1) -> None:
        """Show a piece of provisional text."""
        said = TurnProgress(turn_id=id, kind="live", text=text, offset=offset, attempt=attempt)
        await self.say(self._turns[id][0], said)

    async def restart(self, id: str, attempt: int = 1) -> None:
        """Take provisional text back."""
        await self.say(self._turns[id][0], TurnProgress(turn_id=id, kind="restart", attempt=attempt))

    async def wait(self, id: str) -> str:
        """Let a turn wait for a person, and show it; the id of the approval."""
        who, turn, state = self._turns[id]
        approval = str(uuid4())
        waiting = state.model_copy(update={"status": TurnStatus.WAITING, "approval_id": approval})
        self._turns[id] = (who, turn, waiting)
        await self.say(who, TurnProgress(turn_id=id, kind="waiting", detail={"approval_id": approval}))
        return approval

    async def end(self, id: str, *, hint: bool = True, whole: bool = False) -> Turn:
        """End a turn as its text says, and show its end unless the hint is to be lost; with the turn in it if `whole`."""
        who, turn, state = self._turns[id]
        problem = self.ends.get(turn.text)
        reply = None if problem else self._reply(state, turn)
        status = TurnStatus.FAILED if problem else TurnStatus.COMPLETED
        ended = state.model_copy(
            update={"status": status, "reply": reply, "problem": problem, "ended_at": datetime.now(UTC), "attempts": 1}
        )
        self._turns[id] = (who, turn, ended)
        if hint:
            await self.say(who, TurnProgress(turn_id=id, kind="ended", turn=ended if whole else None))
        return ended

    async def say(self, who: Principal, progress: TurnProgress) -> None:
        """Show one line of a turn's progress."""
        await show(self.bus, who, PROGRESS, progress.turn_id, progress)

    async def arrived(self, count: int = 1, *, text: str) -> str:
        """The id of the turn with this text, once it has come `count` times."""
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(lambda: self._of(text, count) is not None)
        id = self._of(text, count)
        assert id is not None
        return id

    async def get(self, call: Call, ref: TurnRef) -> Turn:
        """A turn of the caller."""
        self.asked.append(ref.turn_id)
        who, _, turn = self._turns.get(ref.turn_id, (None, None, None))
        if turn is None or who is None or (who.tenant, who.user) != (call.who.tenant, call.who.user):
            raise NotFound("there is no such turn")
        return turn

    async def list(self, call: Call, wanted: ListTurns) -> Turns:
        """The caller's turns."""
        mine = [turn for who, _, turn in self._turns.values() if (who.tenant, who.user) == (call.who.tenant, call.who.user)]
        found = [turn for turn in mine if wanted.status in (None, turn.status)]
        return Turns(turns=tuple(turn.model_copy(update={"reply": None}) for turn in found[-wanted.limit :]))

    async def cancel(self, call: Call, ref: TurnRef) -> Turn:
        """Cancel a turn that has not ended."""
        turn = await self.get(call, ref)
        if turn.status.ended:
            raise TurnEnded("the turn has ended")
        who, submitted, _ = self._turns[ref.turn_id]
        cancelled = turn.model_copy(update={"status": TurnStatus.CANCELLED, "ended_at": datetime.now(UTC)})
        self._turns[ref.turn_id] = (who, submitted, cancelled)
        await self.say(who, TurnProgress(turn_id=ref.turn_id, kind="ended"))
        return cancelled

    async def retry(self, call: Call, ref: TurnRef) -> Turn:
        """Make a new turn of another one."""
        await self.get(call, ref)
        who, submitted, _ = self._turns[ref.turn_id]
        id = turn_id(who.tenant, who.user, call.key or uuid4().hex)
        self._turns[id] = (who, submitted, _queued(id, submitted).model_copy(update={"retry_of": ref.turn_id}))
        return self._turns[id][2]

    async def conversation(self, call: Call, ref: ConversationRef) -> Conversation:
        """A conversation of the caller, with the page of its messages that is asked for."""
        mine = [
            (submitted, turn)
            for who, submitted, turn in self._turns.values()
            if turn.conversation_id == ref.conversation_id and _same(who, call.who)
        ]
        if not mine:
            raise NotFound("there is no such conversation")
        said = [message for each in mine for message in _messages(*each)]
        said = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(said, 1)]
        ahead = [message for message in said if ref.before is None or message.seq < ref.before]
        shown = ahead[-ref.limit :]
        ids = {message.turn_id for message in shown}
        return Conversation(
            conversation_id=ref.conversation_id,
            agent=mine[0][1].agent,
            directive=Directive.CURIOUS_EXPLORER,
            created_at=mine[0][1].created_at,
            messages=tuple(shown),
            more=len(ahead) > len(shown),
            turns=tuple(turn for _, turn in mine if turn.turn_id in ids) if ref.turns else (),
        )

    async def conversations(self, call: Call, wanted: ListConversations) -> ConversationPage:
        """The caller's conversations; a cursor is the id of the last one shown."""
        words = wanted.text.lower().split()
        mine = {
            turn.conversation_id: (said, turn)
            for who, said, turn in self._turns.values()
            if _same(who, call.who) and all(word in said.text.lower() for word in words)
        }
        ids = list(reversed(mine))
        if wanted.cursor is not None and wanted.cursor not in ids:
            raise BadRequest("this is no cursor of the caller's", field="cursor")
        after = ids.index(wanted.cursor) + 1 if wanted.cursor else 0
        shown = ids[after : after + wanted.limit]
        return ConversationPage(
            conversations=tuple(_summary(*mine[id]) for id in shown),
            next=shown[-1] if len(ids) > after + wanted.limit else None,
        )

    async def find(self, call: Call, wanted: FindConversation) -> FoundConversation:
        """The caller's newest conversation with an agent that ends with these exchanges."""
        said: dict[str, list[str]] = defaultdict(list)
        for who, turn, state in self._turns.values():
            if _same(who, call.who) and turn.agent == wanted.agent and state.reply:
                said[state.conversation_id].append(exchange_digest(turn.text, state.reply.user_response))
        most = len(wanted.exchanges)
        found = [
            id for id, all in said.items() if tuple(all[-most:]) == wanted.exchanges and (not wanted.whole or len(all) == most)
        ]
        return FoundConversation(conversation_id=found[-1] if found else None)

    async def delete(self, call: Call, wanted: DeleteConversation) -> Deletion:
        """Delete a conversation with its turns; it is complete at once."""
        for who, known in self._deletions.values():
            if _same(who, call.who) and known.conversation_id == wanted.conversation_id:
                return known
        gone = [id for id, (who, _, turn) in self._turns.items() if _same(who, call.who) and _is_of(turn, wanted)]
        if not gone:
            raise NotFound("there is no such conversation")
        for id in gone:
            del self._turns[id]
            await self.say(call.who, TurnProgress(turn_id=id, kind="ended"))
        now = datetime.now(UTC)
        deletion = Deletion(
            deletion_id=str(uuid4()),
            conversation_id=wanted.conversation_id,
            state=DeletionState.COMPLETE,
            requested_at=now,
            completed_at=now,
            removed={"orchestrator": {"turns": len(gone)}},
        )
        self._deletions[deletion.deletion_id] = (call.who, deletion)
        return deletion

    async def deletion(self, call: Call, ref: DeletionRef) -> Deletion:
        """A deletion of the caller."""
        who, found = self._deletions.get(ref.deletion_id, (None, None))
        if who is None or found is None or not _same(who, call.who):
            raise NotFound("there is no such deletion")
        return found

    def _of(self, text: str, count: int) -> str | None:
        came = (id for id, copies in self.submitted.items() if copies[0].text == text and len(copies) >= count)
        return next(came, None)

    def _reply(self, state: Turn, turn: SubmitTurn) -> Reply:
        reply = Reply(
            conversation_id=state.conversation_id,
            turn_id=state.turn_id,
            user_response=self.reply(turn),
            next_agent_directive=Directive.FOCUSED_ANALYST,
            reasoner="scripted",
        )
        return self.finish(turn, reply)


def _same(one: Principal, other: Principal) -> bool:
    return (one.tenant, one.user) == (other.tenant, other.user)


def _is_of(turn: Turn, wanted: DeleteConversation) -> bool:
    return turn.conversation_id == wanted.conversation_id


def _messages(submitted: SubmitTurn, turn: Turn) -> Iterator[ConversationMessage]:
    said = [("user", submitted.text)] + ([("assistant", turn.reply.user_response)] if turn.reply else [])
    for seq, (role, text) in enumerate(said, 1):
        yield ConversationMessage(seq=seq, turn_id=turn.turn_id, role=role, text=text, created_at=turn.created_at)


def _summary(submitted: SubmitTurn, turn: Turn) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=turn.conversation_id,
        title=submitted.text[:80],
        agent=turn.agent,
        directive=Directive.CURIOUS_EXPLORER,
        created_at=turn.created_at,
        updated_at=turn.created_at,
        turns=1,
    )


def _queued(id: str, turn: SubmitTurn) -> Turn:
    return Turn(
        turn_id=id,
        conversation_id=turn.conversation_id or str(uuid4()),
        agent=turn.agent,
        status=TurnStatus.QUEUED,
        sequence=1,
        attempts=0,
        created_at=datetime.now(UTC),
        trace_id=trace_id(traceparent()),
    )
