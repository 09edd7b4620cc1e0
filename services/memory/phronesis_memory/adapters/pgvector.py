"""The vector index in Postgres, by pgvector: exact in small scopes, HNSW with iterative scan in large ones."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import cast
from uuid import UUID

from phronesis_postgres import EVERY_TENANT, Connection, Database, Reach, reach

from ..domain.values import Audience, Vector, VectorEntry, VectorHit
from ..ports import Transaction
from .embedding import Agreement
from .vector_rows import entry, hits, written
from .vector_statements import PAGE, PREFER_HNSW, SIMILARITY, SIZE, UPSERT, exact, nearest

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
        self._agreement = Agreement(database, model, dimension)
        self._exact_rows = exact_rows
        self._settings = (str(ef_search), str(max_scan))
        self._sizes: OrderedDict[tuple[str, str, tuple[str, ...]], tuple[bool, float]] = OrderedDict()
        self._nearest = nearest(dimension)

    async def upsert(self, entries: Sequence[VectorEntry], *, within: Transaction | None = None) -> None:
        """See `VectorIndex`."""
        if not entries:
            return
        for e in entries:
            for vector in (e.vector, *e.passages):
                self._agreement.fit(vector)
        async with self._joined(reach(*(e.tenant for e in entries)), within) as connection:
            await self._agreement.claim(connection)
            await connection.execute(
                UPSERT,
                [e.id for e in entries],
                [e.tenant for e in entries],
                [e.owner for e in entries],
                [e.kind for e in entries],
                [e.family for e in entries],
                [written(e.vector) for e in entries],
                self._model,
                self._dimension,
                ["{" + ",".join(f'"{written(passage)}"' for passage in e.passages) + "}" for e in entries],
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
            yield [entry(row) for row in rows]
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
        near = hits(rows, len(asked))
        short = [n for n, found in enumerate(near) if len(found) < limit]
        if short:
            # These scans gave up: the scope holds more than they found, so every row is looked at.
            exact = await self._exact(audience, [owner], [asked[n] for n in short], limit)
            for n, found in zip(short, exact, strict=True):
                near[n] = found
        return near

    async def _exact(self, audience: Audience, owners: list[str], asked: list[str], limit: int) -> list[list[VectorHit]]:
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(exact(len(asked)), asked, audience.tenant, owners, list(audience.kinds), limit)
        return hits(rows, len(asked))

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
        return [written(vector) for vector in vectors]

    @asynccontextmanager
    async def _joined(self, tenant: Reach, within: Transaction | None) -> AsyncIterator[Connection]:
        if within is None:
            async with self._database.transaction(tenant) as connection:
                yield connection
        else:
            yield cast(Connection, within)
