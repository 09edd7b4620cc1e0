"""What the orchestrator holds of a user is counted and erased, while a turn runs too; and conversations end by retention."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest

from phronesis_bus import Bus, News, erase_shown, show
from phronesis_contracts import Label, Nothing, OriginKind, Principal
from phronesis_contracts.deletions import Aged, DeleteConversation, DropAged
from phronesis_contracts.facts import MemoryForgotten
from phronesis_contracts.orchestrator import PROGRESS, TURN_ENDED, ChangedThing, StartingEvent, Turn, TurnProgress
from phronesis_contracts.tasks import AddTrigger, Trigger
from phronesis_orchestrator.agents.cognition.state import RecentHistory
from phronesis_orchestrator.conversations.handlers import ConversationHandlers, Erasing
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.learning.handlers import BusStreams, Forgetting
from phronesis_orchestrator.learning.store import PostgresCopies
from phronesis_orchestrator.tasks.schedules import PostgresSchedules
from phronesis_orchestrator.turns.ports import progress_on
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_orchestrator.turns.turn import LostClaim
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_deletions import answered
from tests.stores.test_turns import SLOT, claimed, completed, new, someone
from tests.support.bus import connected
from tests.support.memory import calling
from tests.support.servers import NatsServer, PostgresServer


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    async with connected(nats_server, "orchestrator") as (bus,):
        yield bus


@pytest.fixture
def stopped() -> list[str]:
    return []


@pytest.fixture
def erasing(bus: Bus, database: Database, stopped: list[str]) -> Erasing:
    return Erasing(bus, database, stopped.append, lambda _: None)


async def tables_that_name(database: Database, who: Principal) -> set[str]:
    found: set[str] = set()
    async with database.connection(EVERY_TENANT) as connection:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        for table in (row["tablename"] for row in rows if "yoyo" not in row["tablename"]):
            both = "strpos(to_jsonb(t)::text, $1) > 0 AND strpos(to_jsonb(t)::text, $2) > 0"
            if await connection.fetchval(f"SELECT true FROM {table} AS t WHERE {both} LIMIT 1", who.user, who.tenant):
                found.add(table)
    return found


async def test_all_rows_of_a_user_go_and_a_turn_that_runs_commits_nothing_more(
    database: Database, erasing: Erasing, stopped: list[str]
) -> None:
    turns = PostgresTurns(database)
    ann = someone()
    bob = Principal(tenant=ann.tenant, user="bob")
    for who in (ann, bob):
        await answered(turns, who)
    async with database.transaction(ann.tenant) as connection:
        for who in (ann, bob):
            await connection.execute(
                "INSERT INTO ledger (tenant, user_id, agent, turn_id, step, purpose, model, outcome, attempts, input_tokens,"
                " output_tokens, cached_tokens, reasoning_tokens, ms) SELECT tenant, user_id, agent, id, 's', 'p', 'm', 'ok',"
                " 1, 10, 5, 0, 0, 7 FROM turns WHERE tenant = $1 AND user_id = $2 LIMIT 1",
                who.tenant,
                who.user,
            )
            await connection.execute(
                "INSERT INTO audit (news_id, tenant, service, who, role, action, outcome, arguments)"
                " VALUES ($1, $2, 'memory', $3, 'noor', 'remember', 'done', '{\"items\": 1}')",
                f"{who.user} {who.tenant}",
                who.tenant,
                who.user,
            )
    await turns.accept(new(ann, text="a long one"), 1_000)
    claim = await claimed(turns)
    held = (await erasing.held(calling(ann), Nothing())).held
    assert {"conversations": 2, "turns": 2, "messages": 2, "usage": 1, "audit_arguments": 1}.items() <= held.items()
    steps = [await erasing.erase(calling(ann), Nothing())]
    while not steps[-1].done:
        steps.append(await erasing.erase(calling(ann), Nothing()))
    assert steps[0].removed == {"conversations": 2, "turns": 2}
    assert {"usage": 1, "audit_arguments": 1, "news": 1}.items() <= steps[1].removed.items()
    assert stopped == [claim.turn_id]
    with pytest.raises(LostClaim):
        await turns.end(claim, completed(claim))
    with pytest.raises(LostClaim):
        await PostgresJournal(database).intend(claim, "step", {})
    after = await erasing.held(calling(ann), Nothing())
    assert (after.held, after.kept) == ({}, {"audit": 1})
    assert await tables_that_name(database, ann) == {"audit"}
    assert (await erasing.held(calling(bob), Nothing())).held["turns"] == 1
    async with database.connection(ann.tenant) as connection:
        assert await connection.fetchval("SELECT sum(input_tokens) FROM ledger WHERE tenant = $1", ann.tenant) == 20
        subjects = [
            row["subject"] for row in await connection.fetch("SELECT subject FROM outbox WHERE tenant = $1", ann.tenant)
        ]
    assert subjects.count(TURN_ENDED.on(ann.tenant)) == 1, "that of the other user"


async def test_conversations_end_once_they_have_rested_for_long_and_not_while_something_runs(
    database: Database, erasing: Erasing
) -> None:
    turns = PostgresTurns(database)
    ann, other = someone(), someone()
    old, new_one = await answered(turns, ann), await answered(turns, ann)
    theirs = await answered(turns, other)
    running = (await turns.accept(new(ann, text="a long one"), 1_000)).conversation_id
    async with database.transaction(EVERY_TENANT) as connection:
        rested = [UUID(old), UUID(theirs), UUID(running)]
        await connection.execute(
            "UPDATE conversations SET updated_at = now() - interval '9 days' WHERE id = ANY($1::uuid[])", rested
        )
    dropped = await erasing.drop_aged(
        calling(ann), DropAged(what=Aged.CONVERSATIONS, before=datetime.now(UTC) - timedelta(days=8))
    )
    assert dropped.model_dump() == {"removed": {"turns": 1, "conversations": 1}, "done": True}
    async with database.connection(EVERY_TENANT) as connection:
        left = {str(row["id"]) for row in await connection.fetch("SELECT id FROM conversations")}
    assert left == {new_one, theirs, running}


async def test_an_event_starts_nothing_for_a_user_who_was_erased(database: Database, erasing: Erasing) -> None:
    schedules, ann = PostgresSchedules(database), someone()
    wanted = AddTrigger(goal="Look at {node}", on=Trigger(event="node_changed"))
    schedule = await schedules.add(calling(ann), wanted, datetime.now(UTC))
    thing = ChangedThing(id="task-17", title="Order flour")
    event = StartingEvent(
        event="node_changed", things=(thing,), type="task", label=Label(kind=OriginKind.TOOL, id="node.get.v1")
    )
    start = partial(schedules.start_on, id=UUID(schedule.schedule_id), event=event, expiry=900.0, open_turns=10)
    assert await start(News(ann.tenant, "news-1", 1))
    while not (await erasing.erase(calling(ann), Nothing())).done:
        pass
    assert await schedules.triggers(ann.tenant, "node_changed", None, None) == ()
    assert not await start(News(ann.tenant, "news-2", 1))
    async with database.connection(EVERY_TENANT) as connection:
        assert await connection.fetchval("SELECT count(*) FROM trigger_events WHERE tenant = $1", ann.tenant) == 0
        assert await connection.fetchval("SELECT count(*) FROM turns WHERE tenant = $1", ann.tenant) == 0


async def show_end(bus: Bus, turns: PostgresTurns, who: Principal) -> Turn:
    """A turn that has ended, and said so with its reply."""
    claim = (await turns.accept(new(who), 10, SLOT)).claim
    assert claim is not None
    turn = await turns.end(claim, completed(claim))
    await show(bus, who, PROGRESS, turn.turn_id, TurnProgress(turn_id=turn.turn_id, kind="ended", turn=turn))
    return turn


async def test_the_reply_in_the_last_line_of_a_turn_goes_with_its_conversation(database: Database, bus: Bus) -> None:
    turns, ann = PostgresTurns(database), someone()
    gone, stays = await show_end(bus, turns, ann), await show_end(bus, turns, ann)
    handlers = ConversationHandlers(PostgresConversations(database), progress_on(bus), lambda _: None, BusStreams(bus))
    await handlers.delete(calling(ann), DeleteConversation(conversation_id=gone.conversation_id))
    left = [await erase_shown(bus, PROGRESS, ann.tenant, ann.user, [turn.turn_id]) for turn in (gone, stays)]
    assert left == [0, 1]


async def test_the_reply_in_the_last_line_of_a_turn_goes_with_what_memory_forgets(database: Database, bus: Bus) -> None:
    turns, ann = PostgresTurns(database), someone()
    gone, stays = await show_end(bus, turns, ann), await show_end(bus, turns, ann)
    forgetting = Forgetting(PostgresCopies(database), BusStreams(bus), RecentHistory(), lambda: None)
    event = MemoryForgotten(forgetting_id=str(uuid4()), owner=ann.user, ids=(), turns=(gone.turn_id,))
    await forgetting.on_memory_forgotten(News(ann.tenant, "n1", 1), event)
    left = [await erase_shown(bus, PROGRESS, ann.tenant, ann.user, [turn.turn_id]) for turn in (gone, stays)]
    assert left == [0, 1]
