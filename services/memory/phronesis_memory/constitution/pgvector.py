"""The vectors of constitutional nodes in Postgres: exact where few are chosen, HNSW with iterative scan where many are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import numpy as np

from phronesis_contracts.constitution.maintenance import EmbeddingState
from phronesis_contracts.constitution.registry import Layer, Lifecycle, Tier
from phronesis_postgres import EVERY_TENANT, Connection

from ..ports import Transaction
from ..values import Vector
from ..vectors.format import from_halfvec, to_halfvec
from ..vectors.pgvector import Conditions, PgVectors
from .ports import LayerState, NodeFilter, NodeHit, NodeVector

_PAGE = 1_000

_HITS = """
    SELECT node_id, found.type, found.layer, 1 - distance AS cosine, changed_at FROM found
    JOIN constitution_nodes USING (tenant, node_id) ORDER BY distance, node_id"""
_COSINES = """
    SELECT node_id, 1 - (embedding <=> (SELECT $3::text::halfvec)) AS cosine FROM constitution_vectors
    WHERE tenant = $1 AND node_id = ANY($2::text[]) AND model = $4 AND dimension = $5"""
_SAMPLE = """
    SELECT halfvec_send(embedding) AS numbers, count(*) OVER () AS nodes FROM constitution_vectors
    WHERE tenant = $1 AND (model, dimension) = ($2, $3) AND lifecycle = $4 ORDER BY hashtext(node_id), node_id LIMIT $5"""
_STATE = """
    SELECT n.layer, count(v.node_id) AS vectors, count(*) FILTER (WHERE n.state = ANY($4::text[])) AS waiting
    FROM constitution_nodes n
    LEFT JOIN constitution_vectors v ON (v.tenant, v.node_id) = (n.tenant, n.node_id) AND (v.model, v.dimension) = ($2, $3)
    WHERE n.tenant = $1 GROUP BY n.layer"""
_POPULATING = """
    SELECT layer FROM constitution_nodes
    WHERE tenant = $1 AND state IN ('pending', 'failed') AND (tier <= $2 OR state = 'failed')
    UNION SELECT layer FROM constitution_untold JOIN constitution_nodes USING (tenant, node_id) WHERE tenant = $1"""


class PgNodeVectors(PgVectors[NodeFilter, NodeHit]):
    """The vectors of nodes, which always stand in Postgres; an index in another store is a subclass."""

    table = "constitution_vectors"
    indexed = frozenset({384, 768, 1024, 1536, 3072})

    async def nearest(self, tenant: str, vector: Vector, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        return await self.nearest_stored(tenant, vector, chosen, limit)

    async def nearest_stored(self, tenant: str, vector: Vector, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        """The same, whatever the index is, of the vectors that stand in Postgres."""
        await self._stored_model.expect(vector)
        search = self.search_scope if chosen.ids is None else self.exact_search
        [found] = await search(tenant, chosen, [to_halfvec(vector)], limit)
        return found

    async def note(self, within: Transaction, tenant: str, ids: Sequence[str]) -> None:
        """In the transaction that writes or removes vectors or their filters: write down what `settle` is to do."""

    async def settle(self, tenant: str, ids: Sequence[str]) -> None:
        """Make a search find what was noted of these nodes, after the commit, if the index answers soon; raises nothing."""

    async def settle_all(self, tenant: str) -> bool:
        """The same for whatever was noted of the tenant's nodes, by whichever process; whether it is done."""
        return True

    async def reconcile(self, tenant: str) -> tuple[int, int]:
        """Make the index what the schema says. Raises `Unavailable`; returns how many vectors it lacked, and had too many."""
        return 0, 0

    async def reindex(self, tenant: str) -> None:
        """Drop the tenant's part of the index and make it anew from the stored vectors. Raises `Unavailable`."""

    async def clear(self) -> None:
        """Forget every vector of every tenant in the index, and note that those in the schema are to be put there anew.

        Raises:
            Unavailable: the index does not answer; it may be done in part, and may be done again.
        """

    async def worded(self, tenant: str, question: str, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        where = Conditions()
        where.add("tenant = {}", tenant)
        _narrow(where, chosen)
        # The words of the question are read once, and not for each row. Without any, nothing matches.
        where.add("words @@ (SELECT plainto_tsquery('english', {}::text))", question)
        most = where.value(limit)
        statement = f"""
            SELECT node_id, type, layer, changed_at FROM constitution_nodes
            WHERE {where.text} ORDER BY changed_at DESC, node_id LIMIT {most}"""  # noqa: S608
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(statement, *where.values)
        return [NodeHit(row["node_id"], row["type"], Layer(row["layer"]), 0.0, row["changed_at"]) for row in rows]

    async def cosines(self, tenant: str, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        await self._stored_model.expect(vector)
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_COSINES, tenant, list(ids), to_halfvec(vector), self._model, self._dimension)
        return {row["node_id"]: float(row["cosine"]) for row in rows}

    async def sample(self, tenant: str, most: int) -> tuple[list[Vector], int]:
        await self._stored_model.expect()
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_SAMPLE, tenant, self._model, self._dimension, Lifecycle.ACTIVE, most)
        return [from_halfvec(row["numbers"]) for row in rows], int(rows[0]["nodes"]) if rows else 0

    async def scan(self, tenant: str, chosen: NodeFilter) -> AsyncIterator[NodeVector]:
        await self._stored_model.expect()
        last = ""
        while True:
            where = self._conditions(tenant, chosen)
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
        waiting = [EmbeddingState.PENDING, EmbeddingState.FAILED]
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_STATE, tenant, self._model, self._dimension, waiting)
        populating = await self.populating(tenant)
        counts = {row["layer"]: (int(row["vectors"]), int(row["waiting"])) for row in rows}
        return tuple(LayerState(layer, *counts.get(layer, (0, 0)), layer in populating) for layer in Layer)

    async def populating(self, tenant: str) -> frozenset[Layer]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_POPULATING, tenant, int(Tier.P2))
        return frozenset(Layer(row["layer"]) for row in rows)

    async def warm(self) -> None:
        """Have the vectors, and the top of their index, in the database's memory. Raises `Unavailable`."""
        numbers = f"halfvec({self._dimension})"
        statement = f"""
            SELECT node_id FROM constitution_vectors WHERE dimension = {self._dimension}
            ORDER BY embedding::{numbers} <=> $1::text::{numbers} LIMIT 10"""  # noqa: S608
        asked = np.zeros(self._dimension, np.float32)
        asked[0] = 1
        async with self._database.connection(EVERY_TENANT) as connection:
            await connection.fetchval("SELECT count(embedding) FROM constitution_vectors")
        async with self.by_hnsw(EVERY_TENANT) as connection:
            await connection.fetch(statement, to_halfvec(asked))

    def _conditions(self, tenant: str, scope: NodeFilter) -> Conditions:
        where = Conditions()
        where.add("tenant = {}", tenant)
        where.add("model = {}", self._model)
        # As a number, for the planner to see which index it is of.
        where.add(f"dimension = {int(self._dimension)}")
        _narrow(where, scope)
        return where

    async def _by_hnsw(
        self, connection: Connection, tenant: str, scope: NodeFilter, vectors: Sequence[str], limit: int
    ) -> list[list[NodeHit]]:
        numbers = f"halfvec({self._dimension})"
        measure = f"embedding::{numbers} <=> {{}}::text::{numbers}"
        return [await self._nearest(connection, measure, self._conditions(tenant, scope), vector, limit) for vector in vectors]

    async def _exactly(
        self, connection: Connection, tenant: str, scope: NodeFilter, vectors: Sequence[str], limit: int
    ) -> list[list[NodeHit]]:
        # The sum keeps the planner from the HNSW index, whose filter comes after its limit. The selection has the numbers of
        # the question read once, and not for each row: the plan of a statement that is run again and again knows no values.
        measure = "(embedding <=> (SELECT {}::text::halfvec)) + 0.0"
        return [await self._nearest(connection, measure, self._conditions(tenant, scope), vector, limit) for vector in vectors]

    async def _nearest(self, connection: Connection, measure: str, where: Conditions, vector: str, limit: int) -> list[NodeHit]:
        distance, most = measure.format(where.value(vector)), where.value(limit)
        statement = f"""
            WITH found AS MATERIALIZED (
                SELECT tenant, node_id, type, layer, {distance} AS distance FROM constitution_vectors
                WHERE {where.text} ORDER BY {distance} LIMIT {most}
            ) {_HITS}"""  # noqa: S608
        return [
            NodeHit(row["node_id"], row["type"], Layer(row["layer"]), float(row["cosine"]), row["changed_at"])
            for row in await connection.fetch(statement, *where.values)
        ]


def _narrow(where: Conditions, chosen: NodeFilter) -> None:
    """Add the conditions of a filter; both tables have its columns."""
    if chosen.lifecycle is not None:
        where.add("lifecycle = {}", chosen.lifecycle)
    for column, names in (("layer", chosen.layers), ("type", chosen.types), ("node_id", chosen.ids)):
        if names or (column == "node_id" and names is not None):
            where.add(f"{column} = ANY({{}}::text[])", sorted(names or ()))
    if chosen.topic is not None:
        where.add("topic = {}", chosen.topic)
