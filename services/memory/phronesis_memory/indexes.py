"""Which vector index it is: Weaviate where its address is set, the service's own schema where it is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis_postgres import Database

from .constitution.pgvector import PgNodeVectors
from .constitution.ports import NodeIndex
from .ports import VectorIndex
from .settings import MemorySettings, WeaviateSettings
from .vectors.pgvector import PgVector


def make_pgvector_index(database: Database, model: str, dimension: int, settings: MemorySettings) -> PgVector:
    """The index in the schema, for a model with so many numbers in a vector."""
    return PgVector(
        database,
        model,
        dimension,
        exact_rows=settings.exact_rows,
        ef_search=settings.ef_search,
        max_scan=settings.max_scan,
    )


@asynccontextmanager
async def open_index(
    database: Database, model: str, dimension: int, settings: MemorySettings, weaviate: WeaviateSettings
) -> AsyncIterator[VectorIndex]:
    """The index for the length of a block.

    Args:
        database: the schema.
        model: name of the model whose vectors it holds.
        dimension: numbers in a vector.
        settings: how the schema is searched.
        weaviate: where Weaviate is; without an address the schema holds the vectors.
    """
    if weaviate.url is None:
        yield make_pgvector_index(database, model, dimension, settings)
        return
    from .vectors.weaviate_index import WeaviateIndex  # its driver takes a second to import, and 20 MB

    async with WeaviateIndex.open(weaviate, database, model, dimension) as index:
        yield index


def make_pgvector_nodes(database: Database, model: str, dimension: int, settings: MemorySettings) -> PgNodeVectors:
    """The index of the constitutional graph's nodes in the schema."""
    return PgNodeVectors(
        database,
        model,
        dimension,
        exact_rows=settings.exact_rows,
        ef_search=settings.ef_search,
        max_scan=settings.max_scan,
    )


@asynccontextmanager
async def open_nodes(
    index: VectorIndex, database: Database, model: str, dimension: int, settings: MemorySettings
) -> AsyncIterator[tuple[NodeIndex, PgNodeVectors]]:
    """The index of the constitutional graph's nodes, of the same kind as that of items, for the length of a block."""
    rows = make_pgvector_nodes(database, model, dimension, settings)
    if isinstance(index, PgVector):
        yield rows, rows
        return
    from .constitution.weaviate import WeaviateNodeVectors  # as above
    from .vectors.weaviate_index import WeaviateIndex

    assert isinstance(index, WeaviateIndex)
    nodes = WeaviateNodeVectors(database, index.weaviate, rows, model, dimension)
    async with nodes.sweeping():
        yield nodes, rows
