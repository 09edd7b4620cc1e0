"""Which vector index it is: Weaviate where its address is set, the service's own schema where it is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis_postgres import Database

from .constitution.pgvector import PgNodeVectors
from .embedding.queries import QueryVectors
from .items.search import HybridSearch
from .ports import Embedder, VectorIndex
from .settings import MemorySettings, WeaviateSettings
from .vectors.pgvector import PgVector
from .words.store import PostgresTexts


def make_queries(embedder: Embedder, settings: MemorySettings) -> QueryVectors:
    """The vectors of queries, cached as the settings say."""
    return QueryVectors(embedder, settings.query_cache_seconds, settings.query_cache_size)


def make_search(database: Database, vectors: VectorIndex, queries: QueryVectors, settings: MemorySettings) -> HybridSearch:
    texts, seconds = PostgresTexts(database), settings.stage_seconds
    return HybridSearch(vectors, texts, queries, candidates=settings.candidates, seconds=seconds)


def make_pgvector_index(database: Database, model: str, dimension: int, settings: MemorySettings) -> PgVector:
    """The index in the schema, for a model with so many numbers in a vector."""
    return PgVector(database, model, dimension, **_search(settings))


@asynccontextmanager
async def open_index(
    database: Database, model: str, dimension: int, settings: MemorySettings, weaviate: WeaviateSettings
) -> AsyncIterator[VectorIndex]:
    """The index for the length of a block. `weaviate`: where Weaviate is; without an address the schema holds the vectors."""
    if weaviate.url is None:
        yield make_pgvector_index(database, model, dimension, settings)
        return
    from .vectors.weaviate_index import WeaviateIndex  # its driver takes a second to import, and 20 MB

    async with WeaviateIndex.open(weaviate, database, model, dimension) as index:
        yield index


def make_pgvector_nodes(database: Database, model: str, dimension: int, settings: MemorySettings) -> PgNodeVectors:
    """The index of the constitutional graph's nodes in the schema."""
    return PgNodeVectors(database, model, dimension, **_search(settings))


@asynccontextmanager
async def open_nodes(
    index: VectorIndex, database: Database, model: str, dimension: int, settings: MemorySettings
) -> AsyncIterator[PgNodeVectors]:
    """The index of the constitutional graph's nodes, of the same kind as that of items, for the length of a block."""
    if isinstance(index, PgVector):
        yield make_pgvector_nodes(database, model, dimension, settings)
        return
    from .constitution.weaviate import WeaviateNodeVectors  # as above
    from .vectors.weaviate_index import WeaviateIndex

    assert isinstance(index, WeaviateIndex)
    nodes = WeaviateNodeVectors(index.weaviate, database, model, dimension, **_search(settings))
    async with nodes.sweeping():
        yield nodes


def _search(settings: MemorySettings) -> dict[str, int]:
    return {"exact_rows": settings.exact_rows, "ef_search": settings.ef_search, "max_scan": settings.max_scan}
