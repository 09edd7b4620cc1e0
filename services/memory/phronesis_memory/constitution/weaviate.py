"""The vectors of constitutional nodes in Weaviate: what the tables note is applied after their commit, or by a sweep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from weaviate import WeaviateAsyncClient
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter
from weaviate.collections.classes.filters import FilterReturn

from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_postgres import EVERY_TENANT, Connection, Database

from ..ports import Transaction
from ..values import Vector
from ..vectors.changes import Changes, ChangeTable
from ..vectors.format import from_halfvec, round_half
from ..vectors.sync import IndexSync
from ..vectors.weaviate_collections import NODES, Object, fetch_objects, insert, nearest_objects, remove_named
from ..vectors.weaviate_index import APPLY, ASK, Weaviate
from .pgvector import PgNodeVectors
from .ports import NodeFilter, NodeHit

_WRITE = 60.0
"""Seconds of what nobody else waits for."""
_PAGE = 1_000
_CHANGED_AT = """
    SELECT node_id, changed_at FROM constitution_nodes WHERE tenant = $1 AND node_id = ANY($2::text[])"""
_IDS = "SELECT node_id FROM constitution_vectors WHERE tenant = $1 AND (model, dimension) = ($2, $3)"
_NOTE = """
    INSERT INTO constitution_untold (tenant, node_id) SELECT $1, id FROM unnest($2::text[]) AS id ORDER BY id
    ON CONFLICT (tenant, node_id) DO UPDATE SET due = now()"""
_NOTE_ALL = """
    INSERT INTO constitution_untold (tenant, node_id)
    SELECT tenant, node_id FROM constitution_vectors WHERE $1::text IS NULL OR tenant = $1 ORDER BY tenant, node_id
    ON CONFLICT (tenant, node_id) DO UPDATE SET due = now()"""
# The vector is what it is when its row is locked here: whoever changes it next waits for that lock, and notes it anew.
_CHANGES = """
    SELECT c.tenant, c.node_id, v.type, v.layer, v.lifecycle, v.topic, halfvec_send(v.embedding) AS numbers
    FROM constitution_untold c LEFT JOIN constitution_vectors v USING (tenant, node_id)"""


@dataclass(frozen=True)
class NodeEntry:
    """A node's vector with its filters."""

    id: str
    type: str
    layer: Layer
    lifecycle: Lifecycle
    topic: str | None
    vector: Vector


class NodeChanges(ChangeTable[NodeEntry]):
    """The table `constitution_untold`: which nodes changed. Their vectors are read when they are applied."""

    def __init__(self) -> None:
        super().__init__("constitution_untold", "node_id", "text", _CHANGES)

    def entry(self, row: Any) -> NodeEntry | None:
        if row["numbers"] is None:
            return None
        kind = (row["node_id"], row["type"], Layer(row["layer"]), Lifecycle(row["lifecycle"]))
        return NodeEntry(*kind, row["topic"], from_halfvec(row["numbers"]))

    async def note(self, connection: Connection, tenant: str, ids: Sequence[str]) -> None:
        """Write down that the index is to hold of these nodes what the table of vectors says then."""
        if ids:
            await connection.execute(_NOTE, tenant, list(ids))

    async def note_all(self, connection: Connection, tenant: str | None) -> None:
        """The same of every node with a vector, of one tenant or of all."""
        await connection.execute(_NOTE_ALL, tenant)


class WeaviateNodeVectors(PgNodeVectors):
    """The index of nodes in their collection, a tenant of it for each of ours; the vectors stand in the schema, too."""

    def __init__(self, weaviate: Weaviate, database: Database, model: str, dimension: int, **search: int) -> None:
        super().__init__(database, model, dimension, **search)
        self._weaviate = weaviate
        self._changes = NodeChanges()
        self._sync = IndexSync(database, self._apply, self._changes)

    @asynccontextmanager
    async def sweeping(self) -> AsyncIterator[None]:
        """For the length of a block, apply what is left, whoever left it."""
        async with self._sync.sweeping():
            yield

    async def nearest(self, tenant: str, vector: Vector, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        await self._stored_model.expect(vector)
        if chosen.ids is not None and not chosen.ids:
            return []
        async with self._weaviate.client(ASK) as client:
            read = ("externalId", "type", "layer")
            found = await nearest_objects(client, NODES, tenant, vector, limit, _to_filter(chosen), read)
        return await self._hits(tenant, found)

    async def note(self, within: Transaction, tenant: str, ids: Sequence[str]) -> None:
        await self._changes.note(cast(Connection, within), tenant, ids)

    async def settle(self, tenant: str, ids: Sequence[str]) -> None:
        await self._sync.settle(tenant, ids)

    async def settle_all(self, tenant: str) -> bool:
        return await self._sync.settle_all(tenant)

    async def reconcile(self, tenant: str) -> tuple[int, int]:
        await self._sync.drain()
        held = await self._held(tenant)
        async with self._database.transaction(tenant) as connection:
            wanted = {row["node_id"] for row in await connection.fetch(_IDS, tenant, self._model, self._dimension)}
            lacking, orphans = sorted(wanted - held), sorted(held - wanted)
            await self._changes.note(connection, tenant, [*lacking, *orphans])
        await self._sync.drain()
        return len(lacking), len(orphans)

    async def reindex(self, tenant: str) -> None:
        async with self._database.transaction(tenant) as connection:
            await self._changes.note_all(connection, tenant)
            async with self._weaviate.client(_WRITE) as client:
                await client.collections.use(NODES).tenants.remove([tenant])
        await self._sync.drain()

    async def clear(self) -> None:
        async with self._database.transaction(EVERY_TENANT) as connection:
            await self._changes.note_all(connection, None)
            async with self._weaviate.client(_WRITE) as client:
                await client.collections.delete(NODES)
        async with self._weaviate.client(_WRITE) as client:
            await self._weaviate.ensure(client)

    async def _hits(self, tenant: str, objects: Sequence[Any]) -> list[NodeHit]:
        ids = [one.properties["externalId"] for one in objects]
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_CHANGED_AT, tenant, ids)
        changed = {row["node_id"]: row["changed_at"] for row in rows}
        # A node that is being written has two objects for a moment, and the nearer one counts.
        hits = {
            id: NodeHit(id, one.properties["type"], Layer(one.properties["layer"]), 1.0 - one.metadata.distance, changed[id])
            for id, one in zip(reversed(ids), reversed(objects), strict=True)
            if id in changed  # one that is gone, and that the index is about to be told of
        }
        return sorted(hits.values(), key=lambda hit: (-hit.cosine, hit.id))

    async def _held(self, tenant: str) -> set[str]:
        held: set[str] = set()
        last = None
        while True:
            async with self._weaviate.client(ASK) as client:
                how = {"limit": _PAGE, "after": last, "return_properties": ["externalId"]}
                page = await fetch_objects(client, NODES, tenant, **how)
            if not page:
                return held
            held |= {str(one.properties["externalId"]) for one in page}
            last = page[-1].uuid

    async def _apply(self, due: Mapping[str, Changes[NodeEntry]]) -> dict[str, list[str]]:
        return await self._weaviate.apply(due, self._write, APPLY)

    async def _write(self, client: WeaviateAsyncClient, tenant: str, changes: Changes[NodeEntry]) -> list[str]:
        objects = {str(uuid4()): entry for entry in changes.entries if entry.vector.size == self._dimension}
        sizes = [entry.vector.size for entry in objects.values()]
        failed = await insert(client, NODES, tenant, [_to_object(uuid, entry) for uuid, entry in objects.items()], sizes)
        # The former objects go last, so that a search meanwhile finds each node; by name, also those put there by hand.
        ids = [*(entry.id for entry in changes.entries), *changes.gone]
        await remove_named(client, NODES, tenant, "externalId", ids, but=list(objects))
        return [objects[uuid].id for uuid in failed]


def _to_object(uuid: str, entry: NodeEntry) -> Object:
    properties = {"externalId": entry.id, "type": entry.type, "layer": str(entry.layer), "lifecycle": str(entry.lifecycle)}
    if entry.topic is not None:
        properties["topic"] = entry.topic
    return DataObject(properties=properties, uuid=uuid, vector=round_half(entry.vector).tolist())


def _to_filter(chosen: NodeFilter) -> FilterReturn:
    # There is always one: a search without any goes by HNSW however few nodes there are, and may miss some.
    lifecycles = list(Lifecycle) if chosen.lifecycle is None else [chosen.lifecycle]
    named = (("lifecycle", lifecycles), ("layer", chosen.layers), ("type", chosen.types), ("externalId", chosen.ids or ()))
    parts = [Filter.by_property(name).contains_any(sorted(map(str, some))) for name, some in named if some]
    if chosen.topic is not None:
        parts.append(Filter.by_property("topic").equal(chosen.topic))
    return Filter.all_of(parts)
