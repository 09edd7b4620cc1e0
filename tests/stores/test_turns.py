"""The queue of turns, on a real Postgres and on the model of one: accepted once, claimed in order, ended once by its holder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_contracts import BadRequest, Busy, KeyReused, NotFound, Principal, TurnEnded
from phronesis_contracts.orchestrator import (
    ConversationRef,
    Directive,
    ListTurns,
    Problem,
    Reply,
    SubmitTurn,
    TaskOrder,
    TurnStatus,
    Usage,
    turn_id,
)
from phronesis_orchestrator.conversations.history import Past
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.tasks.store import PostgresWaits
from phronesis_orchestrator.traces.record import StoredRecord
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_orchestrator.turns.turn import Claim, Completed, Failed, LostClaim, NewTurn, Offer, Wait
from phronesis_postgres import EVERY_TENANT, Database, PostgresOutbox
from tests.simulation.statements import model_database
from tests.support.servers import PostgresServer

LEASE = 15.0
SLOT = Offer("w1", LEASE)


@pytest.fixture(params=["postgres", "model"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    """A real Postgres, and the model of one on which the simulation runs: what holds on one holds on the other."""
    if request.param == "model":
        yield model_database()
        return
    postgres: PostgresServer = request.getfixturevalue("postgres")
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
def turns(database: Database) -> PostgresTurns:
    return PostgresTurns(database)


def someone(tenant: str | None = None, key: str | None = None) -> Principal:
    return Principal(tenant=tenant or f"t{uuid4().hex[:8]}", user=f"u{uuid4().hex[:8]}", key=key)


def new(
    who: Principal, conversation: str | None = None, *, text: str = "hello", key: str | None = None, **more: Any
) -> NewTurn:
    request = SubmitTurn(idempotency_key=key or uuid4().hex, conversation_id=conversation, text=text, agent="dialogue")
    id = turn_id(who.tenant, who.user, request.idempotency_key)
    return NewTurn(id, who, request, more.get("fingerprint", text), more.get("expiry", 900.0), None, None)


async def claimed(turns: PostgresTurns, worker: str = "w1", lease: float = LEASE) -> Claim:
    (claim,) = await turns.claim(worker, 1, lease)
    return claim


def completed(claim: Claim, directive: Directive = Directive.FOCUSED_ANALYST) -> Completed:
    reply = Reply(
        conversation_id=claim.conversation_id,
        turn_id=claim.turn_id,
        user_response=f"answer to {claim.request.text}",
        next_agent_directive=directive,
        reasoner="extractive",
    )
    return Completed(reply, claim.request.text, directive, "because")


@pytest.mark.req("D-020")
async def test_the_same_key_finds_the_same_turn_and_another_body_is_refused(turns: PostgresTurns) -> None:
    who = someone()
    turn = new(who, key="k1")
    first = await turns.accept(turn, 10)
    again = await turns.accept(turn, 10)
    assert again == first
    with pytest.raises(KeyReused):
        await turns.accept(new(who, key="k1", text="another"), 10)


async def test_a_hundred_parallel_accepts_of_one_key_make_one_turn(turns: PostgresTurns) -> None:
    who = someone()
    turn = new(who, key="k1")
    found = await asyncio.gather(*(turns.accept(turn, 1000) for _ in range(100)))
    assert set(found) == {found[0]}
    listed = await turns.list(who, ListTurns())
    assert [t.turn_id for t in listed.turns] == [turn.id]


async def test_turns_are_listed_page_by_page_with_what_they_were_asked_and_used(turns: PostgresTurns) -> None:
    who = someone()
    for number in range(3):
        await turns.accept(new(who, text=f"question {number}"), 10)
        claim = await claimed(turns)
        end = completed(claim)
        await turns.end(claim, replace(end, reply=end.reply.model_copy(update={"usage": Usage(ms=number)})))
    first = await turns.list(who, ListTurns(limit=2))
    rest = await turns.list(who, ListTurns(limit=2, before=first.turns[-1].turn_id))
    assert [(turn.opening, turn.usage) for turn in first.turns + rest.turns] == [
        ("question 2", Usage(ms=2)),
        ("question 1", Usage(ms=1)),
        ("question 0", Usage(ms=0)),
    ]


async def test_turns_are_listed_by_agent_and_time(turns: PostgresTurns) -> None:
    who = someone()
    for _ in range(3):
        await turns.accept(new(who), 10)
    whole = [turn.turn_id for turn in (await turns.list(who, ListTurns(agent="dialogue"))).turns]
    middle = (await turns.list(who, ListTurns())).turns[1].created_at
    later = await turns.list(who, ListTurns(since=middle))
    earlier = await turns.list(who, ListTurns(until=middle))
    assert [turn.turn_id for turn in later.turns + earlier.turns] == whole
    assert (await turns.list(who, ListTurns(agent="noor"))).turns == ()


async def test_a_turn_of_somebody_else_is_no_place_in_a_list(turns: PostgresTurns) -> None:
    who = someone()
    await turns.accept(new(who), 10)
    other = await turns.accept(new(someone(who.tenant)), 10)
    assert (await turns.list(who, ListTurns(before=other.turn_id))).turns == ()


@pytest.mark.req("D-012", "D-143")
async def test_a_foreign_conversation_is_as_unknown_as_none(turns: PostgresTurns) -> None:
    mine = await turns.accept(new(someone()), 10)
    for conversation in (mine.conversation_id, str(uuid4()), "no-uuid"):
        with pytest.raises(NotFound) as unknown:
            await turns.accept(new(someone(), conversation), 10)
        assert unknown.value.body() == NotFound("no such conversation", field="conversation_id").body()


async def test_a_conversation_keeps_its_agent(turns: PostgresTurns) -> None:
    who = someone()
    first = await turns.accept(new(who), 10)
    other = new(who, first.conversation_id)
    with pytest.raises(BadRequest) as refused:
        await turns.accept(
            NewTurn(other.id, who, other.request.model_copy(update={"agent": "nova"}), "f", 900.0, None, None), 10
        )
    assert refused.value.field == "agent"


async def test_a_tenant_with_too_many_open_turns_is_refused_as_busy(turns: PostgresTurns) -> None:
    who = someone()
    await turns.accept(new(who), 2)
    await turns.accept(new(who), 2)
    with pytest.raises(Busy):
        await turns.accept(new(who), 2)
    await turns.accept(new(someone()), 2)


@pytest.mark.req("D-019")
async def test_the_turns_of_a_conversation_are_claimed_one_after_the_other_in_order(turns: PostgresTurns) -> None:
    who = someone()
    first = await turns.accept(new(who, text="1"), 10)
    for text in ("2", "3"):
        await turns.accept(new(who, first.conversation_id, text=text), 10)
    order = []
    for _ in range(3):
        claims = await turns.claim("w1", 10, LEASE)
        assert len(claims) == 1
        assert await turns.claim("w2", 10, LEASE) == []
        order.append(claims[0].request.text)
        await turns.end(claims[0], completed(claims[0]))
    assert order == ["1", "2", "3"]


async def test_many_waiting_turns_of_one_conversation_do_not_hold_up_others(turns: PostgresTurns) -> None:
    busy, other = someone(), someone()
    first = await turns.accept(new(busy), 100)
    for _ in range(20):
        await turns.accept(new(busy, first.conversation_id), 100)
    quick = await turns.accept(new(other), 100)
    claims = await turns.claim("w1", 10, LEASE)
    assert {c.turn_id for c in claims} == {first.turn_id, quick.turn_id}


async def test_tenants_take_turns(turns: PostgresTurns) -> None:
    loud, quiet = someone(), someone()
    for _ in range(6):
        await turns.accept(new(loud), 100)
    await turns.accept(new(quiet), 100)
    claims = await turns.claim("w1", 2, LEASE)
    assert {c.who.tenant for c in claims} == {loud.tenant, quiet.tenant}


async def test_parallel_workers_never_claim_the_same_turn(turns: PostgresTurns) -> None:
    who = someone()
    accepted = [await turns.accept(new(who), 100) for _ in range(30)]
    batches = await asyncio.gather(*(turns.claim(f"w{i}", 5, LEASE) for i in range(8)))
    got = [c.turn_id for batch in batches for c in batch]
    assert len(got) == len(set(got))
    assert set(got) <= {a.turn_id for a in accepted}


async def test_a_lease_that_ran_out_is_claimed_by_another_and_the_first_may_write_nothing_more(
    database: Database, turns: PostgresTurns
) -> None:
    journal = PostgresJournal(database)
    await turns.accept(new(someone()), 10)
    slow = await claimed(turns, "slow", lease=0.0)
    fast = await claimed(turns, "fast")
    assert fast.fence == slow.fence + 1
    with pytest.raises(LostClaim):
        await journal.intend(slow, "route", {})
    with pytest.raises(LostClaim):
        await journal.result(slow, "route", {})
    with pytest.raises(LostClaim):
        await turns.end(slow, completed(slow))
    await turns.end(fast, completed(fast))


async def test_a_worker_whose_lease_ran_out_may_not_commit_though_nobody_else_has_claimed(turns: PostgresTurns) -> None:
    await turns.accept(new(someone()), 10)
    slept = await claimed(turns, lease=0.0)
    with pytest.raises(LostClaim):
        await turns.end(slept, completed(slept))


async def test_a_renewed_lease_is_kept_and_a_lost_one_is_reported(turns: PostgresTurns) -> None:
    await turns.accept(new(someone()), 10)
    lost = await claimed(turns, "w1", lease=0.0)
    kept = await claimed(turns, "w2")
    assert await turns.renew("w1", [lost], LEASE) == set()
    assert await turns.renew("w2", [kept], LEASE) == {kept.turn_id}


async def test_a_step_with_a_result_gives_it_to_the_next_attempt(database: Database, turns: PostgresTurns) -> None:
    journal = PostgresJournal(database)
    await turns.accept(new(someone()), 10)
    first = await claimed(turns, lease=0.5)
    assert await journal.intend(first, "route", {"call": "route"}) is None
    await journal.result(first, "route", {"value": 1})
    second = await eventually_claimed(turns)
    assert await journal.intend(second, "route", {"call": "route"}) == {"value": 1}
    assert await journal.intend(second, "compose", {"call": "compose"}) is None


async def test_a_result_in_the_journal_begins_the_count_of_idle_claims_anew(database: Database, turns: PostgresTurns) -> None:
    journal = PostgresJournal(database)
    await turns.accept(new(someone()), 10)
    for expected in (1, 2):
        claim = await claimed(turns)
        assert claim.idle_claims == expected
        await turns.give_back(claim, 0, counts=True)
    claim = await claimed(turns)
    await journal.intend(claim, "route", {})
    await journal.result(claim, "route", {})
    await turns.give_back(claim, 0, counts=True)
    assert (await claimed(turns)).idle_claims == 1


async def test_a_claim_given_back_in_order_does_not_count_as_idle(turns: PostgresTurns) -> None:
    await turns.accept(new(someone()), 10)
    await turns.give_back(await claimed(turns), 0, counts=False)
    assert (await claimed(turns)).idle_claims == 1


GRAPH = Wait(service="graph", code="unavailable", tries=2)


async def test_a_turn_that_is_put_back_says_what_it_waits_for_and_is_not_counted_as_idle(turns: PostgresTurns) -> None:
    who = someone()
    accepted = await turns.accept(new(who), 10)
    for _ in range(7):
        claim = await claimed(turns)
        assert claim.idle_claims == 1
        assert await turns.put_back(claim, GRAPH, 0)
        turn = await turns.get(who, accepted.turn_id)
        assert (turn.status, turn.waiting_for) == (TurnStatus.QUEUED, "graph")
    last = await claimed(turns)
    assert (last.wait, (await turns.get(who, accepted.turn_id)).waiting_for) == (GRAPH, None)


async def test_a_turn_that_is_put_back_is_left_for_its_time_and_holds_up_those_behind_it(turns: PostgresTurns) -> None:
    who = someone()
    first = await turns.accept(new(who), 10)
    await turns.accept(new(who, first.conversation_id), 10)
    await turns.put_back(await claimed(turns), GRAPH, 60)
    assert await turns.claim("w1", 5, LEASE) == []


async def test_a_turn_is_left_while_what_it_waits_for_is_away_and_another_is_not(turns: PostgresTurns) -> None:
    waits, other = await turns.accept(new(someone()), 10), await turns.accept(new(someone()), 10)
    for claim in await turns.claim("w1", 5, LEASE):
        if claim.turn_id == waits.turn_id:
            await turns.put_back(claim, GRAPH, 0)
        else:
            await turns.give_back(claim, 0, counts=False)
    assert [one.turn_id for one in await turns.claim("w1", 5, LEASE, away={"graph"})] == [other.turn_id]
    assert [one.turn_id for one in await turns.claim("w1", 5, LEASE, away={"memory"})] == [waits.turn_id]


async def test_a_turn_that_waits_is_claimed_as_soon_as_it_expires_to_be_ended(turns: PostgresTurns) -> None:
    await turns.accept(new(someone(), expiry=0.3), 10)
    await turns.put_back(await claimed(turns), GRAPH, 60)
    async with asyncio.timeout(5):
        while not (claims := await turns.claim("w2", 1, LEASE, away={"graph"})):
            pass
    assert (claims[0].expired, claims[0].wait) == (True, GRAPH)


async def test_a_turn_that_was_taken_away_is_not_put_back(turns: PostgresTurns) -> None:
    who = someone()
    accepted = await turns.accept(new(who), 10)
    claim = await claimed(turns)
    await turns.cancel(who, accepted.turn_id)
    assert await turns.put_back(claim, GRAPH, 0) is False
    assert (await turns.get(who, accepted.turn_id)).status is TurnStatus.CANCELLED


async def test_a_turn_that_was_put_back_lets_those_before_it_that_came_meanwhile(turns: PostgresTurns) -> None:
    waits = await turns.accept(new(someone("acme")), 10)
    claim = await claimed(turns)
    other = await turns.accept(new(someone("acme")), 10)
    await turns.put_back(claim, GRAPH, 0)
    assert [(await claimed(turns)).turn_id for _ in range(2)] == [other.turn_id, waits.turn_id]


async def test_a_turn_that_waits_can_be_cancelled(turns: PostgresTurns) -> None:
    who = someone()
    accepted = await turns.accept(new(who), 10)
    await turns.put_back(await claimed(turns), GRAPH, 0)
    assert (await turns.cancel(who, accepted.turn_id)).waiting_for is None
    assert await turns.claim("w1", 1, LEASE) == []


async def test_time_that_a_turn_waits_for_what_does_not_answer_is_known(database: Database, turns: PostgresTurns) -> None:
    await turns.accept(new(someone()), 10)
    await turns.put_back(await claimed(turns), GRAPH, 0)
    async with database.connection(EVERY_TENANT) as connection:
        await connection.execute("SELECT pg_sleep(0.2)")
    assert await PostgresWaits(database).waited(await claimed(turns)) >= 0.2


@pytest.mark.req("D-018", "D-116", "D-123", "D-124", "D-C01", "D-C16")
async def test_an_end_commits_messages_directive_reply_and_news_together(database: Database, turns: PostgresTurns) -> None:
    who = someone()
    accepted = await turns.accept(new(who, text="hello"), 10)
    claim = await claimed(turns)
    await turns.end(claim, completed(claim, Directive.CREATIVE_COLLABORATOR))
    turn = await turns.get(who, accepted.turn_id)
    assert (turn.status, turn.reply) == (TurnStatus.COMPLETED, completed(claim, Directive.CREATIVE_COLLABORATOR).reply)
    conversation = await PostgresConversations(database).get(who, ConversationRef(conversation_id=accepted.conversation_id))
    assert conversation.directive is Directive.CREATIVE_COLLABORATOR
    assert [(m.seq, m.role, m.text) for m in conversation.messages] == [
        (1, "user", "hello"),
        (2, "assistant", "answer to hello"),
    ]
    (news,) = await PostgresOutbox(database).unsent(10)
    assert news.subject == f"evt.{who.tenant}.orchestrator.v1.turn.ended"
    async with database.connection(EVERY_TENANT) as connection:
        stances = await connection.fetch("SELECT directive, reasoning FROM directives")
    assert [tuple(s) for s in stances] == [("creative_collaborator", "because")]


async def test_a_turn_ends_once(turns: PostgresTurns) -> None:
    await turns.accept(new(someone()), 10)
    claim = await claimed(turns)
    await turns.end(claim, completed(claim))
    with pytest.raises(LostClaim):
        await turns.end(claim, completed(claim))


@pytest.mark.req("D-123")
async def test_a_failed_turn_leaves_the_earlier_directive_and_no_messages(database: Database, turns: PostgresTurns) -> None:
    who = someone()
    accepted = await turns.accept(new(who), 10)
    claim = await claimed(turns)
    problem = Problem(code="timed_out", status=504, detail="too long")
    await turns.end(claim, Failed(TurnStatus.FAILED, problem))
    turn = await turns.get(who, accepted.turn_id)
    assert (turn.status, turn.problem, turn.reply) == (TurnStatus.FAILED, problem, None)
    assert await PostgresConversations(database).recent(who.tenant, accepted.conversation_id) == Past()


async def test_a_cancelled_turn_commits_nothing_and_cannot_be_cancelled_again(turns: PostgresTurns) -> None:
    who = someone()
    accepted = await turns.accept(new(who), 10)
    claim = await claimed(turns)
    assert (await turns.cancel(who, accepted.turn_id)).status is TurnStatus.CANCELLED
    with pytest.raises(LostClaim):
        await turns.end(claim, completed(claim))
    with pytest.raises(TurnEnded):
        await turns.cancel(who, accepted.turn_id)
    assert await turns.claim("w1", 10, LEASE) == []


async def test_a_foreign_turn_can_neither_be_read_nor_cancelled(turns: PostgresTurns) -> None:
    who = someone()
    accepted = await turns.accept(new(who), 10)
    for other in (someone(), someone(tenant=who.tenant)):
        with pytest.raises(NotFound):
            await turns.get(other, accepted.turn_id)
        with pytest.raises(NotFound):
            await turns.cancel(other, accepted.turn_id)


async def test_a_turn_of_a_revoked_key_is_claimed_as_such(database: Database, turns: PostgresTurns) -> None:
    await turns.accept(new(someone(key="key-1")), 10)
    await turns.revoke("acme", "key-1")
    assert (await claimed(turns)).key_revoked is True


async def test_a_turn_past_its_expiry_is_claimed_as_expired(turns: PostgresTurns) -> None:
    await turns.accept(new(someone(), expiry=0.0), 10)
    assert (await claimed(turns)).expired is True


async def test_a_parked_turn_can_be_asked_for_again_in_its_conversation_and_a_completed_one_cannot(
    turns: PostgresTurns,
) -> None:
    who = someone()
    accepted = await turns.accept(new(who, text="again"), 10)
    claim = await claimed(turns)
    await turns.end(claim, Failed(TurnStatus.PARKED, Problem(code="internal", status=500)))
    request = await turns.retryable(who, accepted.turn_id)
    assert (request.text, request.conversation_id) == ("again", accepted.conversation_id)


async def eventually_claimed(turns: PostgresTurns) -> Claim:
    async with asyncio.timeout(5):
        while True:
            claims = await turns.claim("w2", 1, LEASE)
            if claims:
                return claims[0]


async def test_a_turn_that_is_offered_a_free_slot_is_accepted_and_claimed_in_one_commit(turns: PostgresTurns) -> None:
    who = someone(key="k7")
    accepted = await turns.accept(new(who), 10, SLOT)
    claim = accepted.claim
    assert claim is not None
    assert (accepted.status, claim.fence, claim.attempts, claim.idle_claims) == (TurnStatus.RUNNING, 1, 1, 1)
    assert (claim.who, claim.expired, claim.key_revoked, claim.wait) == (who, False, False, None)
    assert await turns.claim("w2", 5, LEASE) == []
    assert await turns.renew("w1", [claim], LEASE) == {claim.turn_id}
    await turns.end(claim, completed(claim))
    assert (await turns.get(who, claim.turn_id)).status is TurnStatus.COMPLETED


async def test_a_slot_is_offered_to_a_repeat_in_vain(turns: PostgresTurns) -> None:
    turn = new(someone())
    first = await turns.accept(turn, 10, SLOT)
    assert await turns.accept(turn, 10, SLOT) == replace(first, claim=None)


async def test_a_turn_whose_worker_is_killed_right_after_it_was_accepted_is_claimed_by_another(turns: PostgresTurns) -> None:
    accepted = await turns.accept(new(someone()), 10, Offer("w1", 0.2))
    assert accepted.claim is not None
    async with asyncio.timeout(5):
        while not (claims := await turns.claim("w2", 1, LEASE)):
            pass
    assert (claims[0].turn_id, claims[0].fence, claims[0].attempts) == (accepted.turn_id, 2, 2)
    with pytest.raises(LostClaim):
        await turns.end(accepted.claim, completed(accepted.claim))


async def test_a_turn_behind_an_open_one_of_its_conversation_waits_though_a_slot_is_free(turns: PostgresTurns) -> None:
    who = someone()
    first = await turns.accept(new(who), 10, SLOT)
    second = await turns.accept(new(who, first.conversation_id), 10, SLOT)
    assert (second.status, second.claim) == (TurnStatus.QUEUED, None)
    assert await turns.claim("w1", 5, LEASE) == []
    assert first.claim is not None
    await turns.end(first.claim, completed(first.claim))
    assert (await claimed(turns)).turn_id == second.turn_id


async def test_a_turn_takes_no_slot_before_one_of_another_tenant_that_waits(turns: PostgresTurns) -> None:
    waits = await turns.accept(new(someone()), 10)
    late = await turns.accept(new(someone()), 10, SLOT)
    assert (late.status, late.claim) == (TurnStatus.QUEUED, None)
    assert [one.turn_id for one in await turns.claim("w1", 5, LEASE)] == [waits.turn_id, late.turn_id]


async def test_a_turn_takes_no_slot_before_one_whose_worker_is_gone(turns: PostgresTurns) -> None:
    lost = await turns.accept(new(someone()), 10, Offer("w0", 0.0))
    late = await turns.accept(new(someone()), 10, SLOT)
    assert late.claim is None
    assert [one.turn_id for one in await turns.claim("w1", 5, LEASE)] == [lost.turn_id, late.turn_id]


async def test_a_turn_takes_a_slot_before_a_background_task_that_waits(turns: PostgresTurns) -> None:
    who = someone()
    task = new(who)
    order = task.request.model_copy(update={"task": TaskOrder()})
    await turns.accept(replace(task, request=order), 10)
    assert (await turns.accept(new(who), 10, SLOT)).claim is not None


async def test_a_turn_takes_a_slot_while_others_wait_for_what_does_not_answer(turns: PostgresTurns) -> None:
    await turns.accept(new(someone()), 10)
    await turns.put_back(await claimed(turns), GRAPH, 60)
    assert (await turns.accept(new(someone()), 10, SLOT)).claim is not None


async def test_the_first_claim_says_that_its_key_was_revoked(turns: PostgresTurns) -> None:
    who = someone(key="k9")
    await turns.revoke(who.tenant, "k9")
    accepted = await turns.accept(new(who), 10, SLOT)
    assert accepted.claim is not None
    assert accepted.claim.key_revoked


async def test_an_end_gives_the_turn_as_its_row_states_it_and_keeps_the_record_with_it(
    turns: PostgresTurns, database: Database
) -> None:
    who = someone()
    for end_of in (completed, lambda claim: Failed(TurnStatus.FAILED, Problem(code="internal", status=500))):
        claim = (await turns.accept(new(who), 10, SLOT)).claim
        assert claim is not None
        ended = await turns.end(claim, end_of(claim), StoredRecord(notes={"mode": "quick"}))
        assert ended == await turns.get(who, claim.turn_id)
        async with database.connection(who.tenant) as connection:
            kept = await connection.fetchval("SELECT record FROM traces WHERE turn_id = $1", UUID(claim.turn_id))
        assert StoredRecord.model_validate_json(kept).notes == {"mode": "quick"}


async def test_a_record_is_not_kept_by_a_worker_that_lost_its_claim(turns: PostgresTurns, database: Database) -> None:
    who = someone()
    claim = (await turns.accept(new(who), 10, SLOT)).claim
    assert claim is not None
    await turns.cancel(who, claim.turn_id)
    with pytest.raises(LostClaim):
        await turns.end(claim, completed(claim), StoredRecord())
    async with database.connection(who.tenant) as connection:
        assert await connection.fetchval("SELECT record FROM traces WHERE turn_id = $1", UUID(claim.turn_id)) is None
