"""The routes of the tools, of outside MCP servers, and of the ledger of model calls: each calls the catalog's tools."""

from __future__ import annotations

import re
from datetime import date
from functools import cache, partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool
from starlette.responses import Response

from phronesis_bus import Bus
from phronesis_contracts import NotFound
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.ledger import LIMITS_GET_TOOL, LIMITS_SET_TOOL, USAGE_GET_TOOL, Limits, Part, SetLimit, UsageSums
from phronesis_contracts.outside import (
    ACCEPT_TOOLS_TOOL,
    ADD_SERVER_TOOL,
    INSPECT_SERVER_TOOL,
    JUDGE_TOOLS_TOOL,
    LIST_SERVERS_TOOL,
    ONLY_NAMED,
    REMOVE_SERVER_TOOL,
    SWITCH_SERVER_TOOL,
    AddServer,
    AllowTool,
    Inspected,
    OutsideServer,
    OutsideServers,
    ServerName,
    ServerRemoved,
    ToolName,
)

from ..auth.authentication import Authenticator, Caller, IdempotencyKey, authenticated_route
from ..auth.keys import READ
from ..http.requests import Given
from ..http.responses import PROBLEMS, json_response, refusals, route_responses
from .offers import Offers, find_tool, tool_response


class ToolShown(BaseModel):
    """A tool that the caller may call."""

    name: str
    """The name to call it by."""
    description: str
    """What it does, in a sentence or two."""
    risk: str
    """`read`, `low`, `medium` or `high`."""
    irreversible: bool
    """Whether what it does cannot be undone."""
    parameters: dict[str, Any]
    """JSON schema of the input."""
    result: dict[str, Any]
    """JSON schema of the output."""


class ToolList(BaseModel):
    """The tools that the caller may call."""

    tools: tuple[ToolShown, ...]
    """The tools, by name."""


@cache
def _describe_tool(name: str) -> ToolShown:
    tool = TOOLS[name]
    return ToolShown(
        name=tool.name,
        description=tool.description,
        risk=tool.risk.name.lower(),
        irreversible=tool.irreversible,
        parameters=tool.rpc.input.model_json_schema(),
        result=tool.rpc.output.model_json_schema(),
    )


def tools_router(authenticator: Authenticator, bus: Bus, offers: Offers) -> APIRouter:
    # What a tool needs, its risk says.
    routes = APIRouter(route_class=authenticated_route(authenticator, READ, tools=True), responses=PROBLEMS, tags=["tools"])

    @routes.get("/api/v1/tools", responses=route_responses(ToolList))
    async def list_tools(who: Caller) -> Response:
        """List the tools you can call.

        Those that the caller's role and agents open; of an agent with a list, those of its list. With the JSON schemas of what
        goes in and comes out.
        """
        return json_response(
            ToolList(tools=tuple(_describe_tool(name) for name in sorted(tool.name for tool in await offers.of(who))))
        )

    @routes.post("/api/v1/tools/{name}", responses={200: {"description": "The tool's output."}, **refusals(409, 410)})
    async def call_tool(
        name: Annotated[str, Path(description="The tool's name.")],
        given: Annotated[dict[str, Any], Body()],
        who: Caller,
        key: IdempotencyKey,
    ) -> Response:
        """Call a tool.

        The body is the tool's input and the answer its output, as `/api/v1/tools` describes them.
        """
        tool = find_tool(name)
        if tool is None:
            raise NotFound("there is no such tool")
        return await tool_response(bus, offers, who, tool, given, key)

    return routes


SERVERS = "/api/v1/mcp-servers"
Name = Annotated[ServerName, Path(description="The server's name.")]


_BY_URL: dict[str, Any] = {
    "required": ["url"],
    "properties": {"url": {"type": "string", "format": "public-address", "minLength": 1}, "command": {"type": "null"}},
}
_BY_COMMAND: dict[str, Any] = {
    "required": ["command"],
    "properties": {
        "command": {"type": "array", "items": {"type": "string"}},
        "url": {"type": "null"},
        "secret_headers": {"maxProperties": 0},
    },
}


class ServerAdded(AddServer, defer_build=False):  # a body of a route: FastAPI wants it complete
    """An outside MCP server: its address, or a command."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_BY_URL, _BY_COMMAND]})


class ServerSwitched(Given):
    """Whether a server's tools may be called."""

    enabled: StrictBool
    """True for its tools to be called, false for none of them."""


class ToolsAccepted(Given):
    """Tools to pin as the server describes them now, and to allow."""

    tools: tuple[AllowTool, ...] = Field(min_length=1, max_length=100)
    """The tools to accept, 1 to 100, with their risk."""
    pins: dict[ToolName, str] = Field(default_factory=dict, max_length=100, json_schema_extra=ONLY_NAMED)
    """The pins that were looked at, by tool: where a server says something else by now, nothing is accepted."""


class ToolsJudged(Given):
    """Risk and idempotence of accepted tools, and tools that are allowed no longer."""

    tools: tuple[AllowTool, ...] = Field(default=(), max_length=100)
    """Accepted tools with the risk that they have from now on, 100 at most."""
    withdrawn: tuple[ToolName, ...] = Field(default=(), max_length=100)
    """Names of accepted tools that may not be called any more, 100 at most."""


def mcp_servers_router(authenticator: Authenticator, bus: Bus, offers: Offers) -> APIRouter:
    # What a tool needs, its risk says.
    routes = APIRouter(
        route_class=authenticated_route(authenticator, READ, tools=True), responses=PROBLEMS, tags=["mcp-servers"]
    )

    asked = partial(tool_response, bus, offers)

    @routes.post(SERVERS, status_code=201, responses=route_responses(OutsideServer, 201))
    async def add_mcp_server(given: ServerAdded, who: Caller, key: IdempotencyKey) -> Response:
        """Register an outside MCP server.

        Its tools are offered to nobody before they are accepted. For administrators.
        """
        return await asked(who, ADD_SERVER_TOOL, given.model_dump(mode="json"), key, created=f"{SERVERS}/{given.name}")

    @routes.get(SERVERS, responses=route_responses(OutsideServers))
    async def list_mcp_servers(who: Caller) -> Response:
        """List outside MCP servers.

        The tenant's, with what was accepted of them; of their secret headers the names alone.
        """
        return await asked(who, LIST_SERVERS_TOOL, {})

    @routes.patch(SERVERS + "/{name}", responses=route_responses(OutsideServer))
    async def switch_mcp_server(name: Name, given: ServerSwitched, who: Caller, key: IdempotencyKey) -> Response:
        """Switch an outside MCP server on or off.

        While it is off none of its tools can be called.
        """
        return await asked(who, SWITCH_SERVER_TOOL, {"name": name, **given.model_dump(mode="json")}, key)

    @routes.delete(SERVERS + "/{name}", responses=route_responses(ServerRemoved))
    async def remove_mcp_server(name: Name, who: Caller, key: IdempotencyKey) -> Response:
        """Remove an outside MCP server.

        With its tools and secrets. A second time changes nothing.
        """
        return await asked(who, REMOVE_SERVER_TOOL, {"name": name}, key)

    @routes.get(SERVERS + "/{name}/tools", responses=route_responses(Inspected))
    async def inspect_mcp_server(name: Name, who: Caller) -> Response:
        """Look at an outside MCP server's tools.

        The server is asked what it says of its tools now, and the answer tells how that differs from what was accepted.
        """
        return await asked(who, INSPECT_SERVER_TOOL, {"name": name})

    @routes.put(SERVERS + "/{name}/tools", responses=route_responses(OutsideServer))
    async def accept_mcp_tools(name: Name, given: ToolsAccepted, who: Caller, key: IdempotencyKey) -> Response:
        """Accept tools of an outside MCP server.

        What the server says of them now is pinned, and they are allowed with a risk. The server is asked.
        """
        return await asked(who, ACCEPT_TOOLS_TOOL, {"name": name, **given.model_dump(mode="json")}, key)

    @routes.patch(SERVERS + "/{name}/tools", responses=route_responses(OutsideServer))
    async def judge_mcp_tools(name: Name, given: ToolsJudged, who: Caller, key: IdempotencyKey) -> Response:
        """Change the risk of accepted tools, or withdraw them.

        The server is not asked.
        """
        return await asked(who, JUDGE_TOOLS_TOOL, {"name": name, **given.model_dump(mode="json")}, key)

    return routes


USAGE = "/api/v1/usage"
LIMITS = "/api/v1/limits"


def _parse_day(value: Any) -> Any:
    if isinstance(value, str) and not _DAY.fullmatch(value):
        raise ValueError("a day is wanted, as 2026-01-31")
    return value


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Day = Annotated[date, BeforeValidator(_parse_day)]
"""A day as ISO 8601 writes it; no number of seconds is one."""


def ledger_router(authenticator: Authenticator, bus: Bus, offers: Offers) -> APIRouter:
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["ledger"])

    @routes.get(USAGE, responses=route_responses(UsageSums))
    async def get_usage(
        who: Caller,
        since: Annotated[Day | None, Query(description="The first day, in UTC; the first of this month by default.")] = None,
        until: Annotated[Day | None, Query(description="The last day, in UTC; today by default.")] = None,
        by: Annotated[tuple[Part, ...], Query(max_length=5, description="What the sums are apart by.")] = ("agent", "model"),
        agent: Annotated[str | None, Query(max_length=64, description="Only this agent's calls.")] = None,
        user: Annotated[
            str | None, Query(max_length=64, description="Only this user's calls; others' for administrators.")
        ] = None,
        turn_id: Annotated[UUID | None, Query(description="Only this turn's calls.")] = None,
    ) -> Response:
        """Get what model calls used.

        The caller's own, and for an administrator the tenant's; of this month where nothing else is asked for.
        """
        given = {"since": since, "until": until, "by": by, "agent": agent, "user": user, "turn_id": turn_id}
        return await tool_response(bus, offers, who, USAGE_GET_TOOL, given)

    @routes.get(LIMITS, responses=route_responses(Limits))
    async def get_limits(who: Caller) -> Response:
        """Get the limits of tokens and money.

        Those that bear on the caller, for an administrator all of the tenant's, with what is used of each.
        """
        return await tool_response(bus, offers, who, LIMITS_GET_TOOL, {})

    @routes.put(LIMITS, responses=route_responses(Limits))
    async def put_limit(limit: SetLimit, who: Caller, key: IdempotencyKey) -> Response:
        """Set or remove a limit.

        Of tokens or money, for the tenant, an agent or a user. One that states neither `tokens` nor `usd` is removed. For
        administrators.
        """
        given = limit.model_dump(exclude_none=True)
        return await tool_response(bus, offers, who, LIMITS_SET_TOOL, given, key)

    return routes
