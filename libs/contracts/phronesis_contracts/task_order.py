"""What makes a turn a background task: its budget."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .messages import WRITTEN_AS_NUMBER, Message


class TaskBudget(Message):
    """What a background task may use; it is held to before each step and each call."""

    seconds: Annotated[float, Field(ge=1.0, le=14_400.0), WRITTEN_AS_NUMBER] = 900.0
    """Of work, from its first step."""
    tokens: Annotated[int, Field(ge=0, le=10**15), WRITTEN_AS_NUMBER] | None = None
    """Of all its model calls together, read and written."""
    usd: Annotated[float, Field(ge=0.0, le=1e9, allow_inf_nan=False), WRITTEN_AS_NUMBER] | None = None
    """Of all its model calls together; a call whose price is not known counts nothing."""
    tool_calls: Annotated[int, Field(ge=0, le=1_000), WRITTEN_AS_NUMBER] = 100


class TaskOrder(Message):
    """The part of a turn that makes it a background task; its text is the goal."""

    budget: TaskBudget = TaskBudget()
