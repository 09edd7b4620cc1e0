"""Decisions of a task, journalled and within its budget: plan, replanning, score."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic

from phronesis_bus.envelope import deadline
from phronesis_contracts import BudgetExceeded, ServiceError
from phronesis_contracts.orchestrator import Problem, TaskBudget

from ..ledger.usage import CallUsage
from ..models.reasoner import Answer, CallFailed, Fault, TurnContext, Value
from ..turns.execution import Steps
from ..turns.turn import Deferred, LostClaim
from .ports import (
    BadPlan,
    Criticism,
    GoalKnowledge,
    Plan,
    Planner,
    Remaining,
    Step,
    StepResult,
    Strategy,
    Verdict,
    WrittenReport,
    check_plan,
    drawn_from,
    names_of,
    rename_steps,
)

SPENT = BudgetExceeded.code
"""Code of the end of a task that its budget ended early."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class BudgetMeter:
    """The budget of one task, and what of it is used. `budget`: what may be used."""

    budget: TaskBudget
    steps: Steps
    begun: datetime
    now: Callable[[], datetime] = field(default=_now)
    calls: int = 0
    """Tool calls that were made, over all attempts."""
    waited: float = 0.0
    """Seconds for which the task waited for a person, a date, or what did not answer; they are not counted."""

    @property
    def left(self) -> float:
        return self.budget.seconds + self.waited - (self.now() - self.begun).total_seconds()

    def over(self) -> Problem | None:
        """The limit that is reached; `None` while there is room for a step."""
        spent = self.steps.spent
        tokens = spent.input_tokens + spent.output_tokens
        limits = (
            ("seconds", self.left <= 0),
            ("tokens", self.budget.tokens is not None and tokens >= self.budget.tokens and bool(tokens)),
            ("usd", self.budget.usd is not None and (self.steps.known_usd >= self.budget.usd > 0)),
        )
        return next((_problem(name) for name, reached in limits if reached), None)

    def model(self) -> Problem | None:
        """The limit that forbids a further call of a model."""
        return self.nothing() or self.over()

    def nothing(self) -> Problem | None:
        """The limit that forbids even the first call of a model."""
        if self.budget.tokens == 0 or self.budget.usd == 0:
            return _problem("tokens" if self.budget.tokens == 0 else "usd")
        return None

    def spent_calls(self) -> Problem | None:
        """The limit of tool calls, where it is reached."""
        return _problem("tool_calls") if self.calls >= self.budget.tool_calls else None

    def call(self) -> Problem | None:
        """Take one tool call from the budget; the limit that forbids it."""
        if limit := self.spent_calls():
            return limit
        self.calls += 1
        return None


def _problem(name: str) -> Problem:
    return Problem(
        code=SPENT, status=BudgetExceeded.status, detail=f"the task's budget is spent: {name}", field=f"budget.{name}"
    )


log = logging.getLogger(__name__)


_SAID = 8_000
"""Characters of a faulty answer that its repair is shown."""


@dataclass(frozen=True)
class Decision(Generic[Value]):
    """What was decided, or why nothing was."""

    value: Value | None
    why: str = ""
    """Code of what went wrong; empty where nothing did."""
    detail: str = ""
    """The same in words."""
    fault: Fault | None = None
    """What a model said in place of an answer."""


@dataclass
class _Used:
    """What one call used."""

    spent: CallUsage
    cost_usd: float | None = None


async def decide(steps: Steps, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]]) -> Decision[Value]:
    """Make a decision, or read what it was. Whatever goes wrong with it is its outcome, and is journalled.

    Args:
        call: asks a model, which has limits of its own, or rules.
    """
    fresh = False

    async def make() -> dict[str, Any]:
        nonlocal fresh
        fresh = True
        return await _try_call(steps, name, model, call)

    found = await steps.called(name, step_purpose(name), make)
    if not fresh:
        steps.count(CallUsage.model_validate(found["spent"]), found["cost_usd"])
    value = model.model_validate(found["value"]) if found["value"] is not None else None
    detail, said = found.get("detail", ""), found.get("said")
    return Decision(value, found["why"], detail, Fault(said, detail) if said is not None else None)


def step_purpose(name: str) -> str:
    """What a decision's step is called in the measures: `task.evaluate` of `task.evaluate.2`."""
    head, _, last = name.rpartition(".")
    return head if last.isdigit() else name


async def _try_call(
    steps: Steps, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]]
) -> dict[str, Any]:
    used = _Used(CallUsage())
    value: Value | None = None
    detail, said = "", None
    try:
        answer = await steps.made(f"{name}.call", model, lambda: _noting_spent(call, used), label=f"{step_purpose(name)}.call")
        used.spent, used.cost_usd = answer.spent, answer.cost_usd
        value, why = answer.value, "" if answer.value is not None else "unreadable"
        if answer.fault is not None:
            detail, said = answer.fault.wrong, answer.fault.said[:_SAID]
    except (Deferred, LostClaim):
        raise  # the attempt is over, and nothing is decided
    except ServiceError as error:
        why, detail = error.code, error.detail
    except Exception as error:
        # A stage that only improves a task may not end it; what broke stands in the log.
        log.exception("the decision %s broke", name)
        why = type(error).__name__
    if why:
        log.warning("the decision %s could not be made: %s", name, why)
    payload = value.model_dump(mode="json") if value is not None else None
    told = {"value": payload, "why": why, "detail": detail, "said": said}
    return {**told, "spent": used.spent.model_dump(), "cost_usd": used.cost_usd}


async def _noting_spent(call: Callable[[], Awaitable[Answer[Value]]], used: _Used) -> Answer[Value]:
    try:
        return await call()
    except CallFailed as failed:
        used.spent, used.cost_usd = failed.spent, failed.cost_usd
        raise


ENOUGH_RESULTS = 3
"""Results of the whole task from which on a boundary without a failure is looked at."""
MAX_EVALUATIONS = 3
"""Evaluations of one task."""


@dataclass
class Replanner:
    """The boundaries of one task. `planner`: who evaluates and decomposes; nobody does where rules plan."""

    steps: Steps
    context: TurnContext
    planner: Planner | None
    meter: BudgetMeter
    evaluations: int = 0
    asked: bool = False
    """Set when the decomposer is asked, whatever it answers."""
    adjusted: bool = False

    async def replan_between_waves(self, last: int, known: GoalKnowledge, failures: Sequence[StepResult]) -> Remaining:
        """What is to be done behind a wave: as it stands, or a new tail."""
        remaining = known.remaining
        if not self._worth(known, failures):
            return remaining
        assert self.planner is not None, "without a planner no boundary is worth looking at"
        planner = self.planner
        self.evaluations += 1
        name = f"task.evaluate.{last}"
        verdict = await decide(self.steps, name, Verdict, lambda: planner.evaluate(self.context, known))
        if verdict.value is None or not verdict.value.revise or self.meter.model():
            return remaining
        self.asked = True
        made = await decide(self.steps, "task.replan", Plan, lambda: planner.decompose(self.context, known))
        return self._taken(made.value, last, known) if made.value is not None else remaining

    def _worth(self, known: GoalKnowledge, failures: Sequence[StepResult]) -> bool:
        """Whether a boundary is looked at: only with a successor, a reason and room for it."""
        if not known.remaining or self.planner is None:
            return False
        if self.asked or self.evaluations >= MAX_EVALUATIONS or self.meter.model():
            return False
        return bool(failures) or len(known.worked) >= ENOUGH_RESULTS

    def _taken(self, plan: Plan, last: int, known: GoalKnowledge) -> Remaining:
        made = (*known.worked, *known.failed, *known.left_out)
        taken = [name for result in made for name in names_of(result.step)]
        try:
            tail = rename_steps(plan, [*taken, *(name for step in known.remaining for name in names_of(step))])
            worked = [result.step for result in known.worked]
            sound = check_plan(tail, known.tools, worked, contracts=known.contracts)
        except BadPlan as wrong:
            log.warning("a new plan is no good, the old one stays: %s", wrong)
            return known.remaining
        found = tuple(step.model_copy(update={"wave": step.wave + last}) for step in sound.steps)
        if _does_the_same(found, known.remaining):
            return known.remaining
        self.adjusted = True
        log.info("Adjusting plan: %d steps in place of %d behind wave %d", len(found), len(known.remaining), last)
        return found


def _does_the_same(new: Remaining, old: Remaining) -> bool:
    return [_step_content(step) for step in new] == [_step_content(step) for step in old]


def _step_content(step: Step) -> tuple[object, ...]:
    return step.description, step.tool, step.question, step.arguments, step.each, step.when


_SHARE = 0.5
"""The share of the time left that making a plan may take of a model: the rest is for working it off."""


def _checked(plan: Plan, known: GoalKnowledge) -> Plan:
    return check_plan(plan, known.tools, works=True, contracts=known.contracts)


_UNFIT = "the plan for this goal cannot be worked off"


def kept_plan(known: GoalKnowledge) -> Plan | None:
    """The plan that worked for a goal of the same words; `None` where there is none, or it is no good any more."""
    if known.template is None:
        return None
    try:
        return shorten_plan(_checked(known.template, known), known.strategies)
    except BadPlan as wrong:
        log.warning("a plan that worked before is no good any more: %s", wrong)
        return None


async def make_plan(
    steps: Steps, context: TurnContext, planner: Planner, known: GoalKnowledge, meter: BudgetMeter | None = None
) -> Plan | str:
    """The first plan of a model, or why there is none. What is wrong with one is told it once.

    Args:
        meter: the task's budget; at most half of the time that is left passes with the model.
    """
    due = min(deadline.get() or math.inf, time.time() + meter.left * _SHARE if meter is not None else math.inf)

    async def ask(told: GoalKnowledge) -> Answer[Plan]:
        token = deadline.set(due if due < math.inf else None)
        try:
            answer = await planner.decompose(context, told)
        finally:
            deadline.reset(token)
        if answer.value is None:
            return answer
        try:
            return replace(answer, value=_checked(answer.value, told))
        except BadPlan as wrong:
            log.warning("a plan is no good: %s", wrong)
            said = answer.value.model_dump_json(exclude_defaults=True)
            return replace(answer, value=None, fault=Fault(said, f"{_UNFIT}: {wrong}"))

    made = await decide(steps, "task.plan", Plan, lambda: ask(known))
    plan, why = made.value, made.detail
    if made.fault is not None and (meter is None or meter.model() is None):
        refused = replace(known, refused=made.fault)
        plan = (await decide(steps, "task.plan.repair", Plan, lambda: ask(refused))).value
    return shorten_plan(plan, known.strategies) if plan is not None else why


def shorten_plan(plan: Plan, strategies: tuple[Strategy, ...]) -> Plan:
    """A plan without the looking around that a strategy which worked did without.

    Steps that are optional are left out where no strategy used their tool; a plan that would be empty stays.
    """
    if not strategies:
        return plan
    used = {tool for strategy in strategies for tool in strategy.tools_used}
    drawn = {id for step in plan.steps for id in drawn_from(step)}
    spare = (step for step in plan.steps if step.optional and step.tool is not None and step.id not in drawn)
    gone = {step.id for step in spare if step.tool not in used}
    kept = [step for step in plan.steps if step.id not in gone]
    if not kept or not gone:
        return plan
    freed = tuple(step.model_copy(update={"depends": tuple(id for id in step.depends if id not in gone)}) for step in kept)
    waves = {wave: number for number, wave in enumerate(sorted({step.wave for step in freed}), 1)}
    return plan.model_copy(update={"steps": tuple(step.model_copy(update={"wave": waves[step.wave]}) for step in freed)})


GOOD = 0.75
"""The score from which on a task's approach is kept."""


def is_good(score: float | None) -> bool:
    """Whether a score counts as successful: no score, and what is no number from 0 to 1, does not."""
    return score is not None and not math.isnan(score) and GOOD <= score <= 1


async def validate_task(
    steps: Steps,
    context: TurnContext,
    planner: Planner | None,
    known: GoalKnowledge,
    written: WrittenReport,
    allowed: Criticism,
) -> float | None:
    """How well the task met its goal; `None` where nobody can say.

    Args:
        planner: the model that is asked; nobody is where it is `None`.
        allowed: what the evidence allows, above which nothing is believed.
    """

    async def make() -> Answer[Criticism]:
        if planner is None:
            return Answer(allowed)
        answer = await planner.criticise(context, known, written)
        return replace(answer, value=lower_of(answer.value, allowed) if answer.value is not None else None)

    found = await decide(steps, "task.critic", Criticism, make)
    return found.value.score if found.value is not None else None


def lower_of(asked: Criticism, allowed: Criticism) -> Criticism:
    """What a critic says, never above what the evidence allows. No score stays none."""
    if asked.score is None or allowed.score is None or asked.score <= allowed.score:
        return asked
    return Criticism(score=allowed.score, reason="; ".join(part for part in (asked.reason, allowed.reason) if part)[:2_000])
