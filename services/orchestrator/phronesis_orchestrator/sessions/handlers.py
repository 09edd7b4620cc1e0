"""What the orchestrator answers about sessions, workloads and calendars, and how much of a window is used."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from functools import cache, partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import phronesis_tokens as tokens
from phronesis_bus import Bus, Call, ask, follow, serve
from phronesis_contracts import BadRequest, Nothing, Principal, Rpc, ServiceError
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.session import (
    ASSESS_WORKLOAD_TOOL,
    CONTEXT_USAGE_TOOL,
    GET_CALENDAR_TOOL,
    SESSION_CONTEXT,
    SET_CALENDAR_TOOL,
    START_SESSION_TOOL,
    SYSTEM_PROMPT,
    TOOL_SCHEMAS,
    WINDOW,
    AskUsage,
    CalendarSet,
    ContextUsage,
    SessionStats,
    SetCalendar,
    StartSession,
    UsageRow,
)
from phronesis_contracts.constitution.writes import CONSTITUTION_CHANGED
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.tools import legal_name, schema_of_input

from ..turns.ports import BusNeighbours
from .calendar import Calendar, CalendarLookup, CalendarReader, Calendars, Seal, parse_window
from .start import FOUNDATION, VISION, WORK, Parts, Sessions, count_changes
from .workload import Workload

_DAY = 24


class CalendarHandlers:
    """Sets and tells calendars. `calendars`: where they are kept."""

    def __init__(
        self, calendars: Calendars, events: CalendarLookup, seal: Seal, now: Callable[[], datetime], wake: Callable[[], None]
    ) -> None:
        self._calendars, self._events, self._seal, self._now, self._wake = calendars, events, seal, now, wake

    async def set_calendar(self, call: Call, request: SetCalendar) -> CalendarSet:
        """Set the caller's calendar, once a look into it has worked. The same again changes nothing.

        Raises:
            BadRequest: it contradicts itself, or the look failed for good; `field` says where.
            Unavailable, TimedOut: the look failed, and may succeed later.
        """
        _check(request)
        zone = _zone(request.time_zone)
        sealed = None if request.password is None else self._seal.shut(request.password, call.who)
        calendar = Calendar(
            source=request.source,
            url=request.url,
            ics=request.ics,
            username=request.username,
            sealed=sealed,
            hours=request.hours,
            time_zone=request.time_zone,
        )
        found = await self._events.of(call.who, calendar, parse_window(None, None, zone, self._now()))
        kept = await self._calendars.keep(call, calendar)
        self._wake()
        return _calendar_reply(kept).model_copy(update={"events": len(found.occurrences)})

    async def get_calendar(self, call: Call, request: Nothing) -> CalendarSet:
        return _calendar_reply(await self._calendars.of(call.who))


def _calendar_reply(calendar: Calendar) -> CalendarSet:
    return CalendarSet(source=calendar.source, url=calendar.url, hours=calendar.hours, time_zone=calendar.time_zone)


def _check(request: SetCalendar) -> None:
    given = {name for name in ("url", "ics", "username", "password") if getattr(request, name) is not None}
    match request.source:
        case "none" if given:
            raise BadRequest("without a calendar there is nothing to say of it", field=min(given))
        case "ics" if len(given & {"url", "ics"}) != 1:
            raise BadRequest("give either the address of an ICS file, or the file itself", field="url")
        case "caldav" if "url" not in given or "ics" in given:
            raise BadRequest("give the address of a CalDAV collection", field="url")
    if "password" in given and not (request.url or "").lower().startswith("https://"):
        raise BadRequest("a password is sent over https alone", field="url")
    if "username" in given and "password" not in given:
        raise BadRequest("a user name goes with a password", field="password")
    if not all(0 <= hours <= _DAY for hours in request.hours):
        raise BadRequest("a day has 0 to 24 working hours", field="hours")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest("no such time zone; one is named like Europe/Berlin", field="timeZone") from error


log = logging.getLogger(__name__)

Agent = Callable[[Principal, str], Awaitable[AgentProfile]]
"""Reads the profile of an agent by its name."""
_CONVERSATION = WINDOW - SYSTEM_PROMPT - TOOL_SCHEMAS - SESSION_CONTEXT


class WindowUsage:
    """Tells what of the window is used. `model_window`: tokens of the installation's own model, where it has one."""

    def __init__(self, sessions: Sessions, agent: Agent, model_window: int | None = None) -> None:
        self._sessions = sessions
        self._agent = agent
        self._model_window = model_window

    async def usage(self, call: Call, request: AskUsage) -> ContextUsage:
        """The components of the caller's session of that id, or of the last one. One that another process started, or that is
        forgotten, is measured as it would begin now.

        Raises:
            Unavailable: it has to be measured, and nothing of it can be loaded.
        """
        stats = self._sessions.of(call.who, request.session_id)
        if stats is None:
            stats = (await self._sessions.start(call, StartSession(session_id=request.session_id))).stats
        rows = usage_rows(stats, count_schema_tokens(await self._tools(call.who)))
        return ContextUsage(rows=rows, model_window=self._model_window)

    async def _tools(self, who: Principal) -> tuple[str, ...]:
        """The caller's tools: those of its agents' allow-lists, or all that an agent without one may use."""
        if who.administers:
            return tuple(sorted(TOOLS))
        found: dict[str, None] = {}
        for agent in who.agents:
            try:
                listed = (await self._agent(who, agent.value)).tools
            except ServiceError as error:  # no agent of that name, or nobody there who would know it
                log.info("the tools of %s are all that it may use: %s", agent, error.code)
                listed = ()
            names = (name for name in listed or sorted(TOOLS) if name in TOOLS and agent in TOOLS[name].agents)
            found.update(dict.fromkeys(name for name in names if TOOLS[name].open_to(who)))
        return tuple(found)


def usage_rows(stats: SessionStats, schema_tokens: int) -> tuple[UsageRow, ...]:
    """The components and their sum. The budgets add up to the window, and so do what is used and what is left in the sum.

    Args:
        schema_tokens: tokens of the caller's tools. The system prompt is the model's side's own, and counts as used up.
    """
    components = (
        _row("system prompt", SYSTEM_PROMPT, SYSTEM_PROMPT),
        _row("tool schemas", TOOL_SCHEMAS, schema_tokens),
        _row("foundation", FOUNDATION, stats.foundation_tokens),
        _row("vision", VISION, stats.vision_tokens),
        _row("workload", WORK, stats.workload_tokens),
    )
    # what is reserved is not for the conversation, used or not; what the session's context leaves is
    taken = SYSTEM_PROMPT + max(TOOL_SCHEMAS, schema_tokens) + stats.total_tokens
    left = max(0, WINDOW - taken)
    conversation = UsageRow(component="conversation", budget=_CONVERSATION, used=0, remaining=left, over_budget=False)
    used = sum(row.used for row in components)
    return (*components, conversation, _row("total", WINDOW, used))


def count_schema_tokens(tools: Iterable[str]) -> int:
    """Tokens of the schemas that a caller with these tools is shown: the first ones that there is room for. The others are
    found by searching."""
    used = 0
    for tool in tools:
        more = _schema(tool)
        if used + more > TOOL_SCHEMAS:
            break
        used += more
    return used


@cache
def _schema(name: str) -> int:
    tool = TOOLS[name]
    shown = {
        "name": legal_name(name),
        "description": tool.description,
        "parameters": schema_of_input(tool.rpc.input.model_json_schema()),
    }
    return tokens.count(tokens.clean(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))))


def _row(component: str, budget: int, used: int) -> UsageRow:
    return UsageRow(component=component, budget=budget, used=used, remaining=max(0, budget - used), over_budget=used > budget)


async def serve_sessions(
    bus: Bus,
    neighbours: BusNeighbours,
    calendars: Calendars,
    seal: Seal,
    reader: CalendarReader,
    wake: Callable[[], None],
    model_window: int | None = None,
) -> None:
    """Wire them to the bus, and to the turns of this service.

    Args:
        calendars: where calendars are kept.
        model_window: tokens of the installation's own model, where it has one.
    """

    async def send_request(who: Principal, rpc: Rpc[In, Out_], request: In, limit: float) -> Out_:
        return await ask(bus, who, rpc, request, timeout=limit)

    def now() -> datetime:
        return datetime.now(UTC)

    events = CalendarLookup(send_request, reader, seal)
    workload = Workload(send_request, calendars, events, now)
    changes = partial(count_changes, send_request)
    sessions = Sessions(Parts(send_request), workload, calendars, bus.tracing.metrics, changes=changes)
    usage = WindowUsage(sessions, neighbours.agent, model_window)
    handlers = CalendarHandlers(calendars, events, seal, now, wake)
    await follow(bus, CONSTITUTION_CHANGED, sessions.on_constitution_changed, every_copy=True)
    bus.on_reconnect(sessions.forget)
    await serve(bus, ASSESS_WORKLOAD_TOOL, workload.assess)
    await serve(bus, START_SESSION_TOOL, sessions.start)
    await serve(bus, CONTEXT_USAGE_TOOL, usage.usage)
    await serve(bus, SET_CALENDAR_TOOL, handlers.set_calendar)
    await serve(bus, GET_CALENDAR_TOOL, handlers.get_calendar)
    neighbours.inside(ASSESS_WORKLOAD_TOOL, workload.assess)
    neighbours.inside(START_SESSION_TOOL, sessions.start)
    neighbours.inside(CONTEXT_USAGE_TOOL, usage.usage)
    neighbours.inside(GET_CALENDAR_TOOL, handlers.get_calendar)
