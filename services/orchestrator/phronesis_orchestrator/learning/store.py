"""Copies of what is forgotten, and the ended turns that were not learnt from yet, in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from phronesis_contracts import Principal, labels_from_row
from phronesis_contracts.facts import COPIES_PURGED, CopiesPurged, MemoryForgotten
from phronesis_contracts.orchestrator import TURN_ENDED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news

from ..conversations.store import WITHOUT_ARGUMENTS
from .statements import EndedTurn

SERVICE = "orchestrator"
_HOLDING = """
SELECT id FROM turns WHERE tenant = $1 AND user_id = $2 AND NOT erased AND (
    id = ANY($3::uuid[]) OR recalled && $4::text[]
    OR EXISTS (SELECT FROM traces WHERE traces.turn_id = turns.id AND memories && $4::text[]) OR EXISTS (
        SELECT FROM jsonb_array_elements(CASE WHEN jsonb_typeof(reply -> 'sources') = 'array' THEN reply -> 'sources' END) AS s
        WHERE s ->> 'id' = ANY($4::text[])))
ORDER BY created_at DESC LIMIT 10000 FOR UPDATE
"""
# Raising the fence takes a running turn from its worker.
_ERASE = """
UPDATE turns SET erased = true, fence = fence + 1, request = '{}', principal = '{}', key_id = NULL, fingerprint = '',
    labels = '[]', reply = NULL, problem = NULL, correlation_id = NULL, traceparent = NULL, lease_until = NULL, worker = NULL,
    helpful = NULL, remark = NULL, rated_at = NULL,
    approval_id = NULL, ended_at = coalesce(ended_at, now()), learnt = true,
    status = CASE WHEN status IN ('queued', 'running', 'waiting') THEN 'cancelled' ELSE status END
WHERE id = ANY($1::uuid[])
"""
# A turn that still runs may have read what goes, and make a summary of it: that one is then refused.
_RUNS = """EXISTS (
    SELECT FROM turns WHERE conversation_id = conversations.id AND status = 'running' AND NOT id = ANY($1::uuid[])
)"""
_SUMMARIES = f"""
UPDATE conversations SET summary = NULL, focus = NULL, summary_through = CASE WHEN {_RUNS} THEN next_message - 1 ELSE 0 END
WHERE (summary IS NOT NULL OR focus IS NOT NULL OR {_RUNS})
AND id IN (SELECT conversation_id FROM turns WHERE id = ANY($1::uuid[]))
"""  # noqa: S608
_REMOVE = {
    "messages": "DELETE FROM messages WHERE turn_id = ANY($1::uuid[])",
    "directives": "DELETE FROM directives WHERE turn_id = ANY($1::uuid[])",
    "task_states": "DELETE FROM task_states WHERE turn_id = ANY($1::uuid[])",
    "task_waits": "DELETE FROM task_waits WHERE turn_id = ANY($1::uuid[])",
    "task_templates": "DELETE FROM task_templates WHERE turn_id = ANY($1::uuid[])",
    "steps": "DELETE FROM journal WHERE turn_id = ANY($1::uuid[])",
    "approvals": "DELETE FROM approvals WHERE turn_id = ANY($1::uuid[])",
    "audit_arguments": f"{WITHOUT_ARGUMENTS} = ANY($1::uuid[]::text[])",
    "summaries": _SUMMARIES,
    "turns": _ERASE,
}
# Ids of what was forgotten are all that stays of a trace: whoever asks for it, or for a replay, is told them.
_EMPTY_TRACES = """
UPDATE traces SET record = '{}', forgotten = ARRAY(
    SELECT DISTINCT gone FROM unnest(forgotten || $2::text[]) AS of (gone) WHERE gone = ANY (memories || turns.recalled)
), memories = '{}' FROM turns WHERE turns.id = turn_id AND turn_id = ANY($1::uuid[])
"""
_ERASED = """
SELECT id::text FROM turns
WHERE tenant = $1 AND user_id = $2 AND erased AND ended_at > now() - make_interval(secs => $3)
ORDER BY ended_at DESC LIMIT 10000
"""
_UNSEND = "DELETE FROM outbox WHERE tenant = $1 AND subject = $2 AND position($3::bytea IN body) > 0"


class PostgresCopies:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def forget(self, tenant: str, event: MemoryForgotten) -> CopiesPurged:
        async with self._database.transaction(tenant) as connection:
            named = [id for id in map(_uuid, event.turns) if id is not None]
            ids = [*event.ids, *event.found_by]
            rows = await connection.fetch(_HOLDING, tenant, event.owner, named, ids)
            turns = [row["id"] for row in rows]
            removed = await erase_turns(connection, tenant, turns, ids)
            erased = tuple(str(turn) for turn in turns)
            report = CopiesPurged(deletion_id=event.forgetting_id, removed=removed, turns=erased)
            await write_news(connection, SERVICE, tenant, COPIES_PURGED, report)
        return report

    async def erased(self, tenant: str, user: str, seconds: float) -> tuple[str, ...]:
        async with self._database.connection(tenant) as connection:
            return tuple(row["id"] for row in await connection.fetch(_ERASED, tenant, user, seconds))


async def erase_turns(connection: Connection, tenant: str, turns: Sequence[UUID], ids: Sequence[str]) -> dict[str, int]:
    """Remove the texts of turns, and take those that run from their workers; how many of what went.

    Args:
        ids: what is forgotten: whoever asks for the trace of one of the turns is told which of it was there.
    """
    removed = {name: _count(await connection.execute(statement, turns)) for name, statement in _REMOVE.items()}
    removed["traces"] = _count(await connection.execute(_EMPTY_TRACES, turns, ids))
    removed["news"] = await _unsend(connection, tenant, turns)
    return removed


async def _unsend(connection: Connection, tenant: str, turns: Sequence[UUID]) -> int:
    gone = 0
    for turn in turns:
        # Inside a JSON text quotes are escaped, so these bytes are found nowhere but in the field itself.
        field = f'"turn_id":"{turn}"'.encode()
        gone += _count(await connection.execute(_UNSEND, tenant, TURN_ENDED.on(tenant), field))
    return gone


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])


_OPEN = "status = 'completed' AND NOT learnt AND NOT erased AND (learn_after IS NULL OR learn_after < now())"
# One user at a time, whose oldest turn waits longest.
_CLAIM = f"""
WITH ready AS (
    SELECT tenant, user_id FROM turns WHERE {_OPEN} GROUP BY tenant, user_id
    HAVING count(*) >= $1 OR min(ended_at) <= now() - make_interval(secs => $2) ORDER BY min(ended_at) LIMIT 1
), picked AS (
    SELECT turns.id FROM turns JOIN ready USING (tenant, user_id) WHERE {_OPEN}
    ORDER BY turns.created_at LIMIT $1 FOR UPDATE OF turns SKIP LOCKED
)
UPDATE turns SET learn_after = now() + make_interval(secs => $3), learn_attempts = learn_attempts + 1
FROM picked WHERE turns.id = picked.id
RETURNING turns.id, conversation_id, principal, agent, coalesce(request ->> 'text', '') AS said, created_at, learn_attempts,
    turns.request -> 'media' AS media, labels,
    (SELECT text FROM messages WHERE turn_id = turns.id AND role = 'assistant') AS reply
"""  # noqa: S608

_GIVE_BACK = """
UPDATE turns SET learn_after = NULL, learn_attempts = learn_attempts - 1
FROM unnest($1::uuid[], $2::int[]) AS back (id, attempts)
WHERE turns.id = back.id AND learn_attempts = back.attempts AND NOT learnt
"""


class PostgresUnlearnt:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, most: int, after: float, lease: float) -> list[EndedTurn]:
        async with self._database.transaction(EVERY_TENANT) as connection:
            rows = await connection.fetch(_CLAIM, most, after, lease)
        found = [
            EndedTurn(
                turn_id=str(row["id"]),
                conversation_id=str(row["conversation_id"]),
                who=Principal.model_validate(row["principal"]),
                said=row["said"],
                reply=row["reply"] or "",
                at=row["created_at"],
                attempts=row["learn_attempts"],
                agent=row["agent"],
                media=tuple(row["media"] or ()),
                labels=labels_from_row(row["labels"]),
            )
            for row in rows
        ]
        return sorted(found, key=lambda turn: turn.at)

    async def learnt(self, turns: Sequence[EndedTurn]) -> None:
        if not turns:
            return
        async with self._database.transaction(turns[0].who.tenant) as connection:
            await connection.execute(
                "UPDATE turns SET learnt = true WHERE id = ANY($1::uuid[])", [UUID(turn.turn_id) for turn in turns]
            )

    async def give_back(self, turns: Sequence[EndedTurn]) -> None:
        if not turns:
            return
        async with self._database.transaction(turns[0].who.tenant) as connection:
            ids = [UUID(turn.turn_id) for turn in turns]
            await connection.execute(_GIVE_BACK, ids, [turn.attempts for turn in turns])
