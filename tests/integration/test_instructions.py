"""The instructions service on a real broker and a real Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from phronesis_bus import Bus, News, ask, follow
from phronesis_contracts import Forbidden, NotFound, Nothing, Principal, Unavailable
from phronesis_contracts.experiments import (
    RECORD_OUTCOME,
    REPORT_EXPERIMENT,
    START_EXPERIMENT,
    Arm,
    RecordOutcome,
    ReportExperiment,
    StartExperiment,
)
from phronesis_contracts.instructions import (
    AGENT_GET,
    LIST_INSTRUCTIONS,
    PUBLISH_INSTRUCTIONS,
    RELEASED,
    RETRIEVE_INSTRUCTIONS,
    ROLLBACK_INSTRUCTIONS,
    AgentProfile,
    AgentRef,
    ListInstructions,
    NewText,
    PublishInstructions,
    Released,
    RetrieveInstructions,
    RollbackInstructions,
)
from phronesis_contracts.service import HEALTH
from phronesis_instructions.app import build
from phronesis_instructions.library.content import read_agents, read_matrix
from phronesis_instructions.settings import InstructionsSettings
from phronesis_postgres import Database, PostgresSettings
from phronesis_postgres.migrate import migrate
from phronesis_postgres.roles import role_of
from tests.support.bus import broker, connected, eventually, somebody
from tests.support.personas import Persona
from tests.support.servers import NatsServer, PostgresServer

DIALOGUE = next(content for content in read_agents() if content.agent == "dialogue")
CONTENTS = (read_matrix(), DIALOGUE)
SETTINGS = InstructionsSettings(retry_seconds=0.05, cache_seconds=3600.0)
ANALYST = DIALOGUE.model_copy(update={"agent": "analyst", "bootstrap": "tier1_bootstrap"})


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
        await build(bus, database, (DIALOGUE,), SETTINGS)
        async with asyncio.timeout(10):
            released = await heard.get()
        profile = await ask(asker, somebody(), AGENT_GET, AgentRef(agent="dialogue"))
    assert (released.version, "agent/dialogue" in released.tags) == (DIALOGUE.version, True)
    assert profile == AgentProfile.model_validate({**DIALOGUE.model_dump(), "release": "0.0.0"})


async def test_an_unknown_agent_is_not_found(nats_server: NatsServer, postgres: PostgresServer) -> None:
    async with (
        connected(nats_server, "instructions", "orchestrator") as (bus, asker),
        postgres.fresh_schema("instructions") as where,
        Database.open(where, "instructions") as database,
    ):
        await build(bus, database, CONTENTS, SETTINGS)

        async def ready() -> bool:
            return (await ask(asker, somebody(), HEALTH["instructions"], Nothing())).ready

        await eventually(ready)
        with pytest.raises(NotFound):
            await ask(asker, somebody(), AGENT_GET, AgentRef(agent="nobody"))


@pytest.mark.req("NC-090")
async def test_it_starts_without_its_database_and_works_when_that_comes(tmp_path: Path, nats_server: NatsServer) -> None:
    late = PostgresServer(tmp_path / "postgres")
    where = PostgresSettings.model_validate({"dsn": late.dsn_of("postgres", role_of("instructions"))})
    try:
        async with (
            connected(nats_server, "instructions", "orchestrator") as (bus, asker),
            Database.open(where, "instructions") as database,
        ):
            await build(bus, database, CONTENTS, SETTINGS)
            health = await ask(asker, somebody(), HEALTH["instructions"], Nothing())
            assert (health.ready, health.down) == (False, ("postgres", "content", "tier1_bootstrap"))
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


@asynccontextmanager
async def copies(tmp_path: Path, postgres: PostgresServer, number: int) -> AsyncIterator[Bus]:
    """So many copies of the service over one database, loaded, and a gateway that asks them in turn."""
    names = ["instructions"] * number
    async with (
        broker(tmp_path) as server,
        connected(server, *names, "gateway") as (*buses, asker),
        postgres.fresh_schema("instructions") as where,
        Database.open(where, "instructions") as database,
    ):
        for bus in buses:
            await build(bus, database, (read_matrix(), DIALOGUE, ANALYST), SETTINGS)

        async def ready() -> bool:
            found = [await ask(asker, somebody(), HEALTH["instructions"], Nothing()) for _ in range(2 * number)]
            return all(one.ready for one in found)

        await eventually(ready)
        yield asker


def of(tenant: Principal, role: Persona, user: str = "eve") -> Principal:
    return tenant.model_copy(update={**role.rights, "user": user})


@pytest.mark.req("N-231", "N-243")
async def test_a_publication_reaches_every_copy_at_once_and_is_taken_back(tmp_path: Path, postgres: PostgresServer) -> None:
    async with copies(tmp_path, postgres, 2) as asker:
        who = somebody()

        async def told() -> set[tuple[str, str]]:
            """What several questions, which go to both copies, are answered."""
            found = [await ask(asker, who, AGENT_GET, AgentRef(agent="analyst")) for _ in range(8)]
            return {(one.release, one.bootstrap[:5]) for one in found}

        assert await told() == {("4.0.0", "TIER ")}
        text = NewText(tag="tier1_bootstrap", content="Anew.")
        await ask(asker, of(who, Persona.EDITOR), PUBLISH_INSTRUCTIONS, PublishInstructions(texts=(text,)))

        async def anew() -> bool:
            return await told() == {("4.0.0+1", "Anew.")}

        await eventually(anew)
        await ask(asker, of(who, Persona.EDITOR), ROLLBACK_INSTRUCTIONS, RollbackInstructions())

        async def back() -> bool:
            return await told() == {("4.0.0", "TIER ")}

        await eventually(back)


@pytest.mark.req("N-106", "N-123", "N-243")
async def test_an_analyst_retrieves_and_only_an_editor_or_an_administrator_publishes(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async with copies(tmp_path, postgres, 1) as asker:
        who = somebody()
        asked = RetrieveInstructions(elements=("EntityProject", "chart_type_Column"))
        found = await ask(asker, of(who, Persona.NOOR), RETRIEVE_INSTRUCTIONS, asked)
        assert (found.tags, found.missing, found.version) == (("EntityProject", "chart_type_Column"), (), "4.0.0")
        publication = PublishInstructions(texts=(NewText(tag="EntityRisk", status="deprecated"),))
        for role in set(Persona) - {Persona.EDITOR, Persona.ADMIN}:
            with pytest.raises(Forbidden):
                await ask(asker, of(who, role), PUBLISH_INSTRUCTIONS, publication)
        await ask(asker, of(who, Persona.ADMIN), PUBLISH_INSTRUCTIONS, publication)
        listed = await ask(asker, of(who, Persona.ADMIN), LIST_INSTRUCTIONS, ListInstructions(status="deprecated"))
        assert [(one.tag, one.own) for one in listed.texts] == [("EntityRisk", True)]
        with pytest.raises(NotFound):
            await ask(asker, who, RETRIEVE_INSTRUCTIONS, RetrieveInstructions(elements=("EntityRisk",)))


async def test_users_stay_in_their_arms_on_every_copy_and_outcomes_are_reported(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async with copies(tmp_path, postgres, 2) as asker:
        tenant = somebody()
        editor = of(tenant, Persona.EDITOR)
        arms = (Arm(name="control", weight=1), Arm(name="short", weight=1, texts={"tier1_bootstrap": "Be short."}))
        await ask(asker, editor, START_EXPERIMENT, StartExperiment(name="tone", arms=arms))
        users = [of(tenant, Persona.NOOR, f"u{n}") for n in range(12)]

        async def arm(user: Principal) -> str:
            profile = await ask(asker, user, AGENT_GET, AgentRef(agent="analyst"))
            assert (profile.bootstrap == "Be short.") == (profile.arms.get("tone") == "short")
            return profile.arms.get("tone", "")

        async def heard() -> bool:
            return all([await arm(users[0]) for _ in range(8)])

        await eventually(heard)
        first = {user.user: await arm(user) for user in users}
        for _ in range(3):
            assert {user.user: await arm(user) for user in users} == first
        for user in users:
            outcome = RecordOutcome(user=user.user, metric="helpful", value=float(first[user.user] == "short"))
            await ask(asker, editor, RECORD_OUTCOME, outcome)
        report = await ask(asker, editor, REPORT_EXPERIMENT, ReportExperiment(name="tone"))
    (metric,) = report.metrics
    assert [(one.arm, one.users, one.mean and one.mean.estimate) for one in metric.arms] == [
        ("control", list(first.values()).count("control"), 0.0),
        ("short", list(first.values()).count("short"), 1.0),
    ]
    against = metric.arms[1].against_first
    assert against is not None
    assert (against.estimate, against.low > 0) == (1.0, True)
