"""All that the orchestrator answers about outside servers, and what turns ask of them."""

from __future__ import annotations

from collections.abc import Callable

from phronesis_bus import Bus, ask, serve
from phronesis_contracts import Principal, Rpc, Tool
from phronesis_contracts.media import RESOLVE_ADDRESS, ResolveAddress, ResolvedAddress
from phronesis_contracts.outside import (
    ACCEPT_TOOLS_TOOL,
    ADD_SERVER_TOOL,
    INSPECT_SERVER_TOOL,
    JUDGE_TOOLS_TOOL,
    LIST_SERVERS_TOOL,
    REMOVE_SERVER_TOOL,
    SWITCH_SERVER_TOOL,
)

from ..adapters.mcp_client import McpConnector
from ..adapters.neighbours import BusNeighbours
from .calls import Calls
from .handlers import OutsideHandlers
from .offers import CALLED, OFFERED, Offers, OutsideArguments, OutsideResult
from .pool import Sessions
from .ports import Seal, Servers

_LIMIT = 3.0
"""Seconds that looking an address up may take."""


async def serve_outside(
    bus: Bus, neighbours: BusNeighbours, servers: Servers, seal: Seal, commands: bool, wake: Callable[[], None]
) -> None:
    """Wire them to the bus, and to the turns of this service.

    Args:
        bus: the connected bus.
        neighbours: whom turns ask.
        servers: where servers are kept.
        seal: encrypts their headers.
        commands: whether the installation starts commands.
        wake: says that there is news to send.
    """

    async def resolve(who: Principal, url: str) -> ResolvedAddress:
        return await ask(bus, who, RESOLVE_ADDRESS, ResolveAddress(url=url), timeout=_LIMIT)

    connect = McpConnector(resolve, seal, commands)
    sessions = Sessions(connect)
    bus.on_stop(sessions.close)
    handlers = OutsideHandlers(servers, connect, resolve, seal, commands, wake)
    offers = Offers(servers, Calls(servers, sessions))
    await serve(bus, ADD_SERVER_TOOL, handlers.add)
    await serve(bus, LIST_SERVERS_TOOL, handlers.list)
    await serve(bus, INSPECT_SERVER_TOOL, handlers.inspect, workers=4)
    await serve(bus, ACCEPT_TOOLS_TOOL, handlers.accept, workers=4)
    await serve(bus, JUDGE_TOOLS_TOOL, handlers.judge)
    await serve(bus, SWITCH_SERVER_TOOL, handlers.switch)
    await serve(bus, REMOVE_SERVER_TOOL, handlers.remove)
    neighbours.inside(OFFERED, offers.offered)
    neighbours.inside(Tool("outside", "Any outside tool.", Rpc(CALLED, OutsideArguments, OutsideResult)), offers.called)
