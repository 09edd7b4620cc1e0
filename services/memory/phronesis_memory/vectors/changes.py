"""The table `vector_changes`: what was written of vectors in the items' transactions, until the outside index has it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from phronesis_bus import sendable
from phronesis_contracts import Event, Message
from phronesis_contracts.memory import ItemKind
from phronesis_postgres import Connection

from ..values import VectorEntry
from .format import pack, unpack

_AGAIN = 30.0
"""Seconds after which a change that the index refused is tried again."""

# In one order, so that two writers of the same items wait for each other and never in a circle.
_NOTE = """
    INSERT INTO vector_changes (tenant, item_id, owner, kind, family, embedding, passages)
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bytea[])
        AS given (tenant, id, owner, kind, family, embedding, passages) ORDER BY tenant, id
    ON CONFLICT (tenant, item_id) DO UPDATE SET owner = excluded.owner, kind = excluded.kind, family = excluded.family,
        embedding = excluded.embedding, passages = excluded.passages, due = now()"""
_NOTE_GONE = """
    INSERT INTO vector_changes (tenant, item_id) SELECT $1, id FROM unnest($2::uuid[]) AS id ORDER BY id
    ON CONFLICT (tenant, item_id) DO UPDATE
        SET owner = NULL, kind = NULL, family = NULL, embedding = NULL, passages = NULL, due = now()"""
# A row that is being applied, or written anew, is locked: whoever holds it will see to it.
_TAKE = """
    SELECT tenant, item_id, owner, kind, family, embedding, passages FROM vector_changes
    WHERE tenant = $1 AND item_id = ANY($2::uuid[]) AND due <= now() FOR UPDATE SKIP LOCKED"""
_TAKE_DUE = """
    SELECT tenant, item_id, owner, kind, family, embedding, passages FROM vector_changes
    WHERE due <= now() ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED"""
_DONE = "DELETE FROM vector_changes WHERE tenant = $1 AND item_id = ANY($2::uuid[])"
_LATER = """
    UPDATE vector_changes SET due = now() + make_interval(secs => $3) WHERE tenant = $1 AND item_id = ANY($2::uuid[])"""
_HOLD = "INSERT INTO held_news (tenant, subject, body, headers, items) VALUES ($1, $2, $3, $4, $5::uuid[])"
_RELEASE = """
    WITH due AS (
        DELETE FROM held_news WHERE NOT EXISTS (
            SELECT FROM vector_changes WHERE tenant = held_news.tenant AND item_id = ANY(held_news.items)
        ) RETURNING tenant, subject, body, headers
    ) INSERT INTO outbox (tenant, subject, body, headers) SELECT * FROM due"""


@dataclass(frozen=True)
class ItemChanges:
    """What one tenant's index has to be told."""

    entries: tuple[VectorEntry, ...]
    gone: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.entries) + len(self.gone)


async def note(connection: Connection, entries: Sequence[VectorEntry]) -> None:
    """Write down that these vectors are to be stored; a later change of an item takes the place of an earlier one."""
    last = list({(e.tenant, e.id): e for e in entries}.values())
    await connection.execute(
        _NOTE,
        [e.tenant for e in last],
        [e.id for e in last],
        [e.owner for e in last],
        [e.kind for e in last],
        [e.family for e in last],
        [pack([e.vector]) for e in last],
        [pack(e.passages) for e in last],
    )


async def note_gone(connection: Connection, tenant: str, ids: Sequence[str]) -> None:
    """Write down that the vectors of these items are to be deleted."""
    await connection.execute(_NOTE_GONE, tenant, list(set(ids)))


async def take(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, ItemChanges]:
    """The changes of these items that nobody else holds, by tenant, locked until the transaction ends."""
    return _by_tenant(await connection.fetch(_TAKE, tenant, list(ids)))


async def take_due(connection: Connection, most: int) -> dict[str, ItemChanges]:
    """The changes that have waited longest and that nobody else holds, by tenant, locked until the transaction ends."""
    return _by_tenant(await connection.fetch(_TAKE_DUE, most))


async def waiting(connection: Connection, tenant: str, ids: Sequence[str]) -> bool:
    """Whether a change of one of these items is left; what the index has just refused is not waited for."""
    found = "SELECT EXISTS (SELECT FROM vector_changes WHERE tenant = $1 AND item_id = ANY($2::uuid[]) AND due <= now())"
    return bool(await connection.fetchval(found, tenant, list(ids)))


async def left(connection: Connection, began: datetime) -> bool:
    """Whether a change is left that was noted up to then, or that the index refused."""
    return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM vector_changes WHERE due <= $1 OR due > now())", began))


async def count(connection: Connection) -> int:
    """How many changes there are."""
    return int(await connection.fetchval("SELECT count(*) FROM vector_changes"))


async def finish(connection: Connection, applied: Mapping[str, ItemChanges], refused: Mapping[str, Sequence[str]]) -> None:
    """Remove what was applied, by tenant, and let what the index refused come again later."""
    for tenant, changes in applied.items():
        failed = set(refused.get(tenant, ()))
        ids = [id for id in (*(e.id for e in changes.entries), *changes.gone) if id not in failed]
        await connection.execute(_DONE, tenant, ids)
        if failed:
            await connection.execute(_LATER, tenant, list(failed), _AGAIN)


async def drop(connection: Connection, tenant: str, ids: Sequence[str]) -> None:
    """Remove the changes of items whose vectors are written past the table; waits for whoever applies them."""
    await connection.execute(_DONE, tenant, sorted(ids))


async def drop_all(connection: Connection) -> None:
    """Remove every change; waits for whoever applies some, and lets nobody begin before the transaction ends."""
    await connection.execute("LOCK TABLE vector_changes IN EXCLUSIVE MODE")
    await connection.execute("DELETE FROM vector_changes")


async def hold_news(
    connection: Connection, service: str, tenant: str, event: Event[Any], message: Message, items: Sequence[str]
) -> None:
    """Write news that may go out only when the vectors of these items are gone."""
    row = sendable(service, "", tenant, event, message)
    await connection.execute(_HOLD, row.tenant, row.subject, row.body, dict(row.headers), list(items))


async def release_news(connection: Connection) -> None:
    """Put the held news whose vectors are gone into the outbox."""
    await connection.execute(_RELEASE)


def _by_tenant(rows: Sequence[asyncpg.Record]) -> dict[str, ItemChanges]:
    tenants = dict.fromkeys(row["tenant"] for row in rows)
    return {
        tenant: ItemChanges(
            tuple(_entry(row) for row in rows if row["tenant"] == tenant and row["embedding"] is not None),
            tuple(str(row["item_id"]) for row in rows if row["tenant"] == tenant and row["embedding"] is None),
        )
        for tenant in tenants
    }


def _entry(row: asyncpg.Record) -> VectorEntry:
    dimension = len(row["embedding"]) // 2
    [vector] = unpack(row["embedding"], dimension)
    passages = unpack(row["passages"], dimension)
    return VectorEntry(str(row["item_id"]), row["tenant"], row["owner"], ItemKind(row["kind"]), vector, row["family"], passages)
