"""Running a background task: its waves, its steps, what is seen of it meanwhile, and its end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import from_json

from phronesis_contracts import ServiceError
from phronesis_contracts.orchestrator import Problem
from phronesis_contracts.tasks import StepState, TaskState, TaskStep

from ..approvals.policy import Waiting
from ..models.prompts import new_mark
from ..models.reasoner import CallResult, Inquirer, Inquiry, Move, TurnContext
from ..turns.execution import Steps, TurnRun
from .decisions import SPENT, BudgetMeter, Replanner
from .ports import (
    Ask,
    Caller,
    GoalKnowledge,
    NoValue,
    Plan,
    Planner,
    Remaining,
    Step,
    StepResult,
    TaskStates,
    ToolResult,
    drawn_from,
    fill_placeholders,
    holds,
    look_up,
    missing_needs,
    next_wave,
)


class ProgressBoard:
    """Shows how far one task is. `states`: where the state is kept."""

    def __init__(self, running: TurnRun, states: TaskStates) -> None:
        self._running = running
        self._states = states
        self._steps: dict[str, TaskStep] = {}
        self.state = TaskState()

    async def planned(self, plan: Plan, strategies: tuple[str, ...]) -> None:
        self._steps = {step.id: _planned_step(step) for step in plan.steps}
        await self.update(strategies=strategies)
        waves = self.state.waves
        await self._running.show("plan", waves=waves, steps=[f"{step.wave}. {step.description}" for step in plan.steps])

    async def adjusted(self, left: tuple[Step, ...]) -> None:
        """What is left to do was changed."""
        begun = {id: one for id, one in self._steps.items() if one.state is not StepState.PENDING}
        self._steps = begun | {step.id: _planned_step(step) for step in left}
        await self.update()
        await self._running.show("plan_adjusted", steps=[f"{step.wave}. {step.description}" for step in left])

    async def wave(self, number: int, steps: tuple[Step, ...]) -> None:
        for step in steps:
            self._steps[step.id] = _planned_step(step).model_copy(update={"state": StepState.RUNNING})
        await self.update()
        await self._running.show("wave_started", wave=number, steps=[step.id for step in steps])

    async def step(self, result: StepResult) -> None:
        ended = _ended_step(result)
        self._steps[result.step.id] = ended
        await self._running.show("step_finished", step=ended.id, state=ended.state.value, ms=ended.ms, code=ended.code)

    async def wave_ended(self, number: int) -> None:
        await self.update()
        await self._running.show("wave_finished", wave=number)

    async def left_out(self, steps: tuple[Step, ...], code: str) -> None:
        """Steps that are not made any more."""
        for step in steps:
            self._steps[step.id] = _planned_step(step).model_copy(update={"state": StepState.SKIPPED, "code": code})
        await self.update()

    async def update(self, **more: Any) -> None:
        """Keep the state, with what is new of it."""
        steps = tuple(self._steps.values())
        waves = max((step.wave for step in steps), default=0)
        self.state = self.state.model_copy(update={"steps": steps, "waves": waves, **more})
        await self._states.keep_state(self._running.claim, self.state)


def _planned_step(step: Step) -> TaskStep:
    return TaskStep(id=step.id, wave=step.wave, description=step.description, tool=step.tool, depends=step.depends)


def _ended_step(result: StepResult) -> TaskStep:
    outcome = result.outcome
    skipped = outcome.code in SKIPS
    state = StepState.DONE if outcome.ok else StepState.SKIPPED if skipped else StepState.FAILED
    return _planned_step(result.step).model_copy(update={"state": state, "code": outcome.code, "ms": result.ms})


NEEDED = "task.needed_failed"
"""Code of a step that was not made since what it needs failed."""
CONDITION = "task.condition"
"""Code of a step that was not made since its condition does not hold, or that draws from such a step."""
NO_VALUE = "task.no_value"
"""Code of a step whose placeholders gave nothing, so that no call was made."""
TOO_MANY = "task.too_many_items"
"""Code of a step with more items than its limit, so that no call was made."""
CHANGED = "task.changed"
"""Code of a step that a second attempt found with other items than the first one began to go through."""
SKIPS = frozenset({NEEDED, CONDITION, SPENT})

MAX_ROUNDS = 6
"""Rounds of one step, the answer counted in."""
MAX_OF_ROUND = 4
"""Calls of one round that are made."""


async def work_on_step(
    steps: Steps,
    caller: Caller,
    meter: BudgetMeter,
    reasoner: Inquirer,
    context: TurnContext,
    step: Step,
    offered: tuple[Any, ...],
) -> ToolResult:
    """What a step gave."""
    step_context = replace(context, user_text=step.description, final_input=step.description)
    inquiry = Inquiry("task", step.description, offered, new_mark(step_context))
    tools: list[str] = []
    for number in range(1, MAX_ROUNDS + 1):
        inquiry.closing = number == MAX_ROUNDS
        if limit := meter.model():
            return ToolResult(False, limit.detail, code=limit.code, tools=tuple(tools))
        name = f"task.step.{step.id}.round.{number}"
        try:
            move = (await steps.made(name, Move, lambda: reasoner.proceed(step_context, inquiry), label="task.round")).value
        except ServiceError as error:
            return ToolResult(False, error.detail, code=error.code, tools=tuple(tools))
        if move is None or not move.calls or inquiry.closing:
            text = move.text.strip() if move is not None else ""
            return ToolResult(bool(text), text, {"text": text}, None if text else "no_answer", tuple(tools))
        results = await _call_tools(caller, meter, step, number, move)
        tools += [call.name for call in move.calls[:MAX_OF_ROUND]]
        inquiry.rounds.append((move.model_copy(update={"calls": move.calls[:MAX_OF_ROUND]}), results))
    raise AssertionError("the last round closes")


async def _call_tools(caller: Caller, meter: BudgetMeter, step: Step, number: int, move: Move) -> tuple[CallResult, ...]:
    results = []
    for at, call in enumerate(move.calls[:MAX_OF_ROUND], 1):
        if limit := meter.call():
            results.append(CallResult(call, limit.detail, "note"))
            continue
        outcome = await caller.call(f"task.step.{step.id}.call.{number}.{at}", call.name, _arguments(call.arguments))
        results.append(CallResult(call, outcome.text, "rows" if outcome.ok else "note"))
    return tuple(results)


def _arguments(text: str) -> dict[str, Any]:
    try:
        given = from_json(text or "{}", allow_inf_nan=False)
    except ValueError:
        return {"": text[:200]}
    return given if isinstance(given, dict) else {"": text[:200]}


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WavesResult:
    """What the waves of a task gave."""

    known: GoalKnowledge
    """With all results."""
    skipped: tuple[Step, ...]
    stopped: Problem | None
    """The limit that ended it before its plan did."""
    plan: Plan
    """The steps that were made."""


class TaskRunner:
    """Works off one plan.

    Args:
        planner: who looks up between the waves; nobody where rules plan.
        inquirer: who works on steps without a tool.
        board: where it is seen how far the task is.
        journalled: names of the steps that have a result already: they cost nothing of the budget again.
        ask: answers the questions of steps; nobody does where it is `None`.
    """

    def __init__(
        self,
        running: TurnRun,
        context: TurnContext,
        caller: Caller,
        planner: Planner | None,
        inquirer: Inquirer | None,
        offered: tuple[Any, ...],
        meter: BudgetMeter,
        board: ProgressBoard,
        journalled: frozenset[str],
        ask: Ask | None = None,
    ) -> None:
        self._running, self._context, self._caller, self._inquirer, self._offered = running, context, caller, inquirer, offered
        self._meter, self._board, self._journalled, self._ask = meter, board, journalled, ask
        self.replanning = Replanner(running.steps, context, planner, meter)

    async def run(self, plan: Plan, known: GoalKnowledge) -> WavesResult:
        """Work the plan off, or as much of it as the budget allows."""
        remaining: Remaining = plan.steps
        done: list[StepResult] = []
        stopped: Problem | None = None
        while remaining:
            wave, rest = next_wave(remaining)
            stopped = self._meter.over()
            if stopped is not None and not self._was_made(wave):
                break
            stopped = None
            results = await self._wave(wave, done)
            done += results
            now = _knowledge_after(known, done, rest)
            failures = [result for result in results if has_failed(result)]
            remaining = await self.replanning.replan_between_waves(wave[0].wave, now, failures) if rest else rest
            if remaining != rest:
                await self._board.adjusted(remaining)
        if remaining and stopped is not None:
            await self._board.left_out(remaining, stopped.code)
        stopped = stopped or _limit_problem(done, self._meter)
        made = plan.model_copy(update={"steps": tuple(result.step for result in done)})
        return WavesResult(_knowledge_after(known, done, ()), tuple(remaining), stopped, made)

    async def _wave(self, wave: Remaining, done: list[StepResult]) -> list[StepResult]:
        number = wave[0].wave
        await self._board.wave(number, wave)
        admitted = [(step, self._admit(step, done)) for step in wave]
        made = await asyncio.gather(*(self._step(step, calls) for step, calls in admitted), return_exceptions=True)
        if errors := [one for one in made if isinstance(one, BaseException)]:
            # The claim or the journal is gone, or the task waits for a person: what the others gave is journalled.
            raise next((one for one in errors if not isinstance(one, Waiting)), errors[0])
        await self._board.wave_ended(number)
        return [one for one in made if isinstance(one, StepResult)]

    def _admit(self, step: Step, done: Sequence[StepResult]) -> Calls | ToolResult:
        """The calls of a step, or why it is not made. They are taken from the budget in the order of the plan, whoever works
        on it.
        """
        passed = {result.step.id for result in done if result.outcome.code == CONDITION}
        results = {result.step.id: result.outcome.answer for result in done if result.outcome.ok}
        if missing := missing_needs(step, {*results, *passed}):
            return ToolResult(False, f"it needs {', '.join(missing)}", code=NEEDED)
        if left_out := [id for id in drawn_from(step) if id in passed]:
            return ToolResult(False, f"it draws from {', '.join(left_out)}, which was not made", code=CONDITION)
        try:
            if step.when is not None and not holds(step.when, results):
                return ToolResult(False, "its condition does not hold", code=CONDITION)
            calls = plan_calls(step, results)
        except NoValue as error:
            return ToolResult(False, str(error), code=NO_VALUE)
        if isinstance(calls, ToolResult) or (step.tool is None and step.question is None):
            return calls
        return Calls([replace(call, limit=self._meter.call()) for call in calls.made])

    async def _step(self, step: Step, calls: Calls | ToolResult) -> StepResult:
        began = time.perf_counter()
        outcome = calls if isinstance(calls, ToolResult) else await self._made(step, calls)
        result = StepResult(step, outcome, round((time.perf_counter() - began) * 1000))
        await self._board.step(result)
        return result

    async def _made(self, step: Step, calls: Calls) -> ToolResult:
        if step.tool is None and step.question is None:
            if self._inquirer is None:
                return ToolResult(False, "nobody can work on it", code="task.no_model")
            steps = self._running.steps
            return await work_on_step(steps, self._caller, self._meter, self._inquirer, self._context, step, self._offered)
        if step.each is None:
            return await self._call(f"task.step.{step.id}", step, calls.made[0])
        return await self._each(step, calls)

    async def _call(self, name: str, step: Step, call: StepCall) -> ToolResult:
        if call.limit is not None:
            return ToolResult(False, call.limit.detail, code=call.limit.code)
        if step.tool is not None:
            return await self._caller.call(name, step.tool, call.arguments)
        if self._ask is None:
            return ToolResult(False, "nobody can answer it", code="task.no_answer")
        return await self._ask(name, call.question)

    async def _each(self, step: Step, calls: Calls) -> ToolResult:
        """One call after the other, so that whoever takes the task over finds each under the number that it had."""
        name = f"task.step.{step.id}"
        stated = [[call.arguments, call.question] for call in calls.made]
        digest = hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

        async def begin() -> dict[str, Any]:
            return {"digest": digest}

        if (await self._running.steps.called(f"{name}.items", "task.items", begin))["digest"] != digest:
            return ToolResult(False, "what it goes through has changed since it began", code=CHANGED)
        return join_results([await self._call(f"{name}.{at}", step, call) for at, call in enumerate(calls.made, 1)])

    def _was_made(self, wave: Remaining) -> bool:
        """Whether an earlier attempt began this wave and has results of it, which are then told though the time is up."""
        names = {f"task.step.{step.id}" for step in wave}
        return bool(names & self._journalled) or any(
            known.startswith(f"{name}.") for name in names for known in self._journalled
        )


@dataclass(frozen=True)
class StepCall:
    """One call of a step, its placeholders replaced."""

    arguments: dict[str, Any]
    question: str = ""
    limit: Problem | None = None
    """The limit of the budget that forbids it."""


@dataclass(frozen=True)
class Calls:
    """The calls of a step, in their order."""

    made: Sequence[StepCall]


def plan_calls(step: Step, results: Mapping[str, Any]) -> Calls | ToolResult:
    """The calls of a step: one, or one for each of its items; or why there are none.

    Args:
        results: what the steps that ended well gave, by their ids.

    Raises:
        NoValue: a placeholder gives nothing, or what is to be gone through is no list.
    """
    if step.each is None:
        return Calls([_filled(step, results)])
    items = look_up(step.each.path, results.get(step.each.of))
    if not isinstance(items, list):
        raise NoValue(f"{step.each.of} has no list at {step.each.path!r}")
    if len(items) > step.each.limit:
        return ToolResult(False, f"there are {len(items)} items, and it goes through {step.each.limit}", code=TOO_MANY)
    return Calls([_filled(step, results, item) for item in items])


def _filled(step: Step, results: Mapping[str, Any], item: Any = None) -> StepCall:
    return StepCall(fill_placeholders(step.arguments, results, item), fill_placeholders(step.question or "", results, item))


def join_results(outcomes: Sequence[ToolResult]) -> ToolResult:
    """What the calls of one step gave together: it went well where all did. Where some failed, the others still count."""
    failed = [(at, one) for at, one in enumerate(outcomes, 1) if not one.ok]
    told = [one.text for one in outcomes if one.ok]
    if failed:
        told += [f"{len(failed)} of {len(outcomes)} failed:", *(f"{at}. {one.code}: {one.text}" for at, one in failed)]
    tools = tuple(dict.fromkeys(tool for one in outcomes for tool in one.tools))
    given = {"items": [one.answer for one in outcomes if one.ok]}
    return ToolResult(not failed, "\n".join(told), given, failed[0][1].code if failed else None, tools)


def has_failed(result: StepResult) -> bool:
    """Whether a step did not do what the plan wants: one whose condition does not hold is rightly left out."""
    return not result.outcome.ok and result.outcome.code != CONDITION


def _knowledge_after(known: GoalKnowledge, done: list[StepResult], remaining: Remaining) -> GoalKnowledge:
    return replace(
        known,
        worked=tuple(result for result in done if result.outcome.ok),
        failed=tuple(filter(has_failed, done)),
        left_out=tuple(result for result in done if result.outcome.code == CONDITION),
        remaining=remaining,
    )


def _limit_problem(done: list[StepResult], meter: BudgetMeter) -> Problem | None:
    if any(result.outcome.code == SPENT for result in done):
        return meter.over() or meter.spent_calls()
    return None
