"""Weaviate's collections: schema, writes and questions. A tenant of each for each of ours, and no text of any item."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import numpy as np
import numpy.typing as npt
from weaviate import WeaviateAsyncClient
from weaviate.classes.config import Configure, DataType, Property, Tokenization, VectorDistances, VectorFilterStrategy
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter, MetadataQuery
from weaviate.collections.classes.filters import FilterReturn
from weaviate.exceptions import (
    UnexpectedStatusCodeError,
    WeaviateDeleteManyError,
    WeaviateInsertManyAllFailedError,
    WeaviateQueryError,
)

from phronesis_contracts import Unavailable
from phronesis_contracts.memory import ItemKind

from ..values import Audience, Vector, VectorEntry, VectorHit
from .format import pack, round_half, unpack

KINDS: Mapping[str, tuple[ItemKind, ...]] = {
    "UserKnowledgeItem": (ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT),
    "Episode": (ItemKind.EPISODE,),
    "Message": (ItemKind.MESSAGE,),
    "GraphNode": (ItemKind.NODE,),
    "Style": (ItemKind.STYLE,),
    "Strategy": (ItemKind.STRATEGY,),
    "Passage": (ItemKind.PASSAGE,),
}
"""The collections of items, and the kinds in each."""
NODES = "ConstitutionNode"
"""The collection of the constitutional graph's nodes."""
_EXACT = 20_000
"""Scopes up to this many items are searched exactly; larger ones by HNSW, which then has matches enough on every side."""
_SEARCH = 256
"""HNSW: candidates of a search (recall@10 of 25,000 clustered vectors, with the settings' defaults: 0.9995)."""


def collection_of(kind: ItemKind) -> str:
    """The collection that holds items of this kind."""
    return next(name for name, kinds in KINDS.items() if kind in kinds)


async def ensure_collections(client: WeaviateAsyncClient, neighbours: int, build: int) -> None:
    """Make the collections that are missing, by HNSW with so many neighbours of a vector, and candidates when it is built."""
    for name in (*KINDS, NODES):
        if not await client.collections.exists(name):
            try:
                await _create_collection(client, name, neighbours, build)
            except UnexpectedStatusCodeError:  # another service was quicker
                if not await client.collections.exists(name):
                    raise


async def _create_collection(client: WeaviateAsyncClient, name: str, neighbours: int, build: int) -> None:
    hnsw = Configure.VectorIndex.hnsw(
        distance_metric=VectorDistances.COSINE,
        max_connections=neighbours,
        ef_construction=build,
        ef=_SEARCH,
        flat_search_cutoff=_EXACT,
        filter_strategy=VectorFilterStrategy.ACORN,
    )
    await client.collections.create(
        name,
        properties=_node_properties() if name == NODES else _item_properties(),
        vector_config=Configure.Vectors.self_provided(vector_index_config=hnsw),
        multi_tenancy_config=Configure.multi_tenancy(auto_tenant_creation=True, auto_tenant_activation=True),
    )


def _item_properties() -> list[Property]:
    return [
        _text_property("externalId", filtered=False),
        _text_property("entityType", filtered=False),
        _text_property("owner", filtered=True),
        _text_property("kind", filtered=True),
        _text_property("family", filtered=False),
        Property(name="passages", data_type=DataType.BLOB),
    ]


def _node_properties() -> list[Property]:
    return [_text_property(name, filtered=True) for name in ("externalId", "type", "layer", "lifecycle", "topic")]


def _text_property(name: str, *, filtered: bool) -> Property:
    return Property(
        name=name, data_type=DataType.TEXT, index_filterable=filtered, index_searchable=False, tokenization=Tokenization.FIELD
    )


def _to_object(entry: VectorEntry) -> DataObject[dict[str, Any], None]:
    """Its id is the item's, and `externalId` names that id to whoever reads the collection."""
    properties = {
        "externalId": entry.id,
        "entityType": str(entry.kind.entity_type),
        "owner": entry.owner,
        "kind": str(entry.kind),
        "family": entry.family,
    }
    if entry.passages:
        properties["passages"] = base64.b64encode(pack(entry.passages)).decode()
    return DataObject(properties=properties, uuid=entry.id, vector=round_half(entry.vector).tolist())


log = logging.getLogger(__name__)
T = TypeVar("T")
Object: TypeAlias = DataObject[dict[str, Any], None]

_NUMBERS = 500_000
"""Numbers in one call at most: some megabytes, well below the server's greatest message."""
_NOTHING = str(UUID(int=0))
_WRITE_IDS = 500
"""Ids in one call."""


async def or_if_no_tenant(work: Awaitable[T], empty: T) -> T:
    """What a call returns, or `empty` where its collection does not have the tenant yet: nothing was stored there."""
    try:
        return await work
    except (WeaviateQueryError, WeaviateDeleteManyError) as error:
        if "tenant not found" in str(error):
            return empty
        raise


async def nearest_objects(
    client: WeaviateAsyncClient, name: str, tenant: str, vector: Vector, limit: int, filters: FilterReturn, read: Sequence[str]
) -> list[Any]:
    """The objects of one tenant that are nearest to a vector, nearest first, with these of their properties."""
    query = client.collections.use(name).with_tenant(tenant).query
    numbers, distance = round_half(vector).tolist(), MetadataQuery(distance=True)
    found = await or_if_no_tenant(
        query.near_vector(numbers, limit=limit, filters=filters, return_metadata=distance, return_properties=list(read)), None
    )
    return list(found.objects) if found is not None else []


async def fetch_objects(client: WeaviateAsyncClient, name: str, tenant: str, **how: Any) -> list[Any]:
    """Objects of one tenant, as the driver's `fetch_objects` reads them."""
    query = client.collections.use(name).with_tenant(tenant).query
    found = await or_if_no_tenant(query.fetch_objects(**how), None)
    return list(found.objects) if found is not None else []


async def put(client: WeaviateAsyncClient, tenant: str, entries: Sequence[VectorEntry]) -> list[str]:
    """Store entries of one tenant, each in place of its item's former one, in whatever collection that was.

    The former one is deleted, and not written over: an object that a killed server has without its vector, the server
    would take for unchanged.

    Returns:
        The ids of what the server refuses, also by itself.
    """
    last = {entry.id: entry for entry in entries}
    await remove(client, tenant, list(last))
    refused: list[str] = []
    for name in KINDS:
        mine = [entry for entry in last.values() if collection_of(entry.kind) == name]
        sizes = [entry.vector.size * (1 + len(entry.passages)) for entry in mine]
        refused += await insert(client, name, tenant, [_to_object(entry) for entry in mine], sizes)
    return refused


async def insert(
    client: WeaviateAsyncClient, name: str, tenant: str, objects: Sequence[Object], sizes: Sequence[int]
) -> list[str]:
    """Store objects of one tenant that its collection does not have; `sizes` are the numbers in the vectors of each.

    Returns:
        The ids of what the server refuses, also by itself.
    """
    refused: list[str] = []
    for batch in _batches(objects, sizes):
        for one in await _insert(client, name, tenant, batch):
            refused += [str(alone.uuid) for alone in await _insert(client, name, tenant, [one])]
    if objects:
        await _flush(client, name, tenant)
    if refused:
        log.error("the vector store refuses %d of %d objects", len(refused), len(objects))
    return refused


async def remove(client: WeaviateAsyncClient, tenant: str, ids: Sequence[str]) -> None:
    await asyncio.gather(*(remove_from(client, name, tenant, ids) for name in KINDS))


async def remove_all(client: WeaviateAsyncClient) -> None:
    for name in KINDS:
        await client.collections.delete(name)


async def _insert(client: WeaviateAsyncClient, name: str, tenant: str, given: Sequence[Object]) -> list[Object]:
    """Store objects by one call; those that failed."""
    objects = client.collections.use(name).with_tenant(tenant).data
    try:
        done = await objects.insert_many(list(given))
    except WeaviateInsertManyAllFailedError as error:
        if "not present in schema" in str(error):  # no object's fault; it is there when the client is made anew
            raise
        return list(given)
    return [given[number] for number in done.errors]


async def remove_from(client: WeaviateAsyncClient, name: str, tenant: str, ids: Sequence[str]) -> None:
    """Delete objects of one tenant from one collection."""
    for start in range(0, len(ids), _WRITE_IDS):
        await _delete(client, name, tenant, Filter.by_id().contains_any(list(ids[start : start + _WRITE_IDS])))


async def remove_named(
    client: WeaviateAsyncClient, name: str, tenant: str, property: str, values: Sequence[str], but: Sequence[str]
) -> None:
    """Delete the objects of one tenant that have one of these values of a property, but not those with the ids in `but`."""
    others = Filter.by_id().contains_none(list(but)) if but else None
    for start in range(0, len(values), _WRITE_IDS):
        some = Filter.by_property(property).contains_any(list(values[start : start + _WRITE_IDS]))
        await _delete(client, name, tenant, some & others if others else some)


async def _delete(client: WeaviateAsyncClient, name: str, tenant: str, which: FilterReturn) -> None:
    objects = client.collections.use(name).with_tenant(tenant).data
    done = await or_if_no_tenant(objects.delete_many(which), None)
    if done is not None and done.failed:
        raise Unavailable("the vector store did not delete everything", retry_after=1)


async def _flush(client: WeaviateAsyncClient, name: str, tenant: str) -> None:
    """Have the index of this tenant on disk as its objects are.

    Weaviate 1.35 writes a batch's objects out, and of its vector index what fits no buffer: a server that is killed next
    has objects that no search finds. A deletion, also one of nothing, writes out the rest.
    """
    await remove_from(client, name, tenant, [_NOTHING])


def _batches(objects: Sequence[Object], sizes: Sequence[int]) -> Iterator[list[Object]]:
    batch: list[Object] = []
    numbers = 0
    for one, size in zip(objects, sizes, strict=True):
        batch.append(one)
        numbers += size
        if numbers >= _NUMBERS:
            yield batch
            batch, numbers = [], 0
    if batch:
        yield batch


_WHOLE: dict[str, Any] = {"return_properties": ["owner", "kind", "family", "passages"], "include_vector": True}
"""Blobs are left out of an answer unless they are named."""
_READ_IDS = 200
"""Items of one call whose passages are fetched: of long texts they are a few megabytes."""


async def search(
    client: WeaviateAsyncClient, audience: Audience, vectors: Sequence[Vector], limit: int
) -> list[list[VectorHit]]:
    """For each vector the nearest items of the audience, nearest first."""
    names = _collections_of(audience)
    found = await asyncio.gather(*(_nearest(client, name, audience, vector, limit) for vector in vectors for name in names))
    return (
        [_best(found[n : n + len(names)], limit) for n in range(0, len(found), len(names))] if names else [[] for _ in vectors]
    )


async def cosines(client: WeaviateAsyncClient, audience: Audience, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
    """The cosine of those of the items that the audience holds, by their own vector or their nearest passage.

    The server measures their own: to read the vectors takes most of the time of a search.
    """
    batches = [list(ids[start : start + _READ_IDS]) for start in range(0, len(ids), _READ_IDS)]
    found = await asyncio.gather(
        *(_nearest_of(client, name, audience, vector, batch) for batch in batches for name in _collections_of(audience))
    )
    best: dict[str, float] = {}
    for one in (one for some in found for one in some):
        # An item whose kind is changing stands in two collections for a moment.
        best[str(one.uuid)] = max(best.get(str(one.uuid), -1.0), _nearest_cosine(one, vector))
    return best


async def places(client: WeaviateAsyncClient) -> list[tuple[str, str]]:
    """Every collection with each of its tenants."""
    return [(name, tenant) for name in KINDS for tenant in sorted(await client.collections.use(name).tenants.get())]


async def page(client: WeaviateAsyncClient, place: tuple[str, str], last: str, size: int) -> list[VectorEntry]:
    """The entries of one place that follow the item `last` (all, where it is empty), in the order of their ids."""
    name, tenant = place
    found = await fetch_objects(client, name, tenant, limit=size, after=last or None, **_WHOLE)
    return [_to_entry(tenant, one) for one in found]


async def count(client: WeaviateAsyncClient, tenant: str, owners: Sequence[str], prefix: str) -> int:
    """How many objects of one tenant are of these owners, or of those whose names begin so."""
    owned = Filter.by_property("owner").contains_any(list(owners)) | Filter.by_property("owner").like(f"{prefix}*")
    found = 0
    for name in KINDS:
        counting = client.collections.use(name).with_tenant(tenant).aggregate.over_all(filters=owned, total_count=True)
        counted = await or_if_no_tenant(counting, None)
        found += (counted.total_count or 0) if counted is not None else 0
    return found


async def answers(client: WeaviateAsyncClient, tenant: str) -> None:
    """Raise where the store does not answer a question of this tenant, who need not be there."""
    await asyncio.gather(*(fetch_objects(client, name, tenant, limit=1) for name in KINDS))


def _nearest_cosine(found: Any, vector: Vector) -> float:
    """The cosine of an object, or of its nearest passage where that is nearer."""
    own = 1.0 - float(found.metadata.distance)
    if not (kept := found.properties.get("passages")):
        return own
    passages, asked = np.stack(unpack(base64.b64decode(kept), vector.size)), round_half(vector)[None]
    return max(own, float((_unit(passages) @ _unit(asked).T).max()))


def _unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    unit: npt.NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
    return unit


def _collections_of(audience: Audience) -> list[str]:
    return [name for name, kinds in KINDS.items() if not set(kinds).isdisjoint(audience.kinds)]


def _audience_filter(name: str, audience: Audience) -> FilterReturn:
    owner = Filter.by_property("owner").contains_any(list(audience.owners))
    kinds = [str(kind) for kind in KINDS[name] if kind in audience.kinds]
    return owner if len(kinds) == len(KINDS[name]) else owner & Filter.by_property("kind").contains_any(kinds)


async def _nearest(client: WeaviateAsyncClient, name: str, audience: Audience, vector: Vector, limit: int) -> list[VectorHit]:
    chosen = _audience_filter(name, audience)
    found = await nearest_objects(client, name, audience.tenant, vector, limit, chosen, ("kind", "family", "passages"))
    return [_to_hit(one, vector) for one in found]


def _to_hit(found: Any, vector: Vector) -> VectorHit:
    kind, family = ItemKind(found.properties["kind"]), found.properties["family"]
    return VectorHit(str(found.uuid), kind, 1.0 - found.metadata.distance, _nearest_cosine(found, vector), family)


def _best(found: Sequence[Sequence[VectorHit]], limit: int) -> list[VectorHit]:
    # An item whose kind is changing stands in two collections for a moment.
    best: dict[str, VectorHit] = {}
    for hit in sorted((hit for some in found for hit in some), key=lambda hit: -hit.cosine):
        best.setdefault(hit.id, hit)
    return list(best.values())[:limit]


async def _nearest_of(client: WeaviateAsyncClient, name: str, audience: Audience, vector: Vector, ids: list[str]) -> list[Any]:
    chosen = Filter.by_id().contains_any(ids) & _audience_filter(name, audience)
    return await nearest_objects(client, name, audience.tenant, vector, len(ids), chosen, ("passages",))


def _to_entry(tenant: str, found: Any) -> VectorEntry:
    properties: Mapping[str, Any] = found.properties
    vector: Vector = np.array(found.vector["default"], np.float32)
    passages = unpack(base64.b64decode(properties.get("passages") or ""), vector.size)
    kind = ItemKind(properties["kind"])
    return VectorEntry(str(found.uuid), tenant, properties["owner"], kind, vector, properties["family"], passages)
