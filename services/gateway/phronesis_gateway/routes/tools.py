"""The tools: the same contracts that models and outside systems see."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import BaseModel
from starlette.responses import Response

from phronesis_bus import Bus
from phronesis_contracts import NotFound
from phronesis_contracts.catalog import TOOLS
from phronesis_gateway.answers import PROBLEMS, answers, as_json
from phronesis_gateway.calling import call
from phronesis_gateway.door import Caller, Door, IdempotencyKey, keyed, scoped
from phronesis_gateway.offers import Offers, find
from phronesis_gateway.scopes import READ


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


@cache
def _shown(name: str) -> ToolShown:
    tool = TOOLS[name]
    return ToolShown(
        name=tool.name,
        description=tool.description,
        risk=tool.risk.name.lower(),
        irreversible=tool.irreversible,
        parameters=tool.rpc.input.model_json_schema(),
        result=tool.rpc.output.model_json_schema(),
    )


def router(door: Door, bus: Bus, offers: Offers) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        offers: what each caller may call.
    """
    # What a tool needs, its risk says.
    routes = APIRouter(route_class=keyed(door, READ), responses=PROBLEMS, tags=["tools"])

    @routes.get("/api/v1/tools", responses=answers(ToolList))
    async def list_tools(who: Caller) -> Response:
        """The tools that the caller may use: those of its role, and of an agent's role those that its list has."""
        return as_json(ToolList(tools=tuple(_shown(name) for name in sorted(tool.name for tool in await offers.of(who)))))

    @routes.post("/api/v1/tools/{name}", responses={200: {"description": "The tool's output."}})
    async def call_tool(name: str, given: Annotated[dict[str, Any], Body()], who: Caller, key: IdempotencyKey) -> Response:
        """Call a tool. The body is its input."""
        tool = find(name)
        if tool is None:
            raise NotFound("there is no such tool")
        return as_json(await call(bus, offers, who, tool, given, scoped(who, key)))

    return routes
