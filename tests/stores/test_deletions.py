"""Conversations on a real Postgres: listed page by page, and deleted so that nothing of them is left."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from phronesis_contracts import BadRequest, Conflict, NotFound, Principal, TurnEnded
from phronesis_contracts.deletions import MAX_RELEASED, ConversationDeleted, DeletionState, Purged
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETED,
    ConversationRef,
    ListConversations,
    ListTurns,
    Problem,
    SubmitTurn,
    Turn,
    TurnStatus,
    turn_id,
)
from phronesis_orchestrator.conversations.store import PagePlace, PostgresConversations, encode_cursor
from phronesis_orchestrator.traces.record import Question, StoredRecord
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_orchestrator.turns.turn import Failed, LostClaim, NewTurn
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_turns import LEASE, claimed, completed, new, someone
from tests.support.postgres_text import holding
from tests.support.servers import PostgresServer


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
def turns(database: Database) -> PostgresTurns:
    return PostgresTurns(database)


@pytest.fixture
def kept(database: Database) -> PostgresConversations:
    return PostgresConversations(database)


def with_media(who: Principal, *media: str) -> NewTurn:
    request = SubmitTurn(idempotency_key=uuid4().hex, text="look", media=media)
    return NewTurn(turn_id(who.tenant, who.user, request.idempotency_key), who, request, "f", 900.0, None, None)


async def answered(turns: PostgresTurns, who: Principal, text: str = "hello", conversation: str | None = None) -> str:
    """A conversation with one more turn that was completed."""
    accepted = await turns.accept(new(who, conversation, text=text), 1_000)
    claim = await claimed(turns)
    await turns.end(claim, completed(claim))
    return accepted.conversation_id


async def announced(database: Database) -> list[ConversationDeleted]:
    async with database.transaction(EVERY_TENANT) as connection:
        rows = await connection.fetch("SELECT subject, body FROM outbox ORDER BY id")
    mine = [row for row in rows if row["subject"].endswith(CONVERSATION_DELETED.subject)]
    return [ConversationDeleted.model_validate_json(row["body"]) for row in mine]


async def every_page(kept: PostgresConversations, who: Principal, limit: int) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await kept.page(who, ListConversations(limit=limit, cursor=cursor))
        found += [one.conversation_id for one in page.conversations]
        assert len(page.conversations) <= limit
        if page.next is None:
            return found
        cursor = page.next


async def test_a_list_shows_title_times_turns_agent_and_directive(turns: PostgresTurns, kept: PostgresConversations) -> None:
    who = someone()
    conversation = await answered(turns, who, "  What is   the heron station? " + "It is old. " * 20)
    await answered(turns, who, "and now?", conversation)
    (one,) = (await kept.page(who, ListConversations())).conversations
    assert one.title == "What is the heron station? It is old. It is old. It is old.…"
    assert (one.conversation_id, one.agent, one.directive, one.turns) == (conversation, "dialogue", "focused_analyst", 2)
    assert one.created_at < one.updated_at


async def test_the_newest_activity_stands_first(turns: PostgresTurns, kept: PostgresConversations) -> None:
    who = someone()
    first, second, third = [await answered(turns, who) for _ in range(3)]
    await turns.accept(new(who, first), 10)
    page = await kept.page(who, ListConversations())
    assert [one.conversation_id for one in page.conversations] == [first, third, second]
    assert page.next is None


@pytest.mark.req("D-143")
async def test_another_users_conversations_are_in_no_list(turns: PostgresTurns, kept: PostgresConversations) -> None:
    ann = someone()
    await answered(turns, ann)
    assert (await kept.page(someone(ann.tenant), ListConversations())).conversations == ()


@pytest.mark.parametrize("seed", range(4))
async def test_pages_miss_nothing_and_show_nothing_twice_while_conversations_begin_and_go(
    turns: PostgresTurns, kept: PostgresConversations, seed: int
) -> None:
    chance = random.Random(seed)
    who = someone()
    there = [(await turns.accept(new(who), 1_000)).conversation_id for _ in range(chance.randint(1, 40))]
    limit = chance.randint(1, 9)
    seen: list[str] = []
    deleted: set[str] = set()
    cursor: str | None = None
    while True:
        page = await kept.page(who, ListConversations(limit=limit, cursor=cursor))
        seen += [one.conversation_id for one in page.conversations]
        if page.next is None:
            break
        cursor = page.next
        for _ in range(chance.randint(0, 3)):
            await turns.accept(new(who), 1_000)
        if chance.random() < 0.5:
            gone = chance.choice(there)
            deleted.add(gone)
            await kept.delete(who, gone)
    assert len(seen) == len(set(seen))
    assert set(there) - deleted <= set(seen) <= set(there)
    assert [id for id in seen if id not in deleted] == [id for id in reversed(there) if id not in deleted]


async def test_conversations_of_one_moment_are_told_apart_by_their_ids(
    database: Database, turns: PostgresTurns, kept: PostgresConversations
) -> None:
    who = someone()
    ids = {(await turns.accept(new(who), 100)).conversation_id for _ in range(7)}
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute("UPDATE conversations SET updated_at = '2026-01-01T00:00:00Z' WHERE tenant = $1", who.tenant)
    found = await every_page(kept, who, 2)
    assert (len(found), set(found)) == (7, ids)


@pytest.mark.req("D-143")
async def test_a_cursor_of_another_caller_is_refused(turns: PostgresTurns, kept: PostgresConversations) -> None:
    ann, bob = someone(), someone()
    for _ in range(2):
        await turns.accept(new(ann), 10)
    cursor = (await kept.page(ann, ListConversations(limit=1))).next
    with pytest.raises(BadRequest) as refused:
        await kept.page(bob, ListConversations(cursor=cursor))
    assert refused.value.field == "cursor"


async def test_a_cursor_still_holds_when_its_conversation_is_gone(turns: PostgresTurns, kept: PostgresConversations) -> None:
    who = someone()
    old, new_one = [(await turns.accept(new(who), 10)).conversation_id for _ in range(2)]
    cursor = (await kept.page(who, ListConversations(limit=1))).next
    await kept.delete(who, new_one)
    page = await kept.page(who, ListConversations(cursor=cursor))
    assert [one.conversation_id for one in page.conversations] == [old]
    place = PagePlace((await kept.page(who, ListConversations())).conversations[0].updated_at, UUID(int=0))
    assert (await kept.page(who, ListConversations(cursor=encode_cursor(who, place)))).conversations == ()


async def test_nothing_of_a_deleted_conversation_is_left_in_any_table(
    database: Database, turns: PostgresTurns, kept: PostgresConversations
) -> None:
    who, marker = someone(), f"heron{uuid4().hex}"
    conversation = await answered(turns, who, f"What is {marker}?")
    await turns.accept(new(who, conversation, text=f"and {marker}?"), 10)
    claim = await claimed(turns)
    journal = PostgresJournal(database)
    await journal.intend(claim, "route", {"text": marker})
    await journal.result(claim, "route", {"text": marker})
    record = StoredRecord(questions=(Question(subject="graph.v1.nodes", digest="d", answer={"text": marker}),))
    await PostgresJournal(database).keep_record(claim, record, None)
    await turns.end(claim, Failed(TurnStatus.FAILED, Problem(code="internal", status=500, detail=marker)))
    await turns.accept(new(who, conversation, text=f"still {marker}?"), 10)
    async with database.transaction(EVERY_TENANT) as connection:
        asked = "INSERT INTO task_waits (id, turn_id, tenant, user_id, step, kind, question, choices, due_at) VALUES "
        asked += "($1, $2, $3, $4, 'task.step.a', 'person', $5, '{}', now())"
        await connection.execute(asked, uuid4(), UUID(claim.turn_id), who.tenant, who.user, f"Which {marker}?")
    assert "task_waits" in await holding(database, marker)
    deletion, stopped = await kept.delete(who, conversation)
    assert await holding(database, marker) == {}
    assert len(stopped) == 1
    removed = {"messages": 2, "directives": 1, "steps": 1, "approvals": 0, "traces": 1, "turns": 3, "news": 2}
    removed |= {"grants": 0, "audit_arguments": 0}
    assert deletion.removed == {"orchestrator": {**removed, "task_states": 0, "task_waits": 1, "task_templates": 0}}


async def test_the_news_of_other_conversations_stays(
    database: Database, turns: PostgresTurns, kept: PostgresConversations
) -> None:
    who, marker = someone(), f"heron{uuid4().hex}"
    gone = await answered(turns, who)
    # Another conversation whose text quotes the very bytes of the field.
    await answered(turns, who, f'{marker} "conversation_id":"{gone}"')
    await kept.delete(who, gone)
    assert set(await holding(database, marker)) == {"messages", "outbox", "turns"}


@pytest.mark.req("D-143")
async def test_a_deleted_conversation_and_its_turns_are_unknown_to_every_reading(
    turns: PostgresTurns, kept: PostgresConversations
) -> None:
    who = someone()
    accepted = await turns.accept(first := new(who), 10)
    claim = await claimed(turns)
    await turns.end(claim, Failed(TurnStatus.FAILED, Problem(code="internal", status=500)))
    conversation = accepted.conversation_id
    await kept.delete(who, conversation)
    for reading in (
        kept.get(who, ConversationRef(conversation_id=conversation)),
        turns.get(who, first.id),
        turns.cancel(who, first.id),
        turns.retryable(who, first.id),
        turns.accept(new(who, conversation), 10),
        turns.accept(first, 10),
    ):
        with pytest.raises(NotFound):
            await reading
    assert (await turns.list(who, ListTurns())).turns == ()
    assert (await kept.page(who, ListConversations())).conversations == ()


async def test_a_running_turn_of_a_deleted_conversation_commits_nothing(
    database: Database, turns: PostgresTurns, kept: PostgresConversations
) -> None:
    who = someone()
    accepted = await turns.accept(new(who), 10)
    claim = await claimed(turns)
    journal = PostgresJournal(database)
    await journal.intend(claim, "route", {})
    _, stopped = await kept.delete(who, accepted.conversation_id)
    assert stopped == (accepted.turn_id,)
    for write in (
        journal.intend(claim, "compose", {}),
        journal.result(claim, "route", {}),
        turns.end(claim, completed(claim)),
        turns.end(claim, Failed(TurnStatus.FAILED, Problem(code="internal", status=500))),
    ):
        with pytest.raises(LostClaim):
            await write
    assert await turns.renew("w1", [claim], LEASE) == set()
    await turns.give_back(claim, 0, counts=True)
    assert await turns.claim("w2", 10, LEASE) == []


async def test_deletions_at_the_same_moment_and_later_are_one(
    database: Database, turns: PostgresTurns, kept: PostgresConversations
) -> None:
    who = someone()
    conversation = await answered(turns, who)
    found = await asyncio.gather(*(kept.delete(who, conversation) for _ in range(8)))
    again = await kept.delete(who, conversation)
    assert {deletion.deletion_id for deletion, _ in [*found, again]} == {found[0][0].deletion_id}
    assert len(await announced(database)) == 1


async def test_a_deletion_and_the_end_of_its_turn_never_both_take_effect_in_halves(
    database: Database, turns: PostgresTurns, kept: PostgresConversations
) -> None:
    for _ in range(12):
        who, marker = someone(), f"heron{uuid4().hex}"
        accepted = await turns.accept(new(who, text=marker), 10)
        claim = await claimed(turns)
        results = await asyncio.gather(
            turns.end(claim, completed(claim)), kept.delete(who, accepted.conversation_id), return_exceptions=True
        )
        assert isinstance(results[0], Turn | LostClaim)
        assert not isinstance(results[1], BaseException)
        assert await holding(database, marker) == {}


@pytest.mark.req("D-143")
async def test_a_foreign_conversation_is_not_deleted(turns: PostgresTurns, kept: PostgresConversations) -> None:
    ann = someone()
    conversation = await answered(turns, ann)
    for stranger in (someone(ann.tenant), someone(), Principal(tenant="other", user=ann.user)):
        for id in (conversation, str(uuid4()), "no-uuid"):
            with pytest.raises(NotFound):
                await kept.delete(stranger, id)
    assert len((await kept.get(ann, ConversationRef(conversation_id=conversation))).messages) == 2


async def test_media_go_with_the_last_turn_that_refers_to_them(
    database: Database, turns: PostgresTurns, kept: PostgresConversations
) -> None:
    who = someone()
    first = await turns.accept(with_media(who, "shared", "own", "own"), 10)
    second = await turns.accept(with_media(who, "shared", "other"), 10)
    await turns.accept(with_media(someone(who.tenant), "own"), 10)
    await kept.delete(who, first.conversation_id)
    await kept.delete(who, second.conversation_id)
    assert [event.media for event in await announced(database)] == [("own",), ("other", "shared")]


async def test_many_media_are_announced_in_parts(database: Database, turns: PostgresTurns, kept: PostgresConversations) -> None:
    who = someone()
    accepted = await turns.accept(with_media(who, "m"), 10)
    async with database.transaction(EVERY_TENANT) as connection:
        many = {"media": [f"m{n:05}" for n in range(MAX_RELEASED + 1)]}
        await connection.execute("UPDATE turns SET request = $1 WHERE id = $2", many, UUID(accepted.turn_id))
    await kept.delete(who, accepted.conversation_id)
    parts = await announced(database)
    assert [(len(part.media), part.part, part.parts) for part in parts] == [(MAX_RELEASED, 1, 2), (1, 2, 2)]


async def test_a_deletion_is_complete_when_every_service_has_reported_all_its_parts(
    turns: PostgresTurns, kept: PostgresConversations
) -> None:
    who = someone()
    deletion, _ = await kept.delete(who, (await turns.accept(new(who), 10)).conversation_id)
    id = deletion.deletion_id
    reports = [
        ("memory", Purged(deletion_id=id, removed={"items": 3})),
        ("media", Purged(deletion_id=id, removed={"media": 1}, part=2, parts=2)),
        ("graph", Purged(deletion_id=id, removed={"items": 2})),
        ("memory", Purged(deletion_id=id, removed={"items": 99})),
    ]
    for service, report in reports:
        await kept.purged(who.tenant, service, report)
        assert (await kept.deletion(who, id)).state is DeletionState.PENDING
    await kept.purged("another-tenant", "media", Purged(deletion_id=id, removed={}, part=1, parts=2))
    assert (await kept.deletion(who, id)).state is DeletionState.PENDING
    await kept.purged(who.tenant, "media", Purged(deletion_id=id, removed={"media": 4}, part=1, parts=2))
    done = await kept.deletion(who, id)
    assert (done.state, done.completed_at is not None) == (DeletionState.COMPLETE, True)
    assert {name: done.removed[name] for name in ("memory", "graph", "media")} == {
        "memory": {"items": 3},
        "graph": {"items": 2},
        "media": {"media": 5},
    }


async def test_reports_at_the_same_moment_complete_a_deletion(turns: PostgresTurns, kept: PostgresConversations) -> None:
    for _ in range(5):
        who = someone()
        deletion, _ = await kept.delete(who, (await turns.accept(new(who), 10)).conversation_id)
        report = Purged(deletion_id=deletion.deletion_id)
        await asyncio.gather(*(kept.purged(who.tenant, name, report) for name in ("memory", "graph", "media")))
        assert (await kept.deletion(who, deletion.deletion_id)).state is DeletionState.COMPLETE


@pytest.mark.req("D-143")
async def test_a_foreign_deletion_is_unknown(turns: PostgresTurns, kept: PostgresConversations) -> None:
    ann = someone()
    deletion, _ = await kept.delete(ann, (await turns.accept(new(ann), 10)).conversation_id)
    for who, id in ((someone(ann.tenant), deletion.deletion_id), (ann, str(uuid4())), (ann, "no-uuid")):
        with pytest.raises(NotFound):
            await kept.deletion(who, id)


async def test_an_ended_turn_is_still_told_as_ended_while_its_conversation_is_there(turns: PostgresTurns) -> None:
    who = someone()
    accepted = await turns.accept(new(who), 10)
    claim = await claimed(turns)
    await turns.end(claim, completed(claim))
    with pytest.raises(TurnEnded):
        await turns.cancel(who, accepted.turn_id)
    with pytest.raises(Conflict):
        await turns.retryable(who, accepted.turn_id)
