"""What is seen of a task while it runs: its state in the store, and its events."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.tasks import StepState, TaskState, TaskStep

from ..running import Running
from .plan import Plan, Step
from .ports import StepResult, TaskStates


class Board:
    """Shows how far one task is.

    Args:
        running: its turn, which shows the events (V-171).
        states: where the state is kept.
    """

    def __init__(self, running: Running, states: TaskStates) -> None:
        self._running = running
        self._states = states
        self._steps: dict[str, TaskStep] = {}
        self.state = TaskState()

    async def planned(self, plan: Plan, strategies: tuple[str, ...]) -> None:
        """There is a plan."""
        self._steps = {step.id: _told(step) for step in plan.steps}
        await self.update(strategies=strategies)
        waves = self.state.waves
        await self._running.show("plan", waves=waves, steps=[f"{step.wave}. {step.description}" for step in plan.steps])

    async def adjusted(self, left: tuple[Step, ...]) -> None:
        """What is left to do was changed (V-037)."""
        begun = {id: one for id, one in self._steps.items() if one.state is not StepState.PENDING}
        self._steps = begun | {step.id: _told(step) for step in left}
        await self.update()
        await self._running.show("plan_adjusted", steps=[f"{step.wave}. {step.description}" for step in left])

    async def wave(self, number: int, steps: tuple[Step, ...]) -> None:
        """A wave begins."""
        for step in steps:
            self._steps[step.id] = _told(step).model_copy(update={"state": StepState.RUNNING})
        await self.update()
        await self._running.show("wave_started", wave=number, steps=[step.id for step in steps])

    async def step(self, result: StepResult) -> None:
        """A step has ended."""
        told = _ended(result)
        self._steps[result.step.id] = told
        await self._running.show("step_finished", step=told.id, state=told.state.value, ms=told.ms, code=told.code)

    async def wave_ended(self, number: int) -> None:
        """A wave has ended."""
        await self.update()
        await self._running.show("wave_finished", wave=number)

    async def left_out(self, steps: tuple[Step, ...], code: str) -> None:
        """Steps that are not made any more."""
        for step in steps:
            self._steps[step.id] = _told(step).model_copy(update={"state": StepState.SKIPPED, "code": code})
        await self.update()

    async def update(self, **more: Any) -> None:
        """Keep the state, with what is new of it."""
        steps = tuple(self._steps.values())
        waves = max((step.wave for step in steps), default=0)
        self.state = self.state.model_copy(update={"steps": steps, "waves": waves, **more})
        await self._states.keep_state(self._running.claim, self.state)


def _told(step: Step) -> TaskStep:
    return TaskStep(id=step.id, wave=step.wave, description=step.description, tool=step.tool, depends=step.depends)


def _ended(result: StepResult) -> TaskStep:
    outcome = result.outcome
    skipped = outcome.code in SKIPS
    state = StepState.DONE if outcome.ok else StepState.SKIPPED if skipped else StepState.FAILED
    return _told(result.step).model_copy(update={"state": state, "code": outcome.code, "ms": result.ms})


NEEDED = "task.needed_failed"
"""Code of a step that was not made since what it needs failed."""
SKIPS = frozenset({NEEDED, "task.budget_spent"})
