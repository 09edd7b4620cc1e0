"""The table of contents of the gateway: everything it is made of, and every route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from phronesis_bus import VERSION, Bus, Watch, follow, serve_basics
from phronesis_contracts.instructions import RELEASED
from phronesis_contracts.media import MAX_UPLOAD
from phronesis_contracts.orchestrator import PROGRESS
from phronesis_contracts.service import KEY_REVOKED

from . import console, openai
from .auth.authentication import Authenticator, Limits, OpenStreams
from .auth.handlers import BusKeys, bus_keys_router, keys_router, me_router
from .auth.keyring import Keyring
from .auth.keys import USER, KeyStore, SessionStore
from .auth.tickets import Tickets
from .auth.tokens import IssuerKeys, TokenVerifier
from .auth.users import Keeper, PostgresUsers, users_router
from .description import operation_id, serve_description
from .http.edge import Edge
from .http.operations import Metrics, Readiness, operations_router
from .http.responses import install_error_handlers
from .http.uploads import ENVELOPE, MEDIA, UploadReceiver, media_router
from .mcp.endpoint import HEADERS, PATH, McpEndpoint, ResourceNames, resource_router
from .settings import GatewaySettings, JwtSettings, McpSettings, ToolSettings
from .tools.agents import agents_router
from .tools.handlers import ledger_router, mcp_servers_router, tools_router
from .tools.memory import memory_router
from .tools.offers import AllowLists, Offers, profile_reader
from .turns.conversations import (
    action_policy_router,
    approvals_router,
    conversations_router,
    profile_router,
    strategies_router,
)
from .turns.handlers import chat_router, events_router, schedules_router, tasks_router, turns_router
from .turns.submission import TraceCollector, TurnService

Ping = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Gateway:
    """A wired gateway: its application, and what ends what would keep requests open."""

    app: ASGIApp
    closing: Callable[[], None]


@dataclass(frozen=True)
class Tokens:
    """An identity provider whose tokens are taken: what its tokens say, and its public keys."""

    settings: JwtSettings
    keys: IssuerKeys


async def build(
    bus: Bus,
    store: KeyStore,
    sessions: SessionStore,
    users: PostgresUsers,
    settings: GatewaySettings,
    pings: dict[str, Ping],
    tokens: Tokens | None = None,
    mcp: McpSettings | None = None,
    retired: ToolSettings | None = None,
) -> Gateway:
    """Wire the gateway.

    Args:
        pings: the gateway's own dependencies by name.
        tokens: whose tokens are taken beside keys; nobody's by default.
        mcp: what the operator set for agents; loopback alone by default.
        retired: the tools that are not to be used any more; none by default.
    """
    parts = Parts(bus, store, sessions, users, settings, {"bus": bus.ping, **pings}, tokens, mcp, retired)
    await parts.watch.start()
    await serve_basics(bus, parts.pings)
    await follow(bus, KEY_REVOKED, parts.bus_keys.on_key_revoked, workers=1)
    await follow(bus, RELEASED, parts.allowed.on_released, every_copy=True)
    parts.bus_keys.start()
    parts.keeper.start()
    larger = dict.fromkeys((MEDIA, openai.FILES), MAX_UPLOAD + ENVELOPE) | {openai.EMBEDDINGS: openai.MAX_EMBEDDINGS}
    edge = Edge(build_api(parts), bus, parts.metrics, settings.max_body, larger)
    return Gateway(edge, parts.close)


class Parts:
    """What the routes are made of. Nothing is asked and nothing is opened here."""

    def __init__(
        self,
        bus: Bus,
        store: KeyStore,
        sessions: SessionStore,
        users: PostgresUsers,
        settings: GatewaySettings,
        pings: dict[str, Ping],
        tokens: Tokens | None = None,
        mcp: McpSettings | None = None,
        retired: ToolSettings | None = None,
    ) -> None:
        self.bus = bus
        self.store = store
        self.sessions = sessions
        self.users = users
        self.keeper = Keeper(bus, users)
        self.settings = settings
        self.pings = pings
        self.watch = Watch(bus, PROGRESS)
        self.readiness = Readiness(bus, pings)
        self.streams = OpenStreams(settings.max_streams, settings.max_streams_per_key)
        self.metrics = Metrics(self.streams, bus.tracing)
        self.tickets = Tickets.load(bus.settings.signing_key_file)
        self.keyring = Keyring(store)
        self.bus_keys = BusKeys(bus, store)
        self.tokens = tokens
        jwts = TokenVerifier(tokens.settings, tokens.keys) if tokens else None
        self.authenticator = Authenticator(self.keyring, self.tickets, sessions, Limits(settings, self.metrics.refused), jwts)
        self.turns = TurnService(bus, self.watch, settings.accept_wait)
        self.named = ResourceNames(mcp or McpSettings(urls=()), settings.cors_origins)
        self.allowed = AllowLists(profile_reader(bus))
        self.offers = Offers(self.allowed, (retired or ToolSettings(retired=())).retired)
        self.mcp = McpEndpoint(self.authenticator, self.named, bus, self.turns, self.offers, self.metrics, settings.max_body)

    def close(self) -> None:
        self.readiness.stopping = True
        if self.tokens is not None:
            self.tokens.keys.close()
        self.watch.close()


def build_api(parts: Parts) -> FastAPI:
    app = FastAPIOffline(
        title="Phronesis",
        version=VERSION,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
        # Swagger UI would otherwise send the address of the description to a public validator.
        swagger_ui_parameters={"validatorUrl": None},
    )
    install_error_handlers(app)
    settings, authenticator, bus = parts.settings, parts.authenticator, parts.bus
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=(
                "Authorization",
                "Content-Type",
                "Idempotency-Key",
                "If-Match",
                "Last-Event-ID",
                USER,
                "X-File-Name",
                *HEADERS,
                *openai.HEADERS,
            ),
            expose_headers=(
                "ETag",
                "Location",
                "RateLimit",
                "RateLimit-Policy",
                "Retry-After",
                "X-Request-Id",
                "WWW-Authenticate",
                "Mcp-Session-Id",
            ),
        )
    app.include_router(turns_router(authenticator, bus, parts.turns, TraceCollector(bus), settings.wait))
    app.include_router(chat_router(authenticator, parts.turns, settings.wait))
    app.include_router(
        events_router(authenticator, parts.turns, parts.watch, parts.streams, parts.tickets, settings.stream_seconds)
    )
    app.include_router(conversations_router(authenticator, bus))
    app.include_router(approvals_router(authenticator, bus))
    app.include_router(action_policy_router(authenticator, bus))
    app.include_router(schedules_router(authenticator, bus))
    app.include_router(strategies_router(authenticator, bus))
    app.include_router(tasks_router(authenticator, bus, parts.turns, parts.watch, parts.streams, settings.stream_seconds))
    app.include_router(profile_router(authenticator, bus))
    uploads = UploadReceiver(bus, settings.max_uploads)
    app.include_router(media_router(authenticator, bus, uploads))
    app.include_router(
        openai.router(authenticator, bus, parts.turns, uploads, parts.streams, settings.wait, settings.stream_seconds)
    )
    app.include_router(ledger_router(authenticator, bus, parts.offers))
    app.include_router(tools_router(authenticator, bus, parts.offers))
    app.include_router(memory_router(authenticator, bus, parts.offers))
    app.include_router(agents_router(authenticator, bus, parts.offers))
    app.include_router(mcp_servers_router(authenticator, bus, parts.offers))
    app.include_router(keys_router(authenticator, bus, parts.store, parts.keyring))
    app.include_router(me_router(authenticator))
    app.include_router(users_router(authenticator, bus, parts.users, parts.keeper, parts.keyring))
    app.include_router(bus_keys_router(authenticator, bus, parts.bus_keys))
    app.include_router(resource_router(parts.named, parts.tokens.settings.issuer if parts.tokens else None))
    app.router.routes.append(Route(PATH, parts.mcp, include_in_schema=False))
    app.router.routes.append(Route(PATH + "/{profile}", parts.mcp, include_in_schema=False))
    app.include_router(operations_router(parts.readiness, parts.metrics, settings.revision))
    serve_description(app)
    app.include_router(console.router(authenticator, parts.sessions))
    return app
