"""Running a background task: its waves, its steps, what is seen of it meanwhile, and its end."""

from __future__ import annotations

import asyncio
import logging
import time
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
    Caller,
    GoalKnowledge,
    Plan,
    Planner,
    Remaining,
    Step,
    StepResult,
    TaskStates,
    ToolResult,
    missing_needs,
    next_wave,
)
from .report import describe_found


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
        await self._running.show(
            "step_finished",
            step=ended.id,
            description=ended.description,
            state=ended.state.value,
            ms=ended.ms,
            code=ended.code,
            found=ended.found,
        )

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
    found = describe_found(outcome)
    return _planned_step(result.step).model_copy(update={"state": state, "code": outcome.code, "ms": result.ms, "found": found})


NEEDED = "task.needed_failed"
"""Code of a step that was not made since what it needs failed."""
SKIPS = frozenset({NEEDED, SPENT})

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
    ) -> None:
        self._running, self._context, self._caller, self._inquirer, self._offered = running, context, caller, inquirer, offered
        self._meter, self._board, self._journalled = meter, board, journalled
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
            failures = [result for result in results if not result.outcome.ok]
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
        well = {result.step.id for result in done if result.outcome.ok}
        admitted = [(step, self._unmade(step, well)) for step in wave]
        made = await asyncio.gather(*(self._step(step, refusal) for step, refusal in admitted), return_exceptions=True)
        if errors := [one for one in made if isinstance(one, BaseException)]:
            # The claim or the journal is gone, or the task waits for a person: what the others gave is journalled.
            raise next((one for one in errors if not isinstance(one, Waiting)), errors[0])
        await self._board.wave_ended(number)
        return [one for one in made if isinstance(one, StepResult)]

    def _unmade(self, step: Step, well: set[str]) -> ToolResult | None:
        """Why a step is not made; calls are taken from the budget in the order of the plan, whoever works on it."""
        if missing := missing_needs(step, well):
            return ToolResult(False, f"it needs {', '.join(missing)}", code=NEEDED)
        if step.tool is None:
            return None
        limit = self._meter.call()
        return ToolResult(False, limit.detail, code=limit.code) if limit is not None else None

    async def _step(self, step: Step, refusal: ToolResult | None) -> StepResult:
        began = time.perf_counter()
        outcome = refusal or await self._made(step)
        result = StepResult(step, outcome, round((time.perf_counter() - began) * 1000))
        await self._board.step(result)
        return result

    async def _made(self, step: Step) -> ToolResult:
        if step.tool is not None:
            return await self._caller.call(f"task.step.{step.id}", step.tool, step.arguments)
        if self._inquirer is None:
            return ToolResult(False, "nobody can work on it", code="task.no_model")
        steps = self._running.steps
        return await work_on_step(steps, self._caller, self._meter, self._inquirer, self._context, step, self._offered)

    def _was_made(self, wave: Remaining) -> bool:
        """Whether an earlier attempt began this wave and has results of it, which are then told though the time is up."""
        return any(f"task.step.{step.id}" in self._journalled for step in wave)


def _knowledge_after(known: GoalKnowledge, done: list[StepResult], remaining: Remaining) -> GoalKnowledge:
    return replace(
        known,
        worked=tuple(result for result in done if result.outcome.ok),
        failed=tuple(result for result in done if not result.outcome.ok),
        remaining=remaining,
    )


def _limit_problem(done: list[StepResult], meter: BudgetMeter) -> Problem | None:
    if any(result.outcome.code == SPENT for result in done):
        return meter.over() or meter.spent_calls()
    return None
