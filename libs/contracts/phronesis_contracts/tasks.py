"""Contracts of background tasks: a goal that is worked on in waves of steps, and what can be seen of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from .answers import Visualization
from .errors import Conflict, NotFound, ServiceError
from .messages import Message, Nothing, Rpc
from .orchestrator import ChangedThing, Problem, ScheduledRun, StartingEvent, TaskBudget, TaskOrder, TurnStatus, Usage
from .tools import Effect

__all__ = [
    "DEFAULT_AGENT",
    "MAX_BLOCKS",
    "MAX_BLOCK_TEXT",
    "MAX_COLUMNS",
    "MAX_COMMENT",
    "MAX_FOUND",
    "MAX_GOAL",
    "MAX_RUNS_AN_HOUR",
    "MAX_SCHEDULES",
    "MAX_TABLE_ROWS",
    "MIN_SECONDS_BETWEEN_RUNS",
    "SCHEDULE_ADD",
    "SCHEDULE_CHANGE",
    "SCHEDULE_GET",
    "SCHEDULE_LIST",
    "SCHEDULE_REMOVE",
    "STRATEGY_EFFECT",
    "TASK_ANSWER",
    "TASK_CANCEL",
    "TASK_GET",
    "TASK_LIST",
    "TASK_OUTCOME",
    "TRIGGER_ADD",
    "AddSchedule",
    "AddTrigger",
    "AnswerTask",
    "ArmEffect",
    "AskPerson",
    "Cell",
    "ChangeSchedule",
    "ChangedThing",
    "ChartBlock",
    "Difference",
    "FigureRow",
    "FiguresBlock",
    "HeadingBlock",
    "LimitsBlock",
    "ListSchedules",
    "ListTasks",
    "NoPlan",
    "NoReport",
    "NoResult",
    "NotWaiting",
    "PersonAnswered",
    "PlannedCall",
    "ReportBlock",
    "ReportTooLong",
    "Schedule",
    "ScheduleRef",
    "ScheduledRun",
    "Schedules",
    "SourceRow",
    "SourcesBlock",
    "StartingEvent",
    "StepState",
    "StrategiesArm",
    "StrategyEffect",
    "SubmitTask",
    "TableBlock",
    "Task",
    "TaskBudget",
    "TaskCancelled",
    "TaskEffect",
    "TaskNotEnded",
    "TaskOrder",
    "TaskOutcome",
    "TaskRef",
    "TaskReport",
    "TaskState",
    "TaskStep",
    "TaskWait",
    "Tasks",
    "TextBlock",
    "Trigger",
    "Verified",
    "VerifiedBy",
    "WaitUntil",
    "Waited",
]

MAX_GOAL = 4_000
"""Characters of a task's goal."""
MAX_BLOCKS = 200
"""Blocks of a report."""
MAX_BLOCK_TEXT = 20_000
"""Characters of one block of text."""
MAX_COLUMNS = 30
"""Columns of a report's table."""
MAX_TABLE_ROWS = 10_000
"""Rows of a report's table."""
MAX_FOUND = 200
"""Characters of what a step is said to have found."""
DEFAULT_AGENT = "nova"
"""Whose tools and texts a task has where none is named."""
MAX_COMMENT = 1_000
"""Characters of what a person says with an outcome."""


class NoPlan(ServiceError):
    """No plan could be made for the goal: nothing of it was begun."""

    code = "task.no_plan"
    status = 422


class TaskCancelled(ServiceError):
    """The task was cancelled; what it had done by then stays done."""

    code = "task.cancelled"
    status = 409


class TaskNotEnded(Conflict):
    """The task goes on: what is asked for is there once it has ended."""

    code = "task.not_ended"


class NoResult(Conflict):
    """The task ended without a report: there is nothing to accept."""

    code = "task.no_result"


class NoReport(NotFound):
    """The task ended without a report."""

    code = "task.no_report"


class ReportTooLong(Conflict):
    """The report has more pages than a PDF may have; as an HTML page or Markdown it is whole."""

    code = "task.report_too_long"


class SubmitTask(Message):
    """A goal to work on in the background."""

    goal: str = Field(min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    agent: str = Field(default=DEFAULT_AGENT, min_length=1, max_length=64)
    budget: TaskBudget = TaskBudget()
    dry_run: bool = False
    """Whether it ends with its plan, and nothing is done."""


class StepState(StrEnum):
    """Where a step of a plan is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Not made: what it needs failed, its condition does not hold, or the budget was spent."""


class TaskStep(Message):
    """One step of a plan, and what became of it."""

    id: str
    """Its id in the plan."""
    wave: int
    """From 1; the steps of a wave are made side by side, the waves one after the other."""
    description: str
    """What is to be done."""
    tool: str | None = None
    """The tool that it calls; a step without one asks a question, or is worked on with several tools."""
    depends: tuple[str, ...] = ()
    """Ids of the steps whose results it needs."""
    state: StepState = StepState.PENDING
    """Where it is."""
    code: str | None = None
    """Why it failed or was not made."""
    ms: int = 0
    """Milliseconds that it took."""
    found: str = Field(default="", max_length=MAX_FOUND)
    """What it found, in one line: how many rows, a figure, or its first words; empty until it has ended well."""


Cell = str | int | float | bool | None
"""One value of a table or figure; absent where it is not known."""


def _require_kind(schema: dict[str, Any]) -> None:
    schema["required"] = ["kind", *schema.get("required", ())]


class _Block(Message):
    """One part of a report. Whoever reads blocks tells them apart by their `kind`, so that it always stands there."""

    model_config = ConfigDict(json_schema_extra=_require_kind)


class HeadingBlock(_Block):
    """Begins a section of a report."""

    kind: Literal["heading"] = "heading"
    """Which block it is."""
    text: str = Field(min_length=1, max_length=300)
    """The section's heading."""
    level: int = Field(default=2, ge=1, le=4)
    """How deep the section lies; the report's own title is above level 1."""


class TextBlock(_Block):
    """Paragraphs of a report."""

    kind: Literal["text"] = "text"
    """Which block it is."""
    text: str = Field(min_length=1, max_length=MAX_BLOCK_TEXT)
    """Markdown without headings and tables."""


class FigureRow(Message):
    """One figure."""

    label: str = Field(min_length=1, max_length=300)
    """What was counted or measured."""
    value: Cell
    """The figure; absent where it is not known."""
    unit: str = Field(default="", max_length=50)
    """Its unit, as it is written behind the figure; empty for a plain number."""
    note: str = Field(default="", max_length=1_000)
    """What has to be known of it, such as how many things it was counted from."""


class FiguresBlock(_Block):
    """The figures of a section."""

    kind: Literal["figures"] = "figures"
    """Which block it is."""
    rows: tuple[FigureRow, ...] = Field(min_length=1, max_length=100)
    """The figures, the most important first."""


class TableBlock(_Block):
    """A table of a report."""

    kind: Literal["table"] = "table"
    """Which block it is."""
    title: str = Field(default="", max_length=300)
    """What the table shows."""
    columns: tuple[str, ...] = Field(min_length=1, max_length=MAX_COLUMNS)
    """Readable names of the columns."""
    rows: tuple[tuple[Cell, ...], ...] = Field(default=(), max_length=MAX_TABLE_ROWS)
    """The rows, each with one value for each column."""


class ChartBlock(_Block):
    """A chart of a report."""

    kind: Literal["chart"] = "chart"
    """Which block it is."""
    chart: Visualization
    """What to draw."""


class SourceRow(Message):
    """One thing that a report rests on."""

    id: str = Field(max_length=300)
    """Its id, by which it is found again."""
    title: str = Field(default="", max_length=300)
    """What it is called; empty where it has no title."""
    kind: str = Field(default="", max_length=100)
    """What it is, for example a tool that was read, a document or a node's type."""


class SourcesBlock(_Block):
    """What a report rests on."""

    kind: Literal["sources"] = "sources"
    """Which block it is."""
    rows: tuple[SourceRow, ...] = Field(min_length=1, max_length=500)
    """The sources, in the order in which they were read."""


class LimitsBlock(_Block):
    """What a report does not say, or does not say for sure."""

    kind: Literal["limits"] = "limits"
    """Which block it is."""
    items: tuple[str, ...] = Field(min_length=1, max_length=100)
    """What is missing, uncertain or was left out, a sentence each."""


ReportBlock = Annotated[
    HeadingBlock | TextBlock | FiguresBlock | TableBlock | ChartBlock | SourcesBlock | LimitsBlock, Field(discriminator="kind")
]
"""One part of a report, by its `kind`."""


class TaskEffect(Message):
    """Something that a task did, and that stays done however it ended."""

    step: str
    """Id of the step in the plan; `report` for the document that the report was saved as."""
    description: str
    """What the step was to do."""
    tool: str
    """The tool that did it."""
    state: Literal["done", "unknown"] = "done"
    """`unknown` where the call was begun and its answer never came, so that it may have taken effect or not."""


class PlannedCall(Message):
    """What a step of a plan would do, as a dry run tells it."""

    step: str
    """Id of the step in the plan."""
    tool: str | None = None
    """The tool that it would call."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """With what, as far as that is known before the steps ahead of it were made."""
    question: str | None = None
    """What it would ask, where it calls no tool itself."""
    each: dict[str, Any] | None = None
    """The results of an earlier step for each of which it would be made."""
    when: dict[str, Any] | None = None
    """The condition on which it would be made."""
    effect: Effect = Effect.READ
    """What the call does beyond its answer."""
    approval: Literal["no", "maybe", "yes", "refused"] = "no"
    """Whether a person would be asked first; `maybe` where that depends on what earlier steps read or give."""
    reason: str = ""
    """Why, by the policy of actions."""


class TaskReport(Message):
    """What a task found out."""

    title: str
    """The report's heading."""
    text: str
    """The report, in Markdown; rendered from its blocks where it has any."""
    blocks: tuple[ReportBlock, ...] = Field(default=(), max_length=MAX_BLOCKS)
    """The report as typed parts, in reading order. Empty only in reports of releases that had none."""
    charts: tuple[Visualization, ...] = ()
    """Charts and tables to show with the text."""
    document_id: str | None = None
    """The item of the caller's memory that it is saved as; absent where it could not be saved."""
    reasoner: str
    """Who wrote it: `extractive` where rules did."""


class VerifiedBy(StrEnum):
    """Who verified an outcome; a model's critic never does."""

    CHECKER = "checker"
    """Rules, which read back what was written or counted again."""
    PERSON = "person"


class Verified(Message):
    """What a checker or a person says of a task's result."""

    by: VerifiedBy
    """Who says it."""
    accepted: bool
    """Whether the result is what was asked for."""
    comment: str = Field(default="", max_length=MAX_COMMENT)
    """Why; up to 1,000 characters."""
    at: datetime
    """When it was said."""


class StrategiesArm(StrEnum):
    """Whether a task had strategies, to measure what they are worth."""

    USED = "used"
    """It was planned with strategies that were recalled."""
    NONE = "none"
    """None was found, or their use is switched off."""
    HELD_OUT = "held_out"
    """Some were found, and withheld: the goal belongs to the share that is planned without."""


class TaskState(Message):
    """How far a task is, as its runner says it."""

    waves: int = 0
    """Waves of the plan as it stands."""
    steps: tuple[TaskStep, ...] = ()
    """The steps of the plan, by wave."""
    replanned: bool = False
    """Whether the one new plan that a task may have was asked for."""
    adjusted: bool = False
    """Whether it changed what was left to do."""
    evaluations: int = 0
    """How often it was asked whether what is left still makes sense."""
    strategies: tuple[str, ...] = ()
    """Ids of the recalled strategies that the plan was made with."""
    strategies_arm: StrategiesArm | None = None
    """Whether it had strategies; absent until it is planned."""
    score: float | None = None
    """The critic's score of the report, 0 to 1; absent where it gave none."""
    tool_calls: int = 0
    """Tool calls so far."""
    stopped: Problem | None = None
    """The limit of its budget that ended it early; the report then holds what there is."""
    report: TaskReport | None = None
    """What it found out; absent until it ends, and in lists."""
    effects: tuple[TaskEffect, ...] = ()
    """What an ended task did that stays done, whatever its end; absent in lists."""
    calls: tuple[PlannedCall, ...] = ()
    """Of a dry run: what each step would do, in the order of the plan."""
    verified: Verified | None = None
    """What a checker or a person says of its result; only this is learnt from."""


class Task(Message):
    """A background task."""

    task_id: str
    """It is the id of its turn."""
    conversation_id: str
    """The conversation of its own that it has."""
    agent: str
    """The agent whose tools and texts it uses."""
    goal: str
    """What it is to find out or do."""
    budget: TaskBudget
    """What it may use."""
    status: TurnStatus
    """Where it is."""
    created_at: datetime
    """When it was handed in."""
    ended_at: datetime | None = None
    """When it ended; absent until then."""
    progress: TaskState = TaskState()
    """How far it is."""
    usage: Usage | None = None
    """What it used; absent until it has ended well."""
    problem: Problem | None = None
    """Why it failed, was parked or was cancelled, and what it had done by then."""
    schedule: ScheduledRun | None = None
    """The schedule that started it; absent where a person did."""
    dry_run: bool = False
    """Whether it ends with its plan, and nothing is done."""
    waiting: TaskWait | None = None
    """What it waits for: a date, or its owner's answer. An approval that it waits for is listed among the approvals."""
    waiting_for: str | None = None
    """The service or store that did not answer and that it waits for, while it does: it is tried again until it expires."""


class TaskWait(Message):
    """What a task waits for, without a slot and without its budget of time running."""

    kind: Literal["date", "person"]
    """Whether it waits for a date, or for its owner's answer."""
    question: str = ""
    """What its owner is asked; empty where it waits for a date."""
    choices: tuple[str, ...] = ()
    """The answers that there are; any text will do where none is listed."""
    until: datetime
    """The date, or when the question runs out."""
    since: datetime
    """When it began to wait."""


class NotWaiting(ServiceError):
    """The task asks nothing: it has not asked yet, was answered, or has gone on without an answer."""

    code = "task.not_waiting"
    status = 409


class AnswerTask(Message):
    """The owner's answer to what a task asks."""

    task_id: str
    answer: str = Field(min_length=1, max_length=4_000, pattern=r"\S")
    """In the person's own words, or one of the choices."""


class WaitUntil(Message):
    """Wait for a date before the steps that depend on this one; give `until` or `seconds`."""

    until: datetime | None = None
    """The date and time, with its offset from UTC."""
    seconds: float | None = Field(default=None, ge=1, le=366 * 86_400)
    """Seconds from now."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.until is None) == (self.seconds is None):
            raise ValueError("give `until` or `seconds`")
        if self.until is not None and self.until.tzinfo is None:
            raise ValueError("`until` has to state its offset from UTC, as in 2026-05-04T08:00:00+02:00")
        return self


class Waited(Message):
    """A date has come."""

    until: datetime


class AskPerson(Message):
    """Ask the task's owner, and go on with the answer."""

    question: str = Field(min_length=1, max_length=2_000, pattern=r"\S")
    choices: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(default=(), max_length=10)
    """The answers to choose from; any text will do where none is listed."""
    seconds: float = Field(default=7 * 86_400, ge=60, le=90 * 86_400)
    """Seconds after which the task goes on without an answer."""


class PersonAnswered(Message):
    """What the task's owner said."""

    answer: str


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
    """The tasks, the newest first."""


TASK_GET = Rpc("orchestrator.v1.task.get", TaskRef, Task)
TASK_LIST = Rpc("orchestrator.v1.task.list", ListTasks, Tasks)
TASK_ANSWER = Rpc("orchestrator.v1.task.answer", AnswerTask, Task)
TASK_CANCEL = Rpc("orchestrator.v1.task.cancel", TaskRef, Task)


MAX_SCHEDULES = 50
"""Schedules of one user."""
MIN_SECONDS_BETWEEN_RUNS = 300
"""Seconds that the times of a schedule are apart at least."""
MAX_RUNS_AN_HOUR = 12
"""Runs that the events of one schedule start within an hour at most."""


class Trigger(Message):
    """The events that start the runs of a schedule, in place of times."""

    event: Literal["node_changed", "file_arrived"]
    """`node_changed`: a node of the constitutional graph was made or changed. `file_arrived`: the owner uploaded a file."""
    type: str | None = Field(default=None, min_length=1, max_length=64)
    """Only nodes of this type, such as `task`, or files of this kind: `document`, `image` or `audio`."""
    property: str | None = Field(default=None, min_length=1, max_length=100)
    """Only where this property of the node was changed."""
    value: str | None = Field(default=None, max_length=500)
    """Only where the property has this value now."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.event != "node_changed" and (self.property is not None or self.value is not None):
            raise ValueError("only nodes have properties")
        if self.value is not None and self.property is None:
            raise ValueError("a value belongs to a property")
        return self


class AddSchedule(Message):
    """A goal to work on again and again, at the times of a cron expression."""

    goal: str = Field(min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    """What to find out or to do at each run."""
    cron: str = Field(min_length=9, max_length=200)
    """Minute, hour, day of the month, month and day of the week, as cron reads them; runs are 5 minutes apart at least."""
    time_zone: str = Field(default="UTC", min_length=1, max_length=64)
    """The time zone of the expression, by its IANA name: `Europe/Oslo`."""
    agent: str = Field(default=DEFAULT_AGENT, min_length=1, max_length=64)
    budget: TaskBudget = TaskBudget()
    """What each run may use."""
    enabled: bool = True
    """Whether it starts runs; one that does not is paused."""


class AddTrigger(Message):
    """A goal to work on whenever an event happens."""

    goal: str = Field(min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    """What to find out or to do at each run. `{node}` and `{file}` in it stand for the ids that an event tells."""
    on: Trigger
    """The events that start runs."""
    agent: str = Field(default=DEFAULT_AGENT, min_length=1, max_length=64)
    budget: TaskBudget = TaskBudget()
    """What each run may use."""
    enabled: bool = True
    """Whether it starts runs; one that does not is paused."""


class ScheduleRef(Message):
    """One schedule by id."""

    schedule_id: str


class ChangeSchedule(Message):
    """New values for a schedule; what is left out stays. To resume one is to set `enabled`."""

    schedule_id: str
    goal: str | None = Field(default=None, min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    cron: str | None = Field(default=None, min_length=9, max_length=200)
    time_zone: str | None = Field(default=None, min_length=1, max_length=64)
    agent: str | None = Field(default=None, min_length=1, max_length=64)
    budget: TaskBudget | None = None
    enabled: bool | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set - {"schedule_id"}:
            raise ValueError("nothing is to be changed")
        return self


class Schedule(Message):
    """A goal that is worked on at the times of a cron expression, or whenever an event happens, with its owner's rights."""

    schedule_id: str
    """Its id."""
    goal: str
    """What each run is to find out or do."""
    cron: str
    """Minute, hour, day of the month, month and day of the week; empty where events start the runs."""
    on: Trigger | None = None
    """The events that start the runs; absent where times do."""
    time_zone: str
    """The time zone of the expression."""
    agent: str
    """The agent whose tools and texts are used."""
    budget: TaskBudget
    """What each run may use."""
    enabled: bool
    """Whether it starts runs."""
    paused: Problem | None = None
    """Why it was paused; absent where its owner did it, and where it is not."""
    next_runs: tuple[datetime, ...] = ()
    """The next times that it starts a run, the soonest first; none while it is paused."""
    runs: int = 0
    """Runs that it started."""
    skipped: int = 0
    """Times at which none was started, since the run before had not ended; events beyond 12 runs within an hour."""
    last_task: str | None = None
    """The task that it started last."""
    last_due: datetime | None = None
    """The time of the expression that the last run was started for, or when its event was heard of."""
    created_at: datetime
    """When it was made."""


class ListSchedules(Message):
    """The caller's schedules, oldest first."""

    limit: int = Field(default=MAX_SCHEDULES, ge=1, le=MAX_SCHEDULES)


class Schedules(Message):
    """A list of schedules."""

    schedules: tuple[Schedule, ...]
    """The schedules, the oldest first."""


SCHEDULE_ADD = Rpc("orchestrator.v1.schedule.add", AddSchedule, Schedule)
TRIGGER_ADD = Rpc("orchestrator.v1.trigger.add", AddTrigger, Schedule)
SCHEDULE_GET = Rpc("orchestrator.v1.schedule.get", ScheduleRef, Schedule)
SCHEDULE_LIST = Rpc("orchestrator.v1.schedule.list", ListSchedules, Schedules)
SCHEDULE_CHANGE = Rpc("orchestrator.v1.schedule.change", ChangeSchedule, Schedule)
SCHEDULE_REMOVE = Rpc("orchestrator.v1.schedule.remove", ScheduleRef, Schedule)


class TaskOutcome(Message):
    """What the caller says of the result of a task of theirs."""

    task_id: str
    accepted: bool
    """Whether the result is what was asked for."""
    comment: str = Field(default="", max_length=MAX_COMMENT)
    """Why."""


class ArmEffect(Message):
    """How the tasks of one arm ended."""

    arm: StrategiesArm
    """Which one."""
    tasks: int = 0
    """Tasks that have ended."""
    verified: int = 0
    """Those of which a checker or a person has said how they went."""
    accepted: int = 0
    """Those of which the result was accepted."""
    share: float | None = None
    """`accepted` over `verified`, 0 to 1; absent where none was verified."""
    low: float = 0.0
    """The lower end of Wilson's 95 % interval of the share."""
    high: float = 1.0
    """Its upper end."""
    steps: float | None = None
    """Steps that a task made on average; absent without tasks."""


class Difference(StrEnum):
    """What the arms tell of the strategies' worth."""

    NONE_SHOWN = "none_shown"
    """The intervals overlap: no difference is shown."""
    BETTER = "better"
    """With strategies more results are accepted."""
    WORSE = "worse"


class StrategyEffect(Message):
    """What strategies were worth to the caller's tasks, by those that had them and those that they were withheld from."""

    used: ArmEffect
    """The tasks that had strategies."""
    held_out: ArmEffect
    """The tasks for which there were some, and which were planned without."""
    difference: Difference
    """What of it is shown by the results that were verified."""


TASK_OUTCOME = Rpc("orchestrator.v1.task.outcome", TaskOutcome, Task, timeout=10.0)
STRATEGY_EFFECT = Rpc("orchestrator.v1.strategy.effect", Nothing, StrategyEffect)
