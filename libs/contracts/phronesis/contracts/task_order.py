"""What makes a turn a background task: its budget."""

from __future__ import annotations

from pydantic import Field

from .messages import Message


class TaskBudget(Message):
    """What a background task may use; it is held to before each step and each call."""

    seconds: float = Field(default=900.0, ge=1.0, le=14_400.0)
    """Of work, from its first step."""
    tokens: int | None = Field(default=None, ge=0)
    """Of all its model calls together, read and written."""
    usd: float | None = Field(default=None, ge=0.0)
    """Of all its model calls together; a call whose price is not known counts nothing."""
    tool_calls: int = Field(default=100, ge=0, le=1_000)


class TaskOrder(Message):
    """The part of a turn that makes it a background task; its text is the goal."""

    budget: TaskBudget = TaskBudget()
