"""The vector index in Postgres, by pgvector: exact in small scopes, HNSW with iterative scan in large ones."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain
from typing import cast
from uuid import UUID

from phronesis_postgres import EVERY_TENANT, Connection, Database, Reach, reach_of

from ..ports import Transaction
from ..values import Audience, Vector, VectorEntry, VectorHit
from .format import StoredModel, entry_from_row, hits_from_rows, to_halfvec

# The asked vectors are read once each, and not for each row.
_ASKED = """
    WITH asked AS MATERIALIZED (
        SELECT n, vector::halfvec AS vector FROM unnest($1::text[]) WITH ORDINALITY AS given (vector, n)
    )"""
SIMILARITY = f"""{_ASKED}
    SELECT n, item_id, 1 - least(
        embedding <=> asked.vector, (SELECT min(passage <=> asked.vector) FROM unnest(passages) AS passage)
    ) AS cosine FROM unnest($5::int[], $6::uuid[]) AS wanted (n, id) JOIN asked USING (n) JOIN vectors ON item_id = id
    WHERE tenant = $2 AND owner = ANY($3::text[]) AND kind = ANY($4::text[])"""  # noqa: S608
SIZE = """
    SELECT count(*) FROM (
        SELECT FROM vectors WHERE tenant = $1 AND owner = $2 AND kind = ANY($3::text[]) LIMIT $4
    ) counted"""
PAGE = """
    SELECT item_id, tenant, owner, kind, family, embedding::text, passages::text[] FROM vectors
    WHERE item_id > $1 ORDER BY item_id LIMIT $2"""
UPSERT = """
    INSERT INTO vectors (item_id, tenant, owner, kind, family, model, dimension, embedding, passages)
    SELECT e.id, e.tenant, e.owner, e.kind, e.family, $7, $8, e.embedding::halfvec, e.passages::halfvec[]
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $9::text[])
        AS e (id, tenant, owner, kind, family, embedding, passages)
    ON CONFLICT (item_id) DO UPDATE SET kind = excluded.kind, family = excluded.family, model = excluded.model,
        dimension = excluded.dimension, embedding = excluded.embedding, passages = excluded.passages
    WHERE vectors.tenant = excluded.tenant AND vectors.owner = excluded.owner"""
# Without sorting, only the index that yields rows in order of distance is left. All of it ends with the transaction.
PREFER_HNSW = """
    SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', $1, true),
        set_config('hnsw.max_scan_tuples', $2, true), set_config('enable_sort', 'off', true)"""


@cache
def exact_search(vectors: int) -> str:
    """An exact search by so many vectors. Their distances are computed side by side: to read a row costs many times more.

    The sums keep the planner from the HNSW index, whose filter comes after its limit.
    """
    every = range(1, vectors + 1)
    distances = ", ".join(f"(embedding <=> (SELECT ($1::text[])[{n}]::halfvec)) + 0.0 AS d{n}" for n in every)
    nearest = " UNION ALL ".join(
        f"(SELECT {n} AS n, item_id, kind, family, 1 - d{n} AS cosine FROM near ORDER BY d{n} LIMIT $5)"  # noqa: S608
        for n in every
    )
    return f"""
    WITH near AS (
        SELECT item_id, kind, family, {distances} FROM vectors
        WHERE tenant = $2 AND owner = ANY($3::text[]) AND kind = ANY($4::text[])
    ) {nearest}"""  # noqa: S608


def hnsw_search(dimension: int) -> str:
    """A search by the HNSW index of a dimension, in one owner's scope."""
    vector = f"halfvec({dimension})"
    return f"""{_ASKED}
    SELECT n, item_id, kind, family, 1 - distance AS cosine FROM asked, LATERAL (
        SELECT item_id, kind, family, embedding::{vector} <=> asked.vector AS distance FROM vectors
        WHERE dimension = {dimension} AND tenant = $2 AND owner = $3 AND kind = ANY($4::text[])
        ORDER BY embedding::{vector} <=> asked.vector LIMIT $5
    ) found"""  # noqa: S608


_INDEXED = frozenset({384, 768, 1024, 1536})
"""Dimensions that the schema has an HNSW index for; any other is searched exactly."""
_FRESH = 60.0
"""Seconds that the size of a scope is believed. A wrong belief costs time, never a row."""
_SIZES = 10_000
_FIRST = UUID(int=0)
_CLEAR = 600.0
"""Seconds in which every vector is deleted."""


class PgVector:
    """`VectorIndex` on the table `vectors`.

    Args:
        database: the schema.
        model: name of the model whose vectors these are.
        dimension: numbers in a vector.
        exact_rows: scopes up to this many rows are searched exactly.
        ef_search: candidates that one step of the HNSW scan holds.
        max_scan: tuples that the iterative scan may visit before the exact search takes over.
    """

    def __init__(
        self,
        database: Database,
        model: str,
        dimension: int,
        *,
        exact_rows: int = 10_000,
        ef_search: int = 160,
        max_scan: int = 20_000,
    ) -> None:
        self._database = database
        self._model = model
        self._dimension = dimension
        self._agreement = StoredModel(database, model, dimension)
        self._exact_rows = exact_rows
        self._settings = (str(ef_search), str(max_scan))
        self._sizes: OrderedDict[tuple[str, str, tuple[str, ...]], tuple[bool, float]] = OrderedDict()
        self._nearest = hnsw_search(dimension)

    async def upsert(self, entries: Sequence[VectorEntry], *, within: Transaction | None = None) -> None:
        """See `VectorIndex`."""
        if not entries:
            return
        for e in entries:
            for vector in (e.vector, *e.passages):
                self._agreement.fit(vector)
        async with self._joined(reach_of(*(e.tenant for e in entries)), within) as connection:
            await self._agreement.claim(connection)
            await connection.execute(
                UPSERT,
                [e.id for e in entries],
                [e.tenant for e in entries],
                [e.owner for e in entries],
                [e.kind for e in entries],
                [e.family for e in entries],
                [to_halfvec(e.vector) for e in entries],
                self._model,
                self._dimension,
                ["{" + ",".join(f'"{to_halfvec(passage)}"' for passage in e.passages) + "}" for e in entries],
            )

    async def delete(self, tenant: str, ids: Sequence[str], *, within: Transaction | None = None) -> bool:
        """See `VectorIndex`."""
        async with self._joined(tenant, within) as connection:
            await connection.execute("DELETE FROM vectors WHERE tenant = $1 AND item_id = ANY($2::uuid[])", tenant, list(ids))
        return True

    async def settle(self, tenant: str, ids: Sequence[str]) -> None:
        """See `VectorIndex`. What was written joined the items' transaction."""

    async def search(self, audience: Audience, vectors: Sequence[Vector], limit: int) -> list[list[VectorHit]]:
        """See `VectorIndex`. Large owners are searched one by one: equality is what the HNSW scan is good at."""
        asked = await self._asked(vectors)
        large = [owner for owner in audience.owners if await self._large(audience, owner)]
        small = [owner for owner in audience.owners if owner not in large]
        found = await asyncio.gather(
            *(self._of_large(audience, owner, asked, limit) for owner in large),
            *([self._exact(audience, small, asked, limit)] if small else []),
        )
        return [sorted(chain(*of_vector), key=lambda hit: -hit.cosine)[:limit] for of_vector in zip(*found, strict=True)]

    async def similarity(
        self, audience: Audience, vectors: Sequence[Vector], ids: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        """See `VectorIndex`."""
        asked = await self._asked(vectors)
        wanted = [(n, id) for n, of_vector in enumerate(ids, 1) for id in of_vector]
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(
                SIMILARITY,
                asked,
                audience.tenant,
                list(audience.owners),
                list(audience.kinds),
                [n for n, _ in wanted],
                [id for _, id in wanted],
            )
        cosines: list[dict[str, float]] = [{} for _ in asked]
        for row in rows:
            cosines[row["n"] - 1][str(row["item_id"])] = float(row["cosine"])
        return cosines

    async def check(self) -> None:
        """See `VectorIndex`."""
        await self._agreement.check()

    async def scan(self, size: int) -> AsyncIterator[list[VectorEntry]]:
        """See `VectorIndex`."""
        last = _FIRST
        while True:
            async with self._database.connection(EVERY_TENANT) as connection:
                rows = await connection.fetch(PAGE, last, size)
            if not rows:
                return
            yield [entry_from_row(row) for row in rows]
            last = rows[-1]["item_id"]

    async def clear(self) -> None:
        """See `VectorIndex`."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            await connection.execute("DELETE FROM vectors", timeout=_CLEAR)
            await self._agreement.forget(connection)
        self._sizes.clear()

    async def _of_large(self, audience: Audience, owner: str, asked: list[str], limit: int) -> list[list[VectorHit]]:
        async with self._database.connection(audience.tenant) as connection:
            await connection.fetchrow(PREFER_HNSW, *self._settings)
            rows = await connection.fetch(self._nearest, asked, audience.tenant, owner, list(audience.kinds), limit)
        near = hits_from_rows(rows, len(asked))
        short = [n for n, found in enumerate(near) if len(found) < limit]
        if short:
            # These scans gave up: the scope holds more than they found, so every row is looked at.
            exact = await self._exact(audience, [owner], [asked[n] for n in short], limit)
            for n, found in zip(short, exact, strict=True):
                near[n] = found
        return near

    async def _exact(self, audience: Audience, owners: list[str], asked: list[str], limit: int) -> list[list[VectorHit]]:
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(exact_search(len(asked)), asked, audience.tenant, owners, list(audience.kinds), limit)
        return hits_from_rows(rows, len(asked))

    async def _large(self, audience: Audience, owner: str) -> bool:
        if self._dimension not in _INDEXED:
            return False
        key = (audience.tenant, owner, tuple(audience.kinds))
        known = self._sizes.get(key)
        now = time.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        async with self._database.connection(audience.tenant) as connection:
            count = await connection.fetchval(SIZE, audience.tenant, owner, list(audience.kinds), self._exact_rows + 1)
        large = bool(count > self._exact_rows)
        self._sizes[key] = (large, now + _FRESH)
        if len(self._sizes) > _SIZES:
            self._sizes.popitem(last=False)
        return large

    async def _asked(self, vectors: Sequence[Vector]) -> list[str]:
        for vector in vectors:
            self._agreement.fit(vector)
        await self._agreement.expect()
        return [to_halfvec(vector) for vector in vectors]

    @asynccontextmanager
    async def _joined(self, tenant: Reach, within: Transaction | None) -> AsyncIterator[Connection]:
        if within is None:
            async with self._database.transaction(tenant) as connection:
                yield connection
        else:
            yield cast(Connection, within)
