"""What a claim reads, and in which order the users of one tenant come to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from phronesis_orchestrator.turns import store
from phronesis_orchestrator.turns.store import PostgresTurns
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_turns import LEASE, new, someone
from tests.stores.test_turns import database as database
from tests.stores.test_turns import turns as turns
from tests.support.servers import PostgresServer

_CONVERSATIONS = """
INSERT INTO conversations (id, tenant, user_id, agent, next_turn)
SELECT md5($1 || 'c' || n)::uuid, $1, 'u' || n % $2, 'dialogue', 2 FROM generate_series(1, $3) AS n"""
_TURNS = """
INSERT INTO turns (id, tenant, user_id, conversation_id, sequence, agent, status, request, fingerprint, principal, expires_at)
SELECT md5($1 || 't' || n)::uuid, $1, 'u' || n % $2, md5($1 || 'c' || n % $3 + 1)::uuid, 1 + n / $3, 'dialogue', 'queued', '{}',
       '', '{}', now() + interval '1 hour' FROM generate_series(0, $4 - 1) AS n"""


@pytest.fixture
async def real(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as opened:
        yield opened


async def queue(database: Database, tenant: str, turns: int, *, users: int = 1, conversations: int | None = None) -> None:
    places = conversations or turns
    async with database.transaction(tenant) as connection:
        await connection.execute(_CONVERSATIONS, tenant, users, places)
        await connection.execute(_TURNS, tenant, users, places, turns)


async def read_by_a_claim(database: Database) -> int:
    """Rows of the table that one claim of one turn reads, dead or left out ones too."""
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute(store._BY_INDEX)
        explained = await connection.fetchval(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {store._CLAIM}", "w1", 1, LEASE, 1, [], None, None
        )
        plans = json.loads(explained) if isinstance(explained, str) else explained
        return sum(_rows(plans[0]["Plan"]))


def _rows(plan: dict[str, Any]) -> Iterator[float]:
    if plan.get("Relation Name") == "turns" and "Scan" in plan["Node Type"]:
        found = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        yield found * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from _rows(part)


@pytest.mark.verify
@pytest.mark.parametrize(("users", "conversations"), [(1, None), (1, 1), (10_000, None)])
async def test_a_claim_reads_few_rows_however_many_turns_one_tenant_queued(
    real: Database, users: int, conversations: int | None
) -> None:
    await queue(real, "loud", 10_000, users=users, conversations=conversations)
    await queue(real, "quiet", 1)
    assert await read_by_a_claim(real) < 1_000


async def test_the_users_of_a_tenant_take_turns(turns: PostgresTurns) -> None:
    loud, quiet = someone("acme"), someone("acme")
    for _ in range(6):
        await turns.accept(new(loud), 100)
    await turns.accept(new(quiet), 100)
    assert {claim.who.user for claim in await turns.claim("w1", 2, LEASE)} == {loud.user, quiet.user}


async def test_a_user_with_more_running_comes_after_one_with_fewer(turns: PostgresTurns) -> None:
    loud, quiet = someone("acme"), someone("acme")
    for _ in range(6):
        await turns.accept(new(loud), 100)
    await turns.claim("w1", 3, LEASE)
    for _ in range(2):
        await turns.accept(new(quiet), 100)
    assert [claim.who.user for claim in await turns.claim("w1", 2, LEASE)] == [quiet.user, quiet.user]


async def test_a_tenant_runs_no_more_turns_in_one_worker_than_it_may(turns: PostgresTurns) -> None:
    loud, quiet = someone("acme"), someone("other")
    for _ in range(6):
        await turns.accept(new(loud), 100)
    for _ in range(3):
        await turns.accept(new(quiet), 100)
    most = ("acme", 1)
    claims = await turns.claim("w1", 6, LEASE, most=most)
    assert sorted(claim.who.tenant for claim in claims) == ["acme", "other", "other", "other"]
    assert await turns.claim("w1", 5, LEASE, most=most) == []
    assert len(await turns.claim("w2", 5, LEASE, most=most)) == 1
