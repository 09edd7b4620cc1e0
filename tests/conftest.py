"""Fixtures of all tests: one of each embedded server for a whole run, started when the first test asks for it."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.offline import only_loopback
from tests.support.servers import ArcadeServer, NatsServer, PostgresServer
from tests.support.weaviate_server import PRODUCTION, WeaviateServer


def pytest_configure() -> None:
    """A run that is told to end still stops its servers; how fast the machine is, no property depends on."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def _offline() -> Iterator[None]:
    """No test can reach a paid model, or anything else beyond this machine."""
    with only_loopback():
        yield


@pytest.fixture(scope="session")
async def nats_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    """A NATS with the platform's users, permissions, streams and consumers."""
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PostgresServer]:
    """A Postgres with pgvector."""
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def arcadedb(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ArcadeServer]:
    """An ArcadeDB that speaks Bolt."""
    server = ArcadeServer(tmp_path_factory.mktemp("arcadedb"))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def weaviate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WeaviateServer | None]:
    """A Weaviate, where the tests run on production's stores; vectors stand in Postgres where they do not."""
    if not PRODUCTION:
        yield None
        return
    server = WeaviateServer(tmp_path_factory.mktemp("weaviate"))
    await server.start()
    yield server
    await server.stop()
