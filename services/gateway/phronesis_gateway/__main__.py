"""The gateway's process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis_bus import Bus, Relay, run
from phronesis_postgres import Database, PostgresOutbox, PostgresSettings

from .app import Ping, Tokens, build
from .auth.store import PostgresKeys, PostgresSessions, read_first_key, store_first_key
from .auth.tokens import IssuerKeys
from .auth.users import PostgresUsers
from .http.server import HttpServer, bind_socket
from .settings import GatewaySettings, JwtSettings, McpSettings, ToolSettings


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    settings, trusted = GatewaySettings(), JwtSettings()
    tokens = Tokens(trusted, IssuerKeys.of(trusted)) if trusted.issuer else None
    first = read_first_key(settings.bootstrap_key_file) if settings.bootstrap_key_file else None
    bound = bind_socket(settings.host, settings.port)
    async with Database.open(PostgresSettings(), "gateway", bus.tracing) as database:
        relay = Relay(bus, PostgresOutbox(database))
        store = PostgresKeys(database, relay.wake)
        relay.start()
        users = PostgresUsers(database, relay.wake)
        sessions = PostgresSessions(database)
        pings: dict[str, Ping] = {"postgres": database.ping}
        gateway = await build(bus, store, sessions, users, settings, pings, tokens, McpSettings(), ToolSettings())
        server = HttpServer(gateway.app, bound, settings.max_connections, gateway.closing, settings.stop_notice)
        await server.start()
        # Registered last, so it stops first: requests end while the bus still carries their answers.
        bus.on_stop(server.stop)
        entering = asyncio.create_task(store_first_key(store, *first)) if first else None
        yield
        if entering is not None:
            entering.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await entering


if __name__ == "__main__":
    run("gateway", start)
