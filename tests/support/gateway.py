"""A whole gateway behind its port, with a real broker and a real database, and neighbours that do as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx

from phronesis_bus import Bus, Relay, connect
from phronesis_contracts import SYSTEM_TENANT, Principal
from phronesis_gateway.app import Tokens, build
from phronesis_gateway.auth.keys import PREFIX_LENGTH, Key, hash_secret, new_secret
from phronesis_gateway.auth.store import PostgresKeys, PostgresSessions
from phronesis_gateway.auth.users import PostgresUsers
from phronesis_gateway.http.server import HttpServer, bind_socket
from phronesis_gateway.settings import GatewaySettings, McpSettings, ToolSettings
from phronesis_postgres import Database, PostgresOutbox, PostgresSettings
from tests.support.personas import Persona
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer

_BY = Principal(tenant=SYSTEM_TENANT, user="tests")


@dataclass(frozen=True)
class Holder:
    """Somebody with a key."""

    who: Principal
    secret: str

    @property
    def headers(self) -> dict[str, str]:
        """What their requests carry."""
        return {"Authorization": f"Bearer {self.secret}"}


@dataclass(frozen=True)
class RunningGateway:
    """A gateway that answers on a port of this machine."""

    bus: Bus
    store: PostgresKeys
    server: HttpServer
    http: httpx.AsyncClient

    async def holder(self, **who: Any) -> Holder:
        """Somebody with a new key, in a tenant of their own unless stated."""
        secret = new_secret()
        name = uuid4().hex[:12]
        stated: dict[str, Any] = {"tenant": f"t-{name}", "user": f"u-{name}", **Persona.NOOR.rights, "scopes": ()} | who
        key = Key(
            id=str(uuid4()),
            department=None,
            ministry=None,
            prefix=secret[:PREFIX_LENGTH],
            created_at=datetime.now(UTC),
            **stated,
        )
        await self.store.add(key, hash_secret(secret), _BY)
        return Holder(key.principal, secret)


@asynccontextmanager
async def gateway(
    nats: NatsServer,
    postgres: PostgresSettings,
    tokens: Tokens | None = None,
    mcp: McpSettings | None = None,
    retired: ToolSettings | None = None,
    **settings: Any,
) -> AsyncIterator[RunningGateway]:
    """A gateway with `settings`, for the length of a block."""
    made = GatewaySettings(port=0, **settings)
    async with connect("gateway", nats.settings("gateway")) as bus, Database.open(postgres, "gateway") as database:
        relay = Relay(bus, PostgresOutbox(database))
        store = PostgresKeys(database, relay.wake)
        relay.start()
        users = PostgresUsers(database, relay.wake)
        sessions = PostgresSessions(database)
        wired = await build(bus, store, sessions, users, made, {"postgres": database.ping}, tokens, mcp, retired)
        server = HttpServer(wired.app, bind_socket(made.host, 0), made.max_connections, wired.closing)
        await server.start()
        bus.on_stop(server.stop)
        base = f"http://127.0.0.1:{server.port}"
        try:
            async with httpx.AsyncClient(base_url=base, timeout=20) as http:
                yield RunningGateway(bus, store, server, http)
        finally:
            await bus.stop()


@asynccontextmanager
async def scripted_orchestrator(nats: NatsServer) -> AsyncIterator[ScriptedOrchestrator]:
    """An orchestrator that does as told, for the length of a block."""
    async with connect("orchestrator", nats.settings("orchestrator")) as bus:
        orchestrator = ScriptedOrchestrator(bus)
        await orchestrator.start()
        yield orchestrator
