"""The MCP server: it lists tools and calls them. What it needs of a request is in the request; it keeps nothing."""

from __future__ import annotations

import re
from typing import Any, TypeVar
from uuid import uuid4

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from phronesis_bus import VERSION, Bus
from phronesis_contracts import BadRequest, Message, Risk, ServiceError
from phronesis_gateway.calling import call
from phronesis_gateway.metrics import Metrics
from phronesis_gateway.offers import Offers
from phronesis_gateway.problems import invalid
from phronesis_gateway.submission import Turns

from .results import refused, result
from .searching import SEARCH, SearchTools, search
from .shown import NAMES, find, listed, shown
from .spans import Spans, caller
from .turns import ASK, Ask, Asking

KEY = "phronesis/idempotency_key"
"""Member of a call's `_meta`: what `Idempotency-Key` is by HTTP."""
M = TypeVar("M", bound=Message)
_KEY = re.compile(r"[ -~]{1,255}")
_FRESH = 60_000
"""Milliseconds that a client may believe a list of tools."""
_OWN = frozenset({ASK.name, SEARCH.name})
"""Tools of the gateway's own."""


class Tools:
    """The handlers.

    Args:
        bus: the connected bus.
        turns: hands turns in and waits for them.
        offers: what each caller may call.
    """

    def __init__(self, bus: Bus, turns: Turns, offers: Offers) -> None:
        self._bus = bus
        self._offers = offers
        self.asking = Asking(bus, turns)

    async def list(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """The tools that the caller may use, on one page; as many as there is room for, and the one that finds the others."""
        if params is not None and params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "there is no such page")
        try:
            tools = await self._offers.of(caller(context))
        except ServiceError as error:
            raise MCPError(types.INTERNAL_ERROR, error.detail, error.body()) from error
        return types.ListToolsResult(tools=listed(tools))

    async def call(self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool. A problem is a result that says so; only a tool that there is not is an error of the protocol."""
        if params.name not in _OWN and find(params.name) is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such tool")
        try:
            return await self._call(context, params.name, params.arguments or {})
        except ServiceError as error:
            return refused(error)

    async def _call(self, context: ServerRequestContext[Any, Any], name: str, given: dict[str, Any]) -> types.CallToolResult:
        who, key = caller(context), _key(context)
        if name == ASK.name:
            return await self.asking.ask(
                who, _checked(Ask, given), key or _named(context) or uuid4().hex, context.session.report_progress
            )
        if name == SEARCH.name:
            return result(search(await self._offers.of(who), _checked(SearchTools, given)), reads=True)
        tool = find(name)
        assert tool is not None
        found = await call(self._bus, self._offers, who, tool, given, None if key is None else f"mcp/{who.user}/{key}")
        return result(found, reads=tool.risk is Risk.READ)


def server(bus: Bus, tools: Tools, metrics: Metrics) -> Server[Any]:
    """The server, for both revisions of the protocol."""
    made: Server[Any] = Server(
        "phronesis",
        version=VERSION,
        cache_hints={"tools/list": CacheHint(_FRESH, "private"), "server/discover": CacheHint(_FRESH, "private")},
        get_tool_input_schema=lambda name: shown(name).input_schema if name in NAMES else None,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )
    made.middleware = [Spans(bus, metrics, NAMES | _OWN)]
    return made


def turn_key(session: str | None, request: Any) -> str | None:
    """The key of the turn that the request `request` of `session` handed in; `None` where it has no such name.

    In the older revision a call is cancelled by a notification of its own, which may reach another copy of the gateway. The
    name says which turn is meant, to any of them; it is the caller's own turn, whoever's session is named.
    """
    if session is None or not isinstance(request, str | int):
        return None
    key = f"mcp/{session}/{request!r}"
    return key if _KEY.fullmatch(key) else None


def _named(context: ServerRequestContext[Any, Any]) -> str | None:
    if context.request is None or context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return None
    return turn_key(context.request.headers.get(MCP_SESSION_ID_HEADER), context.request_id)


def _key(context: ServerRequestContext[Any, Any]) -> str | None:
    key = (context.meta or {}).get(KEY)
    if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise BadRequest("an idempotency key is 1 to 255 printable ASCII characters", field=f"_meta.{KEY}")
    return key


def _checked(kind: type[M], given: dict[str, Any]) -> M:
    try:
        return kind.model_validate(given)
    except ValidationError as fault:
        raise invalid(fault.errors(include_url=False, include_context=False, include_input=False)) from fault
