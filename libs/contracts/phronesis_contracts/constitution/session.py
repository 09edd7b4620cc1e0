"""Contracts of a session's start: its context, the workload, calendars, and what of the model's window is used."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import AwareDatetime, Field

from ..messages import Nothing, Rpc
from ..tools import Risk, Tool
from .lists import VisionNode
from .values import READERS, Asked, Camel, ConstitutionLink, ConstitutionNode, absent

WINDOW = 200_000
"""Tokens of the model's window."""
SYSTEM_PROMPT = 30_000
TOOL_SCHEMAS = 15_000
"""Tokens kept for the system prompt and for the tools' schemas."""
SESSION_CONTEXT = 25_000
"""Tokens of foundation, vision and workload: 15,000, 8,000 and 2,000."""


class AssessWorkload(Asked):
    """Whether there is room for more."""

    start_date: str | None = Field(default=None, max_length=40)
    """ISO 8601, a day or a time, which stands for its day; today where absent. Days are those of the caller's time zone."""
    end_date: str | None = Field(default=None, max_length=40)
    """Where the window stops: that day's hours and events are outside, work that is due on it is inside. 7 days after the start
    where absent; the same as the start for that one day."""
    include_calendar: bool = True
    include_task_details: bool = False
    """Whether single tasks and events are told, 50 of each at most, and not their figures alone."""


class Capacity(Camel):
    """Hours and their zone: green below 75 %, yellow to 85 %, red above."""

    available_hours: float
    scheduled_hours: float
    utilization_percent: float | None
    """None where there are no working hours in the window and there is work."""
    zone: Literal["green", "yellow", "red"]


class TaskShown(Camel):
    """A task in few words."""

    id: str
    title: str
    status: str
    effort_hours: float | None = absent()
    due_date: str | None = absent()


class TaskFigures(Camel):
    """Open tasks that are due in the window."""

    total: int = 0
    by_status: dict[str, int] = Field(default_factory=dict)
    total_effort_hours: float = 0.0
    items: tuple[TaskShown, ...] | None = absent()


class CalendarEvent(Camel):
    """An event; nothing but these three leaves the calendar."""

    title: str
    start: AwareDatetime
    duration_hours: float


class CalendarFigures(Camel):
    """Events in the window that take time: none that are cancelled, or marked as free."""

    total: int = 0
    total_hours: float = 0.0
    """Each hour once, however many events take it. A day with an event of a whole day, or of 24 hours or more, counts with its
    working hours."""
    events: tuple[CalendarEvent, ...] | None = absent()


class WorkloadAssessed(Camel):
    """Capacity, what it is made of, and what to do."""

    start_date: date
    end_date: date
    capacity: Capacity
    tasks: TaskFigures
    calendar: CalendarFigures
    recommendations: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    """`calendar` where it could not be read; the hours are then those of tasks alone."""
    token_estimate: int = 0
    """Tokens of this answer."""


class StartSession(Asked):
    """The start of an agent's session."""

    session_id: str | None = Field(default=None, min_length=1, max_length=64)
    """Under which `context.usage.v1` finds it again."""


class SessionStats(Camel):
    """What the context came to."""

    total_nodes: int
    total_tokens: int
    """Foundation, vision, and at least 2,000 for the workload."""
    foundation_tokens: int
    vision_tokens: int
    workload_tokens: int
    load_time: float
    """Milliseconds."""
    cached: tuple[str, ...] = ()
    """Parts that no write had touched since they were loaded."""


class SessionStarted(Camel):
    """Foundation, vision and workload. What could not be loaded is named, and absent."""

    session_id: str
    foundation: tuple[ConstitutionNode, ...] = ()
    foundation_relationships: tuple[ConstitutionLink, ...] = ()
    vision: tuple[VisionNode, ...] = ()
    workload: WorkloadAssessed | None = None
    stats: SessionStats
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """What was left out to keep to the budget, in the stated order."""


class AskUsage(Asked):
    """How much of the model's window is used."""

    session_id: str | None = Field(default=None, max_length=64)


class UsageRow(Camel):
    """One component of the window."""

    component: str
    budget: int
    used: int
    remaining: int
    over_budget: bool


class ContextUsage(Camel):
    """The components; they add up to the window."""

    rows: tuple[UsageRow, ...]
    window: int = WINDOW
    model_window: int | None = absent()
    """Tokens that a prompt and its answer may have together when this installation asks its own model; absent without one."""


class SetCalendar(Asked):
    """Where the caller's events are, and when the caller works. It replaces what was set before."""

    source: Literal["none", "ics", "caldav"] = "ics"
    url: str | None = Field(default=None, max_length=2_000)
    """Of the ICS file or the CalDAV collection; no address of a private network."""
    ics: str | None = Field(default=None, max_length=400_000)
    """The file itself, instead of an address."""
    username: str | None = Field(default=None, max_length=200)
    password: str | None = Field(default=None, max_length=200, repr=False)
    """Goes over https alone; kept encrypted, and only where the installation has a key for that."""
    hours: tuple[float, ...] = Field(default=(8, 8, 8, 8, 8, 0, 0), min_length=7, max_length=7)
    """Working hours of Monday to Sunday."""
    time_zone: str = Field(default="UTC", max_length=64)


class CalendarSet(Camel):
    """What is kept of it; never the password."""

    source: str
    url: str | None = None
    hours: tuple[float, ...]
    time_zone: str
    events: int | None = None
    """Events of the next 7 days that were found when it was set."""


ASSESS_WORKLOAD = Rpc("orchestrator.v1.workload.assess", AssessWorkload, WorkloadAssessed, timeout=10.0)
START_SESSION = Rpc("orchestrator.v1.session.start", StartSession, SessionStarted, timeout=15.0)
CONTEXT_USAGE = Rpc("orchestrator.v1.context.usage", AskUsage, ContextUsage, timeout=10.0)
SET_CALENDAR = Rpc("orchestrator.v1.calendar.set", SetCalendar, CalendarSet, timeout=20.0)
GET_CALENDAR = Rpc("orchestrator.v1.calendar.get", Nothing, CalendarSet)

ASSESS_WORKLOAD_TOOL = Tool(
    "workload.assess.v1",
    "Whether there is room for new work: tasks, calendar, capacity, advice.",
    ASSESS_WORKLOAD,
    agents=READERS,
)
DISCUSS_WORKLOAD_TOOL = Tool("discuss_workload_assess", "The same as workload.assess.v1.", ASSESS_WORKLOAD, agents=READERS)
START_SESSION_TOOL = Tool(
    "session.start.v1",
    "What a session begins with: foundation, vision and workload, within the budget.",
    START_SESSION,
    agents=READERS,
)
CONTEXT_USAGE_TOOL = Tool(
    "context.usage.v1", "Tokens of the model's window by component: budget, used, left.", CONTEXT_USAGE, agents=READERS
)
SET_CALENDAR_TOOL = Tool(
    "calendar.set.v1", "Say where your calendar is and when you work.", SET_CALENDAR, risk=Risk.LOW, agents=READERS
)
GET_CALENDAR_TOOL = Tool("calendar.get.v1", "Your calendar's source and working hours.", GET_CALENDAR, agents=READERS)
