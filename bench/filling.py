"""Filling the memory service's tables with synthetic items, much faster than by remembering them."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from uuid import uuid4

import asyncpg
import numpy as np
import numpy.typing as npt

from phronesis_memory.ports import VectorIndex
from phronesis_memory.words.analysis import stems, term_number

from .progress import say
from .synthetic import DIMENSION, MODEL, Synthetic

_BATCH, _TELL = 2_000, 20_000
_SHORT = 12
"""Words of an item of a small tenant."""

_HNSW = "USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WITH (ef_construction = 200) WHERE dimension = 384"
_INDEXES = {
    "vectors_384": f"CREATE INDEX vectors_384 ON vectors {_HNSW}",
    "texts_terms": "CREATE INDEX texts_terms ON texts USING gin (terms) WITH (fastupdate = off)",
}
"""As the migrations make them."""
_LONGEST = 3_600.0
"""Seconds that one index of a million items may take."""


async def fill(
    connection: asyncpg.Connection, tenant: str, owner: str, count: int, source: Synthetic, kind: str = "fact"
) -> None:
    """Put `count` items of `owner` into the store, with their words and vectors. Much faster than remembering them."""
    await connection.set_type_codec("halfvec", schema="public", encoder=_to_binary, decoder=bytes, format="binary")
    numbers: dict[str, int] = {}
    seen: Counter[int] = Counter()
    total = 0
    async with connection.transaction():
        # No row is looked up for what it refers to: it was copied right before.
        await connection.execute("SET LOCAL session_replication_role = replica")
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            texts = source.texts(size)
            words = [Counter(_number(numbers, tenant, owner, kind, word) for word in text.split()) for text in texts]
            for found in words:
                seen.update(found.keys())
                total += found.total()
            await _copy(connection, [(tenant, owner, kind)] * size, texts, words, source.vectors(size))
        scope = (tenant, owner, kind, count, total)
        await connection.execute("INSERT INTO scopes (tenant, owner, kind, items, words) VALUES ($1, $2, $3, $4, $5)", *scope)
        await connection.copy_records_to_table("words", records=list(seen.items()), columns=("term", "items"))


def _number(numbers: dict[str, int], tenant: str, owner: str, kind: str, word: str) -> int:
    """The term of a word, each of which is one of few, and looked at once."""
    if word not in numbers:
        [stem] = stems(word)
        numbers[word] = term_number(tenant, owner, kind, stem)
    return numbers[word]


async def fill_tenants(
    connection: asyncpg.Connection, tenants: Sequence[str], owner: str, each: int, source: Synthetic, kind: str = "fact"
) -> None:
    """Put `each` short items of `owner` into the store for every tenant, with their words and vectors."""
    await connection.set_type_codec("halfvec", schema="public", encoder=_to_binary, decoder=bytes, format="binary")
    some = _BATCH // each
    for start in range(0, len(tenants), some):
        names = tenants[start : start + some]
        texts = source.texts(len(names) * each, _SHORT)
        found, scopes, seen = [], [], Counter[int]()
        for place, tenant in enumerate(names):
            mine = [
                Counter(term_number(tenant, owner, kind, stem) for stem in stems(text))
                for text in texts[place * each : (place + 1) * each]
            ]
            for words in mine:
                seen.update(words.keys())
            scopes.append((tenant, owner, kind, each, sum(words.total() for words in mine)))
            found += mine
        async with connection.transaction():
            await connection.execute("SET LOCAL session_replication_role = replica")
            each_scope = [(tenant, owner, kind) for tenant in names for _ in range(each)]
            await _copy(connection, each_scope, texts, found, source.vectors(len(texts)))
            columns = ("tenant", "owner", "kind", "items", "words")
            await connection.copy_records_to_table("scopes", records=scopes, columns=columns)
            await connection.copy_records_to_table("words", records=list(seen.items()), columns=("term", "items"))
        if start and start % _TELL == 0:
            say(f"{start:,} tenants are filled in")


async def _copy(
    connection: asyncpg.Connection,
    scopes: Sequence[tuple[str, str, str]],
    texts: Sequence[str],
    words: Sequence[Counter[int]],
    vectors: npt.NDArray[np.float32],
) -> None:
    ids = [(uuid4(), *scope) for scope in scopes]
    rows = {
        "items": [(*id, text, b"", 1) for id, text in zip(ids, texts, strict=True)],
        "texts": [(*id, "", found.total(), list(found), bytes(found.values())) for id, found in zip(ids, words, strict=True)],
        "vectors": [(*id, "", MODEL, DIMENSION, vector) for id, vector in zip(ids, vectors, strict=True)],
    }
    columns = {
        "items": ("id", "tenant", "owner", "kind", "body", "content_hash", "version"),
        "texts": ("item_id", "tenant", "owner", "kind", "family", "length", "terms", "counts"),
        "vectors": ("item_id", "tenant", "owner", "kind", "family", "model", "dimension", "embedding"),
    }
    for table, records in rows.items():
        await connection.copy_records_to_table(table, records=records, columns=columns[table], timeout=_LONGEST)


def _to_binary(vector: npt.NDArray[np.float32]) -> bytes:
    """A vector as `halfvec_recv` takes it: how many numbers, two bytes that mean nothing, and the numbers."""
    return struct.pack(">HH", len(vector), 0) + vector.astype(">f2").tobytes()


async def drop_indexes(connection: asyncpg.Connection) -> None:
    """Drop the indexes that take longer to grow row by row than to be built, before much is filled in."""
    for name in _INDEXES:
        await connection.execute(f"DROP INDEX IF EXISTS {name}", timeout=60)


async def build_indexes(connection: asyncpg.Connection) -> None:
    """Build the indexes that were dropped, of all rows at once, in memory: a million vectors take about 2 GB."""
    await connection.execute("SET maintenance_work_mem = '3GB'; SET statement_timeout = 0", timeout=60)
    for statement in _INDEXES.values():
        await connection.execute(statement, timeout=_LONGEST)
    for table in ("items", "texts", "vectors", "words", "scopes"):
        await connection.execute(f"VACUUM ANALYZE {table}", timeout=_LONGEST)


async def copy_vectors(source: VectorIndex, target: VectorIndex, tenant: str) -> None:
    """Give another index the vectors that one holds of a tenant, a batch after the other."""
    async for page in source.scan(_BATCH):
        await target.upsert([entry for entry in page if entry.tenant == tenant])
