"""The history of long conversations on a real Postgres: what a turn reads, what is stored, and what an old fact comes to."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.conversations.history import AGED, KEPT, MAX_CHARS, STEP, WINDOW, Note, Past, PastTurn, Summary
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.conversations.summary import select_history
from phronesis_orchestrator.models.prompts import router_messages
from phronesis_orchestrator.models.reasoner import TurnContext
from phronesis_postgres import Database, PostgresSettings
from phronesis_tokens import load
from tests.support.servers import PostgresServer
from tests.unit.orchestrator.test_prompts import AGENT

FACT = "My sister Zara was born on 4 May 1987 in Leeds."
QUESTION = "When was my sister Zara born?"
FILLER = "ok, and what about number {at}?"


@pytest.fixture
async def where(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    async with postgres.fresh_schema("orchestrator") as settings:
        yield settings


@pytest.fixture
async def database(where: PostgresSettings) -> AsyncIterator[Database]:
    async with Database.open(where, "orchestrator") as database:
        yield database


@pytest.fixture
def conversations(database: Database) -> PostgresConversations:
    return PostgresConversations(database)


def said(at: int) -> PastTurn:
    """A turn of a conversation: its third states a fact, all others ask for this and that."""
    return PastTurn(2 * at - 1, FACT if at == 3 else FILLER.format(at=at), f"Nothing is known of number {at}.")


async def talked(database: Database, turns: list[PastTurn], conversation: UUID | None = None) -> str:
    """A conversation in which this was said; turns are added to one that is there."""
    id = conversation or uuid4()
    async with database.transaction("acme") as connection:
        await connection.execute(
            "INSERT INTO conversations (id, tenant, user_id, agent) VALUES ($1, 'acme', 'ann', 'dialogue') "
            "ON CONFLICT DO NOTHING",
            id,
        )
        rows = [
            (id, turn.seq + at, uuid4(), role, text)
            for turn in turns
            for at, (role, text) in enumerate((("user", turn.user), ("assistant", turn.reply)))
        ]
        await connection.executemany(
            "INSERT INTO messages (conversation_id, seq, turn_id, role, text) VALUES ($1, $2, $3, $4, $5)", rows
        )
    return str(id)


async def held(database: Database, conversations: PostgresConversations, number: int) -> str:
    """A conversation of so many turns, its summary carried on as the turns would."""
    id = await talked(database, [said(at) for at in range(1, WINDOW + 1)])
    for end in range(WINDOW + STEP, number + 1, STEP):
        await talked(database, [said(at) for at in range(end - STEP + 1, end + 1)], UUID(id))
        summary, _ = select_history(await conversations.recent("acme", id))
        await conversations.keep_summary("acme", id, summary)
    return id


@pytest.mark.req("D-039", "D-043", "D-126")
async def test_a_new_conversation_has_no_past(database: Database, conversations: PostgresConversations) -> None:
    assert await conversations.recent("acme", str(uuid4())) == Past()
    assert await conversations.recent("acme", await talked(database, [])) == Past()


@pytest.mark.req("D-039", "D-126", "V-151")
async def test_the_newest_turns_are_read_in_order_and_the_ones_before_them_once(
    database: Database, conversations: PostgresConversations
) -> None:
    id = await talked(database, [said(at) for at in range(1, 17)])
    assert await conversations.recent("acme", id) == Past(
        Directive.SUPPORTIVE_COMPANION,
        Summary(),
        (),
        tuple(said(at) for at in range(1, 7)),
        tuple(said(at) for at in range(7, 17)),
    )


async def test_a_stored_summary_spares_the_turns_that_it_covers_and_brings_those_that_it_keeps(
    database: Database, conversations: PostgresConversations
) -> None:
    id = await talked(database, [said(at) for at in range(1, 17)])
    summary = Summary(through=8, kept=(3, 7), notes=(Note(seq=5, role="user", text="Zara", weight=2.5),))
    await conversations.keep_summary("acme", id, summary)
    past = await conversations.recent("acme", id)
    assert past.summary == summary
    assert past.kept == (said(2), said(4))
    assert past.aged == (said(5), said(6))
    assert len(past.window) == WINDOW


async def test_a_summary_never_goes_back(database: Database, conversations: PostgresConversations) -> None:
    id = await talked(database, [said(at) for at in range(1, 17)])
    for through, text in ((8, "eight"), (6, "six"), (8, "eight again")):
        await conversations.keep_summary("acme", id, Summary(through=through, text=text))
    assert (await conversations.recent("acme", id)).summary == Summary(through=8, text="eight")


async def test_a_deleted_conversation_has_no_summary_and_gets_none(
    database: Database, conversations: PostgresConversations
) -> None:
    id = await talked(database, [said(at) for at in range(1, 17)])
    await conversations.keep_summary("acme", id, Summary(through=8, text="Zara"))
    await conversations.delete(Principal(tenant="acme", user="ann"), id)
    await conversations.keep_summary("acme", id, Summary(through=12, text="Zara again"))
    async with database.connection("acme") as connection:
        assert await connection.fetchval("SELECT summary FROM conversations WHERE id = $1", UUID(id)) is None


async def test_of_ten_thousand_messages_a_turn_reads_a_bounded_part(
    database: Database, conversations: PostgresConversations, postgres: PostgresServer, where: PostgresSettings
) -> None:
    long = [
        PastTurn(2 * at - 1, f"{at} " + "x" * 2 * MAX_CHARS if at % 1_000 == 0 else f"{at}", "ok") for at in range(1, 5_001)
    ]
    id = await talked(database, long)
    past = await conversations.recent("acme", id)
    assert (len(past.window), len(past.aged)) == (WINDOW, AGED)
    assert past.aged[0].seq == 1
    assert len(past.window[-1].user) == MAX_CHARS
    async with postgres.session(where, "orchestrator") as owner:
        await owner.execute(
            "INSERT INTO conversations (id, tenant, user_id, agent)"
            " SELECT gen_random_uuid(), 'acme', 'bob', 'dialogue' FROM generate_series(1, 5000)"
        )
        await owner.execute("ANALYZE messages, conversations")
    async with database.connection("acme") as connection:
        plan = await connection.fetchval(
            "EXPLAIN (FORMAT JSON) SELECT seq FROM messages WHERE conversation_id = $1 ORDER BY seq DESC LIMIT 20", UUID(id)
        )
    assert "Seq Scan" not in str(plan)


@pytest.mark.req("V-152", "V-153", "V-154")
async def test_a_fact_of_the_third_turn_is_still_told_in_turn_two_hundred(
    database: Database, conversations: PostgresConversations
) -> None:
    past = await conversations.recent("acme", await held(database, conversations, 200))
    summary, history = select_history(past)
    assert summary.through == 2 * (200 - WINDOW)
    assert len(history) <= 2 * (WINDOW + KEPT)
    kept = [message.text for message in history if message.seq is not None]
    assert FACT in [*kept, *(note.text for note in summary.notes)]


@pytest.mark.req("D-045")
async def test_reading_the_past_and_building_prompts_writes_nothing(
    database: Database, conversations: PostgresConversations
) -> None:
    id = await held(database, conversations, 30)
    async with database.connection("acme") as connection:
        before = await connection.fetch("SELECT xmin, * FROM conversations")
    await prompt(conversations, id)
    async with database.connection("acme") as connection:
        assert await connection.fetch("SELECT xmin, * FROM conversations") == before


async def test_a_prompt_of_two_hundred_turns_is_built_quickly(database: Database, conversations: PostgresConversations) -> None:
    load()
    id = await held(database, conversations, 205)
    times = []
    for _ in range(20):
        began = time.perf_counter()
        await prompt(conversations, id)
        times.append(time.perf_counter() - began)
    # About 5 ms on an idle machine; the bound is for a busy one.
    assert statistics.median(times) < 0.2


async def prompt(conversations: PostgresConversations, id: str) -> list[dict[str, str]]:
    past = await conversations.recent("acme", id)
    summary, history = select_history(past)
    turn = TurnContext(AGENT, {"name": "Ann"}, history, past.directive, QUESTION, QUESTION, summary=summary)
    return router_messages(AGENT, turn, None, 12_000)


async def test_what_was_said_in_place_of_a_failed_answer_is_read_no_more(
    database: Database, conversations: PostgresConversations
) -> None:
    """The person's words stay, and so do the replies of other turns."""
    id = await talked(database, [PastTurn(1, "Who runs it?", "I am sorry."), PastTurn(3, "And now?", "Ada runs it.")])
    async with database.transaction("acme") as connection:
        await connection.execute(
            """
            INSERT INTO turns (id, conversation_id, tenant, user_id, agent, request, principal, fingerprint, status, sequence,
                expires_at, reply)
            SELECT turn_id, conversation_id, 'acme', 'ann', 'dialogue', '{}', '{}', 'f', 'completed', seq, now(),
                jsonb_build_object('degraded', jsonb_build_array(CASE seq WHEN 2 THEN 'final' ELSE 'router' END))
            FROM messages WHERE conversation_id = $1 AND role = 'assistant'
            """,
            UUID(id),
        )
    window = (await conversations.recent("acme", id)).window
    assert [(turn.user, turn.reply) for turn in window] == [("Who runs it?", ""), ("And now?", "Ada runs it.")]
