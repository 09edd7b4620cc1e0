"""A turn while a loop works on it: journalled steps that are never made again, neighbours, and what it shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

from opentelemetry.trace import SpanKind

from phronesis_bus.tracing import Tracing
from phronesis_contracts import ServiceError
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import ToolOutcome, TurnProgress
from phronesis_contracts.outside import OutcomeUnknown

from ..agents.cognition.state import Cognition
from ..approvals.policy import ApprovalAnswers
from ..ledger.books import NO_BOOKS, Books, make_entry, sum_costs
from ..ledger.usage import CallUsage, admission
from ..metrics import INSTRUCTION_TOKENS, STAGE, STEP
from ..models.reasoner import Answer, CallFailed, ComposedReply, Fault, ModelSummary, RouteDecision, Value, current_call
from ..settings import OrchestratorSettings
from ..traces.record import MeasuredOutcome, TurnRecord, measure
from .ports import Journal, Neighbours
from .turn import AlreadyBegun, Claim

Kept = TypeVar("Kept")
current_step: ContextVar[str] = ContextVar("at_hand", default="")
"""Name of the journalled tool call at hand."""
_LOST = "the call was begun before and its answer was lost; whether it had its effect is not known"


class JournalAway(Exception):
    """The journal could not be written: the attempt is over, and the turn goes on where its journal stands.

    It is no `ServiceError`, so that no loop takes it for the failure of the call itself.
    """


class Steps:
    """The steps of one claimed turn."""

    def __init__(self, journal: Journal, claim: Claim, tracing: Tracing, books: Books = NO_BOOKS) -> None:
        self._books = books
        self._journal = journal
        self._claim = claim
        self._tracing = tracing
        self.spent = CallUsage()
        """What the model calls of the turn used, over all its attempts."""
        self._costs: list[float | None] = []

    @property
    def cost_usd(self) -> float | None:
        """What they cost; `None` where no model was asked, or the price of one is not known."""
        return sum_costs(self._costs)

    @property
    def known_usd(self) -> float:
        """What those cost whose price is known."""
        return sum(cost for cost in self._costs if cost is not None)

    def count(self, spent: CallUsage, cost_usd: float | None) -> None:
        """Count a model call of an earlier attempt that a step of another kind has kept."""
        self._count(spent, cost_usd)

    async def routed(self, name: str, call: Callable[[], Awaitable[Answer[RouteDecision]]]) -> Answer[RouteDecision]:
        """Make a router call, or read what it gave."""
        return await self.made(name, RouteDecision, call)

    async def composed(self, name: str, call: Callable[[], Awaitable[Answer[ComposedReply]]]) -> Answer[ComposedReply]:
        """Make a final call, or read what it gave."""
        return await self.made(name, ComposedReply, call)

    async def summarised(self, name: str, call: Callable[[], Awaitable[Answer[ModelSummary]]]) -> Answer[ModelSummary]:
        """Make a call for a summary, or read what it gave."""
        return await self.made(name, ModelSummary, call)

    async def called(
        self, name: str, tool: str, call: Callable[[], Awaitable[dict[str, Any]]], *, again: bool = True
    ) -> dict[str, Any]:
        """Call a tool, or read what it gave.

        Args:
            name: of the step, unique in the turn.
            tool: its name, for the measures.
            call: makes the call; what it gives must be JSON.
            again: whether it may be made again where an earlier attempt began it and its answer was lost; where it may not, the
                step ends with the problem `outcome_unknown`.
        """
        with measure(self._tracing, STEP, f"step {name}", tool) as outcome:
            begun = False
            try:
                known = await await_store(self._journal.intend(self._claim, name, {"call": tool}, once=not again))
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
            return result

    async def made(
        self, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]], *, label: str | None = None
    ) -> Answer[Value]:
        """Make a model call, or read what it gave.

        Args:
            name: of the step, unique in the turn.
            model: what its answer is.
            call: makes the call.
            label: what the measures call it, where names are too many for that.
        """
        with measure(self._tracing, STEP, f"step {name}", label or name) as outcome:
            known = await await_store(self._journal.intend(self._claim, name, {"call": name}))
            if known is None:
                began = perf_counter()
                try:
                    answer = await self._asked(name, call)
                except CallFailed as failed:
                    self._count(failed.spent, failed.cost_usd)
                    await self._lost(name, failed, began)
                    raise failed.error from failed
                spend = make_entry(name, answer, began)
                await await_store(self._journal.result(self._claim, name, _answer_to_json(answer), *([spend] if spend else [])))
                if spend:
                    self._books.used(self._claim, spend)
                outcome.name = "fault" if answer.fault else "ok"
            else:
                answer = _answer_from_json(model, known)
                outcome.name = "known"
        self._count(answer.spent, answer.cost_usd)
        return answer

    async def _asked(self, name: str, call: Callable[[], Awaitable[Answer[Value]]]) -> Answer[Value]:
        """Make a call by which the provider sees its step, and the limits its turn."""
        token, admitted = (
            current_call.set(f"{self._claim.turn_id}/{name}"),
            admission.set(lambda: self._books.admit(self._claim)),
        )
        try:
            return await call()
        finally:
            admission.reset(admitted)
            current_call.reset(token)

    async def _lost(self, name: str, failed: CallFailed, began: float) -> None:
        """Enter what a call used that gave nothing."""
        if spend := make_entry(name, failed, began):
            await await_store(self._books.spent(self._claim, spend))

    def _count(self, spent: CallUsage, cost_usd: float | None) -> None:
        self.spent = self.spent.plus(spent)
        if spent.model_calls:
            self._costs.append(cost_usd)


async def await_store(write: Awaitable[Kept]) -> Kept:
    """What the store of the turn answers. Raises `JournalAway` where it cannot."""
    try:
        return await write
    except ServiceError as error:
        raise JournalAway(error.code) from error


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


ShowProgress = Callable[[Claim, TurnProgress], Awaitable[None]]


@dataclass
class TurnRun:
    """A turn in the hands of a loop."""

    claim: Claim
    steps: Steps
    tracing: Tracing
    neighbours: Neighbours
    settings: OrchestratorSettings
    progress: ShowProgress
    degraded: list[str]
    instruction_tokens: int = 0
    """Tokens of the instructions that tools loaded (N-227)."""
    tools: list[ToolOutcome] = field(default_factory=list)
    """What came of the tool calls so far (V-136)."""
    tier: str | None = None
    """The tier that the message was given (V-012)."""
    approvals: ApprovalAnswers | None = None
    """Where people are asked; nobody can be where there is none."""
    record: TurnRecord = field(default_factory=TurnRecord)
    """How the answer comes about."""
    cognition: Cognition = field(default_factory=Cognition)

    def phase(self, name: str) -> AbstractContextManager[MeasuredOutcome]:
        """A span for one phase (D-009), its time (D-148), and its place in the record."""
        return self.record.staged(name, measure(self.tracing, STAGE, f"phase {name}", name.partition(" ")[2]))

    def degrade(self, part: str) -> None:
        """Mark the reply: it was made without `part`."""
        if part not in self.degraded:
            self.degraded.append(part)

    def instructions(self, tokens: int) -> None:
        """Count tokens of instructions that were loaded (N-227)."""
        self.instruction_tokens += tokens
        if tokens:
            self.tracing.metrics.observe(INSTRUCTION_TOKENS, tokens, self.claim.agent)

    async def show(self, phase: str, **detail: Any) -> None:
        """Show that a phase is done (D-131)."""
        self.record.note(detail)
        line = TurnProgress(
            turn_id=self.claim.turn_id,
            kind="phase",
            conversation_id=self.claim.conversation_id,
            phase=phase,
            detail=detail,
        )
        await self.progress(self.claim, line)

    async def retrieve(self, phrases: tuple[str, ...]) -> AugmentedMemoryContext:
        """Hybrid retrieval within its limit of time and size."""
        settings = self.settings
        named = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "knowledge"}
        with self.tracing.span("retrieval knowledge", kind=SpanKind.CLIENT, **named):
            return await self.neighbours.retrieve(self.claim.who, phrases, settings.memory_tokens, settings.retrieval_limit)
