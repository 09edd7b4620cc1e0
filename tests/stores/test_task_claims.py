"""The queue of background tasks on a real Postgres: tenants take turns, and tasks take no more than their slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import SubmitTurn, TaskOrder, turn_id
from phronesis_orchestrator.stores import PostgresTurns
from phronesis_orchestrator.turns.turn import Claim, NewTurn
from phronesis_postgres import Database
from tests.support.servers import PostgresServer

SLOTS, LEASE = 32, 15.0


@pytest.fixture
async def turns(postgres: PostgresServer) -> AsyncIterator[PostgresTurns]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield PostgresTurns(database)


async def handed_in(turns: PostgresTurns, tenant: str, count: int, *, task: bool = True) -> None:
    """Accept tasks of a tenant, or messages of people, each in a conversation of its own."""
    who = Principal(tenant=tenant, user="ann")
    for _ in range(count):
        order = SubmitTurn(idempotency_key=uuid4().hex, text="Look", agent="nova", task=TaskOrder() if task else None)
        id = turn_id(who.tenant, who.user, order.idempotency_key)
        await turns.accept(NewTurn(id, who, order, "f", 900.0, None, None), 1_000)


def by_tenant(claims: list[Claim]) -> Counter[str]:
    return Counter(claim.who.tenant for claim in claims)


async def test_a_tenant_with_many_tasks_takes_no_more_slots_than_those_with_few(turns: PostgresTurns) -> None:
    for tenant, count in (("loud", 70), ("second", 10), ("third", 10), ("fourth", 10)):
        await handed_in(turns, tenant, count)
    claims = await turns.claim("w1", SLOTS, LEASE, 8)
    assert by_tenant(claims) == {"loud": 2, "second": 2, "third": 2, "fourth": 2}


async def test_slots_that_become_free_go_to_who_came_later_and_runs_least(turns: PostgresTurns) -> None:
    await handed_in(turns, "loud", 20)
    first = await turns.claim("w1", SLOTS, LEASE, 8)
    await handed_in(turns, "quiet", 5)
    for claim in first[:4]:
        await turns.give_back(claim, 60.0, counts=False)
    assert by_tenant(await turns.claim("w1", SLOTS, LEASE, 4)) == {"quiet": 4}


async def test_tasks_leave_the_other_slots_to_people(turns: PostgresTurns) -> None:
    await handed_in(turns, "loud", 20)
    await handed_in(turns, "loud", 3, task=False)
    claims = await turns.claim("w1", SLOTS, LEASE, 8)
    assert Counter(claim.request.task is not None for claim in claims) == {True: 8, False: 3}
    await handed_in(turns, "loud", 1, task=False)
    assert [claim.request.task for claim in await turns.claim("w1", SLOTS, LEASE, 0)] == [None]
