"""Accepted outside tools as agents are offered them: contracts like all others, with arguments held to the pinned schema."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from pydantic import ConfigDict, model_validator

from phronesis_bus import Call
from phronesis_contracts import Message, Principal, Rpc, Tool
from phronesis_contracts.outside import AcceptedTool

from ..turns.ports import Neighbours
from .ports import OutsideCaller, Server, Servers
from .schemas import find_fault, full_tool_name

EVERY_SERVER = "*"
"""In an agent's profile: all of the tenant's servers."""
MOST = 64
"""Outside tools that one agent is offered."""


class OutsideArguments(Message):
    """Arguments of an outside tool. Each accepted tool has a subclass that holds them to its pinned schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: ClassVar[str] = ""
    """`outside.<server>.<tool>`."""
    idempotent: ClassVar[bool] = False
    """Whether a call whose answer was lost may be made again."""
    schema_: ClassVar[dict[str, Any]] = {}

    given: dict[str, Any]
    """As they are sent."""

    @model_validator(mode="before")
    @classmethod
    def _held(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError("the arguments must be one JSON object")
        if wrong := find_fault(cls.schema_, given):
            raise ValueError(wrong)
        return {"given": given}

    @classmethod
    def model_json_schema(cls, *args: Any, **more: Any) -> dict[str, Any]:
        """The pinned schema; a copy, which may be told in fewer words."""
        found: dict[str, Any] = json.loads(json.dumps(cls.schema_))
        return found


class OutsideResult(Message):
    """What an outside tool gave: a stranger's data, and never an instruction."""

    text: str
    truncated: bool = False


class WhichServers(Message):
    """Servers by name, `*` for all."""

    servers: tuple[str, ...]


class OfferedTool(Message):
    """An accepted tool of a server that is switched on."""

    server: str
    tool: AcceptedTool


class ToolOffers(Message):
    """What an agent may be offered."""

    tools: tuple[OfferedTool, ...] = ()


OFFERED: Tool[WhichServers, ToolOffers] = Tool(
    "outside.offered", "The outside tools that are accepted.", Rpc("outside.v1.offered", WhichServers, ToolOffers)
)
CALLED = "outside.v1.called"
"""The subject that all outside tools share. Nobody serves it on the bus: turns alone ask it, of their own service."""


def build_tool(offered: OfferedTool) -> Tool[OutsideArguments, OutsideResult]:
    """An accepted tool as a contract with a face."""
    name, accepted = full_tool_name(offered.server, offered.tool.name), offered.tool
    held = type(
        "OutsideArguments_",
        (OutsideArguments,),
        {
            "__module__": __name__,
            "__annotations__": {"tool": ClassVar[str], "idempotent": ClassVar[bool], "schema_": ClassVar[dict[str, Any]]},
            "tool": name,
            "idempotent": accepted.idempotent,
            "schema_": accepted.parameters,
        },
    )
    rpc: Rpc[Any, OutsideResult] = Rpc(CALLED, held, OutsideResult)
    return Tool(name, accepted.description, rpc, risk=accepted.risk)


async def fetch_outside_tools(neighbours: Neighbours, who: Principal, servers: tuple[str, ...]) -> dict[str, Tool[Any, Any]]:
    """The outside tools of an agent by name.

    Args:
        neighbours: whom turns ask.
        who: the caller.
        servers: as the agent's profile names them; none ask nobody.

    Raises:
        ServiceError: they cannot be had at this time.
    """
    if not servers:
        return {}
    found = await neighbours.ask(who, OFFERED.rpc, WhichServers(servers=servers))
    return {tool.name: tool for tool in map(build_tool, found.tools)}


class Offers:
    """Answers turns: which outside tools there are, and what a call of one gives.

    Args:
        servers: the registered ones.
        caller: makes the calls.
    """

    def __init__(self, servers: Servers, caller: OutsideCaller) -> None:
        self._servers = servers
        self._caller = caller

    async def offered(self, call: Call, request: WhichServers) -> ToolOffers:
        """The accepted tools of servers that are switched on, 64 at most."""
        found = [server for server in await self._servers.of(call.who.tenant) if server.enabled and _named(server, request)]
        tools = [OfferedTool(server=server.name, tool=tool) for server in found for tool in server.tools]
        return ToolOffers(tools=tuple(tools[:MOST]))

    async def called(self, call: Call, request: OutsideArguments) -> OutsideResult:
        """Call a tool; see `OutsideCaller`."""
        return OutsideResult(**await self._caller.call(call.who, request.tool, request.given, call.key or ""))


def _named(server: Server, request: WhichServers) -> bool:
    return EVERY_SERVER in request.servers or server.name in request.servers
