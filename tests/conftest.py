"""Fixtures of all tests: the servers, started when the first test asks for them.

`tests/support/split.py` says which tests run, `tests/support/shared.py` what the processes of a run share.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from phronesis_local.settings import Stores
from tests.support import packages, production, shared, split, trust
from tests.support.offline import only_loopback
from tests.support.servers import GraphServer, NatsServer, PostgresServer, VectorServer

settings.register_profile("quick", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
EXAMPLES = int(os.environ.get("PHRONESIS_TEST_EXAMPLES", 200))
settings.register_profile("thorough", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure(config: pytest.Config) -> None:
    """A run that is told to end still stops its servers; how fast the machine is, no property depends on.

    A shell without job control starts what it puts in the background with SIGINT ignored, and every command that a test starts
    inherits that: it would not hear its Ctrl-C.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A stack is a dozen processes: none of them compiles again what another has compiled.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if config.getoption("--hypothesis-profile", None) is None:
        settings.load_profile("quick")
    try:
        production.prepare()
    except packages.CannotInstall as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    trust.read_once()
    shared.keep_ports_apart(*shared.port_range())
    if not hasattr(config, "workerinput"):  # the process that the run began with
        kept = shared.Kept(config.getoption("numprocesses", None) or 1)
        config.add_cleanup(kept.end)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module of which this run takes no test is not imported."""
    left = collection_path.is_file() and split.is_left_out(collection_path, config.option.markexpr, production.STORES)
    return True if left else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests and the process that each runs in."""
    split.mark_folders(items)
    if production.STORES is Stores.PRODUCTION:
        items[:], left = split.without_stores(items)
        config.hook.pytest_deselected(items=left)
    split.long_ones_first(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """After the moment in `PHRONESIS_TESTS_UNTIL`, in seconds since 1970, no test begins: each is reported as skipped."""
    until = os.environ.get("PHRONESIS_TESTS_UNTIL")
    if until and time.time() > float(until):
        pytest.skip("the time of this run was over (PHRONESIS_TESTS_UNTIL)")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Give each group of tests to one process."""
    return Groups(config, log)


class Groups(LoadScopeScheduling):
    """Gives whole groups to the processes, in their order, one after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return split.group(nodeid, self.numnodes, self.config.option.markexpr)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes lives to the end: the collector of garbage need not walk it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


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
def postgres() -> PostgresServer:
    """The run's Postgres with pgvector: other processes use it too, so no test may stop it."""
    shared.ask("postgres")
    return PostgresServer(shared.folder() / "postgres")


@pytest.fixture(scope="session")
async def graph_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GraphServer]:
    """The graph server of the stores that the run is about, with a database for this process alone."""
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
