"""Putting vectors of a backup back into the tables, so that no model has to make them again (O-122)."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from phronesis_postgres import Database

from ..constitution.keeping import NodeIndex
from ..constitution.texts import Facts
from .constitution_records import lock
from .embedding import Agreement
from .halves import received
from .vector_rows import written

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


class RestoringVectors:
    """Writes the vectors of a backup.

    Args:
        database: the schema.
        index: the index of the vectors.
        model: name of the service's model.
        dimension: numbers in its vectors.
    """

    def __init__(self, database: Database, index: NodeIndex, model: str, dimension: int) -> None:
        self._database = database
        self._index = index
        self._of = (model, dimension)
        self._agreement = Agreement(database, model, dimension)

    async def put(self, tenant: str, kept: Sequence[tuple[Facts, Mapping[str, Any]]]) -> None:
        """Store the vectors that fit their nodes' texts and the service's model; the others are made anew in time.

        Raises:
            EmbeddingMismatch: the vectors in the schema are of another model than the service's.
            Unavailable: the store does not answer.
        """
        fitting = [
            (facts, line)
            for facts, line in kept
            if facts.tier is not None and line["hash"] == facts.text_hash and (line["model"], line["dimension"]) == self._of
        ]
        async with self._database.transaction(tenant) as connection:
            await lock(connection, tenant)
            await self._agreement.claim(connection)
            await connection.executemany(_RECORD, [_record(tenant, facts, line) for facts, line in fitting])
            await connection.executemany(_VECTOR, [_vector(tenant, facts, line) for facts, line in fitting])
            ids = [facts.id for facts, _ in fitting]
            await self._index.note(connection, tenant, ids)
        await self._index.tell(tenant, ids)

    async def current(self, tenant: str, ids: Sequence[str]) -> int:
        """How many of these nodes have the vector of what they say."""
        async with self._database.connection(tenant) as connection:
            return int(await connection.fetchval(_CURRENT, tenant, list(ids)))


def _record(tenant: str, facts: Facts, line: Mapping[str, Any]) -> tuple[object, ...]:
    assert facts.tier is not None
    node = (tenant, facts.id, facts.type, facts.layer, int(facts.tier), facts.lifecycle, facts.title, facts.version)
    text = (facts.born, facts.changed_at, facts.body, facts.text_hash, facts.tokens)
    return (*node, *text, line["model"], line["dimension"], line["hash"], datetime.fromisoformat(line["at"]))


def _vector(tenant: str, facts: Facts, line: Mapping[str, Any]) -> tuple[object, ...]:
    numbers = written(received(base64.b64decode(line["numbers"])))
    return (tenant, facts.id, facts.type, facts.layer, facts.lifecycle, line["model"], line["dimension"], numbers)
