"""The vector index in Postgres, by pgvector: exact in small scopes, HNSW with iterative scan in large ones."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from phronesis.contracts.memory import EmbeddingMismatch, ItemKind
from phronesis.postgres import Connection, Database

from ..domain.values import Audience, Vector, VectorEntry, VectorHit
from ..ports import Transaction

_INDEXED = frozenset({384, 768, 1024, 1536})
"""Dimensions that the schema has an HNSW index for; any other is searched exactly."""
_FRESH = 60.0
"""Seconds that the size of a scope is believed. A wrong belief costs time, never a row."""
_SIZES = 10_000

_WHERE = "tenant = $2 AND owner = $3 AND kind = ANY($4::text[])"
# The asked vector is read by a query of its own, once: in a plan for any parameters its text would be read for each row.
_ASKED = "(SELECT $1::text::halfvec)"
# The sum keeps the planner from the HNSW index, whose filter comes after its limit.
_EXACT = f"""
    SELECT item_id, kind, family, 1 - distance AS cosine FROM (
        SELECT item_id, kind, family, (embedding <=> {_ASKED}) + 0.0 AS distance FROM vectors WHERE {_WHERE}
    ) found ORDER BY distance LIMIT $5"""  # noqa: S608
_SIMILARITY = f"""
    SELECT item_id, 1 - (embedding <=> {_ASKED}) AS cosine FROM vectors
    WHERE tenant = $2 AND owner = ANY($3::text[]) AND kind = ANY($4::text[]) AND item_id = ANY($5::uuid[])"""  # noqa: S608
_SIZE = """
    SELECT count(*) FROM (
        SELECT FROM vectors WHERE tenant = $1 AND owner = $2 AND kind = ANY($3::text[]) LIMIT $4
    ) counted"""
_UPSERT = """
    INSERT INTO vectors (item_id, tenant, owner, kind, family, model, dimension, embedding)
    SELECT e.id, e.tenant, e.owner, e.kind, e.family, $7, $8, e.embedding::halfvec
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
        AS e (id, tenant, owner, kind, family, embedding)
    ON CONFLICT (item_id) DO UPDATE SET kind = excluded.kind, family = excluded.family, model = excluded.model,
        dimension = excluded.dimension, embedding = excluded.embedding
    WHERE vectors.tenant = excluded.tenant AND vectors.owner = excluded.owner"""


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
        self._exact_rows = exact_rows
        self._settings = (str(ef_search), str(max_scan))
        self._sizes: OrderedDict[tuple[str, str, tuple[str, ...]], tuple[bool, float]] = OrderedDict()
        self._agreed = False
        vector = f"halfvec({dimension})"
        distance = f"embedding::{vector} <=> (SELECT $1::text::{vector})"
        self._nearest = f"""
            SELECT item_id, kind, family, 1 - ({distance}) AS cosine
            FROM vectors WHERE dimension = {dimension} AND {_WHERE}
            ORDER BY {distance} LIMIT $5"""  # noqa: S608

    async def upsert(self, entries: Sequence[VectorEntry], *, within: Transaction | None = None) -> None:
        """See `VectorIndex`."""
        if not entries:
            return
        for entry in entries:
            self._fits(entry.vector)
        async with self._joined(within) as connection:
            await self._agree(connection, claim=True)
            await connection.execute(
                _UPSERT,
                [e.id for e in entries],
                [e.tenant for e in entries],
                [e.owner for e in entries],
                [e.kind for e in entries],
                [e.family for e in entries],
                [_text(e.vector) for e in entries],
                self._model,
                self._dimension,
            )

    async def delete(self, tenant: str, ids: Sequence[str], *, within: Transaction | None = None) -> None:
        """See `VectorIndex`."""
        async with self._joined(within) as connection:
            await connection.execute("DELETE FROM vectors WHERE tenant = $1 AND item_id = ANY($2::uuid[])", tenant, list(ids))

    async def search(self, audience: Audience, vector: Vector, limit: int) -> list[VectorHit]:
        """See `VectorIndex`. Each owner is a search of its own: equality is what both plans are good at."""
        self._fits(vector)
        await self._agreement()
        asked = _text(vector)
        found = await asyncio.gather(*(self._of_owner(audience, owner, asked, limit) for owner in audience.owners))
        hits = [hit for of_owner in found for hit in of_owner]
        return sorted(hits, key=lambda hit: -hit.cosine)[:limit]

    async def similarity(self, audience: Audience, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """See `VectorIndex`."""
        self._fits(vector)
        await self._agreement()
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                _SIMILARITY, _text(vector), audience.tenant, list(audience.owners), list(audience.kinds), list(ids)
            )
        return {str(row["item_id"]): float(row["cosine"]) for row in rows}

    async def check(self) -> None:
        """See `VectorIndex`."""
        async with self._database.connection() as connection:
            await self._agree(connection)

    async def _of_owner(self, audience: Audience, owner: str, asked: str, limit: int) -> list[VectorHit]:
        kinds = list(audience.kinds)
        filters = (audience.tenant, owner, kinds)
        async with self._database.connection() as connection:
            if await self._large(connection, audience.tenant, owner, kinds):
                async with connection.transaction():
                    await self._prefer_hnsw(connection)
                    rows = await connection.fetch(self._nearest, asked, *filters, limit)
                if len(rows) == limit:
                    return [_hit(row) for row in rows]
                # The scan gave up: the scope holds more than it found, so every row is looked at.
            return [_hit(row) for row in await connection.fetch(_EXACT, asked, *filters, limit)]

    async def _large(self, connection: Connection, tenant: str, owner: str, kinds: list[ItemKind]) -> bool:
        if self._dimension not in _INDEXED:
            return False
        key = (tenant, owner, tuple(kinds))
        known = self._sizes.get(key)
        now = time.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        count = await connection.fetchval(_SIZE, tenant, owner, kinds, self._exact_rows + 1)
        large = bool(count > self._exact_rows)
        self._sizes[key] = (large, now + _FRESH)
        if len(self._sizes) > _SIZES:
            self._sizes.popitem(last=False)
        return large

    async def _prefer_hnsw(self, connection: Connection) -> None:
        # Without sorting, only the index that yields rows in order of distance is left. All of it ends with the transaction.
        await connection.fetchrow(
            "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', $1, true),"
            " set_config('hnsw.max_scan_tuples', $2, true), set_config('enable_sort', 'off', true)",
            *self._settings,
        )

    async def _agreement(self) -> None:
        if not self._agreed:
            await self.check()

    async def _agree(self, connection: Connection, *, claim: bool = False) -> None:
        if self._agreed:
            return
        row = await connection.fetchrow("SELECT model, dimension FROM embedding")
        # What this transaction claims is not remembered: it may be rolled back.
        self._agreed = row is not None and (row["model"], row["dimension"]) == (self._model, self._dimension)
        if row is None and claim:
            await connection.execute(
                "INSERT INTO embedding (model, dimension) VALUES ($1, $2) ON CONFLICT DO NOTHING", self._model, self._dimension
            )
            row = await connection.fetchrow("SELECT model, dimension FROM embedding")
        if row is not None and (row["model"], row["dimension"]) != (self._model, self._dimension):
            raise EmbeddingMismatch(
                f"the stored vectors are of {row['model']} ({row['dimension']} numbers), "
                f"and this service is set to {self._model} ({self._dimension}): make the vectors anew, or set the model back"
            )

    def _fits(self, vector: Vector) -> None:
        if vector.shape != (self._dimension,):
            raise EmbeddingMismatch(f"a vector has {vector.size} numbers, and {self._model} makes {self._dimension}")

    @asynccontextmanager
    async def _joined(self, within: Transaction | None) -> AsyncIterator[Connection]:
        if within is None:
            async with self._database.transaction() as connection:
                yield connection
        else:
            yield cast(Connection, within)


def _text(vector: Vector) -> str:
    return "[" + ",".join([f"{number:.6g}" for number in vector.tolist()]) + "]"


def _hit(row: object) -> VectorHit:
    record = cast("dict[str, str]", row)
    return VectorHit(str(record["item_id"]), ItemKind(record["kind"]), float(record["cosine"]), record["family"])
