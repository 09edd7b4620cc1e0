"""Forgetting: items go with their words and vectors, news goes out for their links, and late news does not bring them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg

from phronesis_bus import Call, audited
from phronesis_contracts.deletions import ConversationDeleted, Purged
from phronesis_contracts.memory import ITEMS_FORGOTTEN, MEMORY_PURGED, Forget, Forgotten, ItemKind, ItemsForgotten
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..domain.values import EXPERIENCE
from ..ports import VectorIndex
from .vector_changes import hold_news
from .writing import lock, remove

SERVICE = "memory"
_BATCH = 500
"""Items of one event."""

_NAMED = """
    SELECT id, kind, external_id FROM items
    WHERE tenant = $1 AND owner = $2 AND (id = ANY($3::uuid[]) OR external_id = ANY($4::text[])) ORDER BY id"""
# Learnt from this conversation and from no other that is left.
_ORPHANS = """
    SELECT id, kind, external_id FROM items WHERE tenant = $1 AND owner = $2
    AND id IN (SELECT item_id FROM sources WHERE conversation_id = $3)
    AND NOT EXISTS (SELECT FROM sources WHERE item_id = items.id AND conversation_id <> $3) ORDER BY id"""
_DETACH = """
    DELETE FROM sources USING items WHERE conversation_id = $3 AND items.id = item_id AND tenant = $1 AND owner = $2"""
_BURY = """
    INSERT INTO tombstones (tenant, owner, name) SELECT $1, $2, unnest($3::text[]) ON CONFLICT DO NOTHING RETURNING name"""
_BURIED = "SELECT name FROM tombstones WHERE tenant = $1 AND owner = $2 AND name = ANY($3::text[])"


class Forgetting:
    """Removes items for good.

    Args:
        database: the schema.
        vectors: the index of the items' vectors.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database = database
        self._vectors = vectors
        self._wake = wake

    async def forget(self, call: Call, request: Forget) -> Forgotten:
        """Remove the caller's items that are named by id or external id, once for the call's key."""
        who = call.who

        async def work(connection: Connection) -> Forgotten:
            await lock(connection, who.tenant, who.user)
            ids = [id for id in map(_uuid, request.ids) if id is not None]
            rows = await connection.fetch(_NAMED, who.tenant, who.user, ids, list(request.ids))
            gone, _ = await self._remove(connection, who.tenant, who.user, rows)
            for message in _news(who.user, gone, None):
                if message.ids:
                    await write_news(connection, SERVICE, who.tenant, ITEMS_FORGOTTEN, message)
            ids_gone = tuple(str(row["id"]) for row in rows)
            if ids_gone:
                entry = audited(who, "forget", {"items": len(ids_gone), "ids": ids_gone})
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return Forgotten(count=len(ids_gone), ids=ids_gone)

        result = await write_once(self._database, call, request, Forgotten, work)
        self._wake()
        await self._vectors.settle(who.tenant, result.ids)
        return result

    async def forget_conversation(self, tenant: str, event: ConversationDeleted) -> None:
        """Remove what was learnt from a deleted conversation alone, and say so, once."""
        owner = event.user
        async with self._database.transaction(tenant) as connection:
            await lock(connection, tenant, owner)
            if not await connection.fetch(_BURY, tenant, owner, [_conversation(event.conversation_id)]):
                return
            rows = await connection.fetch(_ORPHANS, tenant, owner, event.conversation_id)
            gone, complete = await self._remove(connection, tenant, owner, rows)
            kept = int((await connection.execute(_DETACH, tenant, owner, event.conversation_id)).rpartition(" ")[2])
            for message in _news(owner, gone, event.deletion_id):
                await write_news(connection, SERVICE, tenant, ITEMS_FORGOTTEN, message)
            report = Purged(deletion_id=event.deletion_id, removed={"items": len(rows), "sources": len(rows) + kept})
            if complete:
                await write_news(connection, SERVICE, tenant, MEMORY_PURGED, report)
            else:
                await hold_news(connection, SERVICE, tenant, MEMORY_PURGED, report, [row["id"] for row in rows])
        await self._vectors.settle(tenant, [str(row["id"]) for row in rows])
        self._wake()

    async def _remove(
        self, connection: Connection, tenant: str, owner: str, rows: Sequence[asyncpg.Record]
    ) -> tuple[list[str], bool]:
        """Remove items; the ids of those that the graph knows, and whether nothing is left."""
        found = [(str(row["id"]), row["kind"], row["external_id"]) for row in rows]
        complete = await remove(connection, self._vectors, tenant, [id for id, _, _ in found])
        # An episode is made of news, and news may come again.
        episodes = [external for _, kind, external in found if kind == ItemKind.EPISODE and external is not None]
        await connection.execute(_BURY, tenant, owner, episodes)
        return [id for id, kind, _ in found if kind not in EXPERIENCE], complete


async def bury(connection: Connection, tenant: str, owner: str, names: Sequence[str]) -> None:
    """Let late news not bring these back; the connection holds the owner's lock."""
    await connection.execute(_BURY, tenant, owner, list(names))


async def buried(
    connection: Connection, tenant: str, owner: str, conversations: Sequence[str], episodes: Sequence[str] = ()
) -> list[str]:
    """Which of these conversations and episodes (by external id) were deleted; the connection holds the owner's lock."""
    names = [*map(_conversation, conversations), *episodes]
    if not names:
        return []
    rows = await connection.fetch(_BURIED, tenant, owner, names)
    return [row["name"].removeprefix("conversation:") for row in rows]


def _conversation(id: str) -> str:
    return f"conversation:{id}"


def _news(owner: str, ids: list[str], deletion: str | None) -> list[ItemsForgotten]:
    """The items in messages of a bounded size: one at least, so that a deletion hears of the graph in any case."""
    batches = [ids[at : at + _BATCH] for at in range(0, len(ids), _BATCH)] or [[]]
    return [
        ItemsForgotten(owner=owner, ids=tuple(batch), deletion_id=deletion, part=number, parts=len(batches))
        for number, batch in enumerate(batches, 1)
    ]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
