"""Deleting a conversation: out of sight and without content in one transaction, then followed until all have reported."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID, uuid4

import asyncpg

from phronesis_bus import audit_entry
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.deletions import MAX_RELEASED, ConversationDeleted, Deletion, DeletionState, Purged
from phronesis_contracts.orchestrator import CONVERSATION_DELETED, TURN_ENDED
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news

from ..turns.store import parse_uuid

SERVICE = "orchestrator"
_REPORTERS = 4
"""Services that remove something: this one, memory, graph and media."""

# In the order in which the end of a turn takes the same locks: turns first, then their conversation.
_OPEN = """
SELECT id FROM turns WHERE conversation_id = $1 AND tenant = $2 AND user_id = $3 AND status IN ('queued', 'running', 'waiting')
FOR UPDATE
"""
_HIDE = """
UPDATE conversations SET deleted_at = now(), directive = 'supportive_companion', summary = NULL
WHERE id = $1 AND tenant = $2 AND user_id = $3 AND deleted_at IS NULL RETURNING id
"""
# Media of this conversation that no other turn of the user refers to.
_RELEASED = """
SELECT DISTINCT media.id FROM turns, jsonb_array_elements_text(turns.request -> 'media') AS media (id)
WHERE turns.conversation_id = $1 AND media.id NOT IN (
    SELECT other.id FROM turns AS others, jsonb_array_elements_text(others.request -> 'media') AS other (id)
    WHERE others.tenant = $2 AND others.user_id = $3 AND others.conversation_id <> $1 AND NOT others.erased
) ORDER BY media.id
"""
# Raising the fence takes a running turn from its worker.
_ERASE = """
UPDATE turns SET erased = true, fence = fence + 1, request = '{}', principal = '{}', key_id = NULL, fingerprint = '',
    reply = NULL, problem = NULL, correlation_id = NULL, traceparent = NULL, lease_until = NULL, worker = NULL,
    approval_id = NULL, ended_at = coalesce(ended_at, now()),
    status = CASE WHEN status IN ('queued', 'running', 'waiting') THEN 'cancelled' ELSE status END
WHERE conversation_id = $1
"""
_REMOVE = {
    "messages": "DELETE FROM messages WHERE conversation_id = $1",
    "directives": "DELETE FROM directives WHERE conversation_id = $1",
    "task_states": "DELETE FROM task_states WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "task_templates": "DELETE FROM task_templates WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "steps": "DELETE FROM journal WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "approvals": "DELETE FROM approvals WHERE conversation_id = $1",
    "traces": "DELETE FROM traces WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "turns": _ERASE,
}
# Inside a JSON text quotes are escaped, so these bytes are found nowhere but in the field itself.
_UNSEND = "DELETE FROM outbox WHERE tenant = $1 AND subject = $2 AND position($3::bytea IN body) > 0"
_REPORT = """
INSERT INTO deletion_reports (deletion_id, service, part, parts, removed)
SELECT id, $3, $4, $5, $6 FROM deletions WHERE id = $1 AND tenant = $2
ON CONFLICT DO NOTHING
"""
_COMPLETE = """
UPDATE deletions SET completed_at = now() WHERE id = $1 AND tenant = $2 AND completed_at IS NULL AND $3 = (
    SELECT count(*) FROM (
        SELECT FROM deletion_reports WHERE deletion_id = $1 GROUP BY service HAVING count(*) >= max(parts)
    ) AS whole
)
"""


class ConversationDeletions:
    """The part of the conversations' store that deletes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def delete(self, who: Principal, conversation_id: str) -> tuple[Deletion, tuple[str, ...]]:
        """Delete a conversation of the caller, once; the deletion, and the ids of the turns that it took from a worker.

        Raises:
            NotFound: there is no such conversation of the caller.
        """
        id = parse_uuid(conversation_id, "conversation")
        async with self._database.transaction(who.tenant) as connection:
            stopped = [row["id"] for row in await connection.fetch(_OPEN, id, who.tenant, who.user)]
            hidden = await connection.fetchval(_HIDE, id, who.tenant, who.user)
            if hidden:
                await _erase(connection, who, id)
            deletion = await _find_deletion(connection, who, "conversation_id", id)
        if deletion is None:
            raise NotFound("no such conversation")
        return deletion, tuple(str(turn) for turn in stopped) if hidden else ()

    async def deletion(self, who: Principal, deletion_id: str) -> Deletion:
        """A deletion of the caller.

        Raises:
            NotFound: there is no such deletion of the caller.
        """
        async with self._database.connection(who.tenant) as connection:
            found = await _find_deletion(connection, who, "id", parse_uuid(deletion_id, "deletion"))
        if found is None:
            raise NotFound("no such deletion")
        return found

    async def purged(self, tenant: str, service: str, report: Purged) -> None:
        """Enter what a service removed; the last report that is waited for completes the deletion."""
        id = parse_uuid(report.deletion_id, "deletion")
        async with self._database.transaction(tenant) as connection:
            # One after the other: of two reports at the same moment, one has to see that it is the last.
            await connection.execute("SELECT FROM deletions WHERE id = $1 AND tenant = $2 FOR UPDATE", id, tenant)
            await connection.execute(_REPORT, id, tenant, service, report.part, report.parts, report.removed)
            await connection.execute(_COMPLETE, id, tenant, _REPORTERS)


async def _erase(connection: Connection, who: Principal, conversation: UUID) -> None:
    deletion = uuid4()
    released = [row["id"] for row in await connection.fetch(_RELEASED, conversation, who.tenant, who.user)]
    removed = {name: _count(await connection.execute(statement, conversation)) for name, statement in _REMOVE.items()}
    field = f'"conversation_id":"{conversation}"'.encode()
    removed["news"] = _count(await connection.execute(_UNSEND, who.tenant, TURN_ENDED.on(who.tenant), field))
    await connection.execute(
        "INSERT INTO deletions (id, tenant, user_id, conversation_id) VALUES ($1, $2, $3, $4)",
        deletion,
        who.tenant,
        who.user,
        conversation,
    )
    await connection.execute(_REPORT, deletion, who.tenant, SERVICE, 1, 1, removed)
    parts = [released[at : at + MAX_RELEASED] for at in range(0, len(released), MAX_RELEASED)] or [[]]
    for number, media in enumerate(parts, 1):
        news = ConversationDeleted(
            deletion_id=str(deletion),
            conversation_id=str(conversation),
            user=who.user,
            media=tuple(media),
            part=number,
            parts=len(parts),
        )
        await write_news(connection, SERVICE, who.tenant, CONVERSATION_DELETED, news)
    entry = audit_entry(who, "conversation.delete", {"conversation_id": str(conversation), "deletion_id": str(deletion)})
    await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)


async def _find_deletion(connection: Connection, who: Principal, column: str, id: UUID) -> Deletion | None:
    row = await connection.fetchrow(
        f"SELECT * FROM deletions WHERE {column} = $1 AND tenant = $2 AND user_id = $3",  # noqa: S608
        id,
        who.tenant,
        who.user,
    )
    if row is None:
        return None
    reports = await connection.fetch("SELECT service, removed FROM deletion_reports WHERE deletion_id = $1", row["id"])
    return _deletion_from_rows(row, reports)


def _deletion_from_rows(row: asyncpg.Record, reports: list[asyncpg.Record]) -> Deletion:
    removed: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for report in reports:
        of_service = removed[report["service"]]
        for name, count in report["removed"].items():
            of_service[name] += count
    return Deletion(
        deletion_id=str(row["id"]),
        conversation_id=str(row["conversation_id"]),
        state=DeletionState.COMPLETE if row["completed_at"] else DeletionState.PENDING,
        requested_at=row["requested_at"],
        completed_at=row["completed_at"],
        removed={service: dict(counts) for service, counts in sorted(removed.items())},
    )


def _count(status: str) -> int:
    """How many rows a command tag (`DELETE 3`) counts."""
    return int(status.rpartition(" ")[2])
