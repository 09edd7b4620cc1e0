"""The memory service on Weaviate, as one process has it, for tests that take the server away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from weaviate import WeaviateAsyncClient

from phronesis_contracts import Principal
from phronesis_contracts.deletions import Purged
from phronesis_contracts.memory import MEMORY_PURGED, Recall, Remember, RememberItem
from phronesis_memory.app import assemble
from phronesis_memory.items.handlers import ItemHandlers
from phronesis_memory.settings import MemorySettings, WeaviateSettings
from phronesis_memory.vectors.weaviate_index import Weaviate, WeaviateIndex
from phronesis_postgres import EVERY_TENANT, Database, PostgresSettings

from .memory import ScriptedGraph, WordEmbedder, calling


@dataclass(frozen=True)
class Service:
    """The handlers with what they stand on."""

    handlers: ItemHandlers
    database: Database
    index: WeaviateIndex

    async def remember(self, who: Principal, *items: RememberItem) -> list[str]:
        """Store items; their ids."""
        done = await self.handlers.remember(calling(who), Remember(items=items))
        return [item.id for item in done.items]

    async def near(self, who: Principal, question: str) -> set[str]:
        """The items that a question finds by its meaning."""
        found = await self.handlers.recall(calling(who), Recall(query=question))
        return {item.id for item in found.items if item.why.get("vector", 0) > 0.6}

    async def count(self, table: str) -> int:
        """How many rows a table has."""
        async with self.database.connection(EVERY_TENANT) as connection:
            return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))

    async def reports(self, who: Principal) -> list[Purged]:
        """The reports of deletions that go out."""
        async with self.database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch("SELECT body FROM outbox WHERE subject = $1", MEMORY_PURGED.on(who.tenant))
        return [Purged.model_validate_json(row["body"]) for row in rows]


@asynccontextmanager
async def service(where: PostgresSettings, weaviate: WeaviateSettings, *, sweeps: bool = True) -> AsyncIterator[Service]:
    """The service on a schema; without its sweep it applies what it wrote itself, and nothing else."""
    embedder = WordEmbedder(same={"hospit": "clinic"})
    async with Database.open(where, "memory") as database, _index(weaviate, database, embedder, sweeps) as index:
        handlers, _ = assemble(database, embedder, ScriptedGraph(), MemorySettings(stage_seconds=3), lambda: None, index)
        yield Service(handlers, database, index)


@asynccontextmanager
async def _index(
    weaviate: WeaviateSettings, database: Database, embedder: WordEmbedder, sweeps: bool
) -> AsyncIterator[WeaviateIndex]:
    if sweeps:
        async with WeaviateIndex.open(weaviate, database, embedder.model, embedder.dimension) as index:
            yield index
    else:
        async with Weaviate.open(weaviate) as connection:
            yield WeaviateIndex(database, connection, embedder.model, embedder.dimension)


@asynccontextmanager
async def driver(weaviate: WeaviateSettings) -> AsyncIterator[WeaviateAsyncClient]:
    """The driver itself, to look past the adapter."""
    async with Weaviate.open(weaviate) as connection, connection.client(30) as client:
        yield client
