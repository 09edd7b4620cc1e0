"""A span and a count for every MCP request, by the names of the OpenTelemetry conventions."""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.methods import SPEC_CLIENT_METHODS
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from phronesis_bus import Bus
from phronesis_contracts import Principal
from phronesis_gateway.metrics import Metrics
from phronesis_gateway.traces import OWNER, owner

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Spans:
    """Middleware of the server.

    Args:
        bus: whose tracing records the spans.
        metrics: where requests are counted.
        names: the tools that there are: what a caller makes up names no span and no series.
    """

    def __init__(self, bus: Bus, metrics: Metrics, names: frozenset[str]) -> None:
        self._bus = bus
        self._metrics = metrics
        self._names = names

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer one request, or take one notification."""
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
            **{OWNER: owner(caller(context))},
        )


def caller(context: ServerRequestContext[Any, Any]) -> Principal:
    """Who asks: the endpoint wrote it into the request."""
    assert context.request is not None
    who: Principal = context.request.state.who
    return who


def _parent(context: ServerRequestContext[Any, Any]) -> str | None:
    given = (context.meta or {}).get("traceparent")
    return given if isinstance(given, str) and _TRACEPARENT.fullmatch(given) else None


def _outcome(found: HandlerResult, span: Span) -> str:
    failed = isinstance(found, dict) and found.get("isError") is True
    if failed:
        span.set_attribute("error.type", "tool_error")
        span.set_status(Status(StatusCode.ERROR, "tool_error"))
    return "tool_error" if failed else "ok"
