"""The endpoint at `/mcp`.

The protected resource (RFC 9728), the JSON-RPC envelope read strictly, who asks and from where; the SDK speaks the
protocol. A request is served by a session manager of its own: nothing outlives a request, so any copy of the gateway serves
any request.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import anyio
import mcp_types as types
from fastapi import APIRouter, Request
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import PROTOCOL_VERSION_META_KEY
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from phronesis_bus import Bus
from phronesis_contracts import BadRequest, Forbidden, NotFound, Principal, Risk, Unauthorized
from phronesis_contracts.orchestrator import turn_id

from ..auth.authentication import Authenticator, StrictRequest, audit_refusal
from ..auth.keys import SCOPES, WRITE, InsufficientScope, require_scope
from ..http.operations import Metrics
from ..http.requests import parse_json
from ..http.responses import PROBLEMS, json_response, problem_response, route_responses
from ..settings import McpSettings
from ..tools.offers import Offers, find_tool
from ..turns.submission import TurnService
from .server import ToolHandlers, build_server, turn_key
from .tools import SHORT_LISTS
from .turns import ASK, CANCEL_SECONDS

Envelope = dict[str, Any]


class Malformed(Exception):
    """The body is no message of the protocol."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.response = _malformed_response(code, text)


def read_envelope(body: bytes, headers: Headers) -> Envelope:
    """The message in a body.

    Raises:
        Malformed: it is no strict JSON; it is a batch or another thing than one object; its id is neither text nor an integer
            (the SDK would take it for a notification, and the caller would wait for ever); or it says in its envelope that
            it is of another revision than the header says, or of a revision that needs the header and lacks it.
    """
    try:
        message = parse_json(body)
    except BadRequest as error:
        raise Malformed(types.PARSE_ERROR, error.detail) from error
    if not isinstance(message, dict):
        raise Malformed(types.INVALID_REQUEST, "the body has to be one message; batches are not taken")
    id = message.get("id", "")
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise Malformed(types.INVALID_REQUEST, "an id is a text or an integer")
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    stated = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    if stated is not None and stated != headers.get(MCP_PROTOCOL_VERSION_HEADER):
        raise Malformed(types.HEADER_MISMATCH, f"{MCP_PROTOCOL_VERSION_HEADER} does not match the message's envelope")
    return message


def params_of(message: Envelope, method: str) -> dict[str, Any] | None:
    """The parameters of a message with this method; `None` for any other."""
    params = message.get("params")
    return params if message.get("method") == method and isinstance(params, dict) else None


def _malformed_response(code: int, text: str) -> Response:
    body = types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=text))
    return Response(body.model_dump_json(by_alias=True, exclude_unset=True), 400, media_type="application/json")


PATH = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Resource(BaseModel):
    """What a client needs to know before it asks for a token."""

    resource: str
    """Address of the MCP endpoint, which a token has to be made for."""
    authorization_servers: tuple[str, ...]
    """Who issues tokens; empty where only keys of the gateway's own are taken."""
    bearer_methods_supported: tuple[str, ...] = ("header",)
    """How a token is sent: in the header `Authorization`."""
    scopes_supported: tuple[str, ...] = SCOPES
    """The scopes that a token may be narrowed to."""
    resource_name: str = "Phronesis"
    """A name to show people."""


class ResourceNames:
    """The names under which clients may reach the resource."""

    def __init__(self, settings: McpSettings, origins: tuple[str, ...]) -> None:
        self._first = settings.urls[0] if settings.urls else None
        hosts = [urlsplit(url).netloc for url in settings.urls]
        local = [f"{scheme}://{host}" for scheme in ("http", "https") for host in _LOOPBACK]
        allowed = TransportSecuritySettings(
            allowed_hosts=[*hosts, *_LOOPBACK, *(f"{host}:*" for host in _LOOPBACK)],
            allowed_origins=[*settings.urls, *origins, *local, *(f"{origin}:*" for origin in local)],
        )
        self._check = TransportSecurityMiddleware(allowed)

    async def refused(self, request: Request) -> Response | None:
        """The refusal of a request that came under another name (421), or from a page of another origin (403)."""
        return await self._check.validate_request(request)

    def url(self, headers: Headers) -> str:
        return self._first or f"http://{headers.get('host')}"

    def challenge(self, headers: Headers, error: Unauthorized | InsufficientScope) -> Response:
        """Tell a caller what it lacks, and where to read how to get it."""
        said = [f'resource_metadata="{self.url(headers)}{WELL_KNOWN}{PATH}"']
        if isinstance(error, InsufficientScope):
            said = ['error="insufficient_scope"', f'scope="{WRITE}"', *said]
        elif "authorization" in headers:
            said = ['error="invalid_token"', *said]
        return problem_response(error.body(), {"WWW-Authenticate": f"Bearer {', '.join(said)}"})


_REFUSED: dict[int | str, dict[str, Any]] = {
    403: {"description": "The page that asks is of another origin.", "content": {"text/plain": {}}},
    421: {"description": "The installation is not known by the name that it was asked under.", "content": {"text/plain": {}}},
}


def resource_router(named: ResourceNames, issuer: str | None) -> APIRouter:
    routes = APIRouter(responses=PROBLEMS | _REFUSED, tags=["mcp"])

    @routes.get(WELL_KNOWN, operation_id="get_resource_metadata", responses=route_responses(Resource))
    @routes.get(WELL_KNOWN + PATH, responses=route_responses(Resource))
    async def get_mcp_resource_metadata(request: Request) -> Response:
        """Describe the MCP endpoint.

        What `/mcp` is and whose tokens it takes, for clients that look for an authorization server (RFC 9728).
        """
        if (refusal := await named.refused(request)) is not None:
            return refusal
        servers = () if issuer is None else (issuer,)
        return json_response(Resource(resource=named.url(request.headers) + PATH, authorization_servers=servers))

    return routes


# It warns of every client that is not there any more, and tells of each request's manager that it began and ended.
logging.getLogger("mcp").setLevel(logging.ERROR)


class McpEndpoint:
    """The application at `/mcp`, and at `/mcp/{profile}` for each of `SHORT_LISTS`."""

    def __init__(
        self,
        authenticator: Authenticator,
        named: ResourceNames,
        bus: Bus,
        turns: TurnService,
        offers: Offers,
        metrics: Metrics,
        max_body: int,
    ) -> None:
        self._authenticator = authenticator
        self._bus = bus
        self._named = named
        self._tools = ToolHandlers(bus, turns, offers)
        self._server = build_server(bus, self._tools, metrics)
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        profile = scope.get("path_params", {}).get("profile")
        scope["route"] = SimpleNamespace(path=PATH if profile is None else f"{PATH}/{{profile}}")
        request = StrictRequest(scope, receive)
        try:
            refusal = await self._named.refused(request)
            if refusal is None and profile not in (None, *SHORT_LISTS):
                refusal = problem_response(
                    NotFound(f"there is no such list of tools; there are {', '.join(SHORT_LISTS)}").body()
                )
            if refusal is None:
                who = await self._authenticator.by_headers(request.headers, tools=True)
                if request.method != "POST":
                    # There is nothing to listen to outside of a request, and no session to end.
                    refusal = Response(status_code=405, headers={"Allow": "POST"})
            if refusal is None:
                body = await request.body()
                message = read_envelope(body, request.headers)
                await self._narrow(who, message)
        except (Unauthorized, InsufficientScope) as error:
            refusal = self._named.challenge(request.headers, error)
        except Malformed as error:
            refusal = error.response
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        request.state.who, request.state.profile = who, profile
        await self._serve(scope, _replay_body(body, receive), _name_session(message, send))
        await self._cancel(who, request, message)

    async def _narrow(self, who: Principal, message: Envelope) -> None:
        """Refuse a call that the caller's scopes do not reach before anything of it is done, so that it can ask for more."""
        params = params_of(message, "tools/call") or {}
        name, given = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not (name == ASK.name or ((tool := find_tool(name)) and tool.risk is not Risk.READ)):
            return
        try:
            require_scope(who, WRITE)
        except Forbidden as error:
            await audit_refusal(self._bus, who, name, given if isinstance(given, dict) else {}, error)
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


def _replay_body(body: bytes, receive: Receive) -> Receive:
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _name_session(message: Envelope, send: Send) -> Send:
    """`send`, which gives a client of the older revision a name for its session. Nobody keeps it, and it lets nobody in: with
    it, requests have a name that is the same on every copy of the gateway."""
    if message.get("method") != "initialize":
        return send

    async def named(sent: Message) -> None:
        if sent["type"] == "http.response.start" and sent["status"] == 200:
            sent["headers"] = [*sent["headers"], (MCP_SESSION_ID_HEADER.encode(), uuid4().hex.encode())]
        await send(sent)

    return named


HEADERS = ("Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id")
