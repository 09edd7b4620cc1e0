"""Filling the memory service's tables with synthetic items, much faster than by remembering them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import uuid4

import asyncpg
import numpy as np
import numpy.typing as npt

from phronesis_memory.ports import VectorIndex
from phronesis_memory.words.analysis import count_words, term_number

from .progress import say
from .synthetic import DIMENSION, MODEL, Synthetic

_BATCH, _TELL = 2_000, 100_000
_SHORT = 12
"""Words of an item of a small tenant."""


async def fill(
    connection: asyncpg.Connection, tenant: str, owner: str, count: int, source: Synthetic, kind: str = "fact"
) -> None:
    """Put `count` items of `owner` into the store, with their words and vectors. Much faster than remembering them."""
    filling = _Filling(connection, owner, kind)
    async with connection.transaction():
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            await filling.copy([tenant] * size, source.texts(size), source.vectors(size))
            if start % _TELL == 0 and start:
                say(f"{start:,} items are filled in")
        await filling.finish()


async def fill_tenants(
    connection: asyncpg.Connection, tenants: Sequence[str], owner: str, each: int, source: Synthetic, kind: str = "fact"
) -> None:
    """Put `each` short items of `owner` into the store for every tenant, with their words and vectors."""
    some = _BATCH // each
    for start in range(0, len(tenants), some):
        names = [tenant for tenant in tenants[start : start + some] for _ in range(each)]
        filling = _Filling(connection, owner, kind)
        async with connection.transaction():
            await filling.copy(names, source.texts(len(names), _SHORT), source.vectors(len(names)))
            await filling.finish()
        if start * each % _TELL == 0 and start:
            say(f"{start:,} tenants are filled in")


class _Filling:
    """Items of one owner that are copied in batches, and what the scopes have to know of them."""

    def __init__(self, connection: asyncpg.Connection, owner: str, kind: str) -> None:
        self._connection, self._owner, self._kind = connection, owner, kind
        self._terms: Counter[int] = Counter()
        self._items: Counter[str] = Counter()
        self._words: Counter[str] = Counter()

    async def copy(self, tenants: Sequence[str], texts: Sequence[str], vectors: npt.NDArray[np.float32]) -> None:
        """Copy a text with its vector for each tenant named."""
        items, rows, embedded = [], [], []
        for tenant, text, vector in zip(tenants, texts, vectors, strict=True):
            id, found = str(uuid4()), count_words(text)
            terms = {term_number(tenant, self._owner, self._kind, stem): count for stem, count in found.counts.items()}
            self._terms.update(terms.keys())
            self._items[tenant] += 1
            self._words[tenant] += found.length
            scope = (id, tenant, self._owner, self._kind)
            items.append((*scope, text, b"", 1))
            rows.append((*scope, "", found.length, list(terms), bytes(terms.values())))
            embedded.append((*scope, "", MODEL, DIMENSION, vector))
        await self._connection.set_type_codec("halfvec", schema="public", encoder=_halfvec, decoder=bytes, format="binary")
        scope_columns = ("tenant", "owner", "kind")
        for table, records, columns in (
            ("items", items, ("id", *scope_columns, "body", "content_hash", "version")),
            ("texts", rows, ("item_id", *scope_columns, "family", "length", "terms", "counts")),
            ("vectors", embedded, ("item_id", *scope_columns, "family", "model", "dimension", "embedding")),
        ):
            await self._connection.copy_records_to_table(table, records=records, columns=columns)

    async def finish(self) -> None:
        """Write the counts of the scopes and of their words."""
        scopes = [(tenant, self._owner, self._kind, count, self._words[tenant]) for tenant, count in self._items.items()]
        columns = ("tenant", "owner", "kind", "items", "words")
        await self._connection.copy_records_to_table("scopes", records=scopes, columns=columns)
        await self._connection.copy_records_to_table("words", records=list(self._terms.items()), columns=("term", "items"))


def _halfvec(vector: npt.NDArray[np.float32]) -> bytes:
    """The binary form of pgvector's `halfvec`: the dimension and a zero, of two bytes each, then two bytes for each number."""
    return np.array([len(vector), 0], ">u2").tobytes() + vector.astype(">f2").tobytes()


async def build_index(connection: asyncpg.Connection) -> None:
    """Build the HNSW index of all rows at once, which takes a fraction of adding them one by one."""
    settings = "SET maintenance_work_mem = '4GB'; SET max_parallel_maintenance_workers = 2; SET statement_timeout = 0"
    await connection.execute(settings, timeout=60)
    await connection.execute(
        "CREATE INDEX vectors_384 ON vectors USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WHERE dimension = 384",
        timeout=7_200,
    )
    for table in ("items", "texts", "vectors", "words", "scopes"):
        await connection.execute(f"VACUUM ANALYZE {table}", timeout=600)


async def copy_vectors(source: VectorIndex, target: VectorIndex, tenant: str) -> None:
    """Give another index the vectors that one holds of a tenant, a batch after the other."""
    async for page in source.scan(_BATCH):
        await target.upsert([entry for entry in page if entry.tenant == tenant])
