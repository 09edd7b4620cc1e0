"""Working stand-ins for what sessions need: owners that answer after a while, calendars in memory, and a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from phronesis_bus import Call, Metrics
from phronesis_contracts import Principal, ServiceError, Unavailable
from phronesis_contracts.constitution.lists import LIST_FOUNDATION, LIST_VISION, FoundationListed, VisionListed, VisionNode
from phronesis_contracts.constitution.paths import DUE_WORK, DueFound
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, ListStats, Mention
from phronesis_orchestrator.sessions.calendar import Calendar, CalendarLookup, Occurrence, Window, WindowEvents
from phronesis_orchestrator.sessions.start import Parts, Sessions
from phronesis_orchestrator.sessions.workload import Workload
from tests.support.personas import Persona

MONDAY = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)
FOUNDATION = FoundationListed(
    items=(
        ConstitutionNode(id="v1", type="value", layer="foundation", title="Candour", summary="Say what is so."),
        ConstitutionNode(id="g1", type="guardrail", layer="foundation", title="No spending alone", status="active"),
    ),
    relationships=(ConstitutionLink(id="r1", type="ENFORCED_BY", from_id="v1", to_id="g1"),),
    stats=ListStats(total_nodes=2),
)
VISION = VisionListed(
    items=(
        VisionNode(
            id="goal1",
            type="goal",
            layer="vision",
            title="Answer within a day",
            parents=(Mention(id="v1", type="value", title="Candour", relationship="SUPPORTED_BY"),),
        ),
    ),
    stats=ListStats(total_nodes=1),
)
DUE = DueFound(total=2, by_status={"todo": 1, "in_progress": 1}, total_effort_hours=20.0)


def caller(role: Persona = Persona.DISCUSS, **more: str) -> Call:
    """A call of somebody in a tenant of their own."""
    stated = {"tenant": f"t-{uuid4().hex[:8]}", "user": "ann"} | more
    return Call(Principal(**role.rights, **stated), "gateway")


@dataclass
class Owners:
    """The services that are asked, each of which answers with a value, an error, or what a function makes of the request."""

    answers: dict[str, Any] = field(
        default_factory=lambda: {LIST_FOUNDATION.subject: FOUNDATION, LIST_VISION.subject: VISION, DUE_WORK.subject: DUE}
    )
    delay: float = 0.0
    """Seconds before each answer."""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    callers: list[Principal] = field(default_factory=list)

    async def __call__(self, who: Principal, rpc: Any, request: Any, limit: float) -> Any:
        self.asked.append((rpc.subject, request))
        self.callers.append(who)
        if self.delay:
            await asyncio.sleep(self.delay)
        answer = self.answers.get(rpc.subject, Unavailable("nobody serves it"))
        if isinstance(answer, list):
            answer = answer.pop(0)
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    def times(self, *rpcs: Any) -> tuple[int, ...]:
        """How often each of these was asked."""
        return tuple(sum(subject == rpc.subject for subject, _ in self.asked) for rpc in rpcs)


@dataclass
class MemoryCalendars:
    """Calendars by user."""

    kept: dict[tuple[str, str], Calendar] = field(default_factory=dict)

    async def of(self, who: Principal) -> Calendar:
        return self.kept.get((who.tenant, who.user), Calendar())

    async def keep(self, call: Call, calendar: Calendar) -> Calendar:
        before = await self.of(call.who)
        kept = self.kept[call.who.tenant, call.who.user] = replace(calendar, version=before.version + 1)
        return kept


@dataclass
class PlainSeal:
    """Turns a text round and puts its owner before it."""

    def shut(self, text: str, owner: Principal) -> bytes:
        return f"{owner.user}:{text[::-1]}".encode()

    def open(self, sealed: bytes, owner: Principal) -> str:
        return sealed.decode().removeprefix(f"{owner.user}:")[::-1]


@dataclass
class Diary:
    """Understands every calendar as the events it is given."""

    events: tuple[Occurrence, ...] = ()
    unreadable: int = 0
    failure: ServiceError | None = None
    delay: float = 0.0
    read_forms: list[tuple[str, bytes]] = field(default_factory=list)

    async def read(self, form: str, data: bytes, window: Window) -> WindowEvents:
        self.read_forms.append((form, data))
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.failure:
            raise self.failure
        return WindowEvents(self.events, self.unreadable)


@dataclass
class Clock:
    """Seconds and moments that pass when a test says so."""

    moment: datetime = MONDAY
    seconds: float = 0.0

    def now(self) -> datetime:
        return self.moment

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Stage:
    """Everything together."""

    owners: Owners = field(default_factory=Owners)
    calendars: MemoryCalendars = field(default_factory=MemoryCalendars)
    diary: Diary = field(default_factory=Diary)
    clock: Clock = field(default_factory=Clock)
    seconds: Callable[[], float] | None = None
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self.events = CalendarLookup(self.owners, self.diary, PlainSeal())
        self.workload = Workload(self.owners, self.calendars, self.events, self.clock.now)
        clock = self.seconds or self.clock
        self.sessions = Sessions(Parts(self.owners), self.workload, self.calendars, self.metrics, clock)

    def give_calendar(self, call: Call, **changes: Any) -> None:
        """Give the caller a calendar whose events are the diary's."""
        stated = {"source": "ics", "ics": "BEGIN:VCALENDAR", "version": 1} | changes
        self.calendars.kept[call.who.tenant, call.who.user] = Calendar(**stated)


def at(day: int, hour: float, hours: float, title: str = "Meeting", whole: bool = False) -> Occurrence:
    """An event on a day of the week that begins on the Monday of these tests."""
    start = datetime.fromtimestamp(MONDAY.replace(hour=0, minute=0).timestamp() + (day * 24 + hour) * 3600, UTC)
    return Occurrence(title, start, datetime.fromtimestamp(start.timestamp() + hours * 3600, UTC), whole)
