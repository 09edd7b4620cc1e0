"""The instructions service on a real broker and a real Postgres."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from phronesis.bus import News, ask, follow
from phronesis.contracts import NotFound, Nothing, Unavailable
from phronesis.contracts.instructions import AGENT_GET, RELEASED, AgentProfile, AgentRef, Released
from phronesis.contracts.service import HEALTH
from phronesis.instructions.adapters.files import agents
from phronesis.instructions.adapters.store import PostgresStore
from phronesis.instructions.app import build
from phronesis.instructions.settings import InstructionsSettings
from phronesis.postgres import Database, PostgresOutbox, PostgresSettings
from phronesis.postgres.migrate import migrate
from phronesis.postgres.roles import role_of
from tests.support.bus import broker, connected, eventually, somebody
from tests.support.servers import NatsServer, PostgresServer

DIALOGUE = next(content for content in agents() if content.agent == "dialogue")
SETTINGS = InstructionsSettings(retry_seconds=0.05)


async def test_the_dialogue_agent_is_served_and_its_release_is_heard(tmp_path: Path, postgres: PostgresServer) -> None:
    heard: asyncio.Queue[Released] = asyncio.Queue()

    async def on_released(news: News, released: Released) -> None:
        heard.put_nowait(released)

    async with (
        broker(tmp_path) as server,
        connected(server, "instructions", "orchestrator") as (bus, asker),
        postgres.fresh_schema("instructions") as where,
        Database.open(where, "instructions") as database,
    ):
        await follow(asker, RELEASED, on_released, every_copy=True)
        await asker.nats.flush()
        await build(bus, PostgresStore(database), PostgresOutbox(database), (DIALOGUE,), SETTINGS)
        async with asyncio.timeout(10):
            released = await heard.get()
        profile = await ask(asker, somebody(), AGENT_GET, AgentRef(agent="dialogue"))
    assert (released.version, "agent/dialogue" in released.tags) == (DIALOGUE.version, True)
    assert profile == AgentProfile.model_validate(DIALOGUE.model_dump())


async def test_an_unknown_agent_is_not_found(nats_server: NatsServer, postgres: PostgresServer) -> None:
    async with (
        connected(nats_server, "instructions", "orchestrator") as (bus, asker),
        postgres.fresh_schema("instructions") as where,
        Database.open(where, "instructions") as database,
    ):
        await build(bus, PostgresStore(database), PostgresOutbox(database), (DIALOGUE,), SETTINGS)

        async def ready() -> bool:
            return (await ask(asker, somebody(), HEALTH["instructions"], Nothing())).ready

        await eventually(ready)
        with pytest.raises(NotFound):
            await ask(asker, somebody(), AGENT_GET, AgentRef(agent="nobody"))


async def test_it_starts_without_its_database_and_works_when_that_comes(tmp_path: Path, nats_server: NatsServer) -> None:
    late = PostgresServer(tmp_path / "postgres")
    where = PostgresSettings.model_validate({"dsn": late.dsn_of("postgres", role_of("instructions"))})
    try:
        async with (
            connected(nats_server, "instructions", "orchestrator") as (bus, asker),
            Database.open(where, "instructions") as database,
        ):
            await build(bus, PostgresStore(database), PostgresOutbox(database), (DIALOGUE,), SETTINGS)
            health = await ask(asker, somebody(), HEALTH["instructions"], Nothing())
            assert (health.ready, health.down) == (False, ("postgres", "content"))
            with pytest.raises(Unavailable):
                await ask(asker, somebody(), AGENT_GET, AgentRef(agent="dialogue"))
            await late.start()
            await asyncio.to_thread(migrate, late.owner(where), ["instructions"])

            async def ready() -> bool:
                return (await ask(asker, somebody(), HEALTH["instructions"], Nothing())).ready

            await eventually(ready, within=20)
            assert (await ask(asker, somebody(), AGENT_GET, AgentRef(agent="dialogue"))).version == DIALOGUE.version
    finally:
        await late.stop()
