"""A turn while a loop works on it: journalled steps that are never made again, recorded neighbours, and its progress with
provisional text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal, TypeVar

from opentelemetry.trace import SpanKind

from phronesis_bus.tracing import Tracing
from phronesis_contracts import Message, ModelUnavailable, Nothing, Principal, Rpc, ServiceError
from phronesis_contracts.agents import AnswerSource
from phronesis_contracts.approvals import ActionPolicy
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import (
    CAPTION,
    EXTRACT_TEXT,
    MEDIA_GET,
    TRANSCRIBE,
    ExtractedText,
    Media,
    MediaKind,
    MediaRef,
    TextRef,
)
from phronesis_contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, ContextItem, ItemKind, Profile, Retrieve
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import ToolOutcome, TurnProgress
from phronesis_contracts.outside import OutcomeUnknown

from ..agents.binding import Origins
from ..agents.cognition.state import Cognition
from ..agents.tools import may_read
from ..approvals.policy import ApprovalAnswers
from ..ledger.budgets import NO_LEDGER, Ledger, make_entry, sum_costs
from ..ledger.usage import CallUsage, admission
from ..metrics import INSTRUCTION_TOKENS, MODEL_PLANS, MODEL_PROSE, STAGE, STEP
from ..models.completions import live_sink
from ..models.reasoner import RULES, Answer, CallFailed, Fault, Reasoner, TurnContext, Value, Wisher, Wishes, current_call
from ..settings import OrchestratorSettings
from ..traces.record import (
    MeasuredOutcome,
    Question,
    TurnRecord,
    find_tool,
    is_held,
    list_items,
    measure,
    message_digest,
    strip_texts,
    trace_arguments,
)
from ..understanding.reader import Vocabularies
from .ports import Journal, Neighbours, ShowProgress
from .turn import AlreadyBegun, Claim, Deferred, wait_after

STAGE_LIVE = "live"
"""The stage of a profile whose replies may be shown while they are written."""
_PIECE = 80
"""Characters from which on a piece is shown at once."""
_EVERY = 0.15
"""Seconds after which a shorter one is."""
_MOST = 50_000
"""Characters of provisional text of one attempt; a longer reply comes with the turn's end alone."""


_OPENS = "!]<"
"""Signs that the next one may make the beginning of something that is loaded or followed."""
_LOADS = re.compile(r"!(?=\[)|\](?=[(\[:])|<(?=[a-zA-Z!/])")


def _inert(sign: re.Match[str]) -> str:
    return f"{sign[0]} "


class LiveText:
    """Shows the text of one turn's reply. Each piece says its attempt and where in the text it stands.

    Args:
        progress: where lines of progress go.
    """

    def __init__(self, claim: Claim, progress: ShowProgress) -> None:
        self._claim, self._progress = claim, progress
        self._offset = 0
        self._kept = ""
        self._shown_at = 0.0

    async def add(self, text: str) -> None:
        if self._offset + len(self._kept) + len(text) > _MOST:
            return
        self._kept += text
        if len(self._kept) >= _PIECE or time.monotonic() - self._shown_at >= _EVERY:
            await self._show(self._kept.rstrip(_OPENS))

    async def flush(self) -> None:
        """Show all that is left; nothing follows it."""
        await self._show(self._kept)

    async def _show(self, whole: str) -> None:
        """Show the beginning of what is kept. Where what a client might load or follow leads is only known with the reply."""
        held, text = self._kept[len(whole) :], _LOADS.sub(_inert, whole)
        if not text:
            return
        self._kept, self._shown_at = held, time.monotonic()
        await self._progress(self._claim.who, self._line("live", offset=self._offset, text=text))
        self._offset += len(text)

    async def restart(self) -> None:
        self._kept = ""
        if self._offset:
            self._offset = 0
            await self._progress(self._claim.who, self._line("restart"))

    def _line(self, kind: str, offset: int | None = None, text: str | None = None) -> TurnProgress:
        claim = self._claim
        return TurnProgress(
            turn_id=claim.turn_id,
            kind=kind,
            conversation_id=claim.conversation_id,
            attempt=claim.attempts,
            offset=offset,
            text=text,
        )


Outcome = Literal["accepted", "repaired", "rejected", "failed", "none"]
"""What became of something that a model was asked to make; `none` where it said that it cannot."""
Stored = TypeVar("Stored")
Given = TypeVar("Given", bound=Message)
current_step: ContextVar[str] = ContextVar("at_hand", default="")
"""Name of the journalled tool call being made."""
_LOST = "the call was begun before and its answer was lost; whether it had its effect is not known"


class JournalAway(Deferred):
    """The journal could not be written."""


class Steps:
    def __init__(self, journal: Journal, claim: Claim, tracing: Tracing, ledger: Ledger = NO_LEDGER) -> None:
        self._ledger, self._journal, self._claim, self._tracing = ledger, journal, claim, tracing
        self.spent = CallUsage()
        """What the model calls of the turn used, over all its attempts."""
        self.max_tokens: int | None = None
        """Tokens from which on no model call is begun."""
        self.progressed = False
        """Whether this attempt has added a result to the journal."""
        self._costs: list[float | None] = []

    @property
    def cost_usd(self) -> float | None:
        """What they cost; `None` where no model was called, or the price of one is not known."""
        return sum_costs(self._costs)

    @property
    def known_usd(self) -> float:
        """What those cost whose price is known."""
        return sum(cost for cost in self._costs if cost is not None)

    async def called(
        self,
        name: str,
        tool: str,
        call: Callable[[], Awaitable[dict[str, Any]]],
        *,
        again: bool = True,
        changes: bool = False,
    ) -> dict[str, Any]:
        """Call a tool, or read what it gave.

        Args:
            name: of the step, unique in the turn.
            call: makes the call; what it gives must be JSON.
            again: whether it may be made again where an earlier attempt began it and its answer was lost; where it may not, the
                step ends with the problem `outcome_unknown`.
            changes: whether it changes something, which is written down ahead of it.
        """
        with measure(self._tracing, STEP, f"step {name}", tool) as outcome:
            begun, intent = False, {"call": tool} | ({"changes": True} if changes else {})
            try:
                known = await await_store(self._journal.intend(self._claim, name, intent, once=not again))
            except AlreadyBegun:
                known, begun = None, True
            if known is not None:
                outcome.name = "known"
                return known
            token = current_step.set(name)
            try:
                result = {"problem": OutcomeUnknown(_LOST).body()} if begun else await call()
            finally:
                current_step.reset(token)
            await await_store(self._journal.result(self._claim, name, result))
            self.progressed = True
            return result

    async def made(
        self, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]], *, label: str | None = None
    ) -> Answer[Value]:
        """Make a model call, or read what it gave. It is not written down ahead: one whose answer was lost is made again.

        Args:
            name: of the step, unique in the turn.
            label: what the measures call it, where names are too many for that.
        """
        with measure(self._tracing, STEP, f"step {name}", label or name) as outcome:
            known = await await_store(self._journal.known(self._claim, name))
            if known is None:
                began = perf_counter()
                try:
                    answer = await self._call_model(name, call)
                except CallFailed as failed:
                    self.count(failed.spent, failed.cost_usd)
                    if spend := make_entry(name, failed, began):
                        await await_store(self._ledger.spent(self._claim, spend))
                    raise failed.error from failed
                spend = make_entry(name, answer, began)
                await await_store(self._journal.result(self._claim, name, _answer_to_json(answer), *([spend] if spend else [])))
                self.progressed = True
                if spend:
                    self._ledger.used(self._claim, spend)
                outcome.name = "fault" if answer.fault else "ok"
            else:
                answer = _answer_from_json(model, known)
                outcome.name = "known"
        self.count(answer.spent, answer.cost_usd)
        return answer

    async def _call_model(self, name: str, call: Callable[[], Awaitable[Answer[Value]]]) -> Answer[Value]:
        if self.max_tokens is not None and self.spent.input_tokens + self.spent.output_tokens >= self.max_tokens:
            raise ModelUnavailable("the agent's limit of tokens for one turn is reached")
        token = current_call.set(f"{self._claim.turn_id}/{name}")
        admitted = admission.set(lambda: self._ledger.admit(self._claim))
        try:
            return await call()
        finally:
            admission.reset(admitted)
            current_call.reset(token)

    def count(self, spent: CallUsage, cost_usd: float | None) -> None:
        """Count a model call; also one of an earlier attempt that a step of another kind has stored."""
        self.spent = self.spent.plus(spent)
        if spent.model_calls:
            self._costs.append(cost_usd)


async def await_store(write: Awaitable[Stored]) -> Stored:
    """What the store of the turn answers. Raises `JournalAway` where it cannot."""
    try:
        return await write
    except ServiceError as error:
        raise JournalAway(error) from error


def _answer_to_json(answer: Answer[Any]) -> dict[str, Any]:
    return {
        "value": answer.value.model_dump(mode="json") if answer.value else None,
        "fault": {"said": answer.fault.said, "wrong": answer.fault.wrong} if answer.fault else None,
        "spent": answer.spent.model_dump(),
        "cost_usd": answer.cost_usd,
    }


def _answer_from_json(model: type[Value], known: dict[str, Any]) -> Answer[Value]:
    return Answer(
        value=model.model_validate(known["value"]) if known["value"] else None,
        fault=Fault(**known["fault"]) if known["fault"] else None,
        spent=CallUsage.model_validate(known["spent"]),
        cost_usd=known.get("cost_usd"),
    )


TEXT_OF = {MediaKind.DOCUMENT: EXTRACT_TEXT, MediaKind.IMAGE: CAPTION, MediaKind.AUDIO: TRANSCRIBE}
"""The contract that gives the text of each kind of medium."""


class RecordingNeighbours:
    """Passes each question on, and records it with its answer."""

    def __init__(self, neighbours: Neighbours, record: TurnRecord) -> None:
        self._neighbours = neighbours
        self._record = record

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        profile = self._record.profile = await self._neighbours.agent(who, name)
        return profile

    async def profile(self, who: Principal) -> Profile:
        async def call() -> Profile:
            found = await self._neighbours.profile(who)
            return Profile(profile=found.profile, labels=found.labels)

        return await self._record_call(who, PROFILE_GET, Nothing(), call())

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        request = Retrieve(key_phrases=phrases, budget_tokens=budget)
        return await self._record_call(who, RETRIEVE, request, self._neighbours.retrieve(who, phrases, budget, limit))

    async def media(self, who: Principal, media_id: str) -> Media:
        return await self._record_call(who, MEDIA_GET, MediaRef(media_id=media_id), self._neighbours.media(who, media_id))

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        call = self._neighbours.medium_text(who, medium, limit)
        return await self._record_call(who, TEXT_OF[medium.kind], TextRef(media_id=medium.id), call)

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        tool, call = find_tool(rpc), self._neighbours.ask(who, rpc, request, key=key)
        return await self._record_call(who, rpc, request, call, tool.name if tool else rpc.subject)

    async def _record_call(
        self, who: Principal, rpc: Rpc[In, Given], request: In, call: Awaitable[Given], tool: str = ""
    ) -> Given:
        began, step = perf_counter(), current_step.get()
        question = Question(
            subject=rpc.subject,
            digest=message_digest(request),
            tool=tool,
            step=step,
            arguments=trace_arguments(who, rpc, request) if tool else {},
        )
        try:
            answer = await call
        except ServiceError as error:
            self._record.ask(question.model_copy(update={"problem": error.body(), "ms": _elapsed_ms(began)}))
            raise
        self._record.ask(question.model_copy(update={**_recorded_answer(rpc, answer), "ms": _elapsed_ms(began)}))
        return answer


def _recorded_answer(rpc: Rpc[In, Given], answer: Given) -> dict[str, object]:
    """What is recorded of an answer: all of it, or, where its owner alone keeps the text, a digest."""
    if is_held(rpc, answer):
        return {"held": message_digest(answer), "items": list_items(answer)}
    return {"answer": strip_texts(answer).model_dump(mode="json", by_alias=True), "items": list_items(answer)}


def _elapsed_ms(began: float) -> int:
    return round((perf_counter() - began) * 1000)


def measured_name(name: str, profile: AgentProfile | None) -> str:
    """What measures call an agent: a tenant's own by its base, since there may be any number of them."""
    return (profile.based_on or name) if profile is not None else name


@dataclass
class TurnRun:
    """A turn that a loop works on."""

    claim: Claim
    steps: Steps
    tracing: Tracing
    neighbours: Neighbours
    settings: OrchestratorSettings
    progress: ShowProgress
    degraded: list[str]
    instruction_tokens: int = 0
    """Tokens of the instructions that tools loaded."""
    tools: list[ToolOutcome] = field(default_factory=list)
    """What came of the tool calls so far."""
    tier: str | None = None
    """The tier that the message was given."""
    approvals: ApprovalAnswers | None = None
    """Where people are asked; nobody can be where it is `None`."""
    record: TurnRecord = field(default_factory=TurnRecord)
    """How the answer comes about."""
    cognition: Cognition = field(default_factory=Cognition)
    vocabularies: Vocabularies | None = None
    """The words of the tenants' twins; `None` where no twin can be read."""
    agent: AgentProfile | None = None
    """Who works on it, within its limits and from its sources; the bounds of every turn where it is not known."""
    reasoner: Reasoner = RULES
    """What works on it."""
    origins: Origins = field(default_factory=Origins)
    """What it has read so far."""
    policy: ActionPolicy = field(default_factory=ActionPolicy)
    """What the tenant lets agents do because of untrusted texts."""

    def __post_init__(self) -> None:
        self._live = LiveText(self.claim, self.progress)

    def work_for(self, agent: AgentProfile) -> None:
        """Keep to an agent's limits and sources from now on."""
        self.agent = agent
        self.steps.max_tokens = agent.limits.tokens

    @property
    def seconds(self) -> float:
        """Seconds that the work on a message may take."""
        own = self.agent.limits.seconds if self.agent else None
        return self.settings.turn_limit if own is None else min(own, self.settings.turn_limit)

    def defer(self, error: ServiceError) -> None:
        """End the attempt, for what may be there again in a moment; return where no retry would mend the error.

        Raises:
            Deferred: the turn is put back.
        """
        if wait_after(error, self.claim.wait, progressed=self.steps.progressed) is not None:
            raise Deferred(error, progressed=self.steps.progressed) from error

    def phase(self, name: str) -> AbstractContextManager[MeasuredOutcome]:
        """A span for one phase, its time, and its place in the record."""
        return self.record.staged(name, measure(self.tracing, STAGE, f"phase {name}", name.partition(" ")[2]))

    @contextmanager
    def live(self, agent: AgentProfile | None) -> Iterator[None]:
        """For a block: the reply that a model writes in it is shown as it comes, where the agent's profile has that stage.

        A reply that is put into a client's form behind it is not what the client will read.
        """
        client = self.claim.request.client
        if agent is None or STAGE_LIVE not in agent.stages or (client is not None and client.form is not None):
            yield
            return
        token = live_sink.set(self._live)
        try:
            yield
        finally:
            live_sink.reset(token)

    def degrade(self, part: str) -> None:
        """Mark the reply: it was made without `part`."""
        if part not in self.degraded:
            self.degraded.append(part)

    def judge(self, what: Literal["planning", "prose"], outcome: Outcome) -> None:
        """Count what became of a model's plan or reply, and note it in the trace."""
        self.record.note({what: outcome})
        self.tracing.metrics.count(MODEL_PLANS if what == "planning" else MODEL_PROSE, outcome)

    def instructions(self, tokens: int) -> None:
        """Count tokens of instructions that were loaded."""
        self.instruction_tokens += tokens
        if tokens:
            self.tracing.metrics.observe(INSTRUCTION_TOKENS, tokens, measured_name(self.claim.agent, self.agent))

    async def show(self, phase: str, **detail: Any) -> None:
        self.record.note(detail)
        line = TurnProgress(
            turn_id=self.claim.turn_id, kind="phase", conversation_id=self.claim.conversation_id, phase=phase, detail=detail
        )
        await self.progress(self.claim.who, line)

    async def retrieve(self, phrases: tuple[str, ...], left_out: tuple[str, ...] = ()) -> AugmentedMemoryContext:
        """Hybrid retrieval within its limit of time and size, of what the agent may answer from.

        Args:
            left_out: ids of facts that the person asked to forget.
        """
        settings = self.settings
        barred = frozenset(source for source in _RETRIEVED if not may_read(self.agent, source))
        if barred == _RETRIEVED:
            return AugmentedMemoryContext(user_id=self.claim.who.user, key_phrases=phrases)
        named = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "knowledge"}
        with self.tracing.span("retrieval knowledge", kind=SpanKind.CLIENT, **named):
            found = await self.neighbours.retrieve(self.claim.who, phrases, settings.memory_tokens, settings.retrieval_limit)
        kept = _without(found, barred, left_out) if barred or left_out else found
        items = (*kept.memory_units, *kept.concepts)
        self.origins.read((label for item in items for label in item.labels), *(item.text for item in items))
        return kept

    async def wish(self, reasoner: Wisher, turn: TurnContext, tools: tuple[str, ...], step: str) -> Wishes | None:
        """Which of the tools the user's own words want called; `None` where that cannot be read. Raises `ServiceError`."""
        return (await self.steps.made(step, Wishes, lambda: reasoner.wish(turn, tools), label="wishes")).value


_RETRIEVED = frozenset({AnswerSource.MEMORY, AnswerSource.TWIN})
"""What hybrid retrieval finds: the person's items, and texts of the twin's nodes."""


def _without(
    found: AugmentedMemoryContext, barred: frozenset[AnswerSource], left_out: tuple[str, ...]
) -> AugmentedMemoryContext:
    def kept(items: tuple[ContextItem, ...]) -> tuple[ContextItem, ...]:
        return tuple(item for item in items if _source_of(item) not in barred and item.external_id not in left_out)

    return found.model_copy(update={"memory_units": kept(found.memory_units), "concepts": kept(found.concepts), "seeds": ()})


def _source_of(item: ContextItem) -> AnswerSource:
    return AnswerSource.TWIN if item.kind is ItemKind.NODE else AnswerSource.MEMORY
