"""Turns in Postgres: accepting one with the next place in its conversation, and reading the caller's own."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from phronesis_bus import trace_id
from phronesis_contracts import BadRequest, Busy, Conflict, KeyReused, NotFound, Principal
from phronesis_contracts.orchestrator import (
    Conversation,
    ConversationMessage,
    ConversationRef,
    Directive,
    ListTurns,
    SubmitTurn,
    Turn,
    Turns,
    TurnStatus,
)
from phronesis_postgres import Connection, Database

from .turn import Accepted, NewTurn, new_conversation_id

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
_INSERT = """
INSERT INTO turns (id, tenant, user_id, conversation_id, sequence, agent, status, request, fingerprint, principal, key_id,
                   expires_at, traceparent, correlation_id, retry_of, background)
VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, $8, $9, $10, now() + make_interval(secs => $11), $12, $13, $14, $15)
"""


class TurnIntake:
    """The part of the turn store that accepts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(self, turn: NewTurn, open_turns: int) -> Accepted:
        """Commit the turn's row, or answer with the state of the one that is there."""
        try:
            async with self._database.transaction(turn.who.tenant) as connection:
                return await _accept(connection, turn, open_turns)
        except asyncpg.UniqueViolationError:
            # The same turn was accepted at the same moment elsewhere; now it is there to be found.
            async with self._database.transaction(turn.who.tenant) as connection:
                return await _accept(connection, turn, open_turns)

    async def retryable(self, who: Principal, turn_id: str) -> SubmitTurn:
        """What a failed or parked turn of the caller asked for, in its conversation."""
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


async def _accept(connection: Connection, turn: NewTurn, open_turns: int) -> Accepted:
    found = await connection.fetchrow(
        "SELECT status, conversation_id, fingerprint, erased FROM turns WHERE id = $1", UUID(turn.id)
    )
    if found is not None:
        if found["erased"]:
            # Also where it began the conversation: a repeat brings nothing back.
            raise NotFound("no such conversation", field="conversation_id")
        if found["fingerprint"] != turn.fingerprint:
            raise KeyReused("this idempotency key was used with another body")
        return Accepted(turn.id, str(found["conversation_id"]), TurnStatus(found["status"]))
    who = turn.who
    waiting = await connection.fetchval(
        "SELECT count(*) FROM turns WHERE tenant = $1 AND status IN ('queued', 'running', 'waiting')", who.tenant
    )
    if waiting >= open_turns:
        raise Busy("too many turns of this tenant are open", retry_after=2)
    conversation_id, sequence = await _place(connection, turn)
    await connection.execute(
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
    )
    return Accepted(turn.id, str(conversation_id), TurnStatus.QUEUED)


async def _place(connection: Connection, turn: NewTurn) -> tuple[UUID, int]:
    """The next sequence of the conversation, under the lock of its row."""
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


def parse_uuid(text: str, what: str, *, field: str | None = None) -> UUID:
    """The UUID in `text`; whatever is none is as unknown as an id that nobody has."""
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound(f"no such {what}", field=field) from error


def turn_from_row(row: asyncpg.Record, *, with_reply: bool = True) -> Turn:
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
                parse_uuid(turn_id, "turn"),
                who.tenant,
                who.user,
            )
        if row is None:
            raise NotFound("no such turn")
        return turn_from_row(row)

    async def list(self, who: Principal, query: ListTurns) -> Turns:
        """The caller's turns, newest first."""
        conversation = parse_uuid(query.conversation_id, "conversation") if query.conversation_id else None
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
        return Turns(turns=tuple(turn_from_row(row, with_reply=False) for row in rows))


class ConversationReads:
    """The part of the conversations' store that reads them and their messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, who: Principal, ref: ConversationRef) -> Conversation:
        """A conversation of the caller with its newest messages."""
        id = parse_uuid(ref.conversation_id, "conversation")
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
