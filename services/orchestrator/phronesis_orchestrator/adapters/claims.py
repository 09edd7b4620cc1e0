"""Claiming turns from the queue, and the journal that only the holder of a claim may write."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import SubmitTurn
from phronesis_postgres import EVERY_TENANT, Database

from ..domain import AlreadyBegun, Claim, LostClaim
from ..ledger.spent import Spend
from .ledger import enter

# The first open turn of each conversation whose lease is free; in turn by tenant: whoever runs least comes first, and
# inside one batch each tenant's first candidate stands before any tenant's second. People's turns come before background
# tasks, which are counted by themselves, and of which no more are taken than there are slots for.
_CLAIM = """
WITH heads AS (
    SELECT DISTINCT ON (conversation_id) id, tenant, background, created_at, lease_until FROM turns
    WHERE status IN ('queued', 'running') ORDER BY conversation_id, sequence
), running AS (
    SELECT tenant, background, count(*) AS n FROM turns
    WHERE status = 'running' AND lease_until > now() GROUP BY tenant, background
), ranked AS (
    SELECT heads.id, background, heads.created_at,
           row_number() OVER (PARTITION BY tenant, background ORDER BY heads.created_at) + coalesce(running.n, 0) AS place
    FROM heads LEFT JOIN running USING (tenant, background)
    WHERE heads.lease_until IS NULL OR heads.lease_until < now()
), shared AS (
    SELECT *, row_number() OVER (PARTITION BY background ORDER BY place, created_at) AS nth FROM ranked
), picked AS (
    SELECT turns.id FROM turns JOIN shared USING (id)
    WHERE turns.status IN ('queued', 'running') AND (turns.lease_until IS NULL OR turns.lease_until < now())
      AND (NOT shared.background OR shared.nth <= $4)
    ORDER BY shared.background, shared.place, shared.created_at LIMIT $2
    FOR UPDATE OF turns SKIP LOCKED
)
UPDATE turns SET status = 'running', worker = $1, fence = fence + 1, attempts = attempts + 1, idle_claims = idle_claims + 1,
                 lease_until = now() + make_interval(secs => $3)
FROM picked WHERE turns.id = picked.id
RETURNING turns.id, conversation_id, principal, agent, request, fence, attempts, idle_claims, created_at, traceparent,
          correlation_id, expires_at < now() AS expired,
          EXISTS (SELECT 1 FROM revoked_keys WHERE revoked_keys.key_id = turns.key_id) AS key_revoked
"""
_RENEW = """
UPDATE turns SET lease_until = now() + make_interval(secs => $4)
FROM unnest($2::uuid[], $3::bigint[]) AS mine (id, fence)
WHERE turns.id = mine.id AND turns.fence = mine.fence AND turns.worker = $1 AND turns.status = 'running'
RETURNING turns.id
"""
_GIVE_BACK = """
UPDATE turns SET status = 'queued', worker = NULL, idle_claims = idle_claims - $4,
                 lease_until = CASE WHEN $3 > 0 THEN now() + make_interval(secs => $3) END
WHERE id = $1 AND fence = $2 AND status = 'running'
"""
_INTEND = """
INSERT INTO journal (turn_id, step, fence, intent)
SELECT id, $2, $3, $4 FROM turns WHERE id = $1 AND fence = $3 AND status = 'running' AND lease_until > now()
ON CONFLICT (turn_id, step) DO UPDATE SET fence = excluded.fence, intents = journal.intents + (journal.result IS NULL)::int
    WHERE journal.fence <= excluded.fence
RETURNING result, intents
"""
_RESULT = """
WITH mine AS (
    UPDATE turns SET idle_claims = 0 WHERE id = $1 AND fence = $3 AND status = 'running' AND lease_until > now() RETURNING id
)
UPDATE journal SET result = $4, result_at = now() FROM mine
WHERE journal.turn_id = mine.id AND journal.step = $2 AND journal.fence = $3 RETURNING true
"""


class Claims:
    """The part of the turn store that claims, renews and gives back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, worker: str, limit: int, lease: float, tasks: int | None = None) -> list[Claim]:
        """Claim up to `limit` turns for `worker`, at most `tasks` of them background tasks."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            rows = await connection.fetch(_CLAIM, worker, limit, lease, limit if tasks is None else tasks)
        return [
            Claim(
                turn_id=str(row["id"]),
                conversation_id=str(row["conversation_id"]),
                who=Principal.model_validate(row["principal"]),
                agent=row["agent"],
                request=SubmitTurn.model_validate(row["request"]),
                fence=row["fence"],
                attempts=row["attempts"],
                idle_claims=row["idle_claims"],
                expired=row["expired"],
                key_revoked=row["key_revoked"],
                created_at=row["created_at"],
                traceparent=row["traceparent"],
                correlation_id=row["correlation_id"],
            )
            for row in rows
        ]

    async def renew(self, worker: str, claims: list[Claim], lease: float) -> set[str]:
        """Renew leases in one statement; the ids of those that are still mine."""
        ids = [UUID(claim.turn_id) for claim in claims]
        fences = [claim.fence for claim in claims]
        async with self._database.transaction(EVERY_TENANT) as connection:
            rows = await connection.fetch(_RENEW, worker, ids, fences, lease)
        return {str(row["id"]) for row in rows}

    async def give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
        """Give a claim up; it is open again after `delay` seconds."""
        async with self._database.transaction(claim.who.tenant) as connection:
            await connection.execute(_GIVE_BACK, UUID(claim.turn_id), claim.fence, delay, 0 if counts else 1)


class PostgresJournal:
    """The journal, in the same schema."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def intend(self, claim: Claim, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        """Write the intent down, or find the result."""
        async with self._database.transaction(claim.who.tenant) as connection:
            row = await connection.fetchrow(_INTEND, UUID(claim.turn_id), step, claim.fence, intent)
        if row is None:
            raise LostClaim(claim.turn_id)
        result: dict[str, Any] | None = row["result"]
        if once and result is None and row["intents"] > 1:
            raise AlreadyBegun(step)
        return result

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: Spend | None = None) -> None:
        """Write the result down; what the journal gained resets the count of idle claims."""
        async with self._database.transaction(claim.who.tenant) as connection:
            mine = await connection.fetchval(_RESULT, UUID(claim.turn_id), step, claim.fence, result)
            if spend is not None:  # also where the claim is lost: the money is gone
                await enter(connection, claim, spend)
        if not mine:
            raise LostClaim(claim.turn_id)
