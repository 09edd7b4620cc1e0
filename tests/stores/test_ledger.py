"""The ledger on a real Postgres: what calls used is entered with the journal's result, summed, and held to limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from pydantic import ValidationError

from phronesis_bus import Call
from phronesis_contracts import BudgetExceeded, Principal
from phronesis_contracts.ledger import GetUsage, Limits, LimitState, SetLimit, UsageSum
from phronesis_orchestrator.ledger.budgets import Budgets
from phronesis_orchestrator.ledger.store import PostgresLedger
from phronesis_orchestrator.ledger.usage import AskedModel, CallUsage, LedgerEntry
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_orchestrator.turns.turn import Claim, LostClaim
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_turns import claimed, new, someone
from tests.support.personas import Persona
from tests.support.servers import PostgresServer


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
def records(database: Database) -> PostgresLedger:
    return PostgresLedger(database)


async def running(database: Database, who: Principal | None = None) -> Claim:
    """A turn of somebody that is claimed."""
    turns = PostgresTurns(database)
    await turns.accept(new(who or someone()), 100)
    return await claimed(turns)


def spend(step: str = "route", tokens: int = 100, usd: float | None = 0.5, model: str = "small") -> LedgerEntry:
    spent = CallUsage(input_tokens=tokens - 10, output_tokens=10, model_calls=1)
    return LedgerEntry(step, AskedModel("router", model), spent, usd, 7, "ok")


def of(who: Principal, role: Persona = Persona.ADMIN) -> Call:
    return Call(who.model_copy(update=role.rights), "gateway")


async def test_what_a_call_used_is_entered_with_the_journals_result(database: Database, records: PostgresLedger) -> None:
    claim, journal = await running(database), PostgresJournal(database)
    await journal.intend(claim, "route", {"call": "route"})
    await journal.result(claim, "route", {"value": None}, spend())
    (call,) = await records.calls_of(claim.who.tenant, claim.turn_id)
    assert call.model_dump() == {
        "step": "route",
        "purpose": "router",
        "model": "small",
        "input_tokens": 90,
        "output_tokens": 10,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
        "cost_usd": 0.5,
        "ms": 7,
        "attempts": 1,
        "outcome": "ok",
    }


async def test_a_call_of_a_lost_claim_is_paid_for_and_gives_no_result(database: Database, records: PostgresLedger) -> None:
    claim, journal = await running(database), PostgresJournal(database)
    await journal.intend(claim, "route", {"call": "route"})
    await PostgresTurns(database).cancel(claim.who, claim.turn_id)
    with pytest.raises(LostClaim):
        await journal.result(claim, "route", {"value": 1}, spend())
    async with database.connection(EVERY_TENANT) as connection:
        assert await connection.fetchval("SELECT result FROM journal WHERE turn_id = $1::text::uuid", claim.turn_id) is None
    assert len(await records.calls_of(claim.who.tenant, claim.turn_id)) == 1


async def test_sums_are_apart_by_what_was_asked_for(database: Database, records: PostgresLedger) -> None:
    claim = await running(database)
    for one in (spend(tokens=100, usd=0.5), spend(tokens=300, usd=None), spend(tokens=50, usd=2.0, model="large")):
        await records.spent(claim, one)
    found = await records.usage(claim.who, GetUsage(by=("model", "day")))
    today = datetime.now(UTC).date()
    assert found.sums == (
        UsageSum(
            model="large", day=today, calls=1, input_tokens=40, output_tokens=10, cached_tokens=0, reasoning_tokens=0,
            cost_usd=2.0, unpriced=0,
        ),
        UsageSum(
            model="small", day=today, calls=2, input_tokens=380, output_tokens=20, cached_tokens=0, reasoning_tokens=0,
            cost_usd=0.5, unpriced=1,
        ),
    )  # fmt: skip


async def test_a_sum_of_nothing_has_no_rows(records: PostgresLedger) -> None:
    assert (await records.usage(someone(), GetUsage(by=()))).sums == ()


async def test_tenants_see_nothing_of_each_other(database: Database, records: PostgresLedger) -> None:
    ours, theirs = await running(database), await running(database)
    await records.spent(ours, spend())
    await records.set_limit(of(ours.who), SetLimit(window="day", tokens=5))
    assert (await records.usage(theirs.who, GetUsage())).sums == ()
    assert await records.limits(theirs.who, None) == Limits(limits=())
    assert await records.calls_of(theirs.who.tenant, ours.turn_id) == ()
    async with database.connection(theirs.who.tenant) as connection:
        for table in ("ledger", "limits"):
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_a_user_is_told_the_limits_that_bear_on_the_user_alone(records: PostgresLedger) -> None:
    who = someone()
    for user in (None, who.user, "somebody-else"):
        await records.set_limit(of(who), SetLimit(window="day", tokens=5, user=user))
    assert [limit.user for limit in (await records.limits(who, who.user)).limits] == [None, who.user]


async def test_a_limit_is_shown_with_what_is_used_of_it(database: Database, records: PostgresLedger) -> None:
    claim = await running(database)
    await records.spent(claim, spend(tokens=100, usd=0.25))
    limits = await records.set_limit(of(claim.who), SetLimit(window="month", tokens=1000, usd=2.0, agent="dialogue"))
    state = LimitState(window="month", agent="dialogue", tokens=1000, usd=2.0, used_tokens=100, used_usd=0.25)
    assert limits.limits == (state,)


async def test_a_limit_without_a_figure_is_removed_and_each_change_is_audited(
    database: Database, records: PostgresLedger
) -> None:
    who = someone()
    await records.set_limit(of(who), SetLimit(window="day", tokens=5))
    assert (await records.set_limit(of(who), SetLimit(window="day"))).limits == ()
    async with database.connection(who.tenant) as connection:
        assert await connection.fetchval("SELECT count(*) FROM outbox WHERE subject LIKE '%audited'") == 2


@pytest.mark.parametrize("given", [{"usd": False}, {"tokens": True}, {"tokens": 1.5}, {"usd": float("nan")}, {"usd": -1}])
def test_what_is_no_amount_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SetLimit.model_validate({"window": "day", **given})


async def test_a_reached_limit_stops_the_next_call(database: Database, records: PostgresLedger) -> None:
    claim, budgets = await running(database), Budgets(records)
    await records.set_limit(of(claim.who), SetLimit(window="day", tokens=150))
    for _ in range(2):
        await budgets.admit(claim)
        one = spend(tokens=100)
        await records.spent(claim, one)
        budgets.used(claim, one)
    with pytest.raises(BudgetExceeded) as refused:
        await budgets.admit(claim)
    assert refused.value.status == 402


@pytest.mark.parametrize("part", [{"agent": "noor"}, {"user": "somebody-else"}, {}])
async def test_a_limit_bears_on_its_part_alone(database: Database, records: PostgresLedger, part: dict[str, str]) -> None:
    claim = await running(database)
    await records.spent(claim, spend(tokens=100))
    await records.set_limit(of(claim.who), SetLimit(window="day", tokens=10, **part))
    if part:
        await Budgets(records).admit(claim)
    else:
        with pytest.raises(BudgetExceeded):
            await Budgets(records).admit(claim)


async def test_what_another_process_used_is_seen_when_the_sum_is_no_longer_fresh(
    database: Database, records: PostgresLedger
) -> None:
    claim, now = await running(database), [0.0]
    here = Budgets(records, lambda: now[0])
    await records.set_limit(of(claim.who), SetLimit(window="month", usd=1.0))
    await here.admit(claim)
    await records.spent(claim, spend(usd=1.5))
    now[0] += 2.0
    with pytest.raises(BudgetExceeded):
        await here.admit(claim)


async def test_calls_side_by_side_go_over_a_limit_by_those_in_flight_at_most(
    database: Database, records: PostgresLedger
) -> None:
    claim, budgets, width = await running(database), Budgets(records), asyncio.Semaphore(4)
    await records.set_limit(of(claim.who), SetLimit(window="day", tokens=1000))

    async def call() -> bool:
        async with width:
            try:
                await budgets.admit(claim)
            except BudgetExceeded:
                return False
            one = spend(tokens=100)
            await records.spent(claim, one)
            budgets.used(claim, one)
            return True

    made = sum(await asyncio.gather(*(call() for _ in range(40))))
    assert 10 <= made <= 10 + 3


async def test_a_step_that_is_entered_twice_at_once_is_two_calls(database: Database, records: PostgresLedger) -> None:
    claim = await running(database)
    await asyncio.gather(*(records.spent(claim, spend(step=f"round.{uuid4().hex}")) for _ in range(20)))
    (found,) = (await records.usage(claim.who, GetUsage(by=(), turn_id=claim.turn_id))).sums
    assert (found.calls, found.input_tokens, found.cost_usd) == (20, 1800, 10.0)


async def test_what_was_learnt_from_a_turn_is_paid_for_and_is_no_part_of_its_answer(
    database: Database, records: PostgresLedger
) -> None:
    claim = await running(database)
    await records.spent(claim, spend(tokens=100))
    await records.spent(claim, replace(spend("learn", tokens=50), asked=AskedModel("learn", "small")))
    assert [call.purpose for call in await records.calls_of(claim.who.tenant, claim.turn_id)] == ["router"]
    sums = (await records.usage(claim.who, GetUsage(by=("purpose",)))).sums
    assert {one.purpose: one.input_tokens for one in sums} == {"router": 90, "learn": 40}
