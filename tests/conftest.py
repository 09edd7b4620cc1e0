"""Fixtures of all tests: one of each server for a whole run, started when the first test asks for it."""

from __future__ import annotations

import gc
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support import packages, production, trust
from tests.support.offline import only_loopback
from tests.support.servers import GraphServer, NatsServer, PostgresServer, VectorServer


def pytest_configure() -> None:
    """A run that is told to end still stops its servers; how fast the machine is, no property depends on.

    A shell without job control starts what it puts in the background with SIGINT ignored, and every command that a test starts
    inherits that: it would not hear its Ctrl-C.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")
    try:
        production.prepare()
    except packages.CannotInstall as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    trust.read_once()


def pytest_collection_finish() -> None:
    """What collecting made lives to the end: the collector of garbage need not walk it again and again."""
    gc.collect()
    gc.freeze()


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
async def graph_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GraphServer]:
    """The graph server of the stores that the run is about."""
    server = production.graph_server(tmp_path_factory.mktemp("graph"))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def weaviate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VectorServer | None]:
    """A Weaviate, where the tests run on production's stores; vectors stand in Postgres where they do not."""
    server = production.vector_server(tmp_path_factory.mktemp("weaviate"))
    if server is not None:
        await server.start()
    yield server
    if server is not None:
        await server.stop()
