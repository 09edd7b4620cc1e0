"""Which turns a source covers, on a real Postgres: those that read it, those behind them, and those that were shown it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.deletions import OriginRef
from phronesis_contracts.origins import OriginKind
from phronesis_orchestrator.conversations.forgetting import PostgresSourceForgettings, _Job
from phronesis_orchestrator.conversations.history import Summary
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.turns.turn import Claim
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_learning import database, ended, someone

__all__ = ["database"]


async def covered(database: Database, job: _Job, *ids: str) -> set[str]:
    return {str(turn.id) for turn in await PostgresSourceForgettings(database, lambda: None).covered(job, ids)}


async def stated(database: Database, claim: Claim, **columns: Any) -> None:
    """Let a turn's row say this."""
    async with database.transaction(EVERY_TENANT) as connection:
        for name, value in columns.items():
            await connection.execute(f"UPDATE turns SET {name} = $2 WHERE id = $1", UUID(claim.turn_id), value)


async def test_a_document_covers_what_read_it_what_stands_behind_and_what_was_shown_what_came_of_it(database: Database) -> None:
    who = someone()
    ahead = await ended(database, who, "hello")
    read = await ended(database, who, "what does it say?", ahead.conversation_id)
    await stated(database, read, request={"text": "what does it say?", "media": ["m1"]})
    behind = await ended(database, who, "thanks", ahead.conversation_id)
    cited = await ended(database, who, "and the rent?", sources=("m1",))
    shown = await ended(database, who, "elsewhere", recalled=("f1",))
    after = await ended(database, who, "another matter", shown.conversation_id)
    other = await ended(database, Principal(tenant=who.tenant, user="bob"), "mine", recalled=("f1",), sources=("m1",))
    job = _Job(who=who, media=("m1",))
    assert await covered(database, job) == {read.turn_id, behind.turn_id, cited.turn_id}
    assert await covered(database, job, "f1") == {read.turn_id, behind.turn_id, cited.turn_id, shown.turn_id}
    assert not await covered(database, _Job(who=who, media=("m2",)))
    assert {ahead.turn_id, after.turn_id, other.turn_id}.isdisjoint(await covered(database, job, "f1"))


async def test_a_label_covers_its_turn_and_those_behind(database: Database) -> None:
    who = someone()
    first = await ended(database, who, "look it up")
    await stated(database, first, labels=[{"kind": "web", "id": "example.com", "name": "example.com"}])
    second = await ended(database, who, "thanks", first.conversation_id)
    both = {first.turn_id, second.turn_id}
    assert await covered(database, _Job(who=who, origin=OriginRef(kind=OriginKind.WEB))) == both
    assert await covered(database, _Job(who=who, origin=OriginRef(kind=OriginKind.WEB, id="example.com"))) == both
    assert await covered(database, _Job(who=who, origin=OriginRef(kind=OriginKind.WEB, id="example.org"))) == set()
    assert await covered(database, _Job(who=who, origin=OriginRef(kind=OriginKind.TOOL))) == set()


async def test_the_turn_that_asks_and_what_is_said_later_are_not_covered(database: Database) -> None:
    who = someone()
    said = await ended(database, who, "hello")
    asks = await ended(database, who, "forget this conversation", said.conversation_id)
    job = _Job(who=who, conversation_id=UUID(said.conversation_id), asked_in=UUID(asks.turn_id))
    later = await ended(database, who, "hello again", said.conversation_id)
    assert await covered(database, job) == {said.turn_id}
    assert later.turn_id in await covered(database, _Job(who=who, conversation_id=UUID(said.conversation_id)))
    assert await covered(database, _Job(who=who, media=("m",), requested_at=job.requested_at - timedelta(days=1))) == set()


async def test_a_summary_that_a_running_turn_made_of_what_is_gone_is_refused(database: Database) -> None:
    who, word = someone(), f"canary{uuid4().hex}"
    gone = await ended(database, who, word)
    runs = await ended(database, who, "later", gone.conversation_id)
    await stated(database, runs, status="running", ended_at=None)
    store = PostgresSourceForgettings(database, lambda: None)
    job = _Job(who=who, conversation_id=UUID(gone.conversation_id), turns=(UUID(gone.turn_id),))
    await store.erase(job, ())
    conversations = PostgresConversations(database)
    await conversations.keep_summary(who.tenant, gone.conversation_id, Summary(text=f"She likes {word}.", through=2))
    past = await conversations.recent(who.tenant, gone.conversation_id)
    assert past.summary.text == ""


@pytest.mark.parametrize("kept", ["turn_id", "media_id"])
async def test_entries_of_the_audit_keep_ids_alone(database: Database, kept: str) -> None:
    who, word = someone(), f"canary{uuid4().hex}"
    turn = await ended(database, who, "hello")
    id = turn.turn_id if kept == "turn_id" else "m1"
    statement = (
        "INSERT INTO audit (news_id, tenant, service, who, role, action, outcome, arguments)"
        " VALUES ($1, $2, 'orchestrator', $3, 'noor', 'policy.x', 'done', $4)"
    )
    async with database.transaction(EVERY_TENANT) as connection:
        for number, named in enumerate((id, "another")):
            await connection.execute(statement, f"{uuid4()}/{number}", who.tenant, who.user, {kept: named, "said": word})
    store, job = PostgresSourceForgettings(database, lambda: None), _Job(who=who, media=("m1",), turns=(UUID(turn.turn_id),))
    assert (await store.counts(job, job.turns))["audit_arguments"] == 1
    await store.erase(job, ())
    assert "audit_arguments" not in await store.counts(job, job.turns)
    async with database.transaction(EVERY_TENANT) as connection:
        rows = await connection.fetch("SELECT arguments FROM audit WHERE tenant = $1 ORDER BY news_id", who.tenant)
    left = [row["arguments"] for row in rows]
    assert sorted(map(len, left)) == [1, 2]
    assert {kept: id} in left
