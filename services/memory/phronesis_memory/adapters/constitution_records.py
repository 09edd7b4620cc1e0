"""The tables of the constitutional nodes' records: what is written when a node was read, and when it is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import asyncpg

from phronesis_contracts.constitution.keeping import EmbeddingState
from phronesis_contracts.constitution.writes import NodeNews
from phronesis_postgres import Connection, Database

from ..constitution.deciding import Known, Standing, decided, is_older
from ..constitution.keeping import NodeIndex
from ..constitution.texts import Facts
from . import constitution_history as history

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_KNOWN = """
    SELECT n.node_id, born, version, text_hash, state, due, attempts, problem,
        CASE WHEN v.node_id IS NOT NULL AND (n.model, n.dimension) = ($3, $4) THEN embedded_hash END AS embedded_hash
    FROM constitution_nodes n LEFT JOIN constitution_vectors v USING (tenant, node_id)
    WHERE n.tenant = $1 AND n.node_id = ANY($2::text[])"""
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


async def lock(connection: Connection, tenant: str) -> None:
    """Let no other transaction write this tenant's records until this one ends."""
    await connection.execute(_LOCK, f"memory/constitution/{tenant}")


class NodeRecords:
    """Writes the records, with the history and what an outside index has to be told, in one transaction.

    Args:
        database: the schema.
        index: the index of the vectors.
        model: name of the service's model.
        dimension: numbers in its vectors.
    """

    def __init__(self, database: Database, index: NodeIndex, model: str, dimension: int) -> None:
        self._database = database
        self._index = index
        self._model = model
        self._dimension = dimension

    async def put(
        self,
        tenant: str,
        read: Sequence[Facts],
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
            tenant: whose nodes they are.
            read: the nodes, one of each id.
            news: what was announced of each, by id.
            actor: who changed them; empty where nobody said.
            now: the time.
            at_once: embed also those that would wait for the night.
            force: embed also those whose text is the same.
            trusted: what was read is how it is, whatever its version: the graph was restored.

        Returns:
            The ids of which the index was noted something.
        """
        async with self._database.transaction(tenant) as connection:
            await lock(connection, tenant)
            ids = [facts.id for facts in read]
            rows = await connection.fetch(_KNOWN, tenant, ids, self._model, self._dimension)
            known = {row["node_id"]: _known(row) for row in rows}
            fresh = [facts for facts in read if trusted or not is_older(facts, known.get(facts.id))]
            await history.write(connection, tenant, fresh, news, actor, now)
            kept = [facts for facts in fresh if facts.tier is not None]
            standing = {facts.id: decided(facts, known.get(facts.id), now, at_once=at_once, force=force) for facts in kept}
            await connection.executemany(_PUT, [_row(tenant, facts, standing[facts.id]) for facts in kept])
            return await self._refilter(connection, tenant, kept)

    async def remove(
        self, tenant: str, ids: Sequence[str], news: Mapping[str, Sequence[NodeNews]], actor: str, now: datetime
    ) -> list[str]:
        """Forget nodes that are gone, with their vectors and the values in their history; the ids of those there were."""
        async with self._database.transaction(tenant) as connection:
            await lock(connection, tenant)
            rows = await connection.fetch(_REMOVE, tenant, list(ids))
            gone = [row["node_id"] for row in rows]
            await history.erase(connection, tenant, ids, news, actor, now)
            await self._index.note(connection, tenant, gone)
        return gone

    async def assign(self, tenant: str, topics: Mapping[str, str | None]) -> list[str]:
        """See `NodeVectors`; the ids of which the index was noted something."""
        async with self._database.transaction(tenant) as connection:
            await lock(connection, tenant)
            await connection.execute(_ASSIGN, tenant, list(topics), list(topics.values()))
            return await self._noted(connection, tenant, await connection.fetch(_FILTERS, tenant, list(topics)))

    async def _refilter(self, connection: Connection, tenant: str, kept: Sequence[Facts]) -> list[str]:
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


def _known(row: asyncpg.Record) -> Known:
    return Known(
        row["born"],
        row["version"],
        row["text_hash"],
        EmbeddingState(row["state"]),
        row["due"],
        row["attempts"],
        row["problem"],
        row["embedded_hash"],
    )


def _row(tenant: str, facts: Facts, standing: Standing) -> tuple[object, ...]:
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
        standing.state,
        standing.due,
        standing.attempts,
        standing.problem,
    )
