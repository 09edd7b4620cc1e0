"""The records of constitutional nodes in Postgres: written, read, counted, restored from a backup, and audited."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg

from phronesis_bus import audit_entry
from phronesis_contracts import Principal
from phronesis_contracts.constitution.maintenance import EmbeddingCount, EmbeddingRecord, EmbeddingState
from phronesis_contracts.constitution.registry import TYPES, Layer, Tier
from phronesis_contracts.constitution.writes import NodeNews
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news

from ..vectors.format import StoredModel, from_halfvec, to_halfvec
from . import history
from .nodes import KnownRecord, NodeSnapshot, RecordState, decide_state, is_older
from .pgvector import PgNodeVectors

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
# Locked, so that a node which is being taken from the queue meanwhile is not put back on it, and embedded twice.
_KNOWN = """
    SELECT n.node_id, born, version, text_hash, state, due, attempts, problem,
        CASE WHEN v.node_id IS NOT NULL AND (n.model, n.dimension) = ($3, $4) THEN embedded_hash END AS embedded_hash
    FROM constitution_nodes n LEFT JOIN constitution_vectors v USING (tenant, node_id)
    WHERE n.tenant = $1 AND n.node_id = ANY($2::text[]) ORDER BY n.node_id FOR NO KEY UPDATE OF n"""
_PUT = """
    INSERT INTO constitution_nodes (tenant, node_id, type, layer, tier, lifecycle, title, version, born, changed_at, body,
        text_hash, tokens, state, due, attempts, problem)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
    ON CONFLICT (tenant, node_id) DO UPDATE SET type = excluded.type, layer = excluded.layer, tier = excluded.tier,
        lifecycle = excluded.lifecycle, title = excluded.title, version = excluded.version, born = excluded.born,
        changed_at = excluded.changed_at, body = excluded.body, text_hash = excluded.text_hash, tokens = excluded.tokens,
        state = excluded.state, due = excluded.due, attempts = excluded.attempts, problem = excluded.problem"""
# A change of the filters alone; a row that is right is not touched, so that no index is written.
_FILTERS = """
    UPDATE constitution_vectors v SET type = n.type, layer = n.layer, lifecycle = n.lifecycle, topic = n.topic
    FROM constitution_nodes n
    WHERE n.tenant = $1 AND n.node_id = ANY($2::text[]) AND (v.tenant, v.node_id) = (n.tenant, n.node_id)
        AND (v.type, v.layer, v.lifecycle, v.topic) IS DISTINCT FROM (n.type, n.layer, n.lifecycle, n.topic)
    RETURNING v.node_id"""
_EMPTIED = "DELETE FROM constitution_vectors WHERE tenant = $1 AND node_id = ANY($2::text[]) RETURNING node_id"
_FORGET_EMPTIED = """
    UPDATE constitution_nodes SET model = NULL, dimension = NULL, embedded_hash = NULL, embedded_at = NULL
    WHERE tenant = $1 AND node_id = ANY($2::text[])"""
_REMOVE = "DELETE FROM constitution_nodes WHERE tenant = $1 AND node_id = ANY($2::text[]) RETURNING node_id"
_ASSIGN = """
    UPDATE constitution_nodes n SET topic = given.topic FROM unnest($2::text[], $3::text[]) AS given (id, topic)
    WHERE tenant = $1 AND node_id = given.id AND n.topic IS DISTINCT FROM given.topic"""


async def lock_records(connection: Connection, tenant: str) -> None:
    """Let no other transaction write this tenant's records until this one ends."""
    await connection.execute(_LOCK, f"memory/constitution/{tenant}")


class NodeRecords:
    """Writes the records, with the history and what an outside index has to be told, in one transaction."""

    def __init__(self, database: Database, index: PgNodeVectors, model: str, dimension: int) -> None:
        self._database, self._index = database, index
        self._model, self._dimension = model, dimension

    async def put(
        self,
        tenant: str,
        read: Sequence[NodeSnapshot],
        news: Mapping[str, Sequence[NodeNews]],
        actor: str,
        now: datetime,
        *,
        at_once: bool = False,
        force: bool = False,
        trusted: bool = False,
    ) -> list[str]:
        """Make records of what was read; what is older than a record changes nothing.

        Args:
            news: what was announced of each, by id.
            trusted: what was read is how it is, whatever its version: the graph was restored.

        Returns:
            The ids of which the index was noted something.
        """
        async with self._database.transaction(tenant) as connection:
            await lock_records(connection, tenant)
            ids = [facts.id for facts in read]
            rows = await connection.fetch(_KNOWN, tenant, ids, self._model, self._dimension)
            known = {row["node_id"]: _known_from_row(row) for row in rows}
            fresh = [facts for facts in read if trusted or not is_older(facts, known.get(facts.id))]
            await history.write_versions(connection, tenant, fresh, news, actor, now)
            kept = [facts for facts in fresh if facts.tier is not None]
            states = {facts.id: decide_state(facts, known.get(facts.id), now, at_once=at_once, force=force) for facts in kept}
            await connection.executemany(_PUT, [_to_row(tenant, facts, states[facts.id]) for facts in kept])
            return await self._refilter(connection, tenant, kept)

    async def remove(
        self, tenant: str, ids: Sequence[str], news: Mapping[str, Sequence[NodeNews]], actor: str, now: datetime
    ) -> list[str]:
        """Forget nodes that are gone, with their vectors and the values in their history; the ids of those there were."""
        async with self._database.transaction(tenant) as connection:
            await lock_records(connection, tenant)
            rows = await connection.fetch(_REMOVE, tenant, list(ids))
            gone = [row["node_id"] for row in rows]
            await history.erase_versions(connection, tenant, ids, news, actor, now)
            await self._index.note(connection, tenant, gone)
        return gone

    async def assign(self, tenant: str, topics: Mapping[str, str | None]) -> list[str]:
        """The ids of which the index was noted something."""
        async with self._database.transaction(tenant) as connection:
            await lock_records(connection, tenant)
            await connection.execute(_ASSIGN, tenant, list(topics), list(topics.values()))
            return await self._noted(connection, tenant, await connection.fetch(_FILTERS, tenant, list(topics)))

    async def _refilter(self, connection: Connection, tenant: str, kept: Sequence[NodeSnapshot]) -> list[str]:
        empty = [facts.id for facts in kept if not facts.body]
        rows = await connection.fetch(_FILTERS, tenant, [facts.id for facts in kept])
        if empty:
            rows += await connection.fetch(_EMPTIED, tenant, empty)
            await connection.execute(_FORGET_EMPTIED, tenant, empty)
        return await self._noted(connection, tenant, rows)

    async def _noted(self, connection: Connection, tenant: str, rows: Sequence[asyncpg.Record]) -> list[str]:
        ids = [row["node_id"] for row in rows]
        await self._index.note(connection, tenant, ids)
        return ids


def _known_from_row(row: asyncpg.Record) -> KnownRecord:
    return KnownRecord(
        row["born"],
        row["version"],
        row["text_hash"],
        EmbeddingState(row["state"]),
        row["due"],
        row["attempts"],
        row["problem"],
        row["embedded_hash"],
    )


def _to_row(tenant: str, facts: NodeSnapshot, state: RecordState) -> tuple[object, ...]:
    assert facts.tier is not None
    return (
        tenant,
        facts.id,
        facts.type,
        facts.layer,
        int(facts.tier),
        facts.lifecycle,
        facts.title,
        facts.version,
        facts.born,
        facts.changed_at,
        facts.body,
        facts.text_hash,
        facts.tokens,
        state.state,
        state.due,
        state.attempts,
        state.problem,
    )


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


class RecordReader:
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
        counts = [_embedding_count(name, mine) for name in TYPES if (mine := [row for row in rows if row["type"] == name])]
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


def _embedding_count(name: str, rows: Sequence[Any]) -> EmbeddingCount:
    states: dict[str, int] = {}
    dimensions: dict[str, int] = {}
    for row in rows:
        states[row["state"]] = states.get(row["state"], 0) + int(row["nodes"])
        if row["dimension"] is not None:
            dimensions[str(row["dimension"])] = dimensions.get(str(row["dimension"]), 0) + int(row["nodes"])
    kind = TYPES[name]
    return EmbeddingCount(type=name, layer=kind.layer, tier=Tier(rows[0]["tier"]).name, states=states, dimensions=dimensions)


# A node that there is keeps its version, so that news of the restore is not taken for old.
_RECORD = """
    INSERT INTO constitution_nodes (tenant, node_id, type, layer, tier, lifecycle, title, version, born, changed_at, body,
        text_hash, tokens, state, model, dimension, embedded_hash, embedded_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'current', $14, $15, $16, $17)
    ON CONFLICT (tenant, node_id) DO UPDATE SET state = 'current', due = NULL, attempts = 0, problem = NULL,
        model = excluded.model, dimension = excluded.dimension, embedded_hash = excluded.embedded_hash,
        embedded_at = excluded.embedded_at, body = excluded.body, text_hash = excluded.text_hash, tokens = excluded.tokens"""
_VECTOR = """
    INSERT INTO constitution_vectors (tenant, node_id, type, layer, lifecycle, model, dimension, embedding)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::halfvec)
    ON CONFLICT (tenant, node_id) DO UPDATE SET model = excluded.model, dimension = excluded.dimension,
        embedding = excluded.embedding"""
_CURRENT = """
    SELECT count(*) FROM constitution_nodes WHERE tenant = $1 AND node_id = ANY($2::text[]) AND state = 'current'"""


class VectorRestore:
    """Writes the vectors of a backup."""

    def __init__(self, database: Database, index: PgNodeVectors, model: str, dimension: int) -> None:
        self._database, self._index = database, index
        self._of = (model, dimension)
        self._agreement = StoredModel(database, model, dimension)

    async def put(self, tenant: str, kept: Sequence[tuple[NodeSnapshot, Mapping[str, Any]]]) -> None:
        """Store vectors that fit their texts; others are made anew. Raises `EmbeddingMismatch`, `Unavailable`."""
        fitting = [
            (facts, line)
            for facts, line in kept
            if facts.tier is not None and line["hash"] == facts.text_hash and (line["model"], line["dimension"]) == self._of
        ]
        async with self._database.transaction(tenant) as connection:
            await lock_records(connection, tenant)
            await self._agreement.claim(connection)
            await connection.executemany(_RECORD, [_record_row(tenant, facts, line) for facts, line in fitting])
            await connection.executemany(_VECTOR, [_vector_row(tenant, facts, line) for facts, line in fitting])
            ids = [facts.id for facts, _ in fitting]
            await self._index.note(connection, tenant, ids)
        await self._index.settle(tenant, ids)

    async def current(self, tenant: str, ids: Sequence[str]) -> int:
        """How many of these nodes have the vector of what they say."""
        async with self._database.connection(tenant) as connection:
            return int(await connection.fetchval(_CURRENT, tenant, list(ids)))


def _record_row(tenant: str, facts: NodeSnapshot, line: Mapping[str, Any]) -> tuple[object, ...]:
    assert facts.tier is not None
    node = (tenant, facts.id, facts.type, facts.layer, int(facts.tier), facts.lifecycle, facts.title, facts.version)
    text = (facts.born, facts.changed_at, facts.body, facts.text_hash, facts.tokens)
    return (*node, *text, line["model"], line["dimension"], line["hash"], datetime.fromisoformat(line["at"]))


def _vector_row(tenant: str, facts: NodeSnapshot, line: Mapping[str, Any]) -> tuple[object, ...]:
    numbers = to_halfvec(from_halfvec(base64.b64decode(line["numbers"])))
    return (tenant, facts.id, facts.type, facts.layer, facts.lifecycle, line["model"], line["dimension"], numbers)


SERVICE = "memory"


class VectorAudit:
    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database, self._wake = database, wake

    async def enter(self, who: Principal, action: str, arguments: dict[str, Any]) -> None:
        """Enter that `who` did something. Raises `Unavailable`."""
        async with self._database.transaction(who.tenant) as connection:
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], audit_entry(who, action, arguments))
        self._wake()
