"""The tables of the instructions and what a release does to them, on a real Postgres."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from phronesis_contracts import Unavailable
from phronesis_instructions.library.content import AgentContent, read_agents
from phronesis_instructions.library.store import PostgresStore
from phronesis_instructions.library.texts import Library, Profile
from phronesis_postgres import EVERY_TENANT, Database
from phronesis_postgres.migrate import migrate
from tests.support.servers import PostgresServer

DIALOGUE = next(content for content in read_agents() if content.agent == "dialogue")
PROFILE = Profile(
    "dialogue",
    DIALOGUE.version,
    DIALOGUE.loop,
    DIALOGUE.stages,
    DIALOGUE.prompt_tags(),
    DIALOGUE.directive_tags(),
    DIALOGUE.phrases,
)
TABLES = ("instruction_bundles", "instruction_elements")


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("instructions") as settings, Database.open(settings, "instructions") as database:
        yield database


def edited(version: str = DIALOGUE.version, **prompts: str) -> AgentContent:
    return DIALOGUE.model_copy(update={"version": version, "prompts": {**DIALOGUE.prompts, **prompts}})


async def told(store: PostgresStore) -> dict[str, str]:
    """The active texts of the agent, by their short names."""
    library = Library(await store.platform())
    found = {tag: library.text(tag, {}) for tag in PROFILE.tags()}
    return {tag.rpartition("/")[2]: text.content for tag, text in found.items() if text is not None}


async def rows(database: Database, query: str, *arguments: object) -> list[dict[str, Any]]:
    async with database.transaction(EVERY_TENANT) as connection:
        return [dict(row) for row in await connection.fetch(query, *arguments)]


async def run(database: Database, statement: str) -> None:
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute(statement)


@pytest.mark.req("N-191", "N-201", "N-232")
async def test_migrating_twice_is_no_error(postgres: PostgresServer) -> None:
    async with postgres.fresh_schema("instructions") as settings:
        await asyncio.to_thread(migrate, postgres.owner(settings), ["instructions"])


@pytest.mark.req("N-192", "N-195", "N-196", "N-197", "N-198", "N-199", "N-200")
async def test_a_new_bundle_is_a_draft_of_version_1_0_0(database: Database) -> None:
    await run(database, "INSERT INTO instruction_bundles (tag, content) VALUES ('a', 'b')")
    (row,) = await rows(database, "SELECT * FROM instruction_bundles")
    assert (row.pop("id").version, row.pop("created_at") == row.pop("updated_at")) == (4, True)
    assert row == {
        "tag": "a",
        "content": "b",
        "version": "1.0.0",
        "status": "draft",
        "avg_tokens": None,
        "category": None,
        "experiment_group": None,
    }


@pytest.mark.req("N-202", "N-205", "N-206", "N-207", "N-208", "N-209", "N-210", "N-211")
async def test_a_new_element_is_a_draft_of_tier_3(database: Database) -> None:
    await run(database, "INSERT INTO instruction_elements (tag, content, use_cases) VALUES ('a', 'b', ARRAY['c'])")
    (row,) = await rows(database, "SELECT * FROM instruction_elements")
    assert (row.pop("id").version, row.pop("created_at") == row.pop("updated_at")) == (4, True)
    assert row == {
        "tag": "a",
        "content": "b",
        "tier": 3,
        "version": "1.0.0",
        "status": "draft",
        "avg_tokens": None,
        "dependencies": None,
        "use_cases": ["c"],
        "position": None,
    }


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    ("columns", "values", "error"),
    [
        ("tag, content", "'taken', 'x'", asyncpg.UniqueViolationError),
        ("tag, content", "NULL, 'x'", asyncpg.NotNullViolationError),
        ("tag, content", "'a', NULL", asyncpg.NotNullViolationError),
        ("tag, content, status", "'a', 'x', 'live'", asyncpg.CheckViolationError),
        ("tag, content, version", "'a', 'x', 'one'", asyncpg.CheckViolationError),
    ],
)
@pytest.mark.req("N-193", "N-194", "N-203", "N-204", "N-213", "NC-086", "NC-087")
async def test_a_row_that_breaks_a_rule_is_refused(
    database: Database, table: str, columns: str, values: str, error: type[Exception]
) -> None:
    await run(database, f"INSERT INTO {table} (tag, content) VALUES ('taken', 'x')")
    with pytest.raises(error):
        await run(database, f"INSERT INTO {table} ({columns}) VALUES ({values})")


@pytest.mark.req("N-205", "N-213", "NC-087")
async def test_a_fourth_tier_is_refused(database: Database) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await run(database, "INSERT INTO instruction_elements (tag, content, tier) VALUES ('a', 'b', 4)")


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.req("N-213", "NC-086")
async def test_a_change_moves_updated_at_and_keeps_what_it_replaced(database: Database, table: str) -> None:
    await run(database, f"INSERT INTO {table} (tag, content) VALUES ('a', 'old')")
    await run(database, f"UPDATE {table} SET content = 'new', version = '1.1.0'")
    assert await rows(database, f"SELECT updated_at > created_at AS moved FROM {table}") == [{"moved": True}]
    assert await rows(database, "SELECT tag, content, version, status FROM instruction_history") == [
        {"tag": "a", "content": "old", "version": "1.0.0", "status": "draft"}
    ]


async def test_a_released_agent_is_served_whole(database: Database) -> None:
    store = PostgresStore(database)
    assert await store.release(DIALOGUE) is True
    assert (await store.platform()).profiles == {"dialogue": PROFILE}
    assert await told(store) == {**DIALOGUE.prompts, **DIALOGUE.directives}


async def test_an_agent_without_a_release_has_no_profile(database: Database) -> None:
    assert (await PostgresStore(database).platform()).profiles == {}


@pytest.mark.req("N-242")
async def test_releasing_the_same_content_again_writes_nothing(database: Database) -> None:
    store = PostgresStore(database)
    await store.release(DIALOGUE)
    before = await rows(database, "SELECT * FROM instruction_bundles ORDER BY tag")
    assert await store.release(DIALOGUE) is False
    assert await rows(database, "SELECT * FROM instruction_bundles ORDER BY tag") == before


async def test_copies_that_start_together_release_once(database: Database) -> None:
    results = await asyncio.gather(*(PostgresStore(database).release(DIALOGUE) for _ in range(4)))
    assert sorted(results) == [False, False, False, True]


async def test_a_release_changes_and_announces_only_what_differs(database: Database) -> None:
    store = PostgresStore(database)
    await store.release(DIALOGUE)
    await run(database, "DELETE FROM outbox")
    await store.release(edited(router="Route anew."))
    news = await rows(database, "SELECT tenant, subject, body FROM outbox ORDER BY id")
    tags = ["dialogue/router", "agent/dialogue"]
    assert [(row["tenant"], row["subject"]) for row in news] == [
        ("system", "evt.system.instructions.v1.released"),
        ("system", "evt.system.instructions.v1.audited"),
    ]
    assert json.loads(news[0]["body"]) == {"tags": tags, "version": DIALOGUE.version}
    assert json.loads(news[1]["body"])["arguments"] == {"agent": "dialogue", "version": DIALOGUE.version, "tags": tags}
    assert await rows(database, "SELECT tag, content FROM instruction_history") == [
        {"tag": "dialogue/router", "content": DIALOGUE.prompts["router"]}
    ]


async def test_an_older_version_does_not_take_a_newer_one_back(database: Database) -> None:
    store = PostgresStore(database)
    await store.release(edited("1.10.0", router="Newer."))
    assert await store.release(edited("1.9.0", router="Older.")) is False


async def test_a_prompt_that_an_agent_has_no_more_is_deprecated(database: Database) -> None:
    store = PostgresStore(database)
    await store.release(edited("1.0.0", extra="More."))
    await store.release(edited())
    assert await rows(database, "SELECT tag FROM instruction_bundles WHERE status = 'deprecated'") == [
        {"tag": "dialogue/extra"}
    ]


@pytest.mark.req("N-212")
async def test_a_text_that_is_not_active_is_never_served(database: Database) -> None:
    store = PostgresStore(database)
    await store.release(DIALOGUE)
    await run(database, "UPDATE instruction_bundles SET status = 'draft' WHERE tag = 'dialogue/final'")
    assert set(DIALOGUE.prompts) - set(await told(store)) == {"final"}


async def test_a_schema_that_is_not_migrated_yet_is_unavailable(postgres: PostgresServer) -> None:
    async with postgres.fresh_schema("instructions") as settings, Database.open(settings, "elsewhere") as database:
        with pytest.raises(Unavailable):
            await PostgresStore(database).release(DIALOGUE)
