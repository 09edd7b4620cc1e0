"""The queue of turns in Postgres: claims, the journal of the holder of a claim, ends, and how many wait."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from phronesis_bus import Metrics, envelope_headers
from phronesis_contracts import NotFound, Principal, TurnEnded
from phronesis_contracts.orchestrator import MAX_OUTCOMES, TURN_ENDED, SubmitTurn, Turn, TurnEndedNews, TurnStatus
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news

from ..ledger.store import enter_spend
from ..ledger.usage import LedgerEntry
from ..metrics import OLDEST, OPEN
from .store import parse_uuid, turn_from_row
from .turn import AlreadyBegun, Claim, Completed, Failed, LostClaim

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


class TurnClaims:
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

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: LedgerEntry | None = None) -> None:
        """Write the result down; what the journal gained resets the count of idle claims."""
        async with self._database.transaction(claim.who.tenant) as connection:
            mine = await connection.fetchval(_RESULT, UUID(claim.turn_id), step, claim.fence, result)
            if spend is not None:  # also where the claim is lost: the money is gone
                await enter_spend(connection, claim, spend)
        if not mine:
            raise LostClaim(claim.turn_id)


# One statement, so that the end is one round trip between begin and commit.
_COMPLETE = """
WITH mine AS (
    UPDATE turns SET status = 'completed', reply = $3, recalled = $12, ended_at = now(), lease_until = NULL, worker = NULL
    WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now()
    RETURNING id, conversation_id
), place AS (
    UPDATE conversations SET next_message = next_message + 2, directive = $6, updated_at = now() FROM mine
    WHERE conversations.id = mine.conversation_id RETURNING conversations.id, next_message - 2 AS seq
), said AS (
    INSERT INTO messages (conversation_id, seq, turn_id, role, text)
    SELECT place.id, place.seq, $1, 'user', $4 FROM place UNION ALL
    SELECT place.id, place.seq + 1, $1, 'assistant', $5 FROM place
), stance AS (
    INSERT INTO directives (turn_id, conversation_id, directive, reasoning) SELECT $1, place.id, $6, $7 FROM place
), news AS (
    INSERT INTO outbox (tenant, subject, body, headers) SELECT $8, $9, $10, $11 FROM mine
)
SELECT count(*) FROM mine
"""
_FAIL = """
UPDATE turns SET status = $3, problem = $4, ended_at = now(), lease_until = NULL, worker = NULL
WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now() RETURNING id
"""
_CANCEL = """
UPDATE turns SET status = 'cancelled', fence = fence + 1, ended_at = now(), lease_until = NULL, worker = NULL
WHERE id = $1 AND tenant = $2 AND user_id = $3 AND status IN ('queued', 'running', 'waiting') RETURNING *
"""
_WITHDRAW = "UPDATE approvals SET status = 'cancelled' WHERE turn_id = $1 AND status = 'pending'"


class TurnEnds:
    """The part of the turn store that ends."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def end(self, claim: Claim, end: Completed | Failed) -> None:
        """End the turn, once."""
        if isinstance(end, Completed):
            await self._complete(claim, end)
        else:
            await self._fail(claim, end)

    async def _complete(self, claim: Claim, end: Completed) -> None:
        news = _news(claim, end, TurnStatus.COMPLETED, end.user_text, end.reply.user_response)
        row = end_outbox_row(claim.who.tenant, news)
        async with self._database.transaction(claim.who.tenant) as connection:
            ended = await connection.fetchval(
                _COMPLETE,
                UUID(claim.turn_id),
                claim.fence,
                end.reply.model_dump(mode="json"),
                end.user_text,
                end.reply.user_response,
                end.directive,
                end.reasoning,
                claim.who.tenant,
                *row,
                list(end.recalled),
            )
        if not ended:
            raise LostClaim(claim.turn_id)

    async def _fail(self, claim: Claim, end: Failed) -> None:
        async with self._database.transaction(claim.who.tenant) as connection:
            problem = end.problem.model_dump(mode="json", exclude_none=True)
            if not await connection.fetchval(_FAIL, UUID(claim.turn_id), claim.fence, end.status, problem):
                raise LostClaim(claim.turn_id)
            await _announce(connection, claim.who, _news(claim, end, end.status, claim.request.text, ""))

    async def cancel(self, who: Principal, turn_id: str) -> Turn:
        """Cancel a turn that has not ended; raising the fence takes it from whoever runs it."""
        id = parse_uuid(turn_id, "turn")
        async with self._database.transaction(who.tenant) as connection:
            row = await connection.fetchrow(_CANCEL, id, who.tenant, who.user)
            if row is None:
                status = await connection.fetchval(
                    "SELECT status FROM turns WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased",
                    id,
                    who.tenant,
                    who.user,
                )
                if status is None:
                    raise NotFound("no such turn")
                raise TurnEnded(f"the turn is {status}")
            await connection.execute(_WITHDRAW, id)
            turn = turn_from_row(row)
            news = TurnEndedNews(
                turn_id=turn_id,
                conversation_id=turn.conversation_id,
                user=who.user,
                agent=turn.agent,
                status=TurnStatus.CANCELLED,
            )
            await _announce(connection, who, news)
        return turn


def end_outbox_row(tenant: str, news: TurnEndedNews) -> tuple[str, bytes, dict[str, str]]:
    """Subject, body and headers of the outbox row for an end."""
    return TURN_ENDED.on(tenant), news.model_dump_json().encode(), envelope_headers("orchestrator")


async def _announce(connection: Connection, who: Principal, news: TurnEndedNews) -> None:
    await write_news(connection, "orchestrator", who.tenant, TURN_ENDED, news)


def _news(claim: Claim, end: Completed | Failed, status: TurnStatus, user_text: str, reply_text: str) -> TurnEndedNews:
    return TurnEndedNews(
        turn_id=claim.turn_id,
        conversation_id=claim.conversation_id,
        user=claim.who.user,
        agent=claim.agent,
        status=status,
        user_text=user_text[:100_000],
        reply_text=reply_text[:100_000],
        tier=end.tier,
        code=end.problem.code if isinstance(end, Failed) else None,
        tools=end.tools[-MAX_OUTCOMES:],
        at=datetime.now(UTC),
    )


# Each status by itself: it is the form in which the indexes of open turns are used.
_OPEN = """
SELECT status, count(*) AS count, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS age
FROM turns WHERE status IN ('queued', 'running', 'waiting') GROUP BY status
"""
_STATUSES = ("queued", "running", "waiting")


class QueueDepth:
    """Sets the gauges of the queue.

    Args:
        database: the orchestrator's schema.
        metrics: where the gauges are.
    """

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database = database
        self._metrics = metrics

    async def look(self) -> None:
        """Look once. Raises `Unavailable`."""
        async with self._database.connection(EVERY_TENANT) as connection:
            found = {row["status"]: row for row in await connection.fetch(_OPEN)}
        for status in _STATUSES:
            self._metrics.set(OPEN, found[status]["count"] if status in found else 0, status)
        self._metrics.set(OLDEST, found["queued"]["age"] if "queued" in found else 0)
