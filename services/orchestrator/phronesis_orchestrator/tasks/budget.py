"""What a task may still use: asked before each step and each call of a model, never after the fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from phronesis_contracts.orchestrator import Problem
from phronesis_contracts.tasks import TaskBudget

from ..steps import Steps

SPENT = "task.budget_spent"
"""Code of the end of a task that its budget ended early."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Meter:
    """The budget of one task, and what of it is used.

    Args:
        budget: what may be used.
        steps: knows what the model calls used, over all attempts.
        begun: when the task's first step was begun, whoever worked on it then.
    """

    budget: TaskBudget
    steps: Steps
    begun: datetime
    now: Callable[[], datetime] = field(default=_now)
    calls: int = 0
    """Tool calls that were made, over all attempts."""

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.budget.seconds - (self.now() - self.begun).total_seconds()

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
    return Problem(code=SPENT, status=422, detail=f"the task's budget is spent: {name}", field=f"budget.{name}")
