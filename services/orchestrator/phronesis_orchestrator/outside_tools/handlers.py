"""What administrators do with outside servers, and the wiring to the bus and to turns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from phronesis_bus import Bus, Call, ask, serve
from phronesis_contracts import BadRequest, Nothing, Principal, Rpc, TimedOut, Tool
from phronesis_contracts.media import RESOLVE_ADDRESS, ResolveAddress, ResolvedAddress
from phronesis_contracts.outside import (
    ACCEPT_TOOLS_TOOL,
    ADD_SERVER_TOOL,
    INSPECT_SERVER_TOOL,
    JUDGE_TOOLS_TOOL,
    LIST_SERVERS_TOOL,
    REMOVE_SERVER_TOOL,
    SWITCH_SERVER_TOOL,
    AcceptedTool,
    AcceptTools,
    AddServer,
    AllowTool,
    CommandsOff,
    Inspected,
    JudgeTools,
    OutsideServer,
    OutsideServers,
    ServerRef,
    ServerRemoved,
    SwitchServer,
    ToolChanged,
)

from ..turns.ports import BusNeighbours
from .pool import OutsideCalls, SessionPool
from .ports import Connect, Resolve, Seal, Server, Servers, ServerSession, secrets_owner
from .schemas import CALLED, OFFERED, ListedTool, Offers, OutsideArguments, OutsideResult, compare_tools, parse_tools

if TYPE_CHECKING:
    from .mcp import McpConnector

_LOOK = 20.0
"""Seconds that looking at a server may take."""
_OURS = frozenset({"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"})
"""Headers that belong to the transport."""


class OutsideHandlers:
    """The handlers of outside servers.

    Args:
        servers: where they are kept.
        resolve: says where an address leads.
        commands: whether the installation starts commands.
    """

    def __init__(
        self, servers: Servers, connect: Connect, resolve: Resolve, seal: Seal, commands: bool, wake: Callable[[], None]
    ) -> None:
        self._servers, self._connect, self._resolve, self._seal, self._commands = servers, connect, resolve, seal, commands
        self._wake = wake

    async def add(self, call: Call, request: AddServer) -> OutsideServer:
        """Register a server. Nobody is offered anything of it before its tools are accepted.

        Raises:
            BadRequest: it contradicts itself, its address is refused, or there is no key to encrypt its headers with.
            CommandsOff: it is a command, and this installation starts none.
            Conflict: the name is taken, or the tenant has too many.
        """
        _check(request)
        if request.command is not None and not self._commands:
            raise CommandsOff("this installation starts no commands")
        if request.url is not None:
            found = await self._resolve(call.who, request.url)
            if request.secret_headers and urlsplit(request.url).scheme != "https" and not found.trusted:
                raise BadRequest("secret headers are sent over https alone", field="url")
        sealed = None
        if request.secret_headers:
            sealed = self._seal.shut(json.dumps(request.secret_headers), secrets_owner(call.who.tenant, request.name))
        added = await self._servers.add(call, request, sealed)
        self._wake()
        return added

    async def list(self, call: Call, request: Nothing) -> OutsideServers:
        """The tenant's servers; of their headers the names alone."""
        return OutsideServers(servers=tuple(server.to_contract() for server in await self._servers.of(call.who.tenant)))

    async def inspect(self, call: Call, request: ServerRef) -> Inspected:
        """What a server says of its tools now, held to what was accepted.

        Raises:
            UnknownServer: there is none of that name.
            OutsideFailed, TimedOut: it cannot be looked at.
        """
        server = await self._servers.one(call.who.tenant, request.name)
        tools = await self._look(call.who, server)
        return Inspected(server=server.to_contract(), tools=compare_tools(tools, server.tools))

    async def accept(self, call: Call, request: AcceptTools) -> OutsideServer:
        """Pin tools as the server describes them now.

        Raises:
            UnknownServer: there is none of that name.
            BadRequest: the server has no such tool, or it cannot be used; `detail` says why.
            ToolChanged: it says something else than what the caller looked at.
        """
        server = await self._servers.one(call.who.tenant, request.name)
        now = {tool.name: tool for tool in await self._look(call.who, server)}
        pinned = [_pinned(call.who, allow, now, request.pins) for allow in request.tools]
        accepted = await self._servers.accept(call, request, pinned)
        self._wake()
        return accepted

    async def judge(self, call: Call, request: JudgeTools) -> OutsideServer:
        judged = await self._servers.judge(call, request)
        self._wake()
        return judged

    async def switch(self, call: Call, request: SwitchServer) -> OutsideServer:
        switched = await self._servers.switch(call, request)
        self._wake()
        return switched

    async def remove(self, call: Call, request: ServerRef) -> ServerRemoved:
        removed = await self._servers.remove(call, request)
        self._wake()
        return removed

    async def _look(self, who: Principal, server: Server) -> Sequence[ListedTool]:
        try:
            async with asyncio.timeout(_LOOK), self._connect(who, server) as talk:
                return parse_tools(server.name, await talk.tools())
        except TimeoutError as error:
            raise TimedOut("the outside server took too long") from error


def _pinned(who: Principal, allow: AllowTool, now: dict[str, ListedTool], looked_at: dict[str, str]) -> AcceptedTool:
    tool = now.get(allow.name)
    if tool is None:
        raise BadRequest(f"the server has no tool {allow.name}", field="tools")
    if tool.reason or tool.parameters is None:
        raise BadRequest(f"{allow.name} cannot be used: {tool.reason}", field="tools")
    if looked_at.get(allow.name, tool.pin) != tool.pin:
        raise ToolChanged(f"{allow.name} is described differently by now; look at it again", field="pins")
    return AcceptedTool(
        name=tool.name,
        description=tool.description,
        parameters=dict(tool.parameters),
        pin=tool.pin,
        risk=allow.risk,
        idempotent=allow.idempotent,
        accepted_by=who.user,
        accepted_at=datetime.now(UTC),
    )


def _check(request: AddServer) -> None:
    if (request.url is None) == (request.command is None):
        raise BadRequest("give either the address of a server or a command", field="url")
    if request.command is not None and request.secret_headers:
        raise BadRequest("a command takes no headers", field="secret_headers")
    names = [name.lower() for name in request.secret_headers]
    if len(set(names)) < len(names) or any(name in _OURS or name.startswith("mcp-") for name in names):
        raise BadRequest("a header is given once, and none that belongs to the transport", field="secret_headers")
    if any("\x00" in part for part in request.command or ()):
        raise BadRequest("the command holds a NUL character", field="command")


_LIMIT = 3.0
"""Seconds that looking an address up may take."""


async def serve_outside(
    bus: Bus, neighbours: BusNeighbours, servers: Servers, seal: Seal, commands: bool, wake: Callable[[], None]
) -> None:
    """Wire them to the bus, and to the turns of this service.

    Args:
        servers: where servers are kept.
        commands: whether the installation starts commands.
    """

    async def resolve(who: Principal, url: str) -> ResolvedAddress:
        return await ask(bus, who, RESOLVE_ADDRESS, ResolveAddress(url=url), timeout=_LIMIT)

    @asynccontextmanager
    async def connect(who: Principal, server: Server) -> AsyncIterator[ServerSession]:
        connector = await asyncio.to_thread(_load_connector)
        async with connector(resolve, seal, commands)(who, server) as session:
            yield session

    sessions = SessionPool(connect)
    bus.on_stop(sessions.close)
    handlers = OutsideHandlers(servers, connect, resolve, seal, commands, wake)
    offers = Offers(servers, OutsideCalls(servers, sessions))
    await serve(bus, ADD_SERVER_TOOL, handlers.add)
    await serve(bus, LIST_SERVERS_TOOL, handlers.list)
    await serve(bus, INSPECT_SERVER_TOOL, handlers.inspect, workers=4)
    await serve(bus, ACCEPT_TOOLS_TOOL, handlers.accept, workers=4)
    await serve(bus, JUDGE_TOOLS_TOOL, handlers.judge)
    await serve(bus, SWITCH_SERVER_TOOL, handlers.switch)
    await serve(bus, REMOVE_SERVER_TOOL, handlers.remove)
    neighbours.inside(OFFERED, offers.offered)
    neighbours.inside(Tool("outside", "Any outside tool.", Rpc(CALLED, OutsideArguments, OutsideResult)), offers.called)


def _load_connector() -> type[McpConnector]:
    """The SDK takes a third of the service's start to load, and most installations have no external server."""
    from .mcp import McpConnector

    return McpConnector
