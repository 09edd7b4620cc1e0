"""Run the memory service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from phronesis.bus import Bus, run
from phronesis.postgres import Database, PostgresSettings

from .adapters.local_embedder import LocalEmbedder
from .adapters.remote_embedder import RemoteEmbedder
from .app import build
from .domain.tokens import load
from .ports import Embedder, VectorIndex
from .settings import MemorySettings, WeaviateSettings


def _embedder(settings: MemorySettings) -> AbstractAsyncContextManager[Embedder]:
    if settings.embedding_url is None:
        return LocalEmbedder.open(settings.threads)
    return RemoteEmbedder.open(
        settings.embedding_url,
        settings.embedding_key,
        settings.embedding_model,
        settings.embedding_dimension,
        settings.similarity_floor,
    )


def _index(database: Database, embedder: Embedder) -> AbstractAsyncContextManager[VectorIndex | None]:
    settings = WeaviateSettings()
    if settings.url is None:
        return nullcontext()
    from .adapters.weaviate_index import WeaviateIndex  # its driver takes a second to import, and 20 MB

    return WeaviateIndex.open(settings, database, embedder.model, embedder.dimension)


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    """Open the stores and the model, and wire the handlers."""
    settings = MemorySettings()
    await asyncio.to_thread(load)  # here, and not inside the first retrieval
    async with (
        Database.open(PostgresSettings(), "memory", bus.tracing) as database,
        _embedder(settings) as embedder,
        _index(database, embedder) as index,
    ):
        await build(bus, database, embedder, settings, index)
        yield


if __name__ == "__main__":
    run("memory", start)
