"""Accepting a turn: its row is committed with the next place in its conversation, or found again."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from phronesis_contracts import BadRequest, Busy, Conflict, KeyReused, NotFound, Principal
from phronesis_contracts.orchestrator import SubmitTurn, TurnStatus
from phronesis_postgres import Connection, Database

from ..domain import Accepted, NewTurn, new_conversation_id

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


class Intake:
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
                uuid_of(turn_id, "turn"),
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
        uuid_of(turn.request.retry_of, "turn", field="retry_of") if turn.request.retry_of else None,
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
        conversation_id = uuid_of(request.conversation_id, "conversation", field="conversation_id")
        row = await connection.fetchrow(_PLACE, conversation_id, who.tenant, who.user)
    if row is None:
        raise NotFound("no such conversation", field="conversation_id")
    if row["agent"] != request.agent:
        raise BadRequest(f"this conversation is with {row['agent']}", field="agent")
    return conversation_id, row["sequence"]


def uuid_of(text: str, what: str, *, field: str | None = None) -> UUID:
    """The UUID in `text`; whatever is none is as unknown as an id that nobody has."""
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound(f"no such {what}", field=field) from error
