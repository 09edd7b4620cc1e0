"""Filling the memory service's tables with synthetic items, much faster than by remembering them."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

import asyncpg
import numpy as np
import numpy.typing as npt

from phronesis_memory.ports import VectorIndex
from phronesis_memory.words.analysis import count_words, term_number

from .synthetic import DIMENSION, MODEL, Synthetic

_BATCH = 2_000


async def fill(
    connection: asyncpg.Connection, tenant: str, owner: str, count: int, source: Synthetic, kind: str = "fact"
) -> None:
    """Put `count` items of `owner` into the store, with their words and vectors. Much faster than remembering them."""
    seen: Counter[int] = Counter()
    total = 0
    async with connection.transaction():
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            texts = source.texts(size)
            total += await _copy(connection, tenant, owner, kind, texts, source.vectors(size), seen)
        await connection.execute(
            "INSERT INTO scopes (tenant, owner, kind, items, words) VALUES ($1, $2, $3, $4, $5)",
            tenant,
            owner,
            kind,
            count,
            total,
        )
        await connection.copy_records_to_table("words", records=list(seen.items()), columns=("term", "items"))


async def _copy(
    connection: asyncpg.Connection,
    tenant: str,
    owner: str,
    kind: str,
    texts: list[str],
    vectors: npt.NDArray[np.float32],
    seen: Counter[int],
) -> int:
    ids = [str(uuid4()) for _ in texts]
    rows, total = [], 0
    for id, text in zip(ids, texts, strict=True):
        found = count_words(text)
        terms = {term_number(tenant, owner, kind, stem): count for stem, count in found.counts.items()}
        seen.update(terms.keys())
        total += found.length
        rows.append((id, tenant, owner, kind, "", found.length, list(terms), bytes(terms.values())))
    await connection.copy_records_to_table(
        "items",
        records=[(id, tenant, owner, kind, text, b"", 1) for id, text in zip(ids, texts, strict=True)],
        columns=("id", "tenant", "owner", "kind", "body", "content_hash", "version"),
    )
    columns = ("item_id", "tenant", "owner", "kind", "family", "length", "terms", "counts")
    await connection.copy_records_to_table("texts", records=rows, columns=columns)
    await connection.execute(
        "INSERT INTO vectors (item_id, tenant, owner, kind, family, model, dimension, embedding)"
        " SELECT id, $2, $3, $7, '', $4, $5, embedding::halfvec FROM unnest($1::uuid[], $6::text[]) AS e (id, embedding)",
        ids,
        tenant,
        owner,
        MODEL,
        DIMENSION,
        ["[" + ",".join([f"{x:.5f}" for x in row]) + "]" for row in vectors.tolist()],
        kind,
    )
    return total


async def build_index(connection: asyncpg.Connection) -> None:
    """Build the HNSW index of all rows at once, which takes a fraction of adding them one by one."""
    await connection.execute("SET maintenance_work_mem = '512MB'; SET statement_timeout = 0", timeout=60)
    await connection.execute(
        "CREATE INDEX vectors_384 ON vectors USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WHERE dimension = 384",
        timeout=1_200,
    )
    for table in ("items", "texts", "vectors", "words", "scopes"):
        await connection.execute(f"VACUUM ANALYZE {table}", timeout=600)


async def copy_vectors(source: VectorIndex, target: VectorIndex, tenant: str) -> None:
    """Give another index the vectors that one holds of a tenant, a batch after the other."""
    async for page in source.scan(_BATCH):
        await target.upsert([entry for entry in page if entry.tenant == tenant])
