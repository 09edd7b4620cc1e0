"""Outside MCP servers, as administrators register, look at and accept them: the tools `mcp_servers.*` by their own paths."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field
from starlette.responses import Response

from phronesis_bus import Bus
from phronesis_contracts import Tool
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
from phronesis_gateway.answers import PROBLEMS, answers, as_json
from phronesis_gateway.calling import call
from phronesis_gateway.door import Caller, Door, IdempotencyKey, keyed, scoped
from phronesis_gateway.messages import Given
from phronesis_gateway.offers import Offers
from phronesis_gateway.scopes import READ

SERVERS = "/api/v1/mcp-servers"
Name = Annotated[ServerName, Path()]


_BY_URL: dict[str, Any] = {
    "required": ["url"],
    "properties": {"url": {"type": "string", "format": "public-address"}, "command": {"type": "null"}},
}
_BY_COMMAND: dict[str, Any] = {
    "required": ["command"],
    "properties": {"command": {"type": "array"}, "url": {"type": "null"}, "secret_headers": {"maxProperties": 0}},
}


class ServerAdded(AddServer):
    """An outside MCP server: its address, or a command."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_BY_URL, _BY_COMMAND]})


class ServerSwitched(Given):
    """Whether a server's tools may be called."""

    enabled: bool


class ToolsAccepted(Given):
    """Tools to pin as the server describes them now, and to allow."""

    tools: tuple[AllowTool, ...] = Field(min_length=1, max_length=100)
    pins: dict[ToolName, str] = Field(default_factory=dict, max_length=100, json_schema_extra=ONLY_NAMED)
    """The pins that were looked at, by tool: where a server says something else by now, nothing is accepted."""


class ToolsJudged(Given):
    """Risk and idempotence of accepted tools, and tools that are allowed no longer."""

    tools: tuple[AllowTool, ...] = Field(default=(), max_length=100)
    withdrawn: tuple[ToolName, ...] = Field(default=(), max_length=100)


def router(door: Door, bus: Bus, offers: Offers) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        offers: what each caller may call.
    """
    # What a tool needs, its risk says.
    routes = APIRouter(route_class=keyed(door, READ), responses=PROBLEMS, tags=["mcp-servers"])

    async def asked(who: Caller, tool: Tool[Any, Any], given: dict[str, Any], key: str | None = None) -> Response:
        headers = {"Location": f"{SERVERS}/{given['name']}"} if tool is ADD_SERVER_TOOL else None
        found = await call(bus, offers, who, tool, given, scoped(who, key))
        return as_json(found, 201 if headers else 200, headers)

    @routes.post(SERVERS, status_code=201, responses=answers(OutsideServer, 201))
    async def add_mcp_server(given: ServerAdded, who: Caller, key: IdempotencyKey) -> Response:
        """Register an outside MCP server. Its tools are offered to nobody before they are accepted."""
        return await asked(who, ADD_SERVER_TOOL, given.model_dump(mode="json"), key)

    @routes.get(SERVERS, responses=answers(OutsideServers))
    async def list_mcp_servers(who: Caller) -> Response:
        """The tenant's outside MCP servers, with what was accepted of them; of their headers the names alone."""
        return await asked(who, LIST_SERVERS_TOOL, {})

    @routes.patch(SERVERS + "/{name}", responses=answers(OutsideServer))
    async def switch_mcp_server(name: Name, given: ServerSwitched, who: Caller, key: IdempotencyKey) -> Response:
        """Switch a server on or off."""
        return await asked(who, SWITCH_SERVER_TOOL, {"name": name, **given.model_dump(mode="json")}, key)

    @routes.delete(SERVERS + "/{name}", responses=answers(ServerRemoved))
    async def remove_mcp_server(name: Name, who: Caller, key: IdempotencyKey) -> Response:
        """Remove a server with its tools and secrets. A second time changes nothing."""
        return await asked(who, REMOVE_SERVER_TOOL, {"name": name}, key)

    @routes.get(SERVERS + "/{name}/tools", responses=answers(Inspected))
    async def inspect_mcp_server(name: Name, who: Caller) -> Response:
        """What a server says of its tools now, and how that differs from what was accepted. The server is asked."""
        return await asked(who, INSPECT_SERVER_TOOL, {"name": name})

    @routes.put(SERVERS + "/{name}/tools", responses=answers(OutsideServer))
    async def accept_mcp_tools(name: Name, given: ToolsAccepted, who: Caller, key: IdempotencyKey) -> Response:
        """Pin what a server says of tools now, and allow them with a risk."""
        return await asked(who, ACCEPT_TOOLS_TOOL, {"name": name, **given.model_dump(mode="json")}, key)

    @routes.patch(SERVERS + "/{name}/tools", responses=answers(OutsideServer))
    async def judge_mcp_tools(name: Name, given: ToolsJudged, who: Caller, key: IdempotencyKey) -> Response:
        """Set risk and idempotence of accepted tools anew, or withdraw some. The server is not asked."""
        return await asked(who, JUDGE_TOOLS_TOOL, {"name": name, **given.model_dump(mode="json")}, key)

    return routes
