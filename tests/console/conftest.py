"""A gateway with a scripted analyst behind it, and a browser in front."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.console.answers import finish
from tests.support import approving
from tests.support.approving import Desk
from tests.support.browser import NoBrowser, Page, window
from tests.support.gateway import Holder, RunningGateway, gateway, scripted_orchestrator
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer, PostgresServer


@pytest.fixture(scope="package")
async def orchestrator(nats_server: NatsServer) -> AsyncIterator[ScriptedOrchestrator]:
    """An analyst that answers as `answers` says."""
    async with scripted_orchestrator(nats_server) as running:
        running.finish = finish
        yield running


@pytest.fixture(scope="package")
async def api(
    nats_server: NatsServer, postgres: PostgresServer, orchestrator: ScriptedOrchestrator
) -> AsyncIterator[RunningGateway]:
    """A gateway that answers."""
    async with postgres.fresh_schema("gateway") as database, gateway(nats_server, database) as running:
        yield running


@pytest.fixture
async def ann(api: RunningGateway) -> Holder:
    """Somebody with a key."""
    return await api.holder(user="ann")


@pytest.fixture
async def page(api: RunningGateway, tmp_path: Path) -> AsyncIterator[Page]:
    """A window on the console of that gateway."""
    try:
        async with window(tmp_path / "profile") as opened:
            await opened.open(f"http://127.0.0.1:{api.server.port}/console")
            yield opened
    except NoBrowser as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="package")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    """A stack with a scripted model, and an admin whose agent may delete. A story scripts what names a word of its own."""
    async with approving.desk(tmp_path_factory.mktemp("desk") / "data") as opened:
        yield opened
