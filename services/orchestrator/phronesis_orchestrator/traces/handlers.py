"""What the orchestrator answers about traces: how an answer came about, and the same turn run again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from phronesis_bus import Bus, Call, News, follow, serve
from phronesis_bus.tracing import Tracing
from phronesis_contracts import Internal, Role
from phronesis_contracts.answers import (
    TURN_REPLAY_TOOL,
    TURN_TRACE_TOOL,
    AnswerTrace,
    NotReplayable,
    Replayed,
    ReplayTurn,
    TraceOfTurn,
)
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import ITEMS_FORGOTTEN, ItemsForgotten
from phronesis_contracts.orchestrator import Audited, Turn, TurnProgress, TurnStatus
from phronesis_contracts.service import AUDITED

from ..ledger.budgets import Ledger
from ..ledger.store import PostgresLedger
from ..models.reasoner import Reasoner
from ..settings import OrchestratorSettings
from ..turns.ports import Neighbours
from ..turns.run import TurnRunner, TurnServices
from ..turns.turn import Claim, Completed, Failed
from ..understanding.vocabularies import Vocabularies
from .record import StoredRecord, TurnRecord
from .replay import (
    BlankJournal,
    RecordedApprovals,
    RecordedConversations,
    RecordedNeighbours,
    ReplayEnd,
    ReplayStores,
    profile_at,
)
from .store import PostgresTraces, RecordedTurn
from .trace import build_trace, diff_answers, is_same, replay_side

log = logging.getLogger(__name__)

RunReplay = Callable[[ReplayStores, RecordedNeighbours, Claim, TurnRecord], Awaitable[None]]
"""Runs a claim on stand-ins, and records it."""


class TraceHandlers:
    def __init__(self, traces: PostgresTraces, ledger: PostgresLedger, live: Neighbours, run: RunReplay) -> None:
        self._traces, self._ledger, self._live, self._run = traces, ledger, live, run

    async def trace(self, call: Call, request: TraceOfTurn) -> AnswerTrace:
        """The whole trace of a turn of the caller; for an admin, of any turn of the tenant."""
        found = await self._traces.recorded(call.who, request.turn_id, any_user=call.who.role is Role.ADMIN)
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
            RecordedApprovals(claim.turn_id, answers),
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

    async def on_audited(self, news: News, event: Audited, service: str) -> None:
        await self._traces.audit(news.id, news.tenant, service, event)

    async def on_forgotten(self, news: News, event: ItemsForgotten) -> None:
        """Memories are gone: the traces of their owner's turns say so."""
        if event.ids:
            await self._traces.forgotten(news.tenant, event.owner, event.ids)


async def serve_traces(bus: Bus, handlers: TraceHandlers) -> None:
    await serve(bus, TURN_TRACE_TOOL, handlers.trace)
    await serve(bus, TURN_REPLAY_TOOL, handlers.replay)
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
) -> RunReplay:
    """Runs claims on stand-ins, held to the limits as turns are. `tracing`: where spans go."""

    async def show(claim: Claim, line: TurnProgress) -> None:
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
            vocabularies=vocabularies,
        )
        await TurnRunner(services).run(claim, record)

    return run
