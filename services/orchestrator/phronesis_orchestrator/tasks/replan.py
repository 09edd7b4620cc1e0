"""Looking up between waves: whether what is left still makes sense, and the one new plan that a task may have (V-022)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ..reasoner import TurnContext
from ..steps import Steps
from .budget import Meter
from .deciding import decided
from .plan import BadPlan, Plan, Step, checked
from .ports import Known, Planner, StepResult, Verdict
from .waves import Remaining, renamed

log = logging.getLogger(__name__)

ENOUGH_RESULTS = 3
"""Results of the whole task from which on a boundary without a failure is looked at (V-024, V-C06)."""
MAX_EVALUATIONS = 3
"""Evaluations of one task (V-C07)."""
EVALUATION = 3.0
"""Seconds that an evaluation may take (V-035)."""
DECOMPOSITION = 20.0
"""Seconds that a new plan may take."""


@dataclass
class Replanning:
    """The boundaries of one task.

    Args:
        steps: the journalled steps of its turn.
        context: what the model is told of the turn.
        planner: who evaluates and decomposes; nobody does where rules plan.
        meter: the budget.
    """

    steps: Steps
    context: TurnContext
    planner: Planner | None
    meter: Meter
    evaluations: int = 0
    asked: bool = False
    """Set when the decomposer is asked, whatever it answers (V-030, V-C07)."""
    adjusted: bool = False

    async def replan_between_waves(self, last: int, known: Known, failures: Sequence[StepResult]) -> Remaining:
        """What is to be done behind a wave: as it stands, or a new tail.

        Args:
            last: number of the wave that has ended.
            known: the goal with all that was done, and what remains.
            failures: what failed in this wave.
        """
        remaining = known.remaining
        if not self._worth(known, failures):
            return remaining
        assert self.planner is not None, "without a planner no boundary is worth looking at"
        planner = self.planner
        self.evaluations += 1
        name = f"task.evaluate.{last}"
        verdict = await decided(self.steps, name, Verdict, lambda: planner.evaluate(self.context, known), EVALUATION)
        if verdict.value is None or not verdict.value.revise or self.meter.model():
            return remaining
        self.asked = True
        made = await decided(self.steps, "task.replan", Plan, lambda: planner.decompose(self.context, known), DECOMPOSITION)
        return self._taken(made.value, last, known) if made.value is not None else remaining

    def _worth(self, known: Known, failures: Sequence[StepResult]) -> bool:
        """Whether a boundary is looked at: only with a successor, a reason and room for it."""
        if not known.remaining or self.planner is None:
            return False
        if self.asked or self.evaluations >= MAX_EVALUATIONS or self.meter.model():
            return False
        return bool(failures) or len(known.worked) >= ENOUGH_RESULTS

    def _taken(self, plan: Plan, last: int, known: Known) -> Remaining:
        taken = [result.step.id for result in (*known.worked, *known.failed)]
        try:
            tail = renamed(plan, [*taken, *(step.id for step in known.remaining)])
            sound = checked(tail, known.tools, [result.step.id for result in known.worked])
        except BadPlan as wrong:
            log.warning("a new plan is no good, the old one stays: %s", wrong)
            return known.remaining
        found = tuple(step.model_copy(update={"wave": step.wave + last}) for step in sound.steps)
        if _same(found, known.remaining):
            return known.remaining
        self.adjusted = True
        log.info("Adjusting plan: %d steps in place of %d behind wave %d", len(found), len(known.remaining), last)
        return found


def _same(new: Remaining, old: Remaining) -> bool:
    """Whether a new tail does what the old one would have done."""
    return [_what(step) for step in new] == [_what(step) for step in old]


def _what(step: Step) -> tuple[object, ...]:
    return step.description, step.tool, step.arguments
