"""The vectors of constitutional nodes in Postgres: exact where few are chosen, HNSW with iterative scan where many are."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence

import numpy as np

from phronesis_contracts.constitution.maintenance import EmbeddingState
from phronesis_contracts.constitution.registry import Layer, Lifecycle, Tier
from phronesis_postgres import EVERY_TENANT, Connection, Database

from ..ports import Transaction
from ..values import Vector
from ..vectors.format import StoredModel, from_halfvec, to_halfvec
from ..vectors.pgvector import PREFER_HNSW
from .ports import LayerState, NodeFilter, NodeHit, NodeVector


class Conditions:
    """The conditions of a search, with their values; each condition stands only where it chooses something."""

    def __init__(self, tenant: str, model: str, dimension: int, chosen: NodeFilter) -> None:
        self.values: list[object] = []
        # The dimension as a number, for the planner to see which index it is of.
        parts = [f"tenant = {self.value(tenant)}", f"model = {self.value(model)}", f"dimension = {int(dimension)}"]
        if chosen.lifecycle is not None:
            parts.append(f"lifecycle = {self.value(chosen.lifecycle)}")
        for column, names in (("layer", chosen.layers), ("type", chosen.types), ("node_id", chosen.ids)):
            if names or (column == "node_id" and names is not None):
                parts.append(f"{column} = ANY({self.value(sorted(names or ()))}::text[])")
        if chosen.topic is not None:
            parts.append(f"topic = {self.value(chosen.topic)}")
        self.text = " AND ".join(parts)

    def value(self, given: object) -> str:
        """Hand over a value; how the statement names it."""
        self.values.append(given)
        return f"${len(self.values)}"

    def copy(self) -> Conditions:
        """The same, for a statement of its own."""
        made = object.__new__(Conditions)
        made.text, made.values = self.text, list(self.values)
        return made


_INDEXED = frozenset({384, 768, 1024, 1536, 3072})
"""Dimensions that the schema has an HNSW index for; any other is searched exactly."""
_FRESH = 60.0
"""Seconds that the size of a scope is believed. A wrong belief costs time, never a row."""
_SIZES = 10_000
_PAGE = 1_000

_HITS = """
    SELECT node_id, found.type, found.layer, 1 - distance AS cosine, changed_at FROM found
    JOIN constitution_nodes USING (tenant, node_id) ORDER BY distance, node_id"""
_COSINES = """
    SELECT node_id, 1 - (embedding <=> $3::text::halfvec) AS cosine FROM constitution_vectors
    WHERE tenant = $1 AND node_id = ANY($2::text[]) AND model = $4 AND dimension = $5"""
_STATE = """
    SELECT n.layer, count(v.node_id) AS vectors, count(*) FILTER (WHERE n.state = ANY($4::text[])) AS waiting
    FROM constitution_nodes n
    LEFT JOIN constitution_vectors v ON (v.tenant, v.node_id) = (n.tenant, n.node_id) AND (v.model, v.dimension) = ($2, $3)
    WHERE n.tenant = $1 GROUP BY n.layer"""
_POPULATING = """
    SELECT layer FROM constitution_nodes
    WHERE tenant = $1 AND state IN ('pending', 'failed') AND (tier <= $2 OR state = 'failed')
    UNION SELECT layer FROM constitution_untold JOIN constitution_nodes USING (tenant, node_id) WHERE tenant = $1"""


class PgNodeVectors:
    """`NodeIndex` on the table of vectors, and what any other index of them is made of.

    Args:
        database: the schema.
        model: name of the service's model.
        dimension: numbers in its vectors.
        exact_rows: scopes up to this many rows are searched exactly.
        ef_search: candidates that one step of the HNSW scan holds.
        max_scan: tuples that the iterative scan may visit before the exact search takes over.
    """

    def __init__(
        self, database: Database, model: str, dimension: int, *, exact_rows: int, ef_search: int, max_scan: int
    ) -> None:
        self._database = database
        self._of = (model, dimension)
        self.agreement = StoredModel(database, model, dimension)
        self._exact_rows = exact_rows
        self._settings = (str(ef_search), str(max_scan))
        self._sizes: OrderedDict[tuple[str, NodeFilter], tuple[bool, float]] = OrderedDict()

    async def nearest(self, tenant: str, vector: Vector, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        """See `NodeIndex`."""
        await self.asked(vector)
        where = Conditions(tenant, *self._of, chosen)
        hnsw = await self._large(tenant, chosen, where)
        async with self._database.connection(tenant) as connection:
            found = await self._hnsw(connection, vector, where, limit) if hnsw else None
        if found is None or len(found) < limit:  # the scan gave up: the scope may hold more, so every row is looked at
            async with self._database.connection(tenant) as connection:
                found = await self._exact(connection, vector, where, limit)
        return found

    async def cosines(self, tenant: str, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """See `NodeVectors`."""
        await self.asked(vector)
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_COSINES, tenant, list(ids), to_halfvec(vector), *self._of)
        return {row["node_id"]: float(row["cosine"]) for row in rows}

    async def scan(self, tenant: str, chosen: NodeFilter) -> AsyncIterator[NodeVector]:
        """See `NodeVectors`."""
        await self.agreement.expect()
        last = ""
        while True:
            where = Conditions(tenant, *self._of, chosen)
            after, most = where.value(last), where.value(_PAGE)
            statement = f"""
                SELECT node_id, type, layer, lifecycle, halfvec_send(embedding) AS numbers FROM constitution_vectors
                WHERE {where.text} AND node_id > {after} ORDER BY node_id LIMIT {most}"""  # noqa: S608
            async with self._database.connection(tenant) as connection:
                rows = await connection.fetch(statement, *where.values)
            for row in rows:
                kind = (row["node_id"], row["type"], Layer(row["layer"]))
                yield NodeVector(*kind, from_halfvec(row["numbers"]), Lifecycle(row["lifecycle"]))
            if len(rows) < _PAGE:
                return
            last = rows[-1]["node_id"]

    async def state(self, tenant: str) -> tuple[LayerState, ...]:
        """See `NodeVectors`."""
        waiting = [EmbeddingState.PENDING, EmbeddingState.FAILED]
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_STATE, tenant, *self._of, waiting)
        populating = await self.populating(tenant)
        counts = {row["layer"]: (int(row["vectors"]), int(row["waiting"])) for row in rows}
        return tuple(LayerState(layer, *counts.get(layer, (0, 0)), layer in populating) for layer in Layer)

    async def populating(self, tenant: str) -> frozenset[Layer]:
        """See `NodeVectors`."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_POPULATING, tenant, int(Tier.P2))
        return frozenset(Layer(row["layer"]) for row in rows)

    async def note(self, within: Transaction, tenant: str, ids: Sequence[str]) -> None:
        """See `NodeIndex`. What was written joined the records' transaction."""

    async def tell(self, tenant: str, ids: Sequence[str]) -> None:
        """See `NodeIndex`. What was written joined the records' transaction."""

    async def reconcile(self, tenant: str) -> tuple[int, int]:
        """See `NodeIndex`. The table is the index."""
        return 0, 0

    async def reindex(self, tenant: str) -> None:
        """See `NodeIndex`. The table is the index, and Postgres keeps the HNSW graph with it."""

    async def clear(self) -> None:
        """See `NodeIndex`. The table is the index."""

    async def warm(self) -> None:
        """Have the vectors, and the top of their index, in the database's memory (O-092). Raises `Unavailable`."""
        numbers = f"halfvec({self._of[1]})"
        statement = f"""
            SELECT node_id FROM constitution_vectors WHERE dimension = {self._of[1]}
            ORDER BY embedding::{numbers} <=> $1::text::{numbers} LIMIT 10"""  # noqa: S608
        asked = np.zeros(self._of[1], np.float32)
        asked[0] = 1
        async with self._database.connection(EVERY_TENANT) as connection:
            await connection.fetchval("SELECT count(embedding) FROM constitution_vectors")
            await connection.fetchrow(PREFER_HNSW, *self._settings)
            await connection.fetch(statement, to_halfvec(asked))

    async def asked(self, vector: Vector) -> None:
        """Raise `EmbeddingMismatch` where one cannot ask with this vector."""
        self.agreement.fit(vector)
        await self.agreement.expect()

    async def _hnsw(self, connection: Connection, vector: Vector, where: Conditions, limit: int) -> list[NodeHit]:
        await connection.fetchrow(PREFER_HNSW, *self._settings)
        numbers = f"halfvec({self._of[1]})"
        return await self._found(connection, f"embedding::{numbers} <=> {{asked}}::text::{numbers}", vector, where, limit)

    async def _exact(self, connection: Connection, vector: Vector, where: Conditions, limit: int) -> list[NodeHit]:
        # The sum keeps the planner from the HNSW index, whose filter comes after its limit.
        return await self._found(connection, "(embedding <=> {asked}::text::halfvec) + 0.0", vector, where, limit)

    async def _found(
        self, connection: Connection, measure: str, vector: Vector, where: Conditions, limit: int
    ) -> list[NodeHit]:
        where = where.copy()
        distance, most = measure.format(asked=where.value(to_halfvec(vector))), where.value(limit)
        statement = f"""
            WITH found AS MATERIALIZED (
                SELECT tenant, node_id, type, layer, {distance} AS distance FROM constitution_vectors
                WHERE {where.text} ORDER BY {distance} LIMIT {most}
            ) {_HITS}"""  # noqa: S608
        rows = await connection.fetch(statement, *where.values)
        return [
            NodeHit(row["node_id"], row["type"], Layer(row["layer"]), float(row["cosine"]), row["changed_at"]) for row in rows
        ]

    async def _large(self, tenant: str, chosen: NodeFilter, where: Conditions) -> bool:
        if self._of[1] not in _INDEXED or chosen.ids is not None:
            return False
        known, now = self._sizes.get((tenant, chosen)), time.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        counted = where.copy()
        most = counted.value(self._exact_rows + 1)
        statement = f"SELECT count(*) FROM (SELECT FROM constitution_vectors WHERE {where.text} LIMIT {most}) counted"  # noqa: S608
        async with self._database.connection(tenant) as connection:
            large = bool(await connection.fetchval(statement, *counted.values) > self._exact_rows)
        self._sizes[tenant, chosen] = (large, now + _FRESH)
        if len(self._sizes) > _SIZES:
            self._sizes.popitem(last=False)
        return large
