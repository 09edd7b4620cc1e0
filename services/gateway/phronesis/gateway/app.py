"""The table of contents of the gateway: everything it is made of, and every route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from phronesis.bus import VERSION, Bus, Watch, serve_basics
from phronesis.contracts.media import MAX_UPLOAD
from phronesis.contracts.orchestrator import PROGRESS

from .description import described
from .door import Door
from .edge import Edge
from .keyring import Keyring
from .limits import Rate, Streams
from .metrics import Metrics
from .ports import KeyStore
from .problems import install
from .readiness import Readiness
from .routes import events, keys, memory, operations, tools, turns
from .settings import GatewaySettings
from .submission import Turns
from .tickets import Tickets
from .traces import Traces
from .uploads import ENVELOPE, Uploads

Ping = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Gateway:
    """A wired gateway: its application, and what ends what would keep requests open."""

    app: ASGIApp
    closing: Callable[[], None]


async def build(bus: Bus, store: KeyStore, settings: GatewaySettings, pings: dict[str, Ping]) -> Gateway:
    """Wire the gateway.

    Args:
        bus: the connected bus.
        store: where keys are kept.
        settings: what the operator set.
        pings: the gateway's own dependencies by name.
    """
    parts = Parts(bus, store, settings, {"bus": bus.ping, **pings})
    await parts.watch.start()
    await serve_basics(bus, parts.pings)
    edge = Edge(api(parts), bus, parts.metrics, settings.max_body, {memory.MEDIA: MAX_UPLOAD + ENVELOPE})
    return Gateway(edge, parts.close)


class Parts:
    """What the routes are made of. Nothing is asked and nothing is opened here."""

    def __init__(self, bus: Bus, store: KeyStore, settings: GatewaySettings, pings: dict[str, Ping]) -> None:
        self.bus = bus
        self.store = store
        self.settings = settings
        self.pings = pings
        self.watch = Watch(bus, PROGRESS)
        self.readiness = Readiness(bus, pings)
        self.streams = Streams(settings.max_streams, settings.max_streams_per_key)
        self.metrics = Metrics(self.streams)
        self.tickets = Tickets.load(bus.settings.signing_key_file)
        self.keyring = Keyring(store)
        self.door = Door(self.keyring, self.tickets, Rate(settings.requests_per_second, settings.burst))
        self.turns = Turns(bus, self.watch, settings.accept_wait)

    def close(self) -> None:
        """Take no more work, and let those who wait know."""
        self.readiness.stopping = True
        self.watch.close()


def api(parts: Parts) -> FastAPI:
    """The application with every route."""
    app = FastAPI(title="Phronesis", version=VERSION, redoc_url=None, redirect_slashes=False)
    install(app)
    settings, door, bus = parts.settings, parts.door, parts.bus
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "X-File-Name"),
            expose_headers=("Location", "Retry-After", "X-Request-Id"),
        )
    app.include_router(turns.router(door, bus, parts.turns, Traces(bus), settings.wait))
    app.include_router(events.router(door, parts.turns, parts.watch, parts.streams, parts.tickets, settings.stream_seconds))
    app.include_router(memory.router(door, bus, Uploads(bus, settings.max_uploads)))
    app.include_router(tools.router(door, bus))
    app.include_router(keys.router(door, bus, parts.store, parts.keyring))
    app.include_router(operations.router(parts.readiness, parts.metrics, settings.revision))
    app.openapi = lambda: described(app)  # type: ignore[method-assign]
    return app
