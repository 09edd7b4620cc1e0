"""The collections of Weaviate: one for each kind of item, a tenant of each for each of ours, and no text of any item."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from weaviate import WeaviateAsyncClient
from weaviate.classes.config import Configure, DataType, Property, Tokenization, VectorDistances, VectorFilterStrategy
from weaviate.classes.data import DataObject
from weaviate.exceptions import UnexpectedStatusCodeError

from phronesis_contracts.memory import ItemKind

from ..domain.values import Vector, VectorEntry
from .halves import packed, rounded, unpacked

KINDS: Mapping[str, tuple[ItemKind, ...]] = {
    "UserKnowledgeItem": (ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT),
    "Episode": (ItemKind.EPISODE,),
    "GraphNode": (ItemKind.NODE,),
    "Style": (ItemKind.STYLE,),
    "Strategy": (ItemKind.STRATEGY,),
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


async def ensure(client: WeaviateAsyncClient, neighbours: int, build: int) -> None:
    """Make the collections that are missing.

    Args:
        client: the client.
        neighbours: HNSW: links of a vector.
        build: HNSW: candidates when a vector is put in.
    """
    for name in (*KINDS, NODES):
        if not await client.collections.exists(name):
            try:
                await _create(client, name, neighbours, build)
            except UnexpectedStatusCodeError:  # another service was quicker
                if not await client.collections.exists(name):
                    raise


async def _create(client: WeaviateAsyncClient, name: str, neighbours: int, build: int) -> None:
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
        properties=_of_nodes() if name == NODES else _of_items(),
        vector_config=Configure.Vectors.self_provided(vector_index_config=hnsw),
        multi_tenancy_config=Configure.multi_tenancy(auto_tenant_creation=True, auto_tenant_activation=True),
    )


def _of_items() -> list[Property]:
    return [
        _text("externalId", filtered=False),
        _text("entityType", filtered=False),
        _text("owner", filtered=True),
        _text("kind", filtered=True),
        _text("family", filtered=False),
        Property(name="passages", data_type=DataType.BLOB),
    ]


def _of_nodes() -> list[Property]:
    return [_text(name, filtered=True) for name in ("externalId", "type", "layer", "lifecycle", "topic")]


def _text(name: str, *, filtered: bool) -> Property:
    return Property(
        name=name,
        data_type=DataType.TEXT,
        index_filterable=filtered,
        index_searchable=False,
        tokenization=Tokenization.FIELD,
    )


def data_of(entry: VectorEntry) -> DataObject[dict[str, Any], None]:
    """An entry as an object: its id is the item's, and `externalId` names that id to whoever reads the collection."""
    properties = {
        "externalId": entry.id,
        "entityType": str(entry.kind.entity_type),
        "owner": entry.owner,
        "kind": str(entry.kind),
        "family": entry.family,
    }
    if entry.passages:
        properties["passages"] = base64.b64encode(packed(entry.passages)).decode()
    return DataObject(properties=properties, uuid=entry.id, vector=rounded(entry.vector).tolist())


def entry_of(tenant: str, id: str, properties: Mapping[str, Any], numbers: Sequence[float]) -> VectorEntry:
    """The entry that an object was made of."""
    vector: Vector = np.array(numbers, np.float32)
    passages = unpacked(base64.b64decode(properties.get("passages") or ""), vector.size)
    kind = ItemKind(properties["kind"])
    return VectorEntry(id, tenant, properties["owner"], kind, vector, properties["family"], passages)
