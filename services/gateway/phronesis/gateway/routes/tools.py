"""The tools: the same contracts that models and outside systems see."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import BaseModel
from starlette.responses import Response

from phronesis.bus import Bus
from phronesis.contracts import NotFound, Tool
from phronesis.contracts.catalog import TOOLS
from phronesis.gateway.answers import PROBLEMS, answers, as_json
from phronesis.gateway.calling import call
from phronesis.gateway.door import Caller, Door, IdempotencyKey, keyed, scoped
from phronesis.gateway.scopes import READ


class ToolShown(BaseModel):
    """A tool that the caller may call."""

    name: str
    description: str
    risk: str
    """`read`, `low`, `medium` or `high`."""
    irreversible: bool
    parameters: dict[str, Any]
    """JSON schema of the input."""
    result: dict[str, Any]
    """JSON schema of the output."""


class ToolList(BaseModel):
    """The tools that the caller may call."""

    tools: tuple[ToolShown, ...]


def _shown(tool: Tool[Any, Any]) -> ToolShown:
    return ToolShown(
        name=tool.name,
        description=tool.description,
        risk=tool.risk.name.lower(),
        irreversible=tool.irreversible,
        parameters=tool.rpc.input.model_json_schema(),
        result=tool.rpc.output.model_json_schema(),
    )


_SHOWN = {name: _shown(tool) for name, tool in sorted(TOOLS.items())}


def router(door: Door, bus: Bus) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
    """
    # What a tool needs, its risk says.
    routes = APIRouter(route_class=keyed(door, READ), responses=PROBLEMS, tags=["tools"])

    @routes.get("/api/v1/tools", responses=answers(ToolList))
    async def list_tools(who: Caller) -> Response:
        """The tools that the caller's role may use."""
        return as_json(ToolList(tools=tuple(shown for name, shown in _SHOWN.items() if who.role in TOOLS[name].roles)))

    @routes.post("/api/v1/tools/{name}", responses={200: {"description": "The tool's output."}})
    async def call_tool(name: str, given: Annotated[dict[str, Any], Body()], who: Caller, key: IdempotencyKey) -> Response:
        """Call a tool. The body is its input."""
        tool = TOOLS.get(name)
        if tool is None:
            raise NotFound("there is no such tool")
        return as_json(await call(bus, who, tool, given, scoped(who, key)))

    return routes
