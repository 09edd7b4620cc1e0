"""A conversation found again by what its agent said, on a real Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from phronesis.contracts import Principal
from phronesis.contracts.orchestrator import FindConversation
from phronesis.gateway.openai.asking import digest
from phronesis.orchestrator.adapters.store import PostgresConversations
from phronesis.postgres import Database
from tests.support.servers import PostgresServer


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


async def talked(database: Database, *replies: str, user: str = "ann", tenant: str = "acme", agent: str = "dialogue") -> str:
    """A conversation of somebody in which an agent said this."""
    id: UUID = uuid4()
    async with database.transaction(tenant) as connection:
        await connection.execute(
            "INSERT INTO conversations (id, tenant, user_id, agent, next_message, updated_at)"
            " VALUES ($1, $2, $3, $4, $5, clock_timestamp())",
            id,
            tenant,
            user,
            agent,
            2 * len(replies) + 1,
        )
        rows = [
            (id, 2 * turn + place + 1, uuid4(), role, text)
            for turn, reply in enumerate(replies)
            for place, (role, text) in enumerate((("user", reply[::-1]), ("assistant", reply)))
        ]
        await connection.executemany(
            "INSERT INTO messages (conversation_id, seq, turn_id, role, text) VALUES ($1, $2, $3, $4, $5)", rows
        )
    return str(id)


async def found(database: Database, said: str, user: str = "ann", tenant: str = "acme", agent: str = "dialogue") -> str | None:
    who = Principal(tenant=tenant, user=user)
    return await PostgresConversations(database).said(who, FindConversation(agent=agent, reply=digest(said)))


async def test_a_conversation_is_found_by_anything_that_its_agent_said(database: Database) -> None:
    await talked(database, "something else")
    mine = await talked(database, " The mill was sold.\n", "To whom?")
    assert [await found(database, text) for text in ("The mill was sold.", "To whom?", "sold")] == [mine, mine, None]


async def test_what_the_person_said_finds_nothing(database: Database) -> None:
    await talked(database, "abc")
    assert await found(database, "cba") is None


async def test_the_newest_conversation_is_found(database: Database) -> None:
    await talked(database, "Hello!")
    newest = await talked(database, "Hello!")
    assert await found(database, "Hello!") == newest


async def test_nobody_finds_what_is_not_theirs_or_anothers_agents(database: Database) -> None:
    await talked(database, "Hello!")
    assert [
        await found(database, "Hello!", user="bob"),
        await found(database, "Hello!", tenant="other"),
        await found(database, "Hello!", agent="noor"),
    ] == [None, None, None]


async def test_a_deleted_conversation_is_not_found(database: Database) -> None:
    id = await talked(database, "Hello!")
    async with database.transaction("acme") as connection:
        await connection.execute("UPDATE conversations SET deleted_at = now() WHERE id = $1", UUID(id))
    assert await found(database, "Hello!") is None
