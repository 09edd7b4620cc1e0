"""What surrounds every request: its span, its id, its count, the greatest size of its body. Pure ASGI."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from uuid import uuid4

from opentelemetry.trace import Span, SpanKind
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from phronesis_bus import Bus, correlation
from phronesis_contracts import Internal, TooLarge

from ..auth.authentication import Share, share
from .operations import Metrics
from .responses import error_response

log = logging.getLogger(__name__)

_TRACEPARENT = re.compile(rb"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_QUIET = ("/health/", "/metrics")
"""Asked every second by machines; spans of theirs would push the turns' out of memory."""
LINGER_BYTES = 32 * 1024 * 1024
"""Bytes still read, and dropped, of a body that is too large: a connection that is closed on unread bytes is reset, and
a client that is still sending never sees the refusal."""
LINGER_SECONDS = 2.0
"""Seconds for the same."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Edge:
    """The outermost part of the application.

    Args:
        max_body: bytes of a body.
        larger: bytes of a body, for the paths that take more.
    """

    def __init__(self, app: ASGIApp, bus: Bus, metrics: Metrics, max_body: int, larger: dict[str, int]) -> None:
        self._app = app
        self._bus = bus
        self._metrics = metrics
        self._max_body = max_body
        self._larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        id = uuid4().hex
        correlation.set(id)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        limit = self._larger.get(scope["path"], self._max_body)
        mine = Share()
        share.set(mine)
        exchange = _Exchange(receive, send, id, limit, self._bus.stopping, mine)
        self._metrics.began()
        try:
            with self._span(scope, method) as span:
                await self._answer(scope, exchange)
                route = _route(scope)
                if span is not None:
                    span.update_name(f"{method} {route}")
                    span.set_attribute("http.route", route)
                    span.set_attribute("http.response.status_code", exchange.status)
                    if exchange.status >= 500:
                        span.set_attribute("error.type", str(exchange.status))
        finally:
            mine.release()
            self._metrics.answered(method, _route(scope), exchange.status, time.perf_counter() - began)

    def _span(self, scope: Scope, method: str) -> AbstractContextManager[Span | None]:
        path: str = scope["path"]
        if path.startswith(_QUIET):
            return nullcontext()
        given = next((value for name, value in scope["headers"] if name == b"traceparent"), b"")
        parent = given.decode() if _TRACEPARENT.fullmatch(given) else None
        return self._bus.tracing.span(method, kind=SpanKind.SERVER, parent=parent, http__request__method=method)

    async def _answer(self, scope: Scope, exchange: _Exchange) -> None:
        try:
            if _stated_length(scope) > exchange.limit:
                if not _expects_continue(scope):
                    await exchange.drain()
                too_large = error_response(TooLarge(f"the body is over {exchange.limit} bytes"))
                too_large.headers["Connection"] = "close"
                await too_large(scope, exchange.receive, exchange.send)
                return
            await self._app(scope, exchange.receive, exchange.send)
        except Exception:
            log.exception("a request failed")
            if exchange.status == 0:
                await error_response(Internal("the gateway failed"))(scope, exchange.receive, exchange.send)


class _Exchange:
    """One request's two ends, watched."""

    def __init__(self, receive: Receive, send: Send, id: str, limit: int, stopping: asyncio.Event, share: Share) -> None:
        self.status = 0
        """Status of the answer; 0 until it has begun."""
        self.limit = limit
        self._receive = receive
        self._send = send
        self._headers = [
            (b"x-request-id", id.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
        ]
        self._stopping = stopping
        self._share = share
        self._received = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self.limit:
                if message.get("more_body"):
                    await self.drain()
                raise HTTPException(413, f"the body is over {self.limit} bytes", {"Connection": "close"})
        return message

    async def drain(self) -> None:
        left = LINGER_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body"):
                        return

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            stated = {name.lower(): value for name, value in message["headers"]}
            added = (each for each in (*self._headers, *self._share.headers) if each[0] not in stated)
            message["headers"] = [*message["headers"], *added]
            if stated.get(b"content-type", b"").startswith(b"text/event-stream"):
                self._share.release()
            if self._stopping.is_set():  # whoever comes again is to find another gateway
                message["headers"].append((b"connection", b"close"))
        await self._send(message)


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "unknown")


def _expects_continue(scope: Scope) -> bool:
    return any(name == b"expect" for name, _ in scope["headers"])


def _stated_length(scope: Scope) -> int:
    stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(stated) if stated.isdigit() else 0
