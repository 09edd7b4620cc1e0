"""What the orchestrator answers about traces: how an answer came about, and the same turn run again on what was recorded."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

from phronesis_bus import Bus, Call, News, follow, serve
from phronesis_bus.tracing import Tracing
from phronesis_contracts import Forbidden, Internal, Message, Nothing, Principal, Rpc, ServiceError
from phronesis_contracts.answers import (
    TURN_REPLAY_TOOL,
    TURN_TRACE_TOOL,
    AnswerTrace,
    NotRecorded,
    NotReplayable,
    Replayed,
    ReplayTurn,
    ToolCalled,
    TraceOfTurn,
)
from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.instructions import (
    AGENT_GET,
    RETRIEVE_AT,
    RETRIEVE_INSTRUCTIONS,
    AgentProfile,
    AgentRef,
    RetrieveAt,
    RetrieveInstructions,
)
from phronesis_contracts.media import MEDIA_GET, ExtractedText, Media, MediaRef, TextRef
from phronesis_contracts.memory import (
    ITEMS_FORGOTTEN,
    PROFILE_GET,
    RETRIEVE,
    AugmentedMemoryContext,
    ItemsForgotten,
    Profile,
    Retrieve,
)
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import AUDIT_LIST, Audited, AuditPage, ListAudit, Turn, TurnProgress, TurnStatus
from phronesis_contracts.origins import OriginKind
from phronesis_contracts.service import AUDITED

from ..approvals.policy import ApprovalAnswer, ApprovalRequest, LoadPolicy, load_default, make_approval_id
from ..conversations.history import Past, Summary
from ..ledger.budgets import Ledger
from ..ledger.store import PostgresLedger
from ..ledger.usage import LedgerEntry
from ..models.reasoner import Reasoner
from ..settings import OrchestratorSettings
from ..turns.execution import TEXT_OF
from ..turns.ports import Neighbours
from ..turns.run import TurnRunner, TurnServices
from ..turns.turn import Claim, Completed, Deferred, Failed
from ..understanding.reader import Vocabularies
from .record import Question, StoredRecord, TurnRecord, find_tool, message_digest, restore_answer, trace_arguments
from .store import PostgresTraces, RecordedTurn, build_trace, describe_call, diff_answers, is_same, replay_side

_NOBODY = ApprovalAnswer(ApprovalStatus.REFUSED, "", "")
"""Stands for an answer that there is not: it is no answer to any call, so the call is not allowed."""


class RecordedApprovals:
    """The store of approvals as a replay finds it."""

    def __init__(self, turn_id: str, answers: Mapping[str, ApprovalAnswer], called: Collection[str] = ()) -> None:
        self._answers = {make_approval_id(turn_id, step): answer for step, answer in answers.items()}
        self._called = called

    async def answered(self, claim: Claim, approval_id: str) -> ApprovalAnswer:
        return self._answers.get(approval_id, _NOBODY)

    async def granted(self, claim: Claim, tool: str, kinds: frozenset[OriginKind], host: str) -> bool:
        """Whether the turn made calls of the tool; no call is made now, and one that it did not make has no answer."""
        return bool(kinds) and tool in self._called

    async def record(self, claim: Claim, entry: Audited) -> None:
        """Enter nothing: no call is made."""

    async def wait(self, claim: Claim, asked: ApprovalRequest) -> None:
        raise NotRecorded("the turn that is replayed did not ask this")


_WIDE = 32_000
"""Tokens of the retrieval that reads the texts of recorded memories again: more than any turn asked for."""


class RecordedNeighbours:
    """Answers a turn's questions from its record. No tool is called: what is not in the record is said to be so.

    Texts that their owner alone keeps (memories, the profile, attachments) are read there again, as the turn's user.

    Args:
        release: number of the release that texts of instructions are read from; `None` for the recorded ones.
    """

    def __init__(self, record: StoredRecord, profile: AgentProfile, live: Neighbours, release: int | None) -> None:
        self._profile, self._live, self._release = profile, live, release
        self._left: dict[tuple[str, str], deque[Question]] = defaultdict(deque)
        for question in record.questions:
            self._left[question.subject, question.digest].append(question)
        self.unrecorded: list[ToolCalled] = []
        """Questions that are not in the record."""
        self.lost: dict[str, None] = {}
        """What its owner no longer has as it was."""

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        return self._profile

    async def profile(self, who: Principal) -> Profile:
        question = self._next(who, PROFILE_GET, Nothing())
        if question.held is None:
            return _answer_from_record(question, PROFILE_GET)
        known = await self._live.profile(who)
        if message_digest(Profile(profile=known.profile, labels=known.labels)) != question.held:
            self.lost["profile"] = None
        return known

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        question = self._next(who, RETRIEVE, Retrieve(key_phrases=phrases, budget_tokens=budget))
        if question.held is None:
            return _answer_from_record(question, RETRIEVE)
        again = await self._live.retrieve(who, phrases, _WIDE, limit)
        return self._again(question, again)

    async def media(self, who: Principal, media_id: str) -> Media:
        question = self._next(who, MEDIA_GET, MediaRef(media_id=media_id))
        return _answer_from_record(question, MEDIA_GET) if question.held is None else await self._live.media(who, media_id)

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        question = self._next(who, TEXT_OF[medium.kind], TextRef(media_id=medium.id))
        if question.held is None:
            return _answer_from_record(question, TEXT_OF[medium.kind])
        return self._again(question, await self._live.medium_text(who, medium, limit), medium.id)

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        if self._release is not None and rpc.subject == RETRIEVE_INSTRUCTIONS.subject:
            assert isinstance(request, RetrieveInstructions)
            text: Any = await self._live.ask(who, RETRIEVE_AT, RetrieveAt(release=self._release, wanted=request))
            return rpc.output.model_validate(text.model_dump())
        question = self._next(who, rpc, request)
        if question.held is None:
            return _answer_from_record(question, rpc)
        # Only what reads is ever held (`holding`), so nothing is changed by asking again.
        return self._again(question, await self._live.ask(who, rpc, request), rpc.subject)

    def _next(self, who: Principal, rpc: Rpc[Any, Any], request: Message) -> Question:
        left = self._left.get((rpc.subject, message_digest(request)))
        if not left:
            tool = find_tool(rpc)
            name = tool.name if tool else rpc.subject
            question = Question(subject=rpc.subject, digest="", tool=name, arguments=trace_arguments(who, rpc, request))
            self.unrecorded.append(describe_call(question).model_copy(update={"outcome": NotRecorded.code}))
            raise NotRecorded("the turn that is replayed did not ask this, so there is no answer to it")
        return left.popleft() if len(left) > 1 else left[0]

    def _again(self, question: Question, answer: Out_, name: str = "") -> Out_:
        found, lost = restore_answer(answer, question.items)
        self.lost |= dict.fromkeys(lost)
        if name and not question.items and message_digest(answer) != question.held:
            self.lost[name] = None
        assert isinstance(found, type(answer))
        return found


def _answer_from_record(question: Question, rpc: Rpc[In, Out_]) -> Out_:
    if question.problem is not None:
        raise ServiceError.from_body(question.problem)
    if question.answer is None:
        raise NotRecorded("the answer was too large to be recorded")
    return rpc.output.model_validate(question.answer)


async def profile_at(live: Neighbours, who: Principal, agent: str, release: int) -> AgentProfile:
    """An agent's profile as of a release of the tenant. Raises `NotFound` where there is no such release."""
    return await live.ask(who, AGENT_GET, AgentRef(agent=agent, release=release))


class BlankJournal:
    """A journal that knows nothing and keeps nothing: a replay makes each step itself. What it spends is entered."""

    def __init__(self, spent: Any) -> None:
        self._spent = spent

    async def intend(self, claim: Claim, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        return None

    async def known(self, claim: Claim, step: str) -> dict[str, Any] | None:
        return None

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: LedgerEntry | None = None) -> None:
        if spend is not None:
            await self._spent(claim, spend)

    async def keep_record(self, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
        """The record is the caller's."""


class RecordedConversations:
    """The conversation as the turn saw it; what would be written to it is dropped."""

    def __init__(self, past: Past) -> None:
        self._past = past

    async def recent(self, tenant: str, conversation_id: str) -> Past:
        return self._past

    async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
        """Keep nothing."""

    async def get(self, who: Principal, ref: Any) -> Any:
        raise NotRecorded("a replay reads no conversation")


class ReplayEnd:
    """Where a replay ends: in a value, and in no row."""

    def __init__(self) -> None:
        self.end_of: Completed | Failed | None = None

    async def end(
        self, claim: Claim, end: Completed | Failed, record: StoredRecord | None = None, profile: AgentProfile | None = None
    ) -> None:
        self.end_of = end


@dataclass(frozen=True)
class ReplayStores:
    """The stores of one replay."""

    turns: ReplayEnd
    journal: BlankJournal
    conversations: RecordedConversations
    approvals: RecordedApprovals


log = logging.getLogger(__name__)

RunReplay = Callable[[ReplayStores, RecordedNeighbours, Claim, TurnRecord], Awaitable[None]]
"""Runs a claim on stand-ins, and records it."""


class TraceHandlers:
    def __init__(self, traces: PostgresTraces, ledger: PostgresLedger, live: Neighbours, run: RunReplay) -> None:
        self._traces, self._ledger, self._live, self._run = traces, ledger, live, run

    async def trace(self, call: Call, request: TraceOfTurn) -> AnswerTrace:
        """The whole trace of a turn of the caller; for an admin, of any turn of the tenant."""
        found = await self._traces.recorded(call.who, request.turn_id, any_user=call.who.administers)
        return await self._build_trace(found)

    async def replay(self, call: Call, request: ReplayTurn) -> Replayed:
        """Run an ended turn of the caller again.

        Raises:
            NotFound: there is no such turn of the caller, or no such release.
            NotReplayable: it has not ended with an answer or a failure, nothing is recorded of it, or it is background work.
        """
        found = await self._traces.recorded(call.who, request.turn_id, any_user=False)
        record, profile = await self._replayable(found)
        release = request.with_instructions
        if release is not None:
            profile = await profile_at(self._live, found.claim.who, found.claim.agent, release)
        claim = replace(found.claim, turn_id=str(uuid4()), attempts=1, idle_claims=0, created_at=datetime.now(UTC))
        past, whole = await self._traces.past_of(call.who.tenant, claim.conversation_id, record.past)
        recorded, again = RecordedNeighbours(record, profile, self._live, release), TurnRecord()
        if not whole:
            recorded.lost["history"] = None
        answers = await self._traces.answers_of(call.who.tenant, request.turn_id)
        stores = ReplayStores(
            ReplayEnd(),
            BlankJournal(self._ledger.spent),
            RecordedConversations(past),
            RecordedApprovals(claim.turn_id, answers, {question.tool for question in record.questions}),
        )
        await self._run(stores, recorded, claim, again)
        end = stores.turns.end_of
        if end is None:
            raise Internal("the replay did not end")
        trace = await self._build_trace(RecordedTurn(claim, _replay_row(found.turn, claim, end), again.kept(), frozenset()))
        return _compare_runs(found, await self._build_trace(found), trace, end, recorded)

    async def _replayable(self, found: RecordedTurn) -> tuple[StoredRecord, AgentProfile]:
        if found.turn.status not in (TurnStatus.COMPLETED, TurnStatus.FAILED):
            raise NotReplayable(f"a turn that is {found.turn.status} cannot be replayed")
        if getattr(found.claim.request, "task", None) is not None:
            raise NotReplayable("background work cannot be replayed: its steps depend on what the ones before them changed")
        if found.record is None or not found.record.profile:
            raise NotReplayable("nothing is recorded of this turn, or it ran without instructions")
        profile = await self._traces.ran_with(found.claim.who.tenant, found.record.profile)
        if profile is None:
            raise NotReplayable("the instructions of this turn are not recorded")
        if profile.loop == "task":
            raise NotReplayable("background work cannot be replayed: its steps depend on what the ones before them changed")
        return found.record, profile

    async def _build_trace(self, found: RecordedTurn) -> AnswerTrace:
        calls = await self._ledger.calls_of(found.claim.who.tenant, found.turn.turn_id)
        return build_trace(found.turn, found.record or StoredRecord(), calls, found.forgotten)

    async def audit(self, call: Call, request: ListAudit) -> AuditPage:
        """A page of the tenant's audit trail. Raises `Forbidden`: the caller does not administer it."""
        if not call.who.administers:
            raise Forbidden("the audit trail is for administrators")
        return await self._traces.audited(call.who.tenant, request)

    async def on_audited(self, news: News, event: Audited, service: str) -> None:
        await self._traces.audit(news.id, news.tenant, service, event)

    async def on_forgotten(self, news: News, event: ItemsForgotten) -> None:
        """Memories are gone: the traces of their owner's turns say so."""
        if event.ids:
            await self._traces.forgotten(news.tenant, event.owner, event.ids)


async def serve_traces(bus: Bus, handlers: TraceHandlers) -> None:
    await serve(bus, TURN_TRACE_TOOL, handlers.trace)
    await serve(bus, TURN_REPLAY_TOOL, handlers.replay)
    await serve(bus, AUDIT_LIST, handlers.audit)
    await follow(bus, ITEMS_FORGOTTEN, handlers.on_forgotten, workers=1)
    for service, event in AUDITED.items():
        await follow(bus, event, partial(handlers.on_audited, service=service), workers=1)


def _replay_row(turn: Turn, claim: Claim, end: Completed | Failed) -> Turn:
    reply, problem = (end.reply, None) if isinstance(end, Completed) else (None, end.problem)
    return turn.model_copy(update={"turn_id": claim.turn_id, "reply": reply, "problem": problem})


def _compare_runs(
    found: RecordedTurn, first: AnswerTrace, second: AnswerTrace, end: Completed | Failed, recorded: RecordedNeighbours
) -> Replayed:
    turn, before, after = found.turn, replay_side(first), replay_side(second)
    said = turn.reply.user_response if turn.reply else ""
    answer = end.reply.user_response if isinstance(end, Completed) else ""
    problem = end.problem.code if isinstance(end, Failed) else None
    gone = {memory.id for memory in first.memories if memory.forgotten}
    return Replayed(
        turn_id=second.turn_id,
        replay_of=turn.turn_id,
        same=not recorded.unrecorded
        and is_same((said, answer), (turn.problem.code if turn.problem else None, problem), before, after),
        answer=answer,
        problem=problem,
        diff=diff_answers(said, answer),
        before=before,
        after=after,
        unrecorded=tuple(recorded.unrecorded),
        forgotten=tuple(sorted(gone)),
        changed=tuple(one for one in recorded.lost if one not in gone),
        trace=second,
    )


def build_replay_runner(
    reasoner: Reasoner,
    settings: OrchestratorSettings,
    tracing: Tracing,
    ledger: Ledger,
    vocabularies: Vocabularies | None = None,
    load_policy: LoadPolicy = load_default,
) -> RunReplay:
    """Runs claims on stand-ins, held to the limits and to the tenant's policy as turns are. `tracing`: where spans go."""

    async def show(who: Principal, line: TurnProgress) -> None:
        """Nobody watches a replay."""

    async def run(stores: ReplayStores, neighbours: RecordedNeighbours, claim: Claim, record: TurnRecord) -> None:
        services = TurnServices(
            turns=stores.turns,
            journal=stores.journal,
            conversations=stores.conversations,
            neighbours=neighbours,
            reasoner=reasoner,
            settings=settings,
            tracing=tracing,
            show=show,
            ended=lambda: None,
            ledger=ledger,
            approvals=stores.approvals,
            load_policy=load_policy,
            vocabularies=vocabularies,
        )
        try:
            await TurnRunner(services).run(claim, record)
        except Deferred as deferred:
            raise deferred.error from deferred  # whoever asked for it waits, and can ask again

    return run
