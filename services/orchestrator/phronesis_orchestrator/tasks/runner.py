"""Running a background task: its waves one after the other, its end, and what is learnt from it (V-019 to V-047)."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import Any

from phronesis_contracts.orchestrator import Problem

from ..inquiry import Inquirer
from ..policy.waiting import Waiting
from ..reasoner import TurnContext
from ..running import Running
from .board import NEEDED, Board
from .budget import Meter
from .plan import Plan, Step
from .ports import Caller, Known, Outcome, Planner, StepResult
from .replan import Replanning
from .waves import Remaining, lacking, next_wave
from .work import worked

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Worked:
    """What the waves of a task gave."""

    known: Known
    """With all results."""
    skipped: tuple[Step, ...]
    stopped: Problem | None
    """The limit that ended it before its plan did."""
    plan: Plan
    """The steps that were made."""


class TaskRunner:
    """Works off one plan.

    Args:
        running: the turn.
        context: what the model is told of it.
        caller: calls the tools.
        planner: who looks up between the waves; nobody where rules plan.
        inquirer: who works on steps without a tool.
        offered: the tools as such a model takes them.
        meter: the budget.
        board: where it is seen how far the task is.
        journalled: names of the steps that have a result already: they cost nothing of the budget again.
    """

    def __init__(
        self,
        running: Running,
        context: TurnContext,
        caller: Caller,
        planner: Planner | None,
        inquirer: Inquirer | None,
        offered: tuple[Any, ...],
        meter: Meter,
        board: Board,
        journalled: frozenset[str],
    ) -> None:
        self._running = running
        self._context = context
        self._caller = caller
        self._inquirer = inquirer
        self._offered = offered
        self._meter = meter
        self._board = board
        self._journalled = journalled
        self.replanning = Replanning(running.steps, context, planner, meter)

    async def run(self, plan: Plan, known: Known) -> Worked:
        """Work the plan off, or as much of it as the budget allows.

        Args:
            plan: the first one.
            known: what it was made with.
        """
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
            now = _with(known, done, rest)
            failures = [result for result in results if not result.outcome.ok]
            remaining = await self.replanning.replan_between_waves(wave[0].wave, now, failures) if rest else rest
            if remaining != rest:
                await self._board.adjusted(remaining)
        if remaining and stopped is not None:
            await self._board.left_out(remaining, stopped.code)
        stopped = stopped or _limit(done, self._meter)
        made = plan.model_copy(update={"steps": tuple(result.step for result in done)})
        return Worked(_with(known, done, ()), tuple(remaining), stopped, made)

    async def _wave(self, wave: Remaining, done: list[StepResult]) -> list[StepResult]:
        """The steps of one wave side by side; one that fails stops no other (V-020)."""
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

    def _unmade(self, step: Step, well: set[str]) -> Outcome | None:
        """Why a step is not made; calls are taken from the budget in the order of the plan, whoever works on it."""
        if missing := lacking(step, well):
            return Outcome(False, f"it needs {', '.join(missing)}", code=NEEDED)
        if step.tool is None:
            return None
        limit = self._meter.call()
        return Outcome(False, limit.detail, code=limit.code) if limit is not None else None

    async def _step(self, step: Step, refusal: Outcome | None) -> StepResult:
        began = time.perf_counter()
        outcome = refusal or await self._made(step)
        result = StepResult(step, outcome, round((time.perf_counter() - began) * 1000))
        await self._board.step(result)
        return result

    async def _made(self, step: Step) -> Outcome:
        if step.tool is not None:
            return await self._caller.call(f"task.step.{step.id}", step.tool, step.arguments)
        if self._inquirer is None:
            return Outcome(False, "nobody can work on it", code="task.no_model")
        steps = self._running.steps
        return await worked(steps, self._caller, self._meter, self._inquirer, self._context, step, self._offered)

    def _was_made(self, wave: Remaining) -> bool:
        """Whether an earlier attempt began this wave and has results of it, which are then told though the time is up."""
        return any(f"task.step.{step.id}" in self._journalled for step in wave)


def _with(known: Known, done: list[StepResult], remaining: Remaining) -> Known:
    return replace(
        known,
        worked=tuple(result for result in done if result.outcome.ok),
        failed=tuple(result for result in done if not result.outcome.ok),
        remaining=remaining,
    )


def _limit(done: list[StepResult], meter: Meter) -> Problem | None:
    """The limit that steps inside the waves ran into."""
    if any(result.outcome.code == "task.budget_spent" for result in done):
        return meter.over() or meter.spent_calls()
    return None
