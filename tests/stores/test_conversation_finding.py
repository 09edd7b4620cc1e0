"""A conversation found again by what its agent said, on a real Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import FindConversation
from phronesis_gateway.openai.questions import exchange_digest
from phronesis_orchestrator.stores import PostgresConversations
from phronesis_postgres import Database
from tests.support.servers import PostgresServer


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


async def talked(
    database: Database, *exchanges: tuple[str, str], user: str = "ann", tenant: str = "acme", agent: str = "dialogue"
) -> str:
    """A conversation of somebody with an agent; an exchange without an answer is a turn that failed."""
    id: UUID = uuid4()
    async with database.transaction(tenant) as connection:
        await connection.execute(
            "INSERT INTO conversations (id, tenant, user_id, agent, updated_at) VALUES ($1, $2, $3, $4, clock_timestamp())",
            id, tenant, user, agent,
        )  # fmt: skip
        for number, (said, answered) in enumerate(exchanges, 1):
            turn = uuid4()
            await connection.execute(
                "INSERT INTO turns (id, tenant, user_id, conversation_id, sequence, agent, status, request, fingerprint,"
                " principal, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'f', '{}', now())",
                turn, tenant, user, id, number, agent, "completed" if answered else "failed", {"text": said},
            )  # fmt: skip
            if answered:
                await connection.execute(
                    "INSERT INTO messages (conversation_id, seq, turn_id, role, text) VALUES ($1, $2, $3, 'assistant', $4)",
                    id, 2 * number, turn, answered,
                )  # fmt: skip
    return str(id)


async def found(
    database: Database,
    *exchanges: tuple[str, str],
    whole: bool = True,
    user: str = "ann",
    tenant: str = "acme",
    agent: str = "dialogue",
) -> str | None:
    who = Principal(tenant=tenant, user=user)
    query = FindConversation(agent=agent, exchanges=tuple(exchange_digest(*one) for one in exchanges), whole=whole)
    return await PostgresConversations(database).ending(who, query)


HELLO, MILL, WHOM = ("Hello!", "Hello."), ("And?", " The mill was sold.\n"), ("To whom?", "To Ann.")


async def test_a_conversation_is_found_by_how_it_ends(database: Database) -> None:
    await talked(database, HELLO)
    mine = await talked(database, HELLO, MILL)
    assert await found(database, HELLO, ("And?", "The mill was sold.")) == mine


async def test_a_short_record_finds_no_longer_conversation(database: Database) -> None:
    longer = await talked(database, WHOM, MILL, HELLO)
    assert (await found(database, HELLO), await found(database, HELLO, whole=False)) == (None, longer)


async def test_a_record_that_differs_anywhere_finds_nothing(database: Database) -> None:
    await talked(database, HELLO, MILL, WHOM)
    assert [
        await found(database, HELLO, MILL),
        await found(database, MILL, HELLO, WHOM),
        await found(database, HELLO, MILL, ("To whom?", "To Bob.")),
    ] == [None] * 3


async def test_turns_that_failed_are_not_compared(database: Database) -> None:
    mine = await talked(database, HELLO, ("lost", ""), MILL)
    assert await found(database, HELLO, MILL) == mine


async def test_the_newest_of_equal_conversations_is_found(database: Database) -> None:
    await talked(database, HELLO)
    newest = await talked(database, HELLO)
    assert await found(database, HELLO) == newest


async def test_nobody_finds_what_is_not_theirs_or_anothers_agents(database: Database) -> None:
    await talked(database, HELLO)
    assert [
        await found(database, HELLO, user="bob"),
        await found(database, HELLO, tenant="other"),
        await found(database, HELLO, agent="noor"),
    ] == [None, None, None]


async def test_a_deleted_conversation_is_not_found(database: Database) -> None:
    id = await talked(database, HELLO)
    async with database.transaction("acme") as connection:
        await connection.execute("UPDATE conversations SET deleted_at = now() WHERE id = $1", UUID(id))
    assert await found(database, HELLO) is None
