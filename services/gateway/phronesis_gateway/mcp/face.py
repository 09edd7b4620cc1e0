"""The endpoint: who asks, from where and what is checked here; the SDK speaks the protocol.

A request is served by a session manager of its own. Nothing outlives a request, so any copy of the gateway serves any
request, a request's span and its id reach its handler, and closing its stream ends all that it began.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from uuid import uuid4

import anyio
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from phronesis_bus import Bus
from phronesis_contracts import Principal, Risk, Unauthorized
from phronesis_contracts.orchestrator import turn_id
from phronesis_gateway.audit import refused
from phronesis_gateway.door import Door, StrictRequest
from phronesis_gateway.metrics import Metrics
from phronesis_gateway.offers import Offers, find
from phronesis_gateway.scopes import WRITE, InsufficientScope, require
from phronesis_gateway.submission import Turns

from .envelope import Envelope, Malformed, opened, params_of
from .resource import PATH, Named
from .server import Tools, server, turn_key
from .turns import ASK, CANCEL_SECONDS

# It warns of every client that is not there any more, and tells of each request's manager that it began and ended.
logging.getLogger("mcp").setLevel(logging.ERROR)


class Face:
    """The application at `/mcp`.

    Args:
        door: lets callers in.
        named: the names under which it may be reached.
        bus: the connected bus.
        turns: hands turns in and waits for them.
        offers: what each caller may call.
        metrics: where requests are counted.
        max_body: bytes of a body.
    """

    def __init__(
        self, door: Door, named: Named, bus: Bus, turns: Turns, offers: Offers, metrics: Metrics, max_body: int
    ) -> None:
        self._door = door
        self._bus = bus
        self._named = named
        self._tools = Tools(bus, turns, offers)
        self._server = server(bus, self._tools, metrics)
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["route"] = SimpleNamespace(path=PATH)
        request = StrictRequest(scope, receive)
        try:
            refusal = await self._named.refused(request)
            if refusal is None:
                who = await self._door.by_headers(request.headers)
                if request.method != "POST":
                    # There is nothing to listen to outside of a request, and no session to end.
                    refusal = Response(status_code=405, headers={"Allow": "POST"})
            if refusal is None:
                body = await request.body()
                message = opened(body, request.headers)
                await self._narrow(who, message)
        except (Unauthorized, InsufficientScope) as error:
            refusal = self._named.challenge(request.headers, error)
        except Malformed as error:
            refusal = error.response
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        request.state.who = who
        await self._serve(scope, _again(body, receive), _naming(message, send))
        await self._cancel(who, request, message)

    async def _narrow(self, who: Principal, message: Envelope) -> None:
        """Refuse a call that the caller's scopes do not reach before anything of it is done, so that it can ask for more."""
        params = params_of(message, "tools/call") or {}
        name, given = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not (name == ASK.name or ((tool := find(name)) and tool.risk is not Risk.READ)):
            return
        try:
            require(who, WRITE)
        except InsufficientScope as error:
            await refused(self._bus, who, name, given if isinstance(given, dict) else {}, error)
            raise

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(self._server, stateless=True, max_request_body_size=self._max_body)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def _cancel(self, who: Principal, request: Request, message: Envelope) -> None:
        """What the older revision asks for by a notification: end the turn that a request handed in."""
        params = params_of(message, "notifications/cancelled")
        key = turn_key(request.headers.get(MCP_SESSION_ID_HEADER), params.get("requestId")) if params else None
        if key is not None:
            with anyio.move_on_after(CANCEL_SECONDS):
                await self._tools.asking.cancel(who, turn_id(who.tenant, who.user, key))


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive`, with a body that was read already."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _naming(message: Envelope, send: Send) -> Send:
    """`send`, which gives a client of the older revision a name for its session. Nobody keeps it, and it lets nobody in: with
    it, requests have a name that is the same on every copy of the gateway."""
    if message.get("method") != "initialize":
        return send

    async def named(sent: Message) -> None:
        if sent["type"] == "http.response.start" and sent["status"] == 200:
            sent["headers"] = [*sent["headers"], (MCP_SESSION_ID_HEADER.encode(), uuid4().hex.encode())]
        await send(sent)

    return named
