"""The end of a turn: messages, directive, state and news in one transaction, only while the fence is mine."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from phronesis_bus import envelope_headers
from phronesis_contracts import NotFound, Principal, TurnEnded
from phronesis_contracts.orchestrator import MAX_OUTCOMES, TURN_ENDED, Turn, TurnEndedNews, TurnStatus
from phronesis_postgres import Connection, Database, write_news

from ..domain import Claim, Completed, Failed, LostClaim
from .intake import uuid_of
from .reads import turn_of

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


class Ends:
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
        row = sendable_end(claim.who.tenant, news)
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
        id = uuid_of(turn_id, "turn")
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
            turn = turn_of(row)
            news = TurnEndedNews(
                turn_id=turn_id,
                conversation_id=turn.conversation_id,
                user=who.user,
                agent=turn.agent,
                status=TurnStatus.CANCELLED,
            )
            await _announce(connection, who, news)
        return turn


def sendable_end(tenant: str, news: TurnEndedNews) -> tuple[str, bytes, dict[str, str]]:
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
