"""Vectors out of an index and into one, whichever store it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import asyncpg
import numpy as np

from phronesis_contracts.memory import ItemKind
from phronesis_memory.indexes import open_index
from phronesis_memory.ports import VectorIndex
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import VectorEntry
from phronesis_memory.vectors.pgvector import PgVector
from phronesis_postgres import Connection, Database

from .archive import MemberWriter
from .format import Frame
from .places import Places
from .reporting import Damaged
from .tenancy import Tenancy

VECTORS = "vectors"
_BATCH = 500
_HALF = np.dtype("<f2")


class Snapshot(Database):
    """The schema of memory as one connection's transaction sees it."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self._connection = connection

    @asynccontextmanager
    async def connection(self, *_: object) -> AsyncIterator[Connection]:
        yield cast(Connection, self._connection)


async def model(connection: asyncpg.Connection[asyncpg.Record]) -> tuple[str, int] | None:
    """The model of the stored vectors, and how many numbers each has."""
    row = await connection.fetchrow("SELECT model, dimension FROM memory.embedding")
    return (row["model"], row["dimension"]) if row else None


@asynccontextmanager
async def open_snapshot(
    connection: asyncpg.Connection[asyncpg.Record], places: Places, model: str, dimension: int
) -> AsyncIterator[VectorIndex]:
    """The index for the length of a block: as the snapshot sees it, or, where it is another store, as it is now."""
    if places.weaviate.url is None:
        await connection.execute("SET LOCAL search_path = memory, public")
        yield PgVector(Snapshot(connection), model, dimension)
        return
    async with open_vectors(places, model, dimension) as index:
        yield index


@asynccontextmanager
async def open_vectors(places: Places, model: str, dimension: int) -> AsyncIterator[VectorIndex]:
    """The index of an installation for the length of a block."""
    async with (
        Database.open(places.memory, "memory") as database,
        open_index(database, model, dimension, MemorySettings(), places.weaviate) as index,
    ):
        yield index


async def dump(index: VectorIndex, writer: MemberWriter, tenant: str | None = None) -> None:
    async for entries in index.scan(_BATCH):
        for entry in entries:
            if tenant in (None, entry.tenant):
                writer.add(_header(entry), np.concatenate([entry.vector, *entry.passages]).astype(_HALF).tobytes())


async def load(index: VectorIndex, frames: Iterator[Frame], dimension: int, tenancy: Tenancy | None = None) -> int:
    """Vectors into an index; how many there were."""
    batch: list[VectorEntry] = []
    count = 0
    for frame in frames:
        entry = _entry(frame, dimension)
        batch.append(replace(entry, tenant=tenancy.of(entry.tenant)) if tenancy else entry)
        count += 1
        if len(batch) >= _BATCH:
            await index.upsert(batch)
            batch = []
    await index.upsert(batch)
    return count


async def remove(index: VectorIndex, tenant: str) -> None:
    async for entries in index.scan(_BATCH):
        await index.delete(tenant, [entry.id for entry in entries if entry.tenant == tenant])


async def count(index: VectorIndex) -> int:
    found = 0
    async for entries in index.scan(_BATCH):
        found += len(entries)
    return found


def _header(entry: VectorEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "tenant": entry.tenant,
        "owner": entry.owner,
        "kind": entry.kind.value,
        "family": entry.family,
        "passages": len(entry.passages),
    }


def _entry(frame: Frame, dimension: int) -> VectorEntry:
    header = frame.header
    try:
        numbers = np.frombuffer(frame.body, dtype=_HALF).astype(np.float32).reshape(1 + int(header["passages"]), dimension)
        texts = [header[name] for name in ("tenant", "owner", "family")]
        if not all(isinstance(text, str) for text in texts) or not np.isfinite(numbers).all():
            raise ValueError
        tenant, owner, family = texts
        return VectorEntry(
            str(UUID(header["id"])), tenant, owner, ItemKind(header["kind"]), numbers[0], family, tuple(numbers[1:])
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Damaged("the archive holds something that is no vector") from error
