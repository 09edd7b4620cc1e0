"""All that the orchestrator answers about sessions, workloads and calendars."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from phronesis_bus import Bus, ask, follow, serve
from phronesis_contracts import Principal, Rpc
from phronesis_contracts.constitution.session import (
    ASSESS_WORKLOAD_TOOL,
    CONTEXT_USAGE_TOOL,
    GET_CALENDAR_TOOL,
    SET_CALENDAR_TOOL,
    START_SESSION_TOOL,
)
from phronesis_contracts.constitution.writes import CONSTITUTION_CHANGED
from phronesis_contracts.messages import In, Out_

from ..adapters.neighbours import BusNeighbours
from .calendars import CalendarHandlers
from .parts import Parts
from .ports import Calendars, Reader, Seal
from .sources import Events
from .start import Sessions
from .usage import Usage
from .workload import Workload


async def serve_sessions(
    bus: Bus, neighbours: BusNeighbours, calendars: Calendars, seal: Seal, reader: Reader, wake: Callable[[], None]
) -> None:
    """Wire them to the bus, and to the turns of this service.

    Args:
        bus: the connected bus.
        neighbours: whom turns ask, and who knows the agents.
        calendars: where calendars are kept.
        seal: encrypts passwords.
        reader: understands calendars.
        wake: says that there is news to send.
    """

    async def asked(who: Principal, rpc: Rpc[In, Out_], request: In, limit: float) -> Out_:
        return await ask(bus, who, rpc, request, timeout=limit)

    def now() -> datetime:
        return datetime.now(UTC)

    events = Events(asked, reader, seal)
    workload = Workload(asked, calendars, events, now)
    sessions = Sessions(Parts(asked), workload, calendars, bus.tracing.metrics)
    usage = Usage(sessions, neighbours.agent)
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
