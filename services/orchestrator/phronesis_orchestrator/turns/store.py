"""Turns and their journal in Postgres: accepted with a place in their conversation, claimed, written down, ended, and read."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from phronesis_bus import Metrics, envelope_headers, trace_id
from phronesis_contracts import (
    UNKNOWN,
    BadRequest,
    Busy,
    Conflict,
    KeyReused,
    NotFound,
    Principal,
    TurnEnded,
    Unauthorized,
    labels_for_row,
)
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import (
    MAX_OUTCOMES,
    TURN_ENDED,
    ListTurns,
    RateTurn,
    SubmitTurn,
    Turn,
    TurnEndedNews,
    Turns,
    TurnStatus,
)
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news

from ..conversations.history import reply_for_models
from ..ledger.usage import ChargedTurn, LedgerEntry
from ..metrics import OLDEST, OPEN, WAITING
from ..traces.record import StoredRecord, join_records, list_memories
from .turn import (
    Accepted,
    AlreadyBegun,
    Claim,
    Completed,
    Failed,
    LostClaim,
    NewTurn,
    Offer,
    Wait,
    new_conversation_id,
    parse_uuid,
    with_goal,
)

_PLACE_IN_NEW = """
INSERT INTO conversations (id, tenant, user_id, agent, next_turn) VALUES ($1, $2, $3, $4, 2)
ON CONFLICT (id) DO UPDATE SET next_turn = conversations.next_turn + 1
RETURNING next_turn - 1 AS sequence, agent
"""
_PLACE = """
UPDATE conversations SET next_turn = next_turn + 1, updated_at = now()
WHERE id = $1 AND tenant = $2 AND user_id = $3 AND deleted_at IS NULL
RETURNING next_turn - 1 AS sequence, agent
"""
# Whether anything waits for a worker: a turn that may be claimed, or one whose worker is gone.
_ANYTHING_WAITS = """
SELECT EXISTS (SELECT FROM turns WHERE status = 'queued' AND (lease_until IS NULL OR lease_until < now()))
    OR EXISTS (SELECT FROM turns WHERE status = 'running' AND lease_until < now())
"""
_LOOK = """
SELECT (SELECT count(*) FROM turns WHERE tenant = $2 AND status IN ('queued', 'running', 'waiting')) AS open,
       found.status, found.conversation_id, found.fingerprint, found.erased
FROM (SELECT $1::uuid AS id) AS asked LEFT JOIN turns AS found USING (id)
"""
# A worker ($16) that offers a free slot has the turn at once, where it is the first open one of its conversation and no
# person's turn waits for a slot: then no other has a better right to it. The conversation's row is locked by now, and this
# sees what was committed before that.
_INSERT = """
INSERT INTO turns (id, tenant, user_id, conversation_id, sequence, agent, status, request, fingerprint, principal, key_id,
                   expires_at, traceparent, correlation_id, retry_of, background, worker, lease_until, fence, attempts,
                   idle_claims)
SELECT $1, $2, $3, $4, $5, $6, CASE WHEN mine THEN 'running' ELSE 'queued' END, $7, $8, $9, $10,
       now() + make_interval(secs => $11), $12, $13, $14, $15, CASE WHEN mine THEN $16::text END,
       CASE WHEN mine THEN now() + make_interval(secs => $17) END, mine::int, mine::int, mine::int
FROM (SELECT $16::text IS NOT NULL AND NOT a_turn_waits() AND NOT EXISTS (
    SELECT FROM turns WHERE conversation_id = $4 AND sequence < $5 AND status IN ('queued', 'running'))) AS offered (mine)
RETURNING status, created_at, EXISTS (SELECT FROM revoked_keys WHERE revoked_keys.key_id = $10) AS key_revoked
"""
# What a claim reads does not grow with what waits: it steps from tenant to tenant and from user to user over an index, and
# takes from each only the first turns that are free, are the first open ones of their conversations and wait for no service
# that is away. Beyond the users looked at, a tenant's oldest turns are candidates too, so that each comes to its turn.
_SINCE = "CASE WHEN wait IS NULL THEN created_at ELSE lease_until END"
_USERS, _WINDOW, _SPARE = 100, 200, 64
_CANDIDATE = f"""
SELECT id, tenant, user_id, background, since FROM (
    SELECT id, tenant, user_id, background, conversation_id, sequence, lease_until, expires_at, wait, {_SINCE} AS since
    FROM turns WHERE {{where}} LIMIT {_WINDOW}
) AS seen
WHERE (lease_until IS NULL OR lease_until < now())
  AND NOT (coalesce(wait ->> 'service', '') = ANY($5::text[]) AND expires_at > now())
  AND sequence = (SELECT min(first.sequence) FROM turns AS first
                  WHERE first.conversation_id = seen.conversation_id AND first.status IN ('queued', 'running'))
"""  # noqa: S608
# Statistics say little of a queue: where they were made while it was empty, the planner would read and sort all of it. Left
# with the indexes, it plans the same for any arguments, and to plan takes several times as long as to claim.
_BY_INDEX = """
SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config(name, 'off', true) FROM unnest(
    ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'enable_hashjoin', 'enable_mergejoin']) AS name
"""
_OF_TENANT = f"""status = 'queued' AND background = of.background AND tenant = of.tenant
    AND (wait IS NOT NULL) = of.put_back AND ({_SINCE}) <= now() ORDER BY {_SINCE}"""
# Bounds of the user in place of equality: in this order only the index by user has the rows.
_OF_USER = f"""status = 'queued' AND background = of.background AND tenant = of.tenant
    AND (user_id, wait IS NOT NULL) BETWEEN (of.user_id, of.put_back) AND (of.user_id, of.put_back) AND ({_SINCE}) <= now()
    ORDER BY user_id, wait IS NOT NULL, {_SINCE}"""
# In turn by tenant: whoever runs least comes first, and inside one batch each tenant's first candidate stands before any
# tenant's second; inside a tenant by user in the same way. People's turns come before background tasks, which are counted by
# themselves, and of which no more are taken than there are slots for; of people's turns of tenant $6 no more run here than
# $7. A turn that was put back has its place by the time at which it is due again, so that it comes before no others with each
# try.
_CLAIM = f"""
WITH RECURSIVE queues AS (
    (SELECT background, tenant, wait IS NOT NULL AS put_back FROM turns WHERE status = 'queued'
     ORDER BY background, tenant, wait IS NOT NULL LIMIT 1)
    UNION ALL
    SELECT following.* FROM queues CROSS JOIN LATERAL (
        SELECT background, tenant, wait IS NOT NULL FROM turns WHERE status = 'queued'
          AND (background, tenant, wait IS NOT NULL) > (queues.background, queues.tenant, queues.put_back)
        ORDER BY background, tenant, wait IS NOT NULL LIMIT 1) AS following
), users AS (
    SELECT DISTINCT found.* FROM (SELECT DISTINCT background, tenant FROM queues) AS tenants CROSS JOIN LATERAL (
        WITH RECURSIVE each AS (
            (SELECT background, tenant, user_id, wait IS NOT NULL AS put_back, 1 AS nth FROM turns
             WHERE status = 'queued' AND background = tenants.background AND tenant = tenants.tenant
             ORDER BY user_id, wait IS NOT NULL LIMIT 1)
            UNION ALL
            SELECT following.*, each.nth + 1 FROM each CROSS JOIN LATERAL (
                SELECT background, tenant, user_id, wait IS NOT NULL FROM turns
                WHERE status = 'queued' AND background = each.background AND tenant = each.tenant
                  AND (user_id, wait IS NOT NULL) > (each.user_id, each.put_back)
                ORDER BY user_id, wait IS NOT NULL LIMIT 1) AS following
            WHERE each.nth < {_USERS}
        ) SELECT background, tenant, user_id, put_back FROM each) AS found
), running AS (
    SELECT tenant, user_id, background, count(*) AS n, count(*) FILTER (WHERE worker = $1) AS here FROM turns
    WHERE status = 'running' AND lease_until > now() GROUP BY tenant, user_id, background
), tenants AS (
    SELECT tenant, background, sum(n) AS n, sum(here) AS here FROM running GROUP BY tenant, background
), free AS (
    SELECT found.* FROM users AS of CROSS JOIN LATERAL (
        {_CANDIDATE.format(where=_OF_USER)} LIMIT $2) AS found
    UNION
    SELECT found.* FROM queues AS of CROSS JOIN LATERAL (
        {_CANDIDATE.format(where=_OF_TENANT)} LIMIT $2 + {_SPARE}) AS found
    UNION
    {_CANDIDATE.format(where="status = 'running' AND lease_until < now()")}
), by_user AS (
    SELECT free.*, row_number() OVER (PARTITION BY tenant, user_id, background ORDER BY since) + coalesce(n, 0) AS of_user
    FROM free LEFT JOIN running USING (tenant, user_id, background)
), by_tenant AS (
    SELECT id, tenant, background, since, nth + coalesce(tenants.n, 0) AS place, nth + coalesce(tenants.here, 0) AS here FROM (
        SELECT *, row_number() OVER (PARTITION BY tenant, background ORDER BY of_user, since) AS nth FROM by_user
    ) AS ordered LEFT JOIN tenants USING (tenant, background)
), shared AS (
    SELECT *, row_number() OVER (PARTITION BY background ORDER BY place, since) AS nth FROM by_tenant
), picked AS (
    SELECT found.* FROM (
        SELECT id FROM shared
        WHERE CASE WHEN background THEN nth <= $4 ELSE tenant IS DISTINCT FROM $6 OR here <= $7::bigint END
        ORDER BY background, place, since
    ) AS ordered CROSS JOIN LATERAL (
        SELECT id, wait FROM turns WHERE id = ordered.id
          AND status IN ('queued', 'running') AND (lease_until IS NULL OR lease_until < now())
        FOR UPDATE SKIP LOCKED) AS found
    LIMIT $2
)
UPDATE turns SET status = 'running', worker = $1, fence = fence + 1, attempts = attempts + 1, idle_claims = idle_claims + 1,
                 lease_until = now() + make_interval(secs => $3), wait = NULL,
                 waited_seconds = waited_seconds + coalesce(
                     extract(epoch FROM now() - (picked.wait ->> 'since')::timestamptz)::float8, 0)
FROM picked WHERE turns.id = picked.id
RETURNING turns.id, conversation_id, principal, agent, request, fence, attempts, idle_claims, created_at, traceparent,
          correlation_id, expires_at <= now() AS expired, picked.wait,
          EXISTS (SELECT 1 FROM revoked_keys WHERE revoked_keys.key_id = turns.key_id) AS key_revoked
"""  # noqa: S608
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
_PUT_BACK = """
UPDATE turns SET status = 'queued', worker = NULL, idle_claims = greatest(idle_claims - 1, 0),
                 lease_until = least(now() + make_interval(secs => $3), expires_at),
                 wait = $4::jsonb || jsonb_build_object('since', now())
WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING true
"""
# One statement, so that the end is one round trip between begin and commit. A turn that ends in calls of a client's tools
# ($14 is false) leaves no messages and is not learnt from: the turn that brings the results says the same message again.
# Nor does one in which nothing was to be done.
_OF_ENDED = "sequence, attempts, created_at, ended_at, traceparent, retry_of, expires_at, approval_id"
_COMPLETE = f"""
WITH mine AS (
    UPDATE turns SET status = 'completed', reply = $3, recalled = $12, learnt = NOT $14, labels = $15, ended_at = now(),
        lease_until = NULL, worker = NULL
    WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now()
    RETURNING id, conversation_id, {_OF_ENDED}
), place AS (
    UPDATE conversations SET next_message = next_message + CASE WHEN $14 THEN 2 ELSE 0 END, directive = $6,
        focus = coalesce($13, focus), updated_at = now()
    FROM mine
    WHERE conversations.id = mine.conversation_id RETURNING conversations.id, next_message - 2 AS seq
), said AS (
    INSERT INTO messages (conversation_id, seq, turn_id, role, text, attached)
    SELECT place.id, place.seq, $1, 'user', $4, $16::text[] FROM place WHERE $14 UNION ALL
    SELECT place.id, place.seq + 1, $1, 'assistant', $5, '{{}}' FROM place WHERE $14
), stance AS (
    INSERT INTO directives (turn_id, conversation_id, directive, reasoning) SELECT $1, place.id, $6, $7 FROM place
), news AS (
    INSERT INTO outbox (tenant, subject, body, headers) SELECT $8, $9, $10, $11 FROM mine
)
SELECT {_OF_ENDED} FROM mine
"""  # noqa: S608
_FAIL = f"""
UPDATE turns SET status = $3, problem = $4, labels = $5, ended_at = now(), lease_until = NULL, worker = NULL
WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now() RETURNING {_OF_ENDED}
"""  # noqa: S608
_LIST = """
SELECT t.*, left(coalesce(nullif(t.request ->> 'text', ''), t.request -> 'task' ->> 'dry_run_of', m.text, ''), 240) AS opening
FROM turns t LEFT JOIN messages m ON m.turn_id = t.id AND m.role = 'user'
WHERE t.tenant = $1 AND t.user_id = $2 AND NOT t.erased
  AND ($3::uuid IS NULL OR t.conversation_id = $3) AND ($4::text IS NULL OR t.status = $4)
  AND ($5::text IS NULL OR t.agent = $5)
  AND ($6::timestamptz IS NULL OR t.created_at >= $6) AND ($7::timestamptz IS NULL OR t.created_at < $7)
  AND ($8::uuid IS NULL OR (t.created_at, t.sequence, t.id) < (
      SELECT created_at, sequence, id FROM turns WHERE id = $8 AND tenant = $1 AND user_id = $2))
  AND ($9::boolean IS NULL OR t.helpful = $9)
ORDER BY t.created_at DESC, t.sequence DESC, t.id DESC LIMIT $10"""
_LIST_ALL = _LIST.replace("t.user_id = $2", "$2 = '*'").replace("user_id = $2", "$2 = '*'")
_RATE = """
UPDATE turns SET helpful = $4, remark = $5, rated_at = CASE WHEN $4::boolean IS NULL THEN NULL ELSE now() END
WHERE id = $1 AND tenant = $2 AND user_id = $3 AND status IN ('completed', 'failed', 'cancelled', 'parked') AND NOT erased
RETURNING *"""
EVERYBODY = "*"
_REMARK = 200
"""Characters of a remark in lists."""
_CANCEL = """
UPDATE turns SET status = 'cancelled', fence = fence + 1, ended_at = now(), lease_until = NULL, worker = NULL
WHERE id = $1 AND tenant = $2 AND user_id = $3 AND status IN ('queued', 'running', 'waiting') RETURNING *
"""
_PAUSE_SCHEDULES = "UPDATE schedules SET enabled = false, paused = $2, next_at = NULL WHERE key_id = $1 AND enabled"
_STOP_WAITING = "UPDATE task_waits SET status = 'cancelled', ended_at = now() WHERE turn_id = $1 AND status = 'pending'"
_WITHDRAW = "UPDATE approvals SET status = 'cancelled' WHERE turn_id = $1 AND status = 'pending'"


class PostgresTurns:
    """Turns, as their rows state them. Every write of a running turn is conditional on its fence and its lease."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(self, turn: NewTurn, open_turns: int, offer: Offer | None = None) -> Accepted:
        """Commit a turn's row, or find it. Raises `KeyReused`, `NotFound` (conversation), `BadRequest` (agent), `Busy`.

        Args:
            open_turns: how many turns of the tenant may be open.
            offer: a free slot, which the turn has in the same commit where no other has a better right to it.
        """
        try:
            async with self._database.transaction(turn.who.tenant) as connection:
                return await accept_turn(connection, turn, open_turns, offer)
        except asyncpg.UniqueViolationError:
            # The same turn was accepted at the same moment elsewhere; now it is there to be found.
            async with self._database.transaction(turn.who.tenant) as connection:
                return await accept_turn(connection, turn, open_turns)

    async def retryable(self, who: Principal, turn_id: str) -> SubmitTurn:
        """What a failed or parked turn of the caller asked for, in its conversation. Raises `NotFound`, `Conflict`."""
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(
                "SELECT status, conversation_id, request FROM turns"
                " WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased",
                parse_uuid(turn_id, "turn"),
                who.tenant,
                who.user,
            )
        if row is None:
            raise NotFound("no such turn")
        if row["status"] not in (TurnStatus.FAILED, TurnStatus.PARKED):
            raise Conflict(f"a turn that is {row['status']} is not tried again")
        request = SubmitTurn.model_validate(row["request"])
        return request if request.task else request.model_copy(update={"conversation_id": str(row["conversation_id"])})

    async def claim(
        self,
        worker: str,
        limit: int,
        lease: float,
        tasks: int | None = None,
        away: Collection[str] = (),
        most: tuple[str, int] | None = None,
    ) -> list[Claim]:
        taken = (limit if tasks is None else tasks, list(away), *(most or (None, None)))
        async with self._database.transaction(EVERY_TENANT) as connection:
            if not await connection.fetchval(_ANYTHING_WAITS):
                return []
            await connection.execute(_BY_INDEX)
            rows = await connection.fetch(_CLAIM, worker, limit, lease, *taken)
        return [
            Claim(
                turn_id=str(row["id"]),
                conversation_id=str(row["conversation_id"]),
                who=Principal.model_validate(row["principal"]),
                agent=row["agent"],
                request=with_goal(SubmitTurn.model_validate(row["request"])),
                fence=row["fence"],
                attempts=row["attempts"],
                idle_claims=row["idle_claims"],
                expired=row["expired"],
                key_revoked=row["key_revoked"],
                created_at=row["created_at"],
                traceparent=row["traceparent"],
                correlation_id=row["correlation_id"],
                wait=None if row["wait"] is None else Wait.model_validate(row["wait"]),
            )
            for row in rows
        ]

    async def renew(self, worker: str, claims: list[Claim], lease: float) -> set[str]:
        ids = [UUID(claim.turn_id) for claim in claims]
        fences = [claim.fence for claim in claims]
        async with self._database.transaction(EVERY_TENANT) as connection:
            rows = await connection.fetch(_RENEW, worker, ids, fences, lease)
        return {str(row["id"]) for row in rows}

    async def give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
        async with self._database.transaction(claim.who.tenant) as connection:
            await connection.execute(_GIVE_BACK, UUID(claim.turn_id), claim.fence, delay, 0 if counts else 1)

    async def put_back(self, claim: Claim, wait: Wait, delay: float) -> bool:
        async with self._database.transaction(claim.who.tenant) as connection:
            values = (UUID(claim.turn_id), claim.fence, delay, wait.model_dump(mode="json"))
            return bool(await connection.fetchval(_PUT_BACK, *values))

    async def end(
        self, claim: Claim, end: Completed | Failed, record: StoredRecord | None = None, profile: AgentProfile | None = None
    ) -> Turn:
        async with self._database.transaction(claim.who.tenant) as connection:
            if record is not None:
                await _keep(connection, claim, record, profile)
            row = await (_complete(connection, claim, end) if isinstance(end, Completed) else _fail(connection, claim, end))
            if row is None:
                raise LostClaim(claim.turn_id)
        return _ended_turn(claim, end, row)

    async def cancel(self, who: Principal, turn_id: str) -> Turn:
        """Cancel a turn that has not ended; raising the fence takes it from whoever runs it. Raises `NotFound`, `TurnEnded`."""
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
            await connection.execute(_STOP_WAITING, id)
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

    async def get(self, who: Principal, turn_id: str) -> Turn:
        """One turn of the caller. Raises `NotFound`."""
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(
                "SELECT * FROM turns WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased",
                parse_uuid(turn_id, "turn"),
                who.tenant,
                who.user,
            )
        if row is None:
            raise NotFound("no such turn")
        return turn_from_row(row)

    async def list(self, who: Principal, query: ListTurns) -> Turns:
        conversation = parse_uuid(query.conversation_id, "conversation") if query.conversation_id else None
        before = parse_uuid(query.before, "turn", field="before") if query.before else None
        wanted = (conversation, query.status, query.agent, query.since, query.until, before, query.helpful, query.limit)
        user = query.user or who.user
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_LIST_ALL if user == EVERYBODY else _LIST, who.tenant, user, *wanted)
        found = [turn_from_row(row, listed=True) for row in rows]
        # What others asked is theirs: who administers sees who asked whom, and what was thought of the answer.
        return Turns(turns=tuple(turn if turn.user == who.user else turn.model_copy(update={"opening": ""}) for turn in found))

    async def rate(self, who: Principal, rating: RateTurn) -> Turn:
        """Keep what a user thinks of an answer. Raises `NotFound`, and `Conflict`: the turn has not ended."""
        id = parse_uuid(rating.turn_id, "turn")
        remark = rating.remark if rating.helpful is not None else ""
        async with self._database.transaction(who.tenant) as connection:
            row = await connection.fetchrow(_RATE, id, who.tenant, who.user, rating.helpful, remark)
        if row is None:
            await self.get(who, rating.turn_id)
            raise Conflict("the turn has not ended: there is no answer yet")
        return turn_from_row(row)

    async def revoke(self, tenant: str, key: str) -> None:
        """Remember a revoked key; its turns end at their next claim, and its schedules start nothing any more."""
        why = Unauthorized("the key that it acts with was revoked").body()
        async with self._database.transaction(tenant) as connection:
            await connection.execute("INSERT INTO revoked_keys (key_id) VALUES ($1) ON CONFLICT DO NOTHING", key)
            await connection.execute(_PAUSE_SCHEDULES, key, why)


async def _complete(connection: Connection, claim: Claim, end: Completed) -> asyncpg.Record | None:
    news = _news(claim, end, TurnStatus.COMPLETED, end.user_text, reply_for_models(end.reply))
    return await connection.fetchrow(
        _COMPLETE,
        UUID(claim.turn_id),
        claim.fence,
        end.reply.model_dump(mode="json"),
        end.user_text,
        end.reply.user_response,
        end.directive,
        end.reasoning,
        claim.who.tenant,
        *end_outbox_row(claim.who.tenant, news),
        list(end.recalled),
        None if end.focus is None else end.focus.model_dump(mode="json"),
        not end.reply.tool_calls and not claim.dry,
        labels_for_row(end.labels or UNKNOWN),
        list(end.attached),
    )


async def _fail(connection: Connection, claim: Claim, end: Failed) -> asyncpg.Record | None:
    problem = end.problem.model_dump(mode="json", exclude_none=True)
    ended = (UUID(claim.turn_id), claim.fence, end.status, problem, labels_for_row(end.labels or UNKNOWN))
    row = await connection.fetchrow(_FAIL, *ended)
    if row is not None:
        await _announce(connection, claim.who, _news(claim, end, end.status, claim.request.text, ""))
    return row


def _ended_turn(claim: Claim, end: Completed | Failed, row: asyncpg.Record) -> Turn:
    """A turn that has just ended, as its row states it."""
    reply, problem = (end.reply, None) if isinstance(end, Completed) else (None, end.problem)
    return Turn(
        turn_id=claim.turn_id,
        conversation_id=claim.conversation_id,
        agent=claim.agent,
        status=TurnStatus.COMPLETED if isinstance(end, Completed) else end.status,
        sequence=row["sequence"],
        attempts=row["attempts"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        trace_id=trace_id(row["traceparent"]),
        retry_of=str(row["retry_of"]) if row["retry_of"] else None,
        reply=reply,
        usage=reply.usage if reply else None,
        problem=problem,
        expires_at=row["expires_at"],
        approval_id=str(row["approval_id"]) if row["approval_id"] else None,
    )


async def accept_turn(connection: Connection, turn: NewTurn, open_turns: int, offer: Offer | None = None) -> Accepted:
    """Write a turn's row in the transaction at hand, or find it. Arguments and errors as of `PostgresTurns.accept`."""
    who = turn.who
    found = await connection.fetchrow(_LOOK, UUID(turn.id), who.tenant)
    assert found is not None
    if found["status"] is not None:
        if found["erased"]:
            # Also where it began the conversation: a repeat brings nothing back.
            raise NotFound("no such conversation", field="conversation_id")
        if found["fingerprint"] != turn.fingerprint:
            raise KeyReused("this idempotency key was used with another body")
        return Accepted(turn.id, str(found["conversation_id"]), TurnStatus(found["status"]))
    if found["open"] >= open_turns:
        raise Busy("too many turns of this tenant are open", retry_after=2)
    conversation_id, sequence = await _place(connection, turn)
    row = await connection.fetchrow(
        _INSERT,
        UUID(turn.id),
        who.tenant,
        who.user,
        conversation_id,
        sequence,
        turn.request.agent,
        turn.request.model_dump(mode="json"),
        turn.fingerprint,
        who.model_dump(mode="json"),
        who.key,
        turn.expiry,
        turn.traceparent,
        turn.correlation_id,
        parse_uuid(turn.request.retry_of, "turn", field="retry_of") if turn.request.retry_of else None,
        turn.request.task is not None,
        *((None, 0.0) if offer is None else (offer.worker, offer.lease)),
    )
    assert row is not None
    status = TurnStatus(row["status"])
    return Accepted(turn.id, str(conversation_id), status, _first_claim(turn, str(conversation_id), row))


def _first_claim(turn: NewTurn, conversation_id: str, row: asyncpg.Record) -> Claim | None:
    """The claim with which a turn was accepted; `None` where it is queued."""
    if row["status"] != TurnStatus.RUNNING:
        return None
    return Claim(
        turn_id=turn.id,
        conversation_id=conversation_id,
        who=turn.who,
        agent=turn.request.agent,
        request=with_goal(turn.request),
        fence=1,
        attempts=1,
        idle_claims=1,
        expired=False,
        key_revoked=row["key_revoked"],
        created_at=row["created_at"],
        traceparent=turn.traceparent,
        correlation_id=turn.correlation_id,
    )


async def _place(connection: Connection, turn: NewTurn) -> tuple[UUID, int]:
    who, request = turn.who, turn.request
    if request.conversation_id is None:
        conversation_id = UUID(new_conversation_id(turn.id))
        row = await connection.fetchrow(_PLACE_IN_NEW, conversation_id, who.tenant, who.user, request.agent)
    else:
        conversation_id = parse_uuid(request.conversation_id, "conversation", field="conversation_id")
        row = await connection.fetchrow(_PLACE, conversation_id, who.tenant, who.user)
    if row is None:
        raise NotFound("no such conversation", field="conversation_id")
    if row["agent"] != request.agent:
        raise BadRequest(f"this conversation is with {row['agent']}", field="agent")
    return conversation_id, row["sequence"]


def turn_from_row(row: asyncpg.Record, *, listed: bool = False) -> Turn:
    """A turn as its row states it; as lists show it, without its reply."""
    feedback = None
    if row.get("helpful") is not None:
        feedback = {
            "helpful": row["helpful"],
            "remark": row["remark"][:_REMARK] if listed else row["remark"],
            "at": row["rated_at"],
        }
    return Turn.model_validate(
        {
            "turn_id": str(row["id"]),
            "conversation_id": str(row["conversation_id"]),
            "agent": row["agent"],
            "status": row["status"],
            "sequence": row["sequence"],
            "attempts": row["attempts"],
            "created_at": row["created_at"],
            "ended_at": row["ended_at"],
            "trace_id": trace_id(row["traceparent"]),
            "retry_of": str(row["retry_of"]) if row["retry_of"] else None,
            "reply": None if listed else row["reply"],
            "opening": row.get("opening") or "",
            "usage": row["reply"]["usage"] if row["reply"] else None,
            "problem": row["problem"],
            "expires_at": row["expires_at"],
            "approval_id": str(row["approval_id"]) if row["approval_id"] else None,
            "waiting_for": waited_for(row),
            "user": row["user_id"] if listed else "",
            "feedback": feedback,
        }
    )


def waited_for(row: asyncpg.Record) -> str | None:
    """What a turn waits for that does not answer, by its row."""
    return row["wait"]["service"] if row["wait"] is not None and row["status"] == TurnStatus.QUEUED else None


def end_outbox_row(tenant: str, news: TurnEndedNews) -> tuple[str, bytes, dict[str, str]]:
    """Subject, body and headers of the outbox row for an end."""
    return TURN_ENDED.on(tenant), news.model_dump_json().encode(), envelope_headers("orchestrator")


async def _announce(connection: Connection, who: Principal, news: TurnEndedNews) -> None:
    await write_news(connection, "orchestrator", who.tenant, TURN_ENDED, news)


def _news(claim: Claim, end: Completed | Failed, status: TurnStatus, user_text: str, reply_text: str) -> TurnEndedNews:
    if claim.dry:
        user_text = reply_text = ""
    return TurnEndedNews(
        turn_id=claim.turn_id,
        conversation_id=claim.conversation_id,
        user=claim.who.user,
        agent=claim.agent,
        status=status,
        user_text=user_text[:100_000],
        attached=end.attached if isinstance(end, Completed) else (),
        labels=end.labels or UNKNOWN,
        reply_text=reply_text[:100_000],
        tier=end.tier,
        code=end.problem.code if isinstance(end, Failed) else None,
        tools=end.tools[-MAX_OUTCOMES:],
        at=datetime.now(UTC),
    )


# Each status by itself: it is the form in which the indexes of open turns are used.
_OPEN = """
SELECT status, count(*) AS count,
       coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE wait IS NULL)), 0)::float8 AS age
FROM turns WHERE status IN ('queued', 'running', 'waiting') GROUP BY status
"""
_PUT_BACK_FOR = """
SELECT wait ->> 'service' AS service, count(*) AS count FROM turns WHERE status = 'queued' AND wait IS NOT NULL GROUP BY 1
"""
_STATUSES = ("queued", "running", "waiting")


class QueueDepth:
    """Sets the gauges of the queue. `metrics`: where the gauges are."""

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database = database
        self._metrics = metrics
        self._waited_for: set[str] = set()

    async def look(self) -> None:
        """Look once. Raises `Unavailable`."""
        async with self._database.connection(EVERY_TENANT) as connection:
            found = {row["status"]: row for row in await connection.fetch(_OPEN)}
            waiting = {row["service"]: row["count"] for row in await connection.fetch(_PUT_BACK_FOR)}
        self._waited_for |= waiting.keys()
        for service in self._waited_for:
            self._metrics.set(WAITING, waiting.get(service, 0), service)
        for status in _STATUSES:
            self._metrics.set(OPEN, found[status]["count"] if status in found else 0, status)
        self._metrics.set(OLDEST, found["queued"]["age"] if "queued" in found else 0)


_INTEND = """
INSERT INTO journal (turn_id, step, fence, intent)
SELECT id, $2, $3, $4 FROM turns WHERE id = $1 AND fence = $3 AND status = 'running' AND lease_until > now()
ON CONFLICT (turn_id, step) DO UPDATE SET fence = excluded.fence, intents = journal.intents + (journal.result IS NULL)::int
    WHERE journal.fence <= excluded.fence
RETURNING result, intents
"""
_KNOWN = "SELECT result FROM journal WHERE turn_id = $1 AND step = $2"
# The step of a call that is simply made again has no intent in the journal before its result ($5) is.
_RESULT = """
WITH mine AS (
    UPDATE turns SET idle_claims = 0 WHERE id = $1 AND fence = $3 AND status = 'running' AND lease_until > now() RETURNING id
)
INSERT INTO journal (turn_id, step, fence, intent, result, result_at) SELECT id, $2, $3, $5, $4, now() FROM mine
ON CONFLICT (turn_id, step) DO UPDATE SET fence = excluded.fence, result = excluded.result, result_at = excluded.result_at
    WHERE journal.fence <= excluded.fence
RETURNING true
"""
_ENTER = """
INSERT INTO ledger (tenant, user_id, agent, turn_id, step, purpose, model, outcome, attempts, input_tokens, output_tokens,
                    cached_tokens, reasoning_tokens, cost_usd, ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
"""
_KEEP = """
INSERT INTO traces (turn_id, tenant, user_id, record, memories)
SELECT id, tenant, user_id, $3, $4 FROM turns WHERE id = $1 AND fence = $2 AND status = 'running'
ON CONFLICT (turn_id) DO UPDATE SET record = excluded.record, memories = excluded.memories
RETURNING EXISTS (SELECT FROM ran_with WHERE tenant = $5 AND digest = $6) AS known
"""


class PostgresJournal:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def intend(self, claim: Claim, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        async with self._database.transaction(claim.who.tenant) as connection:
            row = await connection.fetchrow(_INTEND, UUID(claim.turn_id), step, claim.fence, intent)
        if row is None:
            raise LostClaim(claim.turn_id)
        result: dict[str, Any] | None = row["result"]
        if once and result is None and row["intents"] > 1:
            raise AlreadyBegun(step)
        return result

    async def known(self, claim: Claim, step: str) -> dict[str, Any] | None:
        if claim.attempts == 1:
            return None
        async with self._database.connection(claim.who.tenant) as connection:
            result: dict[str, Any] | None = await connection.fetchval(_KNOWN, UUID(claim.turn_id), step)
        return result

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: LedgerEntry | None = None) -> None:
        async with self._database.transaction(claim.who.tenant) as connection:
            mine = await connection.fetchval(_RESULT, UUID(claim.turn_id), step, claim.fence, result, {"call": step})
            if spend is not None:  # also where the claim is lost: the money is gone
                await enter_spend(connection, claim, spend)
        if not mine:
            raise LostClaim(claim.turn_id)

    async def keep_record(self, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
        async with self._database.transaction(claim.who.tenant) as connection:
            await _keep(connection, claim, record, profile)


async def _keep(connection: Connection, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
    tenant, id = claim.who.tenant, UUID(claim.turn_id)
    if claim.attempts > 1 and (earlier := await connection.fetchval("SELECT record FROM traces WHERE turn_id = $1", id)):
        record = join_records(StoredRecord.model_validate_json(earlier), record)
    used = sorted({item.id for item in list_memories(record)})
    kept = record.model_dump_json(exclude_defaults=True)
    known = await connection.fetchval(_KEEP, id, claim.fence, kept, used, tenant, record.profile)
    if profile is not None and known is False:
        await connection.execute(
            "INSERT INTO ran_with (tenant, digest, profile) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            *(tenant, record.profile, profile.model_dump_json()),
        )


async def enter_spend(connection: Connection, turn: ChargedTurn, spend: LedgerEntry) -> None:
    """Write one entry, in the transaction at hand."""
    await connection.execute(_ENTER, *entry_row(turn, spend))


def entry_row(turn: ChargedTurn, spend: LedgerEntry) -> tuple[object, ...]:
    """The values of one entry, in the order of `_ENTER`."""
    who, asked, spent = turn.who, spend.asked, spend.spent
    called = (spend.step, asked.purpose, asked.model, spend.outcome, spent.model_calls)
    used = (spent.input_tokens, spent.output_tokens, spent.cached_tokens, spent.reasoning_tokens, spend.cost_usd, spend.ms)
    return (who.tenant, who.user, turn.agent, UUID(turn.turn_id), *called, *used)
