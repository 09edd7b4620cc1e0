"""Contracts of background tasks: a goal that is worked on in waves of steps, and what can be seen of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .answers import Visualization
from .errors import ServiceError
from .messages import Message, Rpc
from .orchestrator import Problem, TaskBudget, TaskOrder, TurnStatus, Usage

__all__ = [
    "DEFAULT_AGENT",
    "MAX_GOAL",
    "TASK_CANCEL",
    "TASK_GET",
    "TASK_LIST",
    "ListTasks",
    "NoPlan",
    "StepState",
    "SubmitTask",
    "Task",
    "TaskBudget",
    "TaskOrder",
    "TaskRef",
    "TaskReport",
    "TaskState",
    "TaskStep",
    "Tasks",
]

MAX_GOAL = 4_000
"""Characters of a task's goal."""
DEFAULT_AGENT = "nova"
"""Whose tools and texts a task has where none is named."""


class NoPlan(ServiceError):
    """No plan could be made for the goal: nothing of it was begun."""

    code = "task.no_plan"
    status = 422


class SubmitTask(Message):
    """A goal to work on in the background."""

    goal: str = Field(min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    agent: str = Field(default=DEFAULT_AGENT, min_length=1, max_length=64)
    budget: TaskBudget = TaskBudget()


class StepState(StrEnum):
    """Where a step of a plan is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Not made: what it needs failed, or the budget was spent."""


class TaskStep(Message):
    """One step of a plan, and what became of it."""

    id: str
    wave: int
    """From 1; the steps of a wave are made side by side, the waves one after the other (V-019)."""
    description: str
    tool: str | None = None
    """The tool that it calls; a step without one is worked on with several tools."""
    depends: tuple[str, ...] = ()
    state: StepState = StepState.PENDING
    code: str | None = None
    """Why it failed or was not made."""
    ms: int = 0
    """Milliseconds that it took."""


class TaskReport(Message):
    """What a task found out."""

    title: str
    text: str
    """Markdown."""
    charts: tuple[Visualization, ...] = ()
    document_id: str | None = None
    """The item of the caller's memory that it is saved as; absent where it could not be saved."""
    reasoner: str
    """Who wrote it: `extractive` where rules did."""


class TaskState(Message):
    """How far a task is, as its runner says it."""

    waves: int = 0
    """Waves of the plan as it stands."""
    steps: tuple[TaskStep, ...] = ()
    replanned: bool = False
    """Whether the one new plan that a task may have was asked for (V-030)."""
    adjusted: bool = False
    """Whether it changed what was left to do."""
    evaluations: int = 0
    """How often it was asked whether what is left still makes sense."""
    strategies: tuple[str, ...] = ()
    """Ids of the recalled strategies that the plan was made with."""
    score: float | None = None
    """The critic's, 0 to 1; absent where it gave none (V-046)."""
    tool_calls: int = 0
    stopped: Problem | None = None
    """The limit of its budget that ended it early; the report then holds what there is."""
    report: TaskReport | None = None


class Task(Message):
    """A background task."""

    task_id: str
    """It is the id of its turn."""
    conversation_id: str
    agent: str
    goal: str
    budget: TaskBudget
    status: TurnStatus
    created_at: datetime
    ended_at: datetime | None = None
    progress: TaskState = TaskState()
    usage: Usage | None = None
    """Once it has ended well."""
    problem: Problem | None = None


class TaskRef(Message):
    """One task by id."""

    task_id: str


class ListTasks(Message):
    """The caller's tasks, newest first."""

    status: TurnStatus | None = None
    limit: int = Field(default=20, ge=1, le=100)


class Tasks(Message):
    """A list of tasks, without their reports."""

    tasks: tuple[Task, ...]


TASK_GET = Rpc("orchestrator.v1.task.get", TaskRef, Task)
TASK_LIST = Rpc("orchestrator.v1.task.list", ListTasks, Tasks)
TASK_CANCEL = Rpc("orchestrator.v1.task.cancel", TaskRef, Task)
