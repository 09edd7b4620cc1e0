"""Questions to Weaviate's collections. Tenant, owners and kinds are part of each, ahead of any ranking."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from weaviate import WeaviateAsyncClient
from weaviate.classes.query import Filter, MetadataQuery
from weaviate.collections.classes.filters import FilterReturn

from phronesis_contracts.memory import ItemKind

from ..domain.values import Audience, Vector, VectorEntry, VectorHit
from .halves import rounded
from .weaviate_schema import KINDS, entry_of
from .weaviate_writes import of_tenant

_WHOLE: dict[str, Any] = {"return_properties": ["owner", "kind", "family", "passages"], "include_vector": True}
"""Blobs are left out of an answer unless they are named."""
_IDS = 200
"""Items of one call whose vectors are fetched: with the passages of long texts they are a few megabytes."""


async def search(
    client: WeaviateAsyncClient, audience: Audience, vectors: Sequence[Vector], limit: int
) -> list[list[VectorHit]]:
    """For each vector the nearest items of the audience, nearest first."""
    names = _asked(audience)
    found = await asyncio.gather(*(_nearest(client, name, audience, vector, limit) for vector in vectors for name in names))
    return (
        [_best(found[n : n + len(names)], limit) for n in range(0, len(found), len(names))] if names else [[] for _ in vectors]
    )


async def entries(client: WeaviateAsyncClient, audience: Audience, ids: Sequence[str]) -> list[VectorEntry]:
    """Those of the items that the audience holds, with their vectors."""
    batches = [list(ids[start : start + _IDS]) for start in range(0, len(ids), _IDS)]
    found = await asyncio.gather(*(_named(client, name, audience, batch) for batch in batches for name in _asked(audience)))
    return [entry for some in found for entry in some]


async def places(client: WeaviateAsyncClient) -> list[tuple[str, str]]:
    """Every collection with each of its tenants."""
    return [(name, tenant) for name in KINDS for tenant in sorted(await client.collections.use(name).tenants.get())]


async def page(client: WeaviateAsyncClient, place: tuple[str, str], last: str, size: int) -> list[VectorEntry]:
    """The entries of one place that follow the item `last` (all, where it is empty), in the order of their ids."""
    name, tenant = place
    query = client.collections.use(name).with_tenant(tenant).query
    found = await of_tenant(query.fetch_objects(limit=size, after=last or None, **_WHOLE), None)
    return [_entry(tenant, one) for one in found.objects] if found is not None else []


async def answers(client: WeaviateAsyncClient, tenant: str) -> None:
    """Raise where the store does not answer a question of this tenant, who need not be there."""
    for name in KINDS:
        await of_tenant(client.collections.use(name).with_tenant(tenant).query.fetch_objects(limit=1), None)


def cosines(found: Sequence[VectorEntry], vectors: Sequence[Vector]) -> npt.NDArray[np.float64]:
    """The cosine of each entry (row) with each vector (column), by its own vector or its nearest passage."""
    if not found or not vectors:
        return np.zeros((len(found), len(vectors)))
    rows = _unit(np.stack([vector for entry in found for vector in (entry.vector, *entry.passages)]))
    starts = np.cumsum([0] + [1 + len(entry.passages) for entry in found[:-1]])
    best: npt.NDArray[np.float64] = np.maximum.reduceat(
        rows @ _unit(np.stack([rounded(vector) for vector in vectors])).T, starts, axis=0
    )
    return best


def _unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    unit: npt.NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
    return unit


def _asked(audience: Audience) -> list[str]:
    return [name for name, kinds in KINDS.items() if not set(kinds).isdisjoint(audience.kinds)]


def _filter(name: str, audience: Audience) -> FilterReturn:
    owner = Filter.by_property("owner").contains_any(list(audience.owners))
    kinds = [str(kind) for kind in KINDS[name] if kind in audience.kinds]
    return owner if len(kinds) == len(KINDS[name]) else owner & Filter.by_property("kind").contains_any(kinds)


async def _nearest(client: WeaviateAsyncClient, name: str, audience: Audience, vector: Vector, limit: int) -> list[VectorHit]:
    asked = (
        client.collections.use(name)
        .with_tenant(audience.tenant)
        .query.near_vector(
            rounded(vector).tolist(),
            limit=limit,
            filters=_filter(name, audience),
            return_metadata=MetadataQuery(distance=True),
            return_properties=["kind", "family"],
        )
    )
    found = await of_tenant(asked, None)
    return [_hit(one) for one in found.objects] if found is not None else []


def _hit(found: Any) -> VectorHit:
    kind, family = ItemKind(found.properties["kind"]), found.properties["family"]
    return VectorHit(str(found.uuid), kind, 1.0 - found.metadata.distance, family)


def _best(found: Sequence[Sequence[VectorHit]], limit: int) -> list[VectorHit]:
    # An item whose kind is changing stands in two collections for a moment.
    best: dict[str, VectorHit] = {}
    for hit in sorted((hit for some in found for hit in some), key=lambda hit: -hit.cosine):
        best.setdefault(hit.id, hit)
    return list(best.values())[:limit]


async def _named(client: WeaviateAsyncClient, name: str, audience: Audience, ids: list[str]) -> list[VectorEntry]:
    asked = (
        client.collections.use(name)
        .with_tenant(audience.tenant)
        .query.fetch_objects(limit=len(ids), filters=Filter.by_id().contains_any(ids) & _filter(name, audience), **_WHOLE)
    )
    found = await of_tenant(asked, None)
    return [_entry(audience.tenant, one) for one in found.objects] if found is not None else []


def _entry(tenant: str, found: Any) -> VectorEntry:
    properties: Mapping[str, Any] = found.properties
    return entry_of(tenant, str(found.uuid), properties, found.vector["default"])
