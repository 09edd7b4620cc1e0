"""The table of what the index outside has still to be told of constitutional nodes: the ledger of their `Settling`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_postgres import Connection

from ..values import Vector
from ..vectors.format import from_halfvec

_AGAIN = 30.0
"""Seconds after which a change that the index refused is tried again."""

_NOTE = """
    INSERT INTO constitution_untold (tenant, node_id) SELECT $1, id FROM unnest($2::text[]) AS id ORDER BY id
    ON CONFLICT (tenant, node_id) DO UPDATE SET due = now()"""
_NOTE_ALL = """
    INSERT INTO constitution_untold (tenant, node_id)
    SELECT tenant, node_id FROM constitution_vectors WHERE $1::text IS NULL OR tenant = $1 ORDER BY tenant, node_id
    ON CONFLICT (tenant, node_id) DO UPDATE SET due = now()"""
# The vector is what it is when its row is locked here: whoever changes it next waits for that lock, and notes it anew.
_HELD = """
    SELECT u.tenant, u.node_id, v.type, v.layer, v.lifecycle, v.topic, halfvec_send(v.embedding) AS numbers
    FROM constitution_untold u LEFT JOIN constitution_vectors v USING (tenant, node_id)"""
_TAKE = f"{_HELD} WHERE u.tenant = $1 AND u.node_id = ANY($2::text[]) AND due <= now() FOR UPDATE OF u SKIP LOCKED"
_TAKE_DUE = f"{_HELD} WHERE due <= now() ORDER BY due LIMIT $1 FOR UPDATE OF u SKIP LOCKED"
_WAITING = """
    SELECT EXISTS (SELECT FROM constitution_untold WHERE tenant = $1 AND node_id = ANY($2::text[]) AND due <= now())"""
_LEFT = "SELECT EXISTS (SELECT FROM constitution_untold WHERE due <= $1 OR due > now())"
_DONE = "DELETE FROM constitution_untold WHERE tenant = $1 AND node_id = ANY($2::text[])"
_LATER = """
    UPDATE constitution_untold SET due = now() + make_interval(secs => $3) WHERE tenant = $1 AND node_id = ANY($2::text[])"""


@dataclass(frozen=True)
class NodeEntry:
    """A node's vector with its filters."""

    id: str
    type: str
    layer: Layer
    lifecycle: Lifecycle
    topic: str | None
    vector: Vector


@dataclass(frozen=True)
class NodeChanges:
    """What one tenant's index has to be told."""

    entries: tuple[NodeEntry, ...]
    gone: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.entries) + len(self.gone)


async def note(connection: Connection, tenant: str, ids: Sequence[str]) -> None:
    """Write down that the index is to be told of these nodes what the table of vectors says then."""
    if ids:
        await connection.execute(_NOTE, tenant, list(ids))


async def note_all(connection: Connection, tenant: str | None) -> None:
    """The same of every node with a vector, of one tenant or of all."""
    await connection.execute(_NOTE_ALL, tenant)


async def take(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, NodeChanges]:
    """See `Ledger`."""
    return _by_tenant(await connection.fetch(_TAKE, tenant, list(ids)))


async def take_due(connection: Connection, most: int) -> dict[str, NodeChanges]:
    """See `Ledger`."""
    return _by_tenant(await connection.fetch(_TAKE_DUE, most))


async def waiting(connection: Connection, tenant: str, ids: Sequence[str]) -> bool:
    """See `Ledger`."""
    return bool(await connection.fetchval(_WAITING, tenant, list(ids)))


async def left(connection: Connection, began: datetime) -> bool:
    """See `Ledger`."""
    return bool(await connection.fetchval(_LEFT, began))


async def finish(connection: Connection, applied: Mapping[str, NodeChanges], refused: Mapping[str, Sequence[str]]) -> None:
    """See `Ledger`."""
    for tenant, changes in applied.items():
        failed = set(refused.get(tenant, ()))
        ids = [id for id in (*(entry.id for entry in changes.entries), *changes.gone) if id not in failed]
        await connection.execute(_DONE, tenant, ids)
        if failed:
            await connection.execute(_LATER, tenant, list(failed), _AGAIN)


async def release_news(connection: Connection) -> None:
    """See `Ledger`. No news waits for these."""


def _by_tenant(rows: Sequence[asyncpg.Record]) -> dict[str, NodeChanges]:
    return {
        tenant: NodeChanges(
            tuple(_entry(row) for row in rows if row["tenant"] == tenant and row["numbers"] is not None),
            tuple(row["node_id"] for row in rows if row["tenant"] == tenant and row["numbers"] is None),
        )
        for tenant in dict.fromkeys(row["tenant"] for row in rows)
    }


def _entry(row: asyncpg.Record) -> NodeEntry:
    lifecycle, layer = Lifecycle(row["lifecycle"]), Layer(row["layer"])
    return NodeEntry(row["node_id"], row["type"], layer, lifecycle, row["topic"], from_halfvec(row["numbers"]))
