"""The MCP server.

It lists tools and calls them, with a span and a count for every request. What it needs of a request is in the request; it
keeps nothing.
"""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from uuid import uuid4

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError
from mcp_types.methods import SPEC_CLIENT_METHODS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from pydantic import ValidationError

from phronesis_bus import VERSION, Bus
from phronesis_contracts import BadRequest, Message, Principal, Risk, ServiceError

from ..http.operations import Metrics
from ..http.responses import invalid_input
from ..tools.offers import Offers, call_tool, find_tool
from ..turns.submission import OWNER, TurnService, owner_of
from .tools import NAMES, SEARCH, SHORT_LISTS, SearchTools, describe_tool, list_tools, rank_tools
from .turns import ASK, Ask, AskTool, error_result, success_result

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class SpanMiddleware:
    """Middleware of the server. `names`: the tools that there are: what a caller makes up names no span and no series."""

    def __init__(self, bus: Bus, metrics: Metrics, names: frozenset[str]) -> None:
        self._bus = bus
        self._metrics = metrics
        self._names = names

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        method = ctx.method if ctx.method in SPEC_CLIENT_METHODS else "other"
        name = (ctx.params or {}).get("name")
        tool = name if method == "tools/call" and isinstance(name, str) and name in self._names else None
        began, outcome = time.perf_counter(), "error"
        try:
            with self._span(ctx, method, tool) as span:
                found = await call_next(ctx)
                outcome = _outcome(found, span)
                return found
        except MCPError as error:
            outcome = str(error.code)
            raise
        finally:
            self._metrics.mcp(method, tool or "", outcome, time.perf_counter() - began)

    def _span(self, context: ServerRequestContext[Any, Any], method: str, tool: str | None) -> AbstractContextManager[Span]:
        return self._bus.tracing.span(
            f"{method} {tool}" if tool else method,
            kind=SpanKind.SERVER,
            parent=_parent(context),
            mcp__method__name=method,
            mcp__protocol__version=context.protocol_version,
            gen_ai__operation__name="execute_tool" if tool else None,
            gen_ai__tool__name=tool,
            **{OWNER: owner_of(caller(context))},
        )


def caller(context: ServerRequestContext[Any, Any]) -> Principal:
    """Who asks: the endpoint wrote it into the request."""
    assert context.request is not None
    who: Principal = context.request.state.who
    return who


def _profile(context: ServerRequestContext[Any, Any]) -> str | None:
    """The short list that the request came for, if any."""
    assert context.request is not None
    profile: str | None = context.request.state.profile
    return profile


def _parent(context: ServerRequestContext[Any, Any]) -> str | None:
    given = (context.meta or {}).get("traceparent")
    return given if isinstance(given, str) and _TRACEPARENT.fullmatch(given) else None


def _outcome(found: HandlerResult, span: Span) -> str:
    failed = isinstance(found, dict) and found.get("isError") is True
    if failed:
        span.set_attribute("error.type", "tool_error")
        span.set_status(Status(StatusCode.ERROR, "tool_error"))
    return "tool_error" if failed else "ok"


KEY = "phronesis/idempotency_key"
"""Member of a call's `_meta`: what `Idempotency-Key` is by HTTP."""
M = TypeVar("M", bound=Message)
_KEY = re.compile(r"[ -~]{1,255}")
_FRESH = 60_000
"""Milliseconds that a client may believe a list of tools."""
_OWN = frozenset({ASK.name, SEARCH.name})
"""Tools of the gateway's own."""


class ToolHandlers:
    def __init__(self, bus: Bus, turns: TurnService, offers: Offers) -> None:
        self._bus = bus
        self._offers = offers
        self.asking = AskTool(bus, turns)

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
        return types.ListToolsResult(tools=list_tools(tools, _profile(context)))

    async def call(self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool. A problem is a result that says so; only a tool that there is not is an error of the protocol."""
        tool, profile = find_tool(params.name), _profile(context)
        told = params.name in _OWN if tool is None else profile is None or tool.name in SHORT_LISTS[profile]
        if not told:
            raise MCPError(types.INVALID_PARAMS, "there is no such tool")
        try:
            return await self._call(context, params.name, params.arguments or {})
        except ServiceError as error:
            return error_result(error)

    async def _call(self, context: ServerRequestContext[Any, Any], name: str, given: dict[str, Any]) -> types.CallToolResult:
        who, key = caller(context), _idempotency_key(context)
        if name == ASK.name:
            return await self.asking.ask(
                who, _validate(Ask, given), key or _session_name(context) or uuid4().hex, context.session.report_progress
            )
        if name == SEARCH.name:
            return success_result(rank_tools(await self._offers.of(who), _validate(SearchTools, given)), reads=True)
        tool = find_tool(name)
        assert tool is not None
        found = await call_tool(self._bus, self._offers, who, tool, given, None if key is None else f"mcp/{who.user}/{key}")
        return success_result(found, reads=tool.risk is Risk.READ)


def build_server(bus: Bus, tools: ToolHandlers, metrics: Metrics) -> Server[Any]:
    """The server, for both revisions of the protocol."""
    made: Server[Any] = Server(
        "phronesis",
        version=VERSION,
        cache_hints={"tools/list": CacheHint(_FRESH, "private"), "server/discover": CacheHint(_FRESH, "private")},
        get_tool_input_schema=lambda name: describe_tool(name).input_schema if name in NAMES else None,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )
    made.middleware = [SpanMiddleware(bus, metrics, NAMES | _OWN)]
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


def _session_name(context: ServerRequestContext[Any, Any]) -> str | None:
    if context.request is None or context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return None
    return turn_key(context.request.headers.get(MCP_SESSION_ID_HEADER), context.request_id)


def _idempotency_key(context: ServerRequestContext[Any, Any]) -> str | None:
    key = (context.meta or {}).get(KEY)
    if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise BadRequest("an idempotency key is 1 to 255 printable ASCII characters", field=f"_meta.{KEY}")
    return key


def _validate(kind: type[M], given: dict[str, Any]) -> M:
    try:
        return kind.model_validate(given)
    except ValidationError as fault:
        raise invalid_input(fault.errors(include_url=False, include_context=False, include_input=False)) from fault
