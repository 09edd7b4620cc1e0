"""Approvals that nobody answered: they run out, and the turns that wait for them end."""

from __future__ import annotations

import asyncpg

from phronesis_bus import audited
from phronesis_contracts import Principal
from phronesis_contracts.approvals import ApprovalExpired
from phronesis_contracts.orchestrator import TURN_ENDED, TurnEndedNews, TurnStatus
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news

from ..domain import problem_of
from ..policy.waiting import Over

SERVICE = "orchestrator"
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


class Expiries:
    """The part of the turn store that ends what waited too long."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def expire(self, limit: int) -> list[Over]:
        """End up to `limit` turns whose approvals ran out, each with its news and its entry in the audit trail."""
        problem = problem_of(ApprovalExpired("nobody answered the approval that the turn waited for"))
        async with self._database.transaction(EVERY_TENANT) as connection:
            due = [row["id"] for row in await connection.fetch(_DUE, limit)]
            if not due:
                return []
            expired = {row["turn_id"]: row for row in await connection.fetch(_EXPIRE, due)}
            rows = await connection.fetch(_END, list(expired), problem.model_dump(mode="json", exclude_none=True))
            for row in rows:
                await _announce(connection, row, expired[row["id"]]["tool"])
        return [Over(Principal.model_validate(row["principal"]), str(row["id"]), str(row["conversation_id"])) for row in rows]


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
    told = {"approval_id": str(row["approval_id"]), "turn_id": news.turn_id, "tool": tool}
    entry = audited(who, "approval.expire", told, code=ApprovalExpired.code)
    await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
