"""Turns that wait for a person, on a real Postgres: without a worker, until one answer, or the end of time, moves them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_bus import audit_entry
from phronesis_contracts import BadRequest, NotFound, Principal, Risk, ServiceError, TurnEnded
from phronesis_contracts.approvals import (
    AnswerApproval,
    ApprovalAnswered,
    ApprovalRef,
    ApprovalScope,
    ApprovalStatus,
    Decision,
    Grant,
    GrantRef,
    ListApprovals,
    ListGrants,
    UnknownGrant,
)
from phronesis_contracts.constitution.writes import DeleteConstitutionNode
from phronesis_contracts.media import HttpFetch
from phronesis_contracts.orchestrator import ListConversations, TurnStatus
from phronesis_contracts.origins import Label, OriginKind
from phronesis_contracts.tools import Effect
from phronesis_orchestrator.approvals.policy import LIFETIME, ApprovalRequest, describe_call, judge, request_approval
from phronesis_orchestrator.approvals.store import PostgresApprovals
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.traces.store import PostgresTraces
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns, accept_turn
from phronesis_orchestrator.turns.turn import Claim, LostClaim
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_turns import LEASE, claimed, completed, new, someone
from tests.support.bus import eventually
from tests.support.personas import Persona
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
def approvals(database: Database) -> PostgresApprovals:
    return PostgresApprovals(database)


def question(claim: Claim, id: str = "go-1", step: str = "call.1.1") -> ApprovalRequest:
    request = DeleteConstitutionNode(id=id)
    return request_approval(claim.turn_id, step, judge("node.delete.v1", {"id": id}), request)


async def waiting(
    turns: PostgresTurns, approvals: PostgresApprovals, who: Principal | None = None, **more: Any
) -> tuple[Principal, Claim, ApprovalRequest]:
    """A turn that waits."""
    who = who or someone()
    await turns.accept(new(who, **more), 100)
    claim = await claimed(turns)
    asks = question(claim)
    await approvals.wait(claim, asks)
    return who, claim, asks


def yes(asks: ApprovalRequest, note: str = "") -> AnswerApproval:
    return AnswerApproval(approval_id=asks.approval_id, decision=Decision.APPROVE, note=note)


def no(asks: ApprovalRequest, note: str = "") -> AnswerApproval:
    return AnswerApproval(approval_id=asks.approval_id, decision=Decision.REFUSE, note=note)


async def run_out(database: Database, who: Principal, asks: ApprovalRequest) -> None:
    """Let the time of an approval be over."""
    async with database.transaction(who.tenant) as connection:
        await connection.execute(
            "UPDATE approvals SET expires_at = now() - interval '1 second' WHERE id = $1", UUID(asks.approval_id)
        )


async def news(database: Database, who: Principal, part: str) -> list[str]:
    """What was announced to a tenant whose subject holds this."""
    async with database.connection(who.tenant) as connection:
        rows = await connection.fetch("SELECT body FROM outbox WHERE subject LIKE $1 ORDER BY id", f"%{part}%")
    return [row["body"].decode() for row in rows]


async def test_a_turn_that_waits_says_for_what_and_is_claimed_by_nobody(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    turn = await turns.get(who, claim.turn_id)
    assert (turn.status, turn.approval_id) == (TurnStatus.WAITING, asks.approval_id)
    assert await turns.claim("w2", 10, LEASE) == []
    assert await turns.renew("w1", [claim], LEASE) == set()


async def test_an_approval_tells_what_is_to_be_done(turns: PostgresTurns, approvals: PostgresApprovals) -> None:
    who, claim, asks = await waiting(turns, approvals)
    found = await approvals.approval(who, ApprovalRef(approval_id=asks.approval_id))
    assert found.expires_at - found.created_at == timedelta(seconds=LIFETIME)
    assert found.model_dump(exclude={"created_at", "expires_at"}) == {
        "approval_id": asks.approval_id,
        "turn_id": claim.turn_id,
        "conversation_id": claim.conversation_id,
        "user": who.user,
        "agent": "dialogue",
        "tool": "node.delete.v1",
        "action": "",
        "arguments": {"id": "go-1"},
        "arguments_sha256": asks.digest,
        "risk": Risk.HIGH.name.lower(),
        "irreversible": True,
        "reason": "HIGH — node.delete.v1 is irreversible",
        "effect": Effect.WRITE,
        "because": (),
        "host": "",
        "scopes": (ApprovalScope.ONCE,),
        "scope": ApprovalScope.ONCE,
        "status": ApprovalStatus.PENDING,
        "answered_at": None,
        "answered_by": None,
        "note": "",
    }


async def test_whoever_lost_the_claim_lets_nothing_wait(turns: PostgresTurns, approvals: PostgresApprovals) -> None:
    who = someone()
    await turns.accept(new(who), 10)
    claim = await claimed(turns)
    await turns.cancel(who, claim.turn_id)
    with pytest.raises(LostClaim):
        await approvals.wait(claim, question(claim))
    assert (await approvals.approvals(who, ListApprovals())).approvals == ()


@pytest.mark.parametrize(("decision", "status"), [(yes, ApprovalStatus.GRANTED), (no, ApprovalStatus.REFUSED)])
async def test_an_answer_puts_the_turn_back_and_the_call_finds_it(
    turns: PostgresTurns, approvals: PostgresApprovals, decision: Any, status: ApprovalStatus
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    assert await approvals.answered(claim, asks.approval_id) is not None
    approval = await approvals.answer(who, decision(asks, "as discussed"))
    assert (approval.status, approval.answered_by, approval.note) == (status, who.user, "as discussed")
    again = await claimed(turns, "w2")
    assert (again.turn_id, again.fence) == (claim.turn_id, claim.fence + 1)
    found = await approvals.answered(again, asks.approval_id)
    assert found is not None
    assert (found.status, found.digest, found.note) == (status, asks.digest, "as discussed")


async def test_what_was_journalled_before_the_question_is_known_after_it(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who = someone()
    await turns.accept(new(who), 10)
    claim, journal = await claimed(turns), PostgresJournal(database)
    await journal.intend(claim, "round.1", {})
    await journal.result(claim, "round.1", {"value": "delete it"})
    await approvals.wait(claim, question(claim))
    with pytest.raises(LostClaim):
        await journal.intend(claim, "call.1.1", {})
    await approvals.answer(who, yes(question(claim)))
    assert await journal.intend(await claimed(turns), "round.1", {}) == {"value": "delete it"}


async def test_the_time_of_a_turn_stands_still_while_it_waits(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    async with database.transaction(who.tenant) as connection:
        # As if it had waited for six days.
        await connection.execute("UPDATE turns SET expires_at = expires_at - interval '6 days' WHERE tenant = $1", who.tenant)
        await connection.execute("UPDATE approvals SET expires_at = expires_at - interval '6 days'")
    await approvals.answer(who, yes(asks))
    again = await claimed(turns)
    turn = await turns.get(who, claim.turn_id)
    assert not again.expired
    assert turn.expires_at is not None
    assert timedelta(0) < turn.expires_at - turn.created_at <= timedelta(seconds=910)


async def test_later_turns_of_the_conversation_go_on_and_the_one_that_waited_comes_behind_them(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals, text="first")
    for text in ("second", "third"):
        await turns.accept(new(who, claim.conversation_id, text=text), 100)
    running = await claimed(turns)
    await approvals.answer(who, yes(asks))
    order = []
    for at in range(3):
        if at:
            running = await claimed(turns)
        order.append((running.request.text, (await turns.get(who, running.turn_id)).sequence))
        assert await turns.claim("w2", 10, LEASE) == []
        await turns.end(running, completed(running))
    assert order == [("second", 2), ("third", 3), ("first", 4)]


async def test_a_place_that_was_given_up_is_not_counted_twice(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    await turns.accept(new(who, claim.conversation_id), 100)
    await approvals.answer(who, yes(asks))
    page = await PostgresConversations(database).page(who, ListConversations())
    assert [conversation.turns for conversation in page.conversations] == [2]


async def test_an_answer_leaves_the_place_of_a_turn_that_is_the_last_one(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    await approvals.answer(who, yes(asks))
    assert (await turns.get(who, claim.turn_id)).sequence == 1


async def test_a_turn_that_goes_on_while_another_is_accepted_goes_on_behind_it(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    """Else both could run at once: the other may be claimed before anybody sees that the first one goes on."""
    who, claim, asks = await waiting(turns, approvals)
    later = new(who, claim.conversation_id)
    async with database.transaction(who.tenant) as connection:
        await accept_turn(connection, later, 100)
        answering = asyncio.create_task(approvals.answer(who, yes(asks)))

        async def waits_or_is_done() -> bool:
            async with database.connection(EVERY_TENANT) as other:
                waits = await other.fetchval(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%moved%'"
                )
            return bool(waits) or answering.done()

        await eventually(waits_or_is_done)
    await answering
    assert (await claimed(turns)).turn_id == later.id
    assert await turns.claim("w2", 10, LEASE) == []


async def test_the_same_answer_again_finds_what_it_did_and_another_is_refused(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, _, asks = await waiting(turns, approvals)
    first = await approvals.answer(who, yes(asks))
    assert await approvals.answer(who, yes(asks)) == first
    with pytest.raises(ApprovalAnswered, match="granted"):
        await approvals.answer(who, no(asks))


async def test_of_many_answers_at_once_one_counts_and_the_turn_goes_on_once(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    boss = Principal(tenant=who.tenant, user="boss", **Persona.ADMIN.rights)
    answers = [(who, yes(asks)), (boss, no(asks))] * 10
    found = await asyncio.gather(*(approvals.answer(*one) for one in answers), return_exceptions=True)
    statuses = {one.status for one in found if not isinstance(one, BaseException)}
    assert len(statuses) == 1
    assert sum(isinstance(one, ApprovalAnswered) for one in found) == 10
    again = await claimed(turns)
    assert (again.turn_id, await turns.claim("w2", 10, LEASE)) == (claim.turn_id, [])


@pytest.mark.parametrize("other", [Principal(tenant="x", user="u", **Persona.ADMIN.rights), None])
async def test_a_stranger_neither_sees_nor_answers(
    turns: PostgresTurns, approvals: PostgresApprovals, other: Principal | None
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    stranger = other or Principal(tenant=who.tenant, user="somebody-else", **Persona.MAESTRO.rights)
    with pytest.raises(NotFound):
        await approvals.approval(stranger, ApprovalRef(approval_id=asks.approval_id))
    with pytest.raises(NotFound):
        await approvals.answer(stranger, yes(asks))
    assert (await approvals.approvals(stranger, ListApprovals())).approvals == ()
    assert (await turns.get(who, claim.turn_id)).status is TurnStatus.WAITING


async def test_an_admin_of_the_tenant_sees_and_answers(turns: PostgresTurns, approvals: PostgresApprovals) -> None:
    who, _, asks = await waiting(turns, approvals)
    admin = Principal(tenant=who.tenant, user="boss", **Persona.ADMIN.rights)
    listed = await approvals.approvals(admin, ListApprovals(status=ApprovalStatus.PENDING))
    assert [one.approval_id for one in listed.approvals] == [asks.approval_id]
    assert (await approvals.answer(admin, yes(asks))).answered_by == "boss"
    assert (await approvals.approvals(who, ListApprovals(status=ApprovalStatus.PENDING))).approvals == ()


@pytest.mark.parametrize("id", ["no-uuid", pytest.param(str(uuid4()), id="a-uuid")])
async def test_an_id_that_nobody_has_is_unknown(turns: PostgresTurns, approvals: PostgresApprovals, id: str) -> None:
    with pytest.raises(NotFound):
        await approvals.answer(someone(), AnswerApproval(approval_id=id, decision=Decision.APPROVE))


async def test_a_turn_whose_approval_ran_out_goes_on_and_the_call_finds_that(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    assert await approvals.expire(10) == 0
    await run_out(database, who, asks)
    assert (await approvals.expire(10), await approvals.expire(10)) == (1, 0)
    assert (await approvals.approval(who, ApprovalRef(approval_id=asks.approval_id))).status is ApprovalStatus.EXPIRED
    again = await claimed(turns)
    found = await approvals.answered(again, asks.approval_id)
    assert (again.turn_id, again.expired, found and found.status) == (claim.turn_id, False, ApprovalStatus.EXPIRED)
    assert await news(database, who, "turn.ended") == []


async def test_a_turn_whose_approval_ran_out_comes_behind_those_that_went_on_without_it(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals, text="first")
    await turns.accept(new(who, claim.conversation_id, text="second"), 100)
    await run_out(database, who, asks)
    assert await approvals.expire(10) == 1
    second = await claimed(turns)
    assert (second.request.text, await turns.claim("w2", 10, LEASE)) == ("second", [])
    await turns.end(second, completed(second))
    assert (await claimed(turns)).turn_id == claim.turn_id


async def test_an_answer_after_the_time_is_too_late_though_nobody_swept_yet(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    await run_out(database, who, asks)
    with pytest.raises(ApprovalAnswered, match="expired"):
        await approvals.answer(who, yes(asks))
    assert (await turns.get(who, claim.turn_id)).status is TurnStatus.WAITING


async def test_an_answer_the_sweep_and_a_cancellation_at_once_leave_one_of_them(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    ends = set()
    for late in (False, True) * 5:
        who, claim, asks = await waiting(turns, approvals)
        if late:
            await run_out(database, who, asks)
        found = await asyncio.gather(
            approvals.answer(who, yes(asks)), approvals.expire(10), turns.cancel(who, claim.turn_id), return_exceptions=True
        )
        assert all(isinstance(one, ServiceError) or not isinstance(one, BaseException) for one in found), found
        turn = await turns.get(who, claim.turn_id)
        status = (await approvals.approval(who, ApprovalRef(approval_id=asks.approval_id))).status
        ends.add((turn.status, status))
    assert ends <= {
        (TurnStatus.CANCELLED, ApprovalStatus.CANCELLED),
        (TurnStatus.CANCELLED, ApprovalStatus.GRANTED),
        (TurnStatus.CANCELLED, ApprovalStatus.EXPIRED),
    }


async def test_a_cancelled_turn_withdraws_its_question(turns: PostgresTurns, approvals: PostgresApprovals) -> None:
    who, claim, asks = await waiting(turns, approvals)
    assert (await turns.cancel(who, claim.turn_id)).status is TurnStatus.CANCELLED
    with pytest.raises(ApprovalAnswered, match="cancelled"):
        await approvals.answer(who, yes(asks))
    with pytest.raises(TurnEnded):
        await turns.cancel(who, claim.turn_id)
    assert await turns.claim("w1", 10, LEASE) == []


async def test_a_deleted_conversation_leaves_nothing_of_its_question(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    marker = f"heron{uuid4().hex}"
    who = someone()
    await turns.accept(new(who), 10)
    claim = await claimed(turns)
    asks = question(claim, marker)
    await approvals.wait(claim, asks)
    assert await holding(database, marker) != {}
    await PostgresConversations(database).delete(who, claim.conversation_id)
    assert await holding(database, marker) == {}
    with pytest.raises(NotFound):
        await approvals.answer(who, yes(asks))
    assert await turns.claim("w1", 10, LEASE) == []


async def test_the_question_the_answer_and_the_end_of_time_are_audited(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, _, asks = await waiting(turns, approvals)
    await approvals.answer(who, yes(asks, "a private word"))
    await claimed(turns)
    other, _, late = await waiting(turns, approvals)
    await run_out(database, other, late)
    await approvals.expire(10)
    actions = [body.split('"action":"')[1].split('"')[0] for body in await news(database, who, "audited")]
    assert actions == ["approval.ask", "approval.answer"]
    assert "a private word" not in "".join(await news(database, who, "audited"))
    assert ["approval_expired" in body for body in await news(database, other, "audited")] == [False, True]


async def test_a_turn_can_wait_again_for_another_call(turns: PostgresTurns, approvals: PostgresApprovals) -> None:
    who, claim, asks = await waiting(turns, approvals)
    await approvals.answer(who, yes(asks))
    again = await claimed(turns)
    await approvals.wait(again, question(again, "go-2", "call.2.1"))
    listed = await approvals.approvals(who, ListApprovals())
    assert [(one.arguments["id"], one.status) for one in listed.approvals] == [
        ("go-2", ApprovalStatus.PENDING),
        ("go-1", ApprovalStatus.GRANTED),
    ]
    assert (await turns.get(who, claim.turn_id)).approval_id == listed.approvals[0].approval_id


async def test_an_approval_is_a_row_of_its_tenant(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, _, _ = await waiting(turns, approvals)
    count = "SELECT count(*) FROM approvals"
    async with database.connection("another") as connection:
        assert await connection.fetchval(count) == 0
    async with database.connection(EVERY_TENANT) as connection:
        assert await connection.fetchval(f"{count} WHERE tenant = $1", who.tenant) == 1


INVOICE = Label(kind=OriginKind.DOCUMENT, id="m1", name="invoice.pdf")
PAGE = Label(kind=OriginKind.WEB, name="https://shop.example/prices")
DOCUMENT, WEB = frozenset({OriginKind.DOCUMENT}), frozenset({OriginKind.WEB})


async def fetching(
    turns: PostgresTurns, approvals: PostgresApprovals, *because: Label, who: Principal | None = None, **more: Any
) -> tuple[Principal, Claim, ApprovalRequest]:
    """A turn that waits to read a page because of texts that are not its user's."""
    who = who or someone()
    await turns.accept(new(who), 100)
    claim = await claimed(turns)
    request = HttpFetch(url="https://shop.example/prices?id=7")
    verdict = judge("http_fetch", {"url": request.url})
    asks = request_approval(
        claim.turn_id, "call.1.1", verdict, request, effect=Effect.OUTBOUND, because=because or (INVOICE,), **more
    )
    await approvals.wait(claim, asks)
    return who, claim, asks


def for_more(asks: ApprovalRequest, scope: ApprovalScope) -> AnswerApproval:
    return AnswerApproval(approval_id=asks.approval_id, decision=Decision.APPROVE, scope=scope)


async def grants_of(approvals: PostgresApprovals, who: Principal, *, revoked: bool = False) -> tuple[Grant, ...]:
    return (await approvals.grants(who, ListGrants(revoked=revoked))).grants


async def test_an_approval_tells_because_of_which_texts_it_is_asked_and_where_data_would_go(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, _, asks = await fetching(turns, approvals, INVOICE, PAGE, seconds=3600.0)
    found = await approvals.approval(who, ApprovalRef(approval_id=asks.approval_id))
    assert (found.effect, found.because, found.host) == (Effect.OUTBOUND, (INVOICE, PAGE), "shop.example")
    assert (found.scopes, found.expires_at - found.created_at) == (tuple(ApprovalScope), timedelta(hours=1))


@pytest.mark.parametrize("scope", ApprovalScope)
async def test_a_consent_covers_later_calls_as_far_as_its_scope_goes(
    turns: PostgresTurns, approvals: PostgresApprovals, scope: ApprovalScope
) -> None:
    who, claim, asks = await fetching(turns, approvals)
    answer = await approvals.answer(who, for_more(asks, scope))
    here = await approvals.granted(claim, "http_fetch", DOCUMENT, "shop.example")
    elsewhere = await approvals.granted(replace(claim, conversation_id=str(uuid4())), "http_fetch", DOCUMENT, "shop.example")
    assert (answer.scope, here, elsewhere) == (scope, scope is not ApprovalScope.ONCE, scope is ApprovalScope.RULE)


async def test_a_consent_covers_no_call_that_differs_in_what_the_person_saw(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await fetching(turns, approvals, INVOICE, PAGE)
    await approvals.answer(who, for_more(asks, ApprovalScope.RULE))

    async def covered(tool: str = "http_fetch", kinds: frozenset[OriginKind] = DOCUMENT, host: str = "shop.example") -> bool:
        return await approvals.granted(claim, tool, kinds, host)

    assert [await covered(), await covered(kinds=WEB), await covered(kinds=DOCUMENT | WEB)] == [True] * 3
    others = [
        await covered(kinds=DOCUMENT | {OriginKind.OUTSIDE}),
        await covered(kinds=frozenset()),
        await covered("keep_memory"),
        await covered(host="evil.example"),
        await covered(host="evil.example,shop.example"),
        await covered(host=""),
    ]
    assert others == [False] * len(others)
    stranger = replace(claim, who=Principal(tenant=who.tenant, user="bob"))
    assert not await approvals.granted(stranger, "http_fetch", DOCUMENT, "shop.example")
    foreign = replace(claim, who=Principal(tenant="another", user=who.user))
    assert not await approvals.granted(foreign, "http_fetch", DOCUMENT, "shop.example")


@pytest.mark.parametrize("scope", [ApprovalScope.CONVERSATION, ApprovalScope.RULE])
async def test_what_cannot_be_undone_is_allowed_once_alone(
    turns: PostgresTurns, approvals: PostgresApprovals, scope: ApprovalScope
) -> None:
    who, claim, asks = await waiting(turns, approvals)
    with pytest.raises(BadRequest) as refused:
        await approvals.answer(who, for_more(asks, scope))
    assert (refused.value.field, (await turns.get(who, claim.turn_id)).status) == ("scope", TurnStatus.WAITING)
    assert await grants_of(approvals, who) == ()


@pytest.mark.parametrize(
    "changed",
    [{"irreversible": True}, {"risk": Risk.HIGH}, {"breaks": ("gr-safety",)}],
    ids=str,
)
async def test_no_consent_for_more_is_taken_for_what_is_risky_whatever_it_depends_on(
    turns: PostgresTurns, approvals: PostgresApprovals, changed: dict[str, Any]
) -> None:
    who = someone()
    await turns.accept(new(who), 100)
    claim = await claimed(turns)
    verdict = replace(judge("http_fetch", {}), **changed)
    asks = request_approval(claim.turn_id, "s", verdict, HttpFetch(url="https://shop.example/"), because=(INVOICE,))
    await approvals.wait(claim, asks)
    with pytest.raises(BadRequest):
        await approvals.answer(who, for_more(asks, ApprovalScope.CONVERSATION))


async def test_a_refusal_is_of_the_very_call_whatever_scope_is_said_with_it(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, _, asks = await fetching(turns, approvals)
    refusal = AnswerApproval(approval_id=asks.approval_id, decision=Decision.REFUSE, scope=ApprovalScope.RULE)
    assert (await approvals.answer(who, refusal)).scope is ApprovalScope.ONCE
    assert await grants_of(approvals, who) == ()


async def test_a_repeat_with_the_same_scope_makes_one_grant_and_another_scope_is_another_answer(
    turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await fetching(turns, approvals)
    first = await approvals.answer(who, for_more(asks, ApprovalScope.CONVERSATION))
    assert await approvals.answer(who, for_more(asks, ApprovalScope.CONVERSATION)) == first
    with pytest.raises(ApprovalAnswered, match="granted for conversation"):
        await approvals.answer(who, for_more(asks, ApprovalScope.RULE))
    (grant,) = await grants_of(approvals, who)
    assert grant.model_dump(exclude={"grant_id", "created_at"}) == {
        "approval_id": asks.approval_id,
        "user": who.user,
        "conversation_id": claim.conversation_id,
        "tool": "http_fetch",
        "effect": Effect.OUTBOUND,
        "kinds": (OriginKind.DOCUMENT,),
        "host": "shop.example",
        "created_by": who.user,
        "revoked_at": None,
        "revoked_by": None,
    }


async def test_a_grant_that_is_taken_back_covers_nothing_more(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await fetching(turns, approvals)
    await approvals.answer(who, for_more(asks, ApprovalScope.RULE))
    (grant,) = await grants_of(approvals, who)
    boss = Principal(tenant=who.tenant, user="boss", **Persona.ADMIN.rights)
    revoked = await approvals.revoke(who, GrantRef(grant_id=grant.grant_id))
    assert await approvals.revoke(boss, GrantRef(grant_id=grant.grant_id)) == revoked
    assert (revoked.revoked_by, await grants_of(approvals, who)) == (who.user, ())
    assert await grants_of(approvals, boss, revoked=True) == (revoked,)
    assert not await approvals.granted(claim, "http_fetch", DOCUMENT, "shop.example")
    assert ["approval_grant.revoke" in one for one in await news(database, who, "audited")] == [False, False, True]


@pytest.mark.parametrize("stranger", [Principal(tenant="x", user="u", **Persona.ADMIN.rights), None])
async def test_a_grant_is_seen_and_taken_back_by_its_user_and_admins_alone(
    turns: PostgresTurns, approvals: PostgresApprovals, stranger: Principal | None
) -> None:
    who, _, asks = await fetching(turns, approvals)
    await approvals.answer(who, for_more(asks, ApprovalScope.RULE))
    (grant,) = await grants_of(approvals, who)
    other = stranger or Principal(tenant=who.tenant, user="bob")
    assert await grants_of(approvals, other) == ()
    for id in (grant.grant_id, "no-uuid"):
        with pytest.raises(UnknownGrant):
            await approvals.revoke(other, GrantRef(grant_id=id))


async def test_a_deleted_conversation_takes_its_grants_along(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, asks = await fetching(turns, approvals)
    await approvals.answer(who, for_more(asks, ApprovalScope.CONVERSATION))
    running = await claimed(turns)
    await turns.end(running, completed(running))
    _, _, again = await fetching(turns, approvals, who=who)
    await approvals.answer(who, for_more(again, ApprovalScope.RULE))
    await PostgresConversations(database).delete(who, claim.conversation_id)
    assert [grant.conversation_id for grant in await grants_of(approvals, who, revoked=True)] == [None]


async def test_what_the_audit_trail_keeps_of_a_call_goes_with_its_turn_and_that_it_was_made_stays(
    database: Database, turns: PostgresTurns, approvals: PostgresApprovals
) -> None:
    who, claim, _ = await fetching(turns, approvals)
    traces, request = PostgresTraces(database), HttpFetch(url="https://shop.example/heron")
    details = {"turn_id": claim.turn_id, **describe_call(request, Effect.OUTBOUND, (INVOICE,))}
    entry = audit_entry(who, "policy.http_fetch", details)
    await traces.audit("n1", who.tenant, "orchestrator", entry)
    kept = await _audited(database, who)
    assert kept == [
        {
            "turn_id": claim.turn_id,
            "effect": "outbound",
            "arguments": {"url": request.url, "method": "GET", "most": 40_000, "seconds": 10.0},
            "because": [{"kind": "document", "id": "m1", "name": "invoice.pdf"}],
        }
    ]
    await PostgresConversations(database).delete(who, claim.conversation_id)
    await traces.audit("n2", who.tenant, "orchestrator", entry)
    assert await _audited(database, who) == [{"turn_id": claim.turn_id, "effect": "outbound"}] * 2


async def _audited(database: Database, who: Principal) -> list[dict[str, Any]]:
    async with database.connection(who.tenant) as connection:
        rows = await connection.fetch("SELECT arguments FROM audit WHERE tenant = $1 ORDER BY id", who.tenant)
    return [row["arguments"] for row in rows]
