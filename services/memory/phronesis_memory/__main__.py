"""Run the memory service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from phronesis_bus import Bus, Tracing, run
from phronesis_embedding.local import LocalEmbedder
from phronesis_postgres import Database, PostgresSettings
from phronesis_tokens import load

from .app import build
from .embedding.remote import RemoteEmbedder
from .indexes import open_index
from .ports import Embedder, VectorIndex
from .settings import MemorySettings, WeaviateSettings
from .vectors.sync import VectorDepth


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


@asynccontextmanager
async def open_stores(
    settings: MemorySettings, tracing: Tracing | None = None
) -> AsyncIterator[tuple[Database, Embedder, VectorIndex]]:
    """What the service stands on: its schema, the model and the vector index."""
    async with (
        Database.open(PostgresSettings(), "memory", tracing, plan_anew=True) as database,
        _embedder(settings) as embedder,
        open_index(database, embedder.model, embedder.dimension, settings, WeaviateSettings()) as index,
    ):
        yield database, embedder, index


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    settings = MemorySettings()
    await asyncio.to_thread(load)  # here, and not inside the first retrieval
    async with open_stores(settings, bus.tracing) as (database, embedder, index):
        if WeaviateSettings().url is not None:
            bus.tracing.metrics.probe(VectorDepth(database, bus.tracing.metrics).look)
        await build(bus, database, embedder, settings, index)
        yield


if __name__ == "__main__":
    run("memory", start)
