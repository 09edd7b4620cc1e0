"""Reading turns and conversations, always inside the caller's tenant and user."""

from __future__ import annotations

import asyncpg

from phronesis_bus import trace_id
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.orchestrator import (
    Conversation,
    ConversationMessage,
    ConversationRef,
    Directive,
    ListTurns,
    Turn,
    Turns,
)
from phronesis_postgres import Database

from .intake import uuid_of


def turn_of(row: asyncpg.Record, *, with_reply: bool = True) -> Turn:
    """A turn's row as the contract states it."""
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
            "reply": row["reply"] if with_reply else None,
            "problem": row["problem"],
            "expires_at": row["expires_at"],
            "approval_id": str(row["approval_id"]) if row["approval_id"] else None,
        }
    )


class TurnReads:
    """The part of the turn store that reads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, who: Principal, turn_id: str) -> Turn:
        """One turn of the caller."""
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(
                "SELECT * FROM turns WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased",
                uuid_of(turn_id, "turn"),
                who.tenant,
                who.user,
            )
        if row is None:
            raise NotFound("no such turn")
        return turn_of(row)

    async def list(self, who: Principal, query: ListTurns) -> Turns:
        """The caller's turns, newest first."""
        conversation = uuid_of(query.conversation_id, "conversation") if query.conversation_id else None
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(
                "SELECT * FROM turns WHERE tenant = $1 AND user_id = $2 AND NOT erased "
                "AND ($3::uuid IS NULL OR conversation_id = $3) AND ($4::text IS NULL OR status = $4) "
                "ORDER BY created_at DESC, sequence DESC LIMIT $5",
                who.tenant,
                who.user,
                conversation,
                query.status,
                query.limit,
            )
        return Turns(turns=tuple(turn_of(row, with_reply=False) for row in rows))


class ConversationReads:
    """The part of the conversations' store that reads them and their messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, who: Principal, ref: ConversationRef) -> Conversation:
        """A conversation of the caller with its newest messages."""
        id = uuid_of(ref.conversation_id, "conversation")
        async with self._database.connection(who.tenant) as connection:
            head = await connection.fetchrow(
                "SELECT * FROM conversations WHERE id = $1 AND tenant = $2 AND user_id = $3 AND deleted_at IS NULL",
                id,
                who.tenant,
                who.user,
            )
            if head is None:
                raise NotFound("no such conversation")
            rows = await connection.fetch(
                "SELECT * FROM messages WHERE conversation_id = $1 AND ($2::bigint IS NULL OR seq < $2) "
                "ORDER BY seq DESC LIMIT $3",
                id,
                ref.before,
                ref.limit,
            )
        messages = [
            ConversationMessage(
                seq=r["seq"], turn_id=str(r["turn_id"]), role=r["role"], text=r["text"], created_at=r["created_at"]
            )
            for r in reversed(rows)
        ]
        return Conversation(
            conversation_id=ref.conversation_id,
            agent=head["agent"],
            directive=Directive(head["directive"]),
            created_at=head["created_at"],
            messages=tuple(messages),
        )
