"""One gateway for all of these tests, on the run's broker, with a database of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from phronesis_postgres import PostgresSettings
from tests.support.gateway import Holder, RunningGateway, gateway, scripted_orchestrator
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer, PostgresServer


@pytest.fixture(scope="session")
async def database(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    """The gateway's schema."""
    async with postgres.fresh_schema("gateway") as settings:
        yield settings


@pytest.fixture(scope="package")
async def orchestrator(nats_server: NatsServer) -> AsyncIterator[ScriptedOrchestrator]:
    """An orchestrator that does as told."""
    async with scripted_orchestrator(nats_server) as running:
        yield running


@pytest.fixture(scope="package")
async def api(
    nats_server: NatsServer, database: PostgresSettings, orchestrator: ScriptedOrchestrator
) -> AsyncIterator[RunningGateway]:
    """A gateway that answers."""
    async with gateway(nats_server, database, wait=6, accept_wait=5, max_streams_per_key=2) as running:
        yield running


@pytest.fixture
async def ann(api: RunningGateway) -> Holder:
    """Somebody with a key."""
    return await api.holder()
