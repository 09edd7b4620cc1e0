"""A gateway with a scripted analyst behind it, and a browser in front."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.console.answers import finish
from tests.console.pages import signed_in
from tests.support import approving
from tests.support.approving import Desk
from tests.support.browser import Page
from tests.support.gateway import Holder, RunningGateway, gateway, scripted_orchestrator
from tests.support.people import Person
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


@pytest.fixture(scope="package")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    """A stack with a scripted model, and an admin whose agent may delete. A story scripts what names a word of its own."""
    async with approving.desk(tmp_path_factory.mktemp("desk") / "data") as opened:
        yield opened


@pytest.fixture
async def person(desk: Desk) -> Person:
    """An administrator of a tenant of their own."""
    return await desk.people.someone(role="admin")


@pytest.fixture
def url(desk: Desk) -> str:
    """Where that stack is."""
    return desk.stack.data.url.read_text().strip()


@pytest.fixture
async def page(url: str, person: Person, tmp_path: Path) -> AsyncIterator[Page]:
    """A window in which that person has signed in."""
    async with signed_in(tmp_path / "profile", url, person.key) as opened:
        yield opened
