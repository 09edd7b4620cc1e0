"""What the tables say of the nodes' vectors: records, counts, and what a backup takes with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from phronesis_contracts.constitution.keeping import EmbeddingCount, EmbeddingRecord, EmbeddingState
from phronesis_contracts.constitution.kinds import Layer, Tier
from phronesis_contracts.constitution.registry import TYPES
from phronesis_postgres import Database

_PAGE = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_LATEST = "SELECT max(changed_at) FROM constitution_nodes WHERE tenant = $1 AND tier <= $2"
_VERSIONS = "SELECT node_id, version FROM constitution_nodes WHERE tenant = $1 AND node_id = ANY($2::text[])"
_RECORDS = """
    SELECT node_id, layer, type, state, model, dimension, embedded_hash, tokens, embedded_at, problem
    FROM constitution_nodes WHERE tenant = $1 AND node_id = ANY($2::text[]) ORDER BY node_id"""
_COUNTS = """
    SELECT n.type, n.tier, n.state, v.dimension, count(*) AS nodes, sum(n.tokens) AS tokens
    FROM constitution_nodes n LEFT JOIN constitution_vectors v USING (tenant, node_id)
    WHERE n.tenant = $1 GROUP BY n.type, n.tier, n.state, v.dimension"""
_IDS = """
    SELECT node_id FROM constitution_nodes WHERE tenant = $1 AND layer = ANY($2::text[]) ORDER BY node_id"""
_OUTCOME = """
    SELECT count(*) FILTER (WHERE state = 'current' AND embedded_at >= $4) AS embedded,
        count(*) FILTER (WHERE state = 'current' AND embedded_at < $4) AS unchanged,
        count(*) FILTER (WHERE state = 'skipped') AS skipped,
        count(*) FILTER (WHERE state = 'failed') AS failed,
        count(*) FILTER (WHERE state = 'pending' OR due IS NOT NULL AND state = 'current') AS waiting
    FROM constitution_nodes
    WHERE tenant = $1 AND layer = ANY($2::text[]) AND ($3::text[] IS NULL OR node_id = ANY($3))"""
_TEXTS = "SELECT node_id, body FROM constitution_nodes WHERE tenant = $1 AND node_id = ANY($2::text[]) AND body <> ''"
_KEPT = """
    SELECT node_id, n.model, n.dimension, embedded_hash, embedded_at, halfvec_send(embedding) AS numbers
    FROM constitution_vectors v JOIN constitution_nodes n USING (tenant, node_id)
    WHERE tenant = $1 AND node_id > $2 AND embedded_hash IS NOT NULL ORDER BY node_id LIMIT $3"""
_SPOT = """
    SELECT node_id, dimension, l2_norm(embedding) AS norm, halfvec_send(embedding) AS numbers
    FROM (SELECT node_id FROM constitution_vectors WHERE tenant = $1 ORDER BY random() LIMIT $2) drawn
    JOIN constitution_vectors USING (node_id) WHERE tenant = $1"""


class NodeStanding:
    """Reads the records."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def latest(self, tenant: str) -> datetime:
        """When the node changed that changed last, of those that are embedded at once and that memory knows of."""
        async with self._database.connection(tenant) as connection:
            latest: datetime | None = await connection.fetchval(_LATEST, tenant, int(Tier.P2))
        return latest or _EPOCH

    async def versions(self, tenant: str, ids: Sequence[str]) -> dict[str, int]:
        """The versions that records were made from, by id."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_VERSIONS, tenant, list(ids))
        return {row["node_id"]: row["version"] for row in rows}

    async def records(self, tenant: str, ids: Sequence[str]) -> tuple[EmbeddingRecord, ...]:
        """Those of the records that there are, by id."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_RECORDS, tenant, list(ids))
        return tuple(
            EmbeddingRecord(
                node_id=row["node_id"],
                layer=Layer(row["layer"]),
                type=row["type"],
                state=EmbeddingState(row["state"]),
                model=row["model"],
                dimension=row["dimension"],
                text_hash=row["embedded_hash"],
                tokens=row["tokens"],
                updated_at=row["embedded_at"],
                problem=row["problem"],
            )
            for row in rows
        )

    async def counts(self, tenant: str) -> tuple[tuple[EmbeddingCount, ...], int]:
        """Every type of which there are records, in the order of the registry, and the tokens of their texts."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_COUNTS, tenant)
        counts = [_count(name, mine) for name in TYPES if (mine := [row for row in rows if row["type"] == name])]
        return tuple(counts), sum(int(row["tokens"]) for row in rows)

    async def ids(self, tenant: str, layers: Sequence[Layer] = tuple(Layer)) -> list[str]:
        """The nodes of these layers that have records."""
        async with self._database.connection(tenant) as connection:
            return [row["node_id"] for row in await connection.fetch(_IDS, tenant, list(layers))]

    async def outcome(self, tenant: str, layers: Sequence[Layer], ids: Sequence[str] | None, since: datetime) -> dict[str, int]:
        """How many nodes were embedded since then, were not, are skipped, have failed, and wait."""
        async with self._database.connection(tenant) as connection:
            row = await connection.fetchrow(_OUTCOME, tenant, list(layers), None if ids is None else list(ids), since)
        assert row is not None
        return dict(row)

    async def texts(self, tenant: str, ids: Sequence[str]) -> dict[str, str]:
        """See `Texts`."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_TEXTS, tenant, list(ids))
        return {row["node_id"]: row["body"] for row in rows}

    async def kept(self, tenant: str) -> AsyncIterator[list[dict[str, Any]]]:
        """Every vector, with what it is the vector of, in pages in the order of ids."""
        last = ""
        while True:
            async with self._database.connection(tenant) as connection:
                rows = await connection.fetch(_KEPT, tenant, last, _PAGE)
            if not rows:
                return
            yield [dict(row) for row in rows]
            last = rows[-1]["node_id"]

    async def spot(self, tenant: str, most: int) -> list[dict[str, Any]]:
        """Vectors of some nodes, at random, with their norms."""
        async with self._database.connection(tenant) as connection:
            return [dict(row) for row in await connection.fetch(_SPOT, tenant, most)]


def _count(name: str, rows: Sequence[Any]) -> EmbeddingCount:
    states: dict[str, int] = {}
    dimensions: dict[str, int] = {}
    for row in rows:
        states[row["state"]] = states.get(row["state"], 0) + int(row["nodes"])
        if row["dimension"] is not None:
            dimensions[str(row["dimension"])] = dimensions.get(str(row["dimension"]), 0) + int(row["nodes"])
    kind = TYPES[name]
    return EmbeddingCount(type=name, layer=kind.layer, tier=Tier(rows[0]["tier"]).name, states=states, dimensions=dimensions)
