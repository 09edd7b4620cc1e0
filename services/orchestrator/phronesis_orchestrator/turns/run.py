"""Running one claimed turn: its stages in order, and its one end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from opentelemetry.trace import Span, get_current_span

from phronesis_bus import correlation
from phronesis_bus.envelope import deadline as answer_due
from phronesis_bus.tracing import Tracing, conversation, user
from phronesis_bus.tracing import turn as turn_at_hand
from phronesis_contracts import Internal, ServiceError, TimedOut, Unauthorized, UnsupportedMedia
from phronesis_contracts.orchestrator import Reply, ToolOutcome, TurnProgress, TurnStatus, Usage

from ..agents.cognition.preparation import detect_tone_and_intent, weigh_history
from ..agents.cognition.state import Cognition
from ..agents.context import (
    carry_on_summary,
    join_input,
    list_sources,
    load_background,
    read_media,
    recalled_ids,
    run_beside,
    tag_agent,
)
from ..agents.extractive import Extractive, focus
from ..agents.loops import LOOPS
from ..approvals.policy import ApprovalWaits, Waiting, pause_turn
from ..conversations.history import Past
from ..ledger.books import NO_BOOKS, Books
from ..metrics import DEGRADED, TURN_SECONDS, TURNS
from ..models.reasoner import Reasoner, TurnContext
from ..settings import OrchestratorSettings
from ..tasks.background import Background, can_plan
from ..traces.record import TurnRecord
from ..traces.recorder import KeepRecord, RecordingNeighbours, discard_record
from .execution import ShowProgress, Steps, TurnRun
from .ports import Conversations, Journal, Neighbours, TurnEnding
from .turn import Claim, Completed, Failed, attempt_limit, problem_from_error

log = logging.getLogger(__name__)


class TurnRunner:
    """Runs claimed turns."""

    def __init__(
        self,
        turns: TurnEnding,
        journal: Journal,
        conversations: Conversations,
        neighbours: Neighbours,
        reasoner: Reasoner,
        settings: OrchestratorSettings,
        tracing: Tracing,
        show: ShowProgress,
        ended: Callable[[], None],
        books: Books = NO_BOOKS,
        keep: KeepRecord = discard_record,
        approvals: ApprovalWaits | None = None,
        cognition: Cognition | None = None,
        background: Background | None = None,
    ) -> None:
        self._background = background
        self._approvals = approvals
        self._books = books
        self._keep = keep
        self._turns = turns
        self._journal = journal
        self._conversations = conversations
        self._neighbours = neighbours
        self._reasoner = reasoner
        self._settings = settings
        self._tracing = tracing
        self._show = show
        self._ended = ended
        self._cognition = cognition or Cognition()

    async def run(self, claim: Claim, record: TurnRecord | None = None) -> None:
        """Run the turn to its end. Raises `LostClaim`, and what makes another attempt worth while."""
        record = TurnRecord() if record is None else record
        correlation.set(claim.correlation_id)
        answer_due.set(time.time() + attempt_limit(claim, self._settings.turn_limit))
        turn_at_hand.set(claim.turn_id)
        conversation.set(claim.conversation_id)
        user.set(claim.who.user)
        with self._span(claim) as span:
            try:
                end = self._hopeless(claim) or await self._attempt(claim, record)
            except Waiting as waiting:
                assert self._approvals is not None, "nobody waits where nobody can be asked"
                await self._keep(claim, record)
                return await pause_turn(self._approvals, self._show, claim, waiting)
            if isinstance(end, Failed):
                span.set_attribute("error.type", end.problem.code)
            await self._keep(claim, record)
            await self._turns.end(claim, end)
            self._cognition.pasts.note(claim, end)
            self._count(claim, end)
            self._ended()
            line = TurnProgress(turn_id=claim.turn_id, kind="ended", conversation_id=claim.conversation_id)
            await self._show(claim, line)

    def _span(self, claim: Claim) -> AbstractContextManager[Span]:
        return self._tracing.span(
            f"invoke_agent {claim.agent}",
            parent=claim.traceparent,
            gen_ai__operation__name="invoke_agent",
            gen_ai__provider__name=self._reasoner.name,
            gen_ai__agent__name=claim.agent,
            gen_ai__conversation__id=claim.conversation_id,
            phronesis__turn__id=claim.turn_id,
            phronesis__turn__attempt=claim.attempts,
        )

    def _count(self, claim: Claim, end: Completed | Failed) -> None:
        metrics, parts = self._tracing.metrics, end.reply.degraded if isinstance(end, Completed) else ()
        outcome = "completed" if isinstance(end, Completed) else end.status.value
        metrics.count(TURNS, claim.agent, outcome, "yes" if parts else "no")
        metrics.observe(TURN_SECONDS, (datetime.now(UTC) - claim.created_at).total_seconds(), claim.agent, outcome)
        for part in parts:
            metrics.count(DEGRADED, part)

    def _hopeless(self, claim: Claim) -> Failed | None:
        """The end of a turn that is not run any more."""
        if claim.key_revoked:
            return Failed(TurnStatus.FAILED, problem_from_error(Unauthorized("the key of this turn was revoked")))
        if claim.idle_claims > self._settings.idle_claims:
            return Failed(TurnStatus.PARKED, problem_from_error(Internal("the turn was begun again and again and got nowhere")))
        if claim.expired:
            return Failed(TurnStatus.FAILED, problem_from_error(TimedOut("the turn did not end before it expired")))
        return None

    async def _attempt(self, claim: Claim, record: TurnRecord) -> Completed | Failed:
        tools: list[ToolOutcome] = []
        try:
            async with asyncio.timeout(attempt_limit(claim, self._settings.turn_limit)):
                end = await self._stages(claim, record, tools)
        except TimeoutError:
            end = Failed(TurnStatus.FAILED, problem_from_error(TimedOut("the turn took too long")))
        return replace(end, tools=tuple(tools))

    async def _stages(self, claim: Claim, record: TurnRecord, tools: list[ToolOutcome]) -> Completed | Failed:
        settings, request, neighbours = self._settings, claim.request, RecordingNeighbours(self._neighbours, record)
        steps = Steps(self._journal, claim, self._tracing, self._books)
        running = TurnRun(
            claim,
            steps,
            self._tracing,
            neighbours,
            settings,
            self._show,
            [],
            tools=tools,
            approvals=self._approvals,
            record=record,
            cognition=self._cognition,
        )
        with running.phase("I media"):
            past, weigh = partial(self._cognition.pasts.read, self._conversations), partial(weigh_history, running)
            known = await load_background(neighbours, past, claim.who, claim.agent, claim.conversation_id, weigh)
            record.remember(known.past)
            running.degraded.extend(known.degraded)
            media = await read_media(neighbours, claim.who, request.media, known.agent, settings.media_limit)
        if known.agent is not None:
            tag_agent(get_current_span(), known.agent)
        if media.unreadable:
            running.degrade("media")
        await running.show("preprocessed", attachments=len(request.media))
        turn = TurnContext(
            agent=known.agent,
            profile=known.profile,
            history=known.history,
            directive=known.past.directive,
            final_input=join_input(request.text, media.text),
            user_text=request.text,
            media_text=media.text,
            summary=known.summary,
        )
        if not request.text.strip() and not media.documents:
            error = UnsupportedMedia("no attachment of this message could be read", field="currentMessageMedia")
            return Failed(TurnStatus.FAILED, problem_from_error(error))
        return await self._loop(running, detect_tone_and_intent(running, turn), known.past, media.documents)

    async def _loop(self, running: TurnRun, turn: TurnContext, past: Past, documents: tuple[Any, ...]) -> Completed | Failed:
        claim = running.claim
        loop = LOOPS.get(turn.agent.loop if turn.agent else "router", LOOPS["router"])
        # No prompt text stands in the code: without instructions only the rules can answer.
        reasoner = self._reasoner if turn.agent else Extractive()
        if claim.request.task is not None and self._background is not None:
            loop, reasoner = self._background.run, reasoner if can_plan(reasoner, turn) else Extractive()
        try:
            async with run_beside(carry_on_summary(running, reasoner, self._conversations, turn, past)):
                answered = await loop(running, reasoner, turn)
        except ServiceError as error:
            return Failed(TurnStatus.FAILED, problem_from_error(error))
        await running.show("answered")
        reply = Reply(
            conversation_id=claim.conversation_id,
            turn_id=claim.turn_id,
            user_response=answered.text,
            next_agent_directive=answered.directive,
            reasoner=reasoner.name,
            degraded=tuple(running.degraded),
            sources=(*list_sources(focus(turn), documents, answered.memory), *answered.sources),
            usage=_usage(running, claim, turn),
            analysis=answered.analysis,
        )
        return Completed(
            reply,
            turn.final_input,
            answered.directive,
            answered.reasoning,
            recalled=recalled_ids(answered.memory),
            tier=running.tier,
        )


def _usage(running: TurnRun, claim: Claim, turn: TurnContext) -> Usage:
    steps, agent = running.steps, turn.agent
    spent = steps.spent
    ms = int((datetime.now(UTC) - claim.created_at).total_seconds() * 1000)
    return Usage(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        model_calls=spent.model_calls,
        ms=max(0, ms),
        cost_usd=steps.cost_usd,
        instruction_tokens=running.instruction_tokens,
        release=agent.release if agent else "",
        arms=agent.arms if agent else {},
    )
