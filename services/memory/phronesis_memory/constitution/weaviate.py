"""The vectors of constitutional nodes in Weaviate: what the tables note is applied after their commit, or by a sweep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter, MetadataQuery
from weaviate.collections.classes.filters import FilterReturn

from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_postgres import EVERY_TENANT, Connection, Database

from ..ports import Transaction
from ..values import Vector
from ..vectors import weaviate_collections as writes
from ..vectors.format import round_half
from ..vectors.sync import IndexSync
from ..vectors.weaviate_collections import NODES, Object, or_if_no_tenant
from ..vectors.weaviate_index import Weaviate
from . import vector_changes as untold
from .pgvector import PgNodeVectors
from .ports import NodeFilter, NodeHit
from .vector_changes import NodeChanges, NodeEntry

_ASK, _APPLY, _WRITE = 10.0, 5.0, 60.0
"""Seconds of one question, of changes whose rows are locked meanwhile, and of what nobody else waits for."""
_PAGE = 1_000
_CHANGED_AT = """
    SELECT node_id, changed_at FROM constitution_nodes WHERE tenant = $1 AND node_id = ANY($2::text[])"""
_IDS = "SELECT node_id FROM constitution_vectors WHERE tenant = $1 AND (model, dimension) = ($2, $3)"


class WeaviateNodeVectors:
    """`NodeIndex` on the collection of nodes, a tenant of it for each of ours; the vectors it is made of stand in the schema.

    Args:
        database: the schema.
        weaviate: the connection.
        rows: the vectors in the schema.
        model: name of the service's model.
        dimension: numbers in its vectors.
    """

    def __init__(self, database: Database, weaviate: Weaviate, rows: PgNodeVectors, model: str, dimension: int) -> None:
        self._database = database
        self._weaviate = weaviate
        self._rows = rows
        self._of = (model, dimension)
        self._settling: IndexSync[NodeChanges] = IndexSync(database, self._apply, untold)

    @asynccontextmanager
    async def sweeping(self) -> AsyncIterator[None]:
        """For the length of a block, apply what is left, whoever left it."""
        async with self._settling.sweeping():
            yield

    async def nearest(self, tenant: str, vector: Vector, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        """See `NodeIndex`."""
        await self._rows.asked(vector)
        if chosen.ids is not None and not chosen.ids:
            return []
        async with self._weaviate.client(_ASK) as client:
            asked = (
                client.collections.use(NODES)
                .with_tenant(tenant)
                .query.near_vector(
                    round_half(vector).tolist(),
                    limit=limit,
                    filters=_to_filter(chosen),
                    return_metadata=MetadataQuery(distance=True),
                    return_properties=["externalId", "type", "layer"],
                )
            )
            found = await or_if_no_tenant(asked, None)
        return await self._hits(tenant, found.objects) if found is not None else []

    async def note(self, within: Transaction, tenant: str, ids: Sequence[str]) -> None:
        """See `NodeIndex`."""
        await untold.note(cast(Connection, within), tenant, ids)

    async def tell(self, tenant: str, ids: Sequence[str]) -> None:
        """See `NodeIndex`."""
        await self._settling.settle(tenant, ids)

    async def reconcile(self, tenant: str) -> tuple[int, int]:
        """See `NodeIndex`."""
        await self._settling.drain()
        held = await self._held(tenant)
        async with self._database.transaction(tenant) as connection:
            wanted = {row["node_id"] for row in await connection.fetch(_IDS, tenant, *self._of)}
            lacking, orphans = sorted(wanted - held), sorted(held - wanted)
            await untold.note(connection, tenant, [*lacking, *orphans])
        await self._settling.drain()
        return len(lacking), len(orphans)

    async def reindex(self, tenant: str) -> None:
        """See `NodeIndex`."""
        async with self._database.transaction(tenant) as connection:
            await untold.note_all(connection, tenant)
            async with self._weaviate.client(_WRITE) as client:
                await client.collections.use(NODES).tenants.remove([tenant])
        await self._settling.drain()

    async def clear(self) -> None:
        """See `NodeIndex`."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            await untold.note_all(connection, None)
            async with self._weaviate.client(_WRITE) as client:
                await client.collections.delete(NODES)
        async with self._weaviate.client(_WRITE) as client:
            await self._weaviate.ensure(client)

    async def _hits(self, tenant: str, objects: Sequence[Any]) -> list[NodeHit]:
        ids = [one.properties["externalId"] for one in objects]
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_CHANGED_AT, tenant, ids)
        changed = {row["node_id"]: row["changed_at"] for row in rows}
        hits = [
            NodeHit(id, one.properties["type"], Layer(one.properties["layer"]), 1.0 - one.metadata.distance, changed[id])
            for id, one in zip(ids, objects, strict=True)
            if id in changed  # one that is gone, and that the index is about to be told of
        ]
        return sorted(hits, key=lambda hit: (-hit.cosine, hit.id))

    async def _held(self, tenant: str) -> set[str]:
        held: set[str] = set()
        last = None
        while True:
            async with self._weaviate.client(_ASK) as client:
                query = client.collections.use(NODES).with_tenant(tenant).query
                page = await or_if_no_tenant(
                    query.fetch_objects(limit=_PAGE, after=last, return_properties=["externalId"]), None
                )
            if page is None or not page.objects:
                return held
            held |= {str(one.properties["externalId"]) for one in page.objects}
            last = page.objects[-1].uuid

    async def _apply(self, due: Mapping[str, NodeChanges]) -> dict[str, list[str]]:
        refused: dict[str, list[str]] = {}
        async with self._weaviate.client(_APPLY) as client:
            for tenant, changes in due.items():
                entries = [entry for entry in changes.entries if entry.vector.size == self._of[1]]
                ids = {_object_id(tenant, id): id for id in (*(entry.id for entry in changes.entries), *changes.gone)}
                # By name, for whatever was put there by hand.
                await writes.remove_from(client, NODES, tenant, list(ids.values()), "externalId")
                objects = [_to_object(tenant, entry) for entry in entries]
                failed = await writes.insert(client, NODES, tenant, objects, [entry.vector.size for entry in entries])
                refused[tenant] = [ids[one] for one in failed]
        return refused


def _object_id(tenant: str, id: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"{tenant}/constitution/{id}"))


def _to_object(tenant: str, entry: NodeEntry) -> Object:
    told = {"externalId": entry.id, "type": entry.type, "layer": str(entry.layer), "lifecycle": str(entry.lifecycle)}
    if entry.topic is not None:
        told["topic"] = entry.topic
    return DataObject(properties=told, uuid=_object_id(tenant, entry.id), vector=round_half(entry.vector).tolist())


def _to_filter(chosen: NodeFilter) -> FilterReturn:
    # There is always one: a search without any goes by HNSW however few nodes there are, and may miss some.
    lifecycles = list(Lifecycle) if chosen.lifecycle is None else [chosen.lifecycle]
    named = (("lifecycle", lifecycles), ("layer", chosen.layers), ("type", chosen.types), ("externalId", chosen.ids or ()))
    parts = [Filter.by_property(name).contains_any(sorted(map(str, some))) for name, some in named if some]
    if chosen.topic is not None:
        parts.append(Filter.by_property("topic").equal(chosen.topic))
    return Filter.all_of(parts)
