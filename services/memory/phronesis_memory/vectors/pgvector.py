"""Vectors in Postgres, by pgvector, and the index of items on them."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import ClassVar, Generic, TypeVar, cast
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
_NEAREST = "1 - least({distance}, (SELECT min(passage <=> asked.vector) FROM unnest(passages) AS passage))"
_HIT = f"n, item_id, kind, family, 1 - distance AS cosine, {_NEAREST.format(distance='distance')} AS nearest"
# The offset has each row looked up by its id: with old statistics the planner walks all vectors.
_SIMILARITY = f"""{_ASKED}
    SELECT n, item_id, {_NEAREST.format(distance="embedding <=> asked.vector")} AS cosine
    FROM unnest($5::int[], $6::uuid[]) AS wanted (n, id) JOIN asked USING (n), LATERAL (
        SELECT item_id, embedding, passages FROM vectors
        WHERE item_id = id AND tenant = $2 AND owner = ANY($3::text[]) AND kind = ANY($4::text[]) OFFSET 0
    ) found"""  # noqa: S608
_OWNED = "SELECT count(*) FROM vectors WHERE tenant = $1 AND (owner = ANY($2::text[]) OR starts_with(owner, $3))"
_PAGE = """
    SELECT item_id, tenant, owner, kind, family, embedding::text, passages::text[] FROM vectors
    WHERE item_id > $1 ORDER BY item_id LIMIT $2"""
_UPSERT = """
    INSERT INTO vectors (item_id, tenant, owner, kind, family, model, dimension, embedding, passages)
    SELECT e.id, e.tenant, e.owner, e.kind, e.family, $7, $8, e.embedding::halfvec, e.passages::halfvec[]
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $9::text[])
        AS e (id, tenant, owner, kind, family, embedding, passages)
    ON CONFLICT (item_id) DO UPDATE SET kind = excluded.kind, family = excluded.family, model = excluded.model,
        dimension = excluded.dimension, embedding = excluded.embedding, passages = excluded.passages
    WHERE vectors.tenant = excluded.tenant AND vectors.owner = excluded.owner"""


@cache
def exact_search(vectors: int) -> str:
    """An exact search by so many vectors. Their distances are computed side by side: to read a row costs many times more.

    The sums keep the planner from the HNSW index, whose filter comes after its limit.
    """
    every = range(1, vectors + 1)
    distances = ", ".join(f"(embedding <=> (SELECT ($1::text[])[{n}]::halfvec)) + 0.0 AS d{n}" for n in every)
    best = " UNION ALL ".join(
        f"(SELECT {n} AS n, item_id, kind, family, d{n} AS distance FROM near ORDER BY d{n} LIMIT $5)"  # noqa: S608
        for n in every
    )
    return f"""{_ASKED}, near AS (
        SELECT item_id, kind, family, {distances} FROM vectors
        WHERE tenant = $2 AND owner = ANY($3::text[]) AND kind = ANY($4::text[])
    ), found AS ({best})
    SELECT {_HIT} FROM found JOIN asked USING (n), LATERAL (
        SELECT passages FROM vectors WHERE item_id = found.item_id OFFSET 0
    ) held"""  # noqa: S608


@cache
def hnsw_search(dimension: int) -> str:
    """A search by the HNSW index of a dimension. Owners are searched together: the more rows pass, the fewer are visited."""
    vector = f"halfvec({dimension})"
    return f"""{_ASKED}
    SELECT {_HIT} FROM asked, LATERAL (
        SELECT item_id, kind, family, passages, embedding::{vector} <=> asked.vector AS distance FROM vectors
        WHERE dimension = {dimension} AND tenant = $2 AND owner = ANY($3::text[]) AND kind = ANY($4::text[])
        ORDER BY embedding::{vector} <=> asked.vector LIMIT $5
    ) found"""  # noqa: S608


_BREAK_EVEN = 1_250
"""Where HNSW begins to pay off: scopes whose rows, squared, are more than so many times the rows of the whole table.

Measured for 50 hits at 384 numbers: an exact search costs 0.55 µs for each row of the scope; HNSW costs 14 µs for each row that
it visits, and on its way to 50 of the scope it visits all between them. Below the line it also finds fewer of the nearest."""
_WELL_LINKED = 200_000
"""Rows of a table up to which the set number of candidates is enough; above, it grows with the root of the rows.

Measured on vectors in 500 clusters (`bench.synthetic`): of the ten nearest among 1,400,000, 160 candidates find 0.93, 320 find
0.99 and 480 all, in 8.1, 9.2 and 9.7 ms. Among 140,000, 160 find all, and 400 take 2.4 ms more."""
_MOST_CANDIDATES = 1_000
"""The most that pgvector takes."""
_FRESH = 60.0
"""Seconds that the size of a scope is believed. A wrong belief costs time, never a row."""
_SIZES = 10_000
_FIRST = UUID(int=0)
_CLEAR = 600.0
"""Seconds in which every vector is deleted."""

S = TypeVar("S")
"""What a search is made in; equal scopes hold the same rows."""
H = TypeVar("H")
"""What a search finds."""


class Conditions:
    """The conditions of a statement, with their values."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        return " AND ".join(self._parts)

    def add(self, condition: str, *values: object) -> None:
        self._parts.append(condition.format(*map(self.value, values)))

    def value(self, value: object) -> str:
        """Add a value; how the statement names it."""
        self.values.append(value)
        return f"${len(self.values)}"


class PgVectors(ABC, Generic[S, H]):
    """Vectors in a table of Postgres: small scopes are searched exactly, large ones by HNSW with iterative scan.

    Args:
        exact_rows: scopes up to this many rows are searched exactly, and so are small parts of a large table (`_BREAK_EVEN`);
            with 0 every scope is searched by HNSW.
        ef_search: candidates that one step of the HNSW scan holds; in a table of more than 200,000 rows it holds more.
        max_scan: tuples that the iterative scan may visit before the exact search takes over.
    """

    table: ClassVar[str]
    indexed: ClassVar[frozenset[int]]
    """Dimensions that the table has an HNSW index for; any other is searched exactly."""

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
        self._database, self._model, self._dimension = database, model, dimension
        self._stored_model = StoredModel(database, model, dimension)
        self._exact_rows, self._ef_search = exact_rows, ef_search
        # Without sorting, only the index that yields rows in order of distance is left. All of it ends with the transaction.
        self._prefer_hnsw = (
            f"SET LOCAL hnsw.iterative_scan = 'relaxed_order'; SET LOCAL hnsw.max_scan_tuples = {int(max_scan)}; "
            "SET LOCAL enable_sort = off; SET LOCAL hnsw.ef_search = "
        )
        self._sizes: OrderedDict[tuple[str, S], tuple[int, float]] = OrderedDict()

    @abstractmethod
    def _conditions(self, tenant: str, scope: S) -> Conditions:
        """The conditions that a scope's rows meet."""

    @abstractmethod
    async def _by_hnsw(
        self, connection: Connection, tenant: str, scope: S, vectors: Sequence[str], limit: int
    ) -> list[list[H]]:
        """For each vector what the HNSW scan finds nearest in a scope before it gives up."""

    @abstractmethod
    async def _exactly(
        self, connection: Connection, tenant: str, scope: S, vectors: Sequence[str], limit: int
    ) -> list[list[H]]:
        """For each vector what is nearest in a scope, of all its rows."""

    @asynccontextmanager
    async def by_hnsw(self, tenant: Reach, candidates: int = 0) -> AsyncIterator[Connection]:
        """A connection to read with, whose searches go by HNSW with this store's settings, or with so many candidates."""
        async with self._database.connection(tenant, f"{self._prefer_hnsw}{candidates or self._ef_search}") as connection:
            yield connection

    async def exact_search(self, tenant: str, scope: S, vectors: Sequence[str], limit: int) -> list[list[H]]:
        """For each vector what is nearest in a scope, whatever its size."""
        async with self._database.connection(tenant) as connection:
            return await self._exactly(connection, tenant, scope, vectors, limit)

    async def search_scope(self, tenant: str, scope: S, vectors: Sequence[str], limit: int) -> list[list[H]]:
        """For each vector what is nearest in a scope."""
        candidates = await self.candidates(tenant, scope)
        if not candidates:
            return await self.exact_search(tenant, scope, vectors, limit)
        async with self.by_hnsw(tenant, candidates) as connection:
            near = await self._by_hnsw(connection, tenant, scope, vectors, limit)
        short = [n for n, found in enumerate(near) if len(found) < limit]
        if short:
            # These scans gave up: the scope may hold more than they found, so every row is looked at.
            exact = await self.exact_search(tenant, scope, [vectors[n] for n in short], limit)
            for n, found in zip(short, exact, strict=True):
                near[n] = found
        return near

    async def candidates(self, tenant: str, scope: S) -> int:
        """How many candidates a scope is searched with by HNSW; 0 where it is searched exactly.

        HNSW is for a scope that has the index for it, and more rows than are searched exactly.
        """
        if self._dimension not in self.indexed:
            return 0
        known, now = self._sizes.get((tenant, scope)), time.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        where = self._conditions(tenant, scope)
        fewest, table = where.value(float(self._exact_rows)), where.value(self.table)
        statement = f"""
            SELECT rows, (
                SELECT count(*) FROM (SELECT FROM {self.table} WHERE {where.text} LIMIT most + 1) counted
            ) > most AS large FROM (
                SELECT rows, CASE WHEN {fewest}::float = 0 THEN 0
                    ELSE greatest({fewest}::float, sqrt({_BREAK_EVEN} * rows)) END::bigint AS most
                FROM (SELECT greatest(reltuples, 0)::float AS rows FROM pg_class WHERE oid = {table}::text::regclass) whole
            ) bound"""  # noqa: S608
        async with self._database.connection(tenant) as connection:
            [row] = await connection.fetch(statement, *where.values)
        wider = self._ef_search * max(1.0, math.sqrt(row["rows"] / _WELL_LINKED))
        candidates = min(round(wider), _MOST_CANDIDATES) if row["large"] else 0
        self._sizes[tenant, scope] = (candidates, now + _FRESH)
        if len(self._sizes) > _SIZES:
            self._sizes.popitem(last=False)
        return candidates


class PgVector(PgVectors[Audience, VectorHit]):
    """`VectorIndex` on the table `vectors`, which `PgVectors` searches."""

    table = "vectors"
    indexed = frozenset({384, 768, 1024, 1536})

    async def upsert(self, entries: Sequence[VectorEntry], *, within: Transaction | None = None) -> None:
        if not entries:
            return
        for e in entries:
            for vector in (e.vector, *e.passages):
                self._stored_model.fit(vector)
        async with self._joined(reach_of(*(e.tenant for e in entries)), within) as connection:
            await self._stored_model.claim(connection)
            rows = [(e.id, e.tenant, e.owner, e.kind, e.family, to_halfvec(e.vector)) for e in entries]
            passages = ["{" + ",".join(f'"{to_halfvec(passage)}"' for passage in e.passages) + "}" for e in entries]
            columns = map(list, zip(*rows, strict=True))
            await connection.execute(_UPSERT, *columns, self._model, self._dimension, passages)

    async def delete(self, tenant: str, ids: Sequence[str], *, within: Transaction | None = None) -> bool:
        async with self._joined(tenant, within) as connection:
            await connection.execute("DELETE FROM vectors WHERE tenant = $1 AND item_id = ANY($2::uuid[])", tenant, list(ids))
        return True

    async def settle(self, tenant: str, ids: Sequence[str]) -> None:
        """What was written joined the items' transaction."""

    async def search(self, audience: Audience, vectors: Sequence[Vector], limit: int) -> list[list[VectorHit]]:
        await self._stored_model.expect(*vectors)
        found = await self.search_scope(audience.tenant, audience, [to_halfvec(vector) for vector in vectors], limit)
        # The scan yields rows nearly in order.
        return [sorted(hits, key=lambda hit: -hit.cosine) for hits in found]

    async def similarity(
        self, audience: Audience, vectors: Sequence[Vector], ids: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        await self._stored_model.expect(*vectors)
        given = [to_halfvec(vector) for vector in vectors]
        wanted = [(n, id) for n, of_vector in enumerate(ids, 1) for id in of_vector]
        async with self._database.connection(audience.tenant) as connection:
            numbers, named = [n for n, _ in wanted], [id for _, id in wanted]
            scope = (audience.tenant, list(audience.owners), list(audience.kinds))
            rows = await connection.fetch(_SIMILARITY, given, *scope, numbers, named)
        cosines: list[dict[str, float]] = [{} for _ in given]
        for row in rows:
            cosines[row["n"] - 1][str(row["item_id"])] = float(row["cosine"])
        return cosines

    async def count(self, tenant: str, owners: Sequence[str], prefix: str) -> int:
        async with self._database.connection(tenant) as connection:
            return int(await connection.fetchval(_OWNED, tenant, list(owners), prefix))

    async def check(self) -> None:
        await self._stored_model.check()

    async def scan(self, size: int) -> AsyncIterator[list[VectorEntry]]:
        last = _FIRST
        while True:
            async with self._database.connection(EVERY_TENANT) as connection:
                rows = await connection.fetch(_PAGE, last, size)
            if not rows:
                return
            yield [entry_from_row(row) for row in rows]
            last = rows[-1]["item_id"]

    async def clear(self) -> None:
        async with self._database.transaction(EVERY_TENANT) as connection:
            await connection.execute("DELETE FROM vectors", timeout=_CLEAR)
            await self._stored_model.forget(connection)
        self._sizes.clear()

    def _conditions(self, tenant: str, scope: Audience) -> Conditions:
        where = Conditions()
        where.add("tenant = {}", tenant)
        where.add("owner = ANY({}::text[])", list(scope.owners))
        where.add("kind = ANY({}::text[])", list(scope.kinds))
        return where

    async def _by_hnsw(
        self, connection: Connection, tenant: str, scope: Audience, vectors: Sequence[str], limit: int
    ) -> list[list[VectorHit]]:
        statement = hnsw_search(self._dimension)
        rows = await connection.fetch(statement, list(vectors), tenant, list(scope.owners), list(scope.kinds), limit)
        return hits_from_rows(rows, len(vectors))

    async def _exactly(
        self, connection: Connection, tenant: str, scope: Audience, vectors: Sequence[str], limit: int
    ) -> list[list[VectorHit]]:
        statement = exact_search(len(vectors))
        rows = await connection.fetch(statement, list(vectors), tenant, list(scope.owners), list(scope.kinds), limit)
        return hits_from_rows(rows, len(vectors))

    @asynccontextmanager
    async def _joined(self, tenant: Reach, within: Transaction | None) -> AsyncIterator[Connection]:
        if within is None:
            async with self._database.transaction(tenant) as connection:
                yield connection
        else:
            yield cast(Connection, within)
