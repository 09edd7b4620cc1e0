"""Approvals in Postgres, the turns that wait for them, and those that ran out. Turns' rows are locked first."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import asyncpg

from phronesis_bus import audit_entry
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.approvals import (
    AnswerApproval,
    Approval,
    ApprovalAnswered,
    ApprovalExpired,
    ApprovalRef,
    Approvals,
    ApprovalStatus,
    Decision,
    ListApprovals,
)
from phronesis_contracts.orchestrator import TURN_ENDED, Audited, TurnEndedNews, TurnStatus
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news

from ..turns.turn import Claim, LostClaim, parse_uuid, problem_from_error
from .policy import LEFT, LIFETIME, ApprovalAnswer, ApprovalRequest, ExpiredWait

SERVICE = "orchestrator"
# The turn expires, at the latest, when the approval has run out and it has used what it has left from here on.
_WAIT = """
WITH mine AS (
    UPDATE turns SET status = 'waiting', lease_until = NULL, worker = NULL, idle_claims = 0, approval_id = $3,
        expires_at = now() + $4::interval + greatest(expires_at - now(), $5::interval)
    WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now()
    RETURNING id, tenant, user_id, conversation_id, agent
)
INSERT INTO approvals (id, tenant, user_id, turn_id, conversation_id, agent, expires_at,
                       step, tool, action, arguments, digest, risk, irreversible, reason)
SELECT $3, tenant, user_id, id, conversation_id, agent, now() + $4::interval, $6, $7, $8, $9, $10, $11, $12, $13 FROM mine
RETURNING true
"""
_OF_CALLER = "id = $1 AND tenant = $2 AND ($3 OR user_id = $4)"
_ANSWER = f"""
UPDATE approvals SET status = $5, answered_at = now(), answered_by = $6, note = $7
WHERE {_OF_CALLER} AND status = 'pending' AND expires_at > now() RETURNING *
"""  # noqa: S608
# Its old place was given up: where others were accepted behind it, it goes on behind them.
_RESUME = """
WITH place AS (
    UPDATE conversations SET next_turn = next_turn + 1, moved = moved + 1 FROM turns
    WHERE turns.id = $1 AND turns.status = 'waiting' AND conversations.id = turns.conversation_id
        AND conversations.next_turn > turns.sequence + 1
    RETURNING conversations.next_turn - 1 AS sequence
)
UPDATE turns SET status = 'queued', expires_at = now() + (expires_at - $2::timestamptz),
    sequence = coalesce((SELECT sequence FROM place), sequence)
WHERE id = $1 AND status = 'waiting'
"""
# Turns first, as everywhere; one that somebody else holds at the moment is answered, cancelled or deleted.
_DUE = """
SELECT turns.id FROM turns JOIN approvals ON approvals.turn_id = turns.id
WHERE approvals.status = 'pending' AND approvals.expires_at <= now() AND turns.status = 'waiting'
ORDER BY approvals.expires_at LIMIT $1 FOR UPDATE OF turns SKIP LOCKED
"""
# Looked at once more under the lock.
_EXPIRE = """
UPDATE approvals SET status = 'expired' WHERE turn_id = ANY($1::uuid[]) AND status = 'pending' AND expires_at <= now()
RETURNING id, turn_id, tool
"""
_END = """
UPDATE turns SET status = 'failed', fence = fence + 1, problem = $2, ended_at = now()
WHERE id = ANY($1::uuid[]) AND status = 'waiting'
RETURNING id, conversation_id, agent, principal, request ->> 'text' AS text, approval_id
"""
_STATUS = {Decision.APPROVE: ApprovalStatus.GRANTED, Decision.REFUSE: ApprovalStatus.REFUSED}


class PostgresApprovals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def wait(self, claim: Claim, asked: ApprovalRequest) -> None:
        verdict, tenant = asked.verdict, claim.who.tenant
        async with self._database.transaction(tenant) as connection:
            waits = await connection.fetchval(
                _WAIT,
                UUID(claim.turn_id),
                claim.fence,
                UUID(asked.approval_id),
                timedelta(seconds=LIFETIME),
                timedelta(seconds=LEFT),
                asked.step,
                verdict.tool,
                verdict.action,
                asked.arguments,
                asked.digest,
                verdict.risk.name.lower(),
                verdict.irreversible,
                verdict.reason,
            )
            if not waits:
                raise LostClaim(claim.turn_id)
            details = {"approval_id": asked.approval_id, "turn_id": claim.turn_id, "tool": verdict.tool}
            await _audit(connection, tenant, audit_entry(claim.who, "approval.ask", details))

    async def answered(self, claim: Claim, approval_id: str) -> ApprovalAnswer | None:
        async with self._database.connection(claim.who.tenant) as connection:
            row = await connection.fetchrow(
                "SELECT status, digest, note FROM approvals WHERE id = $1 AND tenant = $2 AND turn_id = $3",
                UUID(approval_id),
                claim.who.tenant,
                UUID(claim.turn_id),
            )
        return None if row is None else ApprovalAnswer(ApprovalStatus(row["status"]), row["digest"], row["note"])

    async def record(self, claim: Claim, entry: Audited) -> None:
        async with self._database.transaction(claim.who.tenant) as connection:
            await _audit(connection, claim.who.tenant, entry)

    async def approval(self, who: Principal, ref: ApprovalRef) -> Approval:
        """An approval of the caller, or for an admin, of the tenant. Raises `NotFound`."""
        async with self._database.connection(who.tenant) as connection:
            row = await _find_approval(connection, who, parse_uuid(ref.approval_id, "approval"))
        return _approval_from_row(row)

    async def approvals(self, who: Principal, query: ListApprovals) -> Approvals:
        """The same as a list, newest first."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(
                "SELECT * FROM approvals WHERE tenant = $1 AND ($2 OR user_id = $3) AND ($4::text IS NULL OR status = $4) "
                "ORDER BY created_at DESC, id LIMIT $5",
                who.tenant,
                who.administers,
                who.user,
                query.status,
                query.limit,
            )
        return Approvals(approvals=tuple(map(_approval_from_row, rows)))

    async def answer(self, who: Principal, answer: AnswerApproval) -> Approval:
        """Answer once, and put the turn back into the queue; a repeat of the same answer finds what it did.

        Raises:
            NotFound: there is no such approval of the caller.
            ApprovalAnswered: it has another answer, or ran out.
        """
        id, status = parse_uuid(answer.approval_id, "approval"), _STATUS[answer.decision]
        async with self._database.transaction(who.tenant) as connection:
            asked = await _find_approval(connection, who, id)
            # Answers, the sweep, a cancellation and a deletion come one after the other by the turn's row.
            await connection.execute("SELECT FROM turns WHERE id = $1 FOR UPDATE", asked["turn_id"])
            row = await connection.fetchrow(_ANSWER, *_read_caller(who, id), status, who.user, answer.note)
            if row is None:
                return _repeat_answer(await _find_approval(connection, who, id), who, status)
            await connection.execute(_RESUME, row["turn_id"], row["expires_at"])
            details = {"approval_id": str(id), "turn_id": str(row["turn_id"]), "tool": row["tool"], "decision": answer.decision}
            await _audit(connection, who.tenant, audit_entry(who, "approval.answer", details))
        return _approval_from_row(row)

    async def expire(self, limit: int) -> list[ExpiredWait]:
        """End up to `limit` turns whose approvals ran out, each with its news and its entry in the audit trail."""
        problem = problem_from_error(ApprovalExpired("nobody answered the approval that the turn waited for"))
        async with self._database.transaction(EVERY_TENANT) as connection:
            due = [row["id"] for row in await connection.fetch(_DUE, limit)]
            if not due:
                return []
            expired = {row["turn_id"]: row for row in await connection.fetch(_EXPIRE, due)}
            rows = await connection.fetch(_END, list(expired), problem.model_dump(mode="json", exclude_none=True))
            for row in rows:
                await _announce(connection, row, expired[row["id"]]["tool"])
        return [
            ExpiredWait(Principal.model_validate(row["principal"]), str(row["id"]), str(row["conversation_id"])) for row in rows
        ]


def _read_caller(who: Principal, id: UUID) -> tuple[UUID, str, bool, str]:
    return id, who.tenant, who.administers, who.user


async def _find_approval(connection: Connection, who: Principal, id: UUID) -> asyncpg.Record:
    row = await connection.fetchrow(f"SELECT * FROM approvals WHERE {_OF_CALLER}", *_read_caller(who, id))  # noqa: S608
    if row is None:
        raise NotFound("no such approval")
    return row


def _repeat_answer(row: asyncpg.Record, who: Principal, status: ApprovalStatus) -> Approval:
    if row["status"] == status and row["answered_by"] == who.user:
        return _approval_from_row(row)
    over = ApprovalStatus.EXPIRED if row["status"] == ApprovalStatus.PENDING else row["status"]
    raise ApprovalAnswered(f"the approval is {over}")


def _approval_from_row(row: asyncpg.Record) -> Approval:
    named = {name: row[name] for name in Approval.model_fields if name in row}
    ids = {name: str(row[name]) for name in ("turn_id", "conversation_id")}
    return Approval.model_validate(
        {**named, **ids, "approval_id": str(row["id"]), "user": row["user_id"], "arguments_sha256": row["digest"]}
    )


async def _audit(connection: Connection, tenant: str, entry: Audited) -> None:
    await write_news(connection, SERVICE, tenant, AUDITED[SERVICE], entry)


async def _announce(connection: Connection, row: asyncpg.Record, tool: str) -> None:
    who = Principal.model_validate(row["principal"])
    news = TurnEndedNews(
        turn_id=str(row["id"]),
        conversation_id=str(row["conversation_id"]),
        user=who.user,
        agent=row["agent"],
        status=TurnStatus.FAILED,
        user_text=row["text"] or "",
    )
    await write_news(connection, SERVICE, who.tenant, TURN_ENDED, news)
    details = {"approval_id": str(row["approval_id"]), "turn_id": news.turn_id, "tool": tool}
    entry = audit_entry(who, "approval.expire", details, code=ApprovalExpired.code)
    await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
