"""The critic of finished tasks: a score from 0 to 1, by a model or by rules; it never holds a result back (V-044 to V-047)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..reasoner import Answer, TurnContext
from ..steps import Steps
from .deciding import decided
from .ports import Criticism, Known, Planner, StepResult, Written

GOOD = 0.75
"""The score from which on a task's approach is kept (V-121)."""
CRITICISM = 10.0
"""Seconds that it may take."""


def is_good(score: float | None) -> bool:
    """Whether a score counts as successful: no score, and what is no number from 0 to 1, does not (V-044, V-121)."""
    return score is not None and not math.isnan(score) and GOOD <= score <= 1


async def validate_task(
    steps: Steps, context: TurnContext, planner: Planner | None, known: Known, written: Written, skipped: int
) -> float | None:
    """How well the task met its goal; `None` where nobody can say (V-046)."""

    async def make() -> Answer[Criticism]:
        if planner is not None:
            return await planner.criticise(context, known, written)
        return Answer(Criticism(score=by_rules(known.worked, known.failed, skipped, written), reason="by rules"))

    found = await decided(steps, "task.critic", Criticism, make, CRITICISM)
    return found.value.score if found.value is not None else None


def by_rules(worked: Sequence[StepResult], failed: Sequence[StepResult], skipped: int, written: Written) -> float:
    """The share of the steps that count which worked, halved where the report rests on nothing.

    Args:
        worked: steps that gave something.
        failed: steps that did not.
        skipped: steps that were not made.
        written: the report.
    """
    needed = [result for result in (*worked, *failed) if not result.step.optional]
    good = sum(1 for result in needed if result.outcome.ok)
    share = good / (len(needed) + skipped) if needed else 0.0
    return round(share if written.used else share / 2, 3)
