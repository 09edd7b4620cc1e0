"""The section of rebuilding: how fast vectors are made anew, and whether recalls are what they were, on both vector indexes."""

from __future__ import annotations

import statistics
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import numpy as np

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.memory import Recall, Recalled, Remember, RememberItem
from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.app import assemble
from phronesis_memory.indexes import make_pgvector_index
from phronesis_memory.items.drafts import Drafter
from phronesis_memory.ports import Embedder, VectorIndex
from phronesis_memory.rebuild import rebuild_vectors
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Audience, Vector
from phronesis_memory.vectors.weaviate_index import WeaviateIndex
from phronesis_postgres import Database
from phronesis_samples.portfolio.reports import read_rows
from tests.support.production_servers import WeaviateServer
from tests.support.servers import PostgresServer

from .filling import fill
from .progress import say
from .recall import NoGraph
from .synthetic import DIMENSION, MODEL, Synthetic

_WHO = Principal(tenant="bench", user="ann")
_QUESTIONS = 50


@dataclass(frozen=True)
class _Stores:
    database: Database
    session: asyncpg.Connection
    weaviate: WeaviateServer

    @asynccontextmanager
    async def index(self, name: str, embedder: Embedder) -> AsyncIterator[VectorIndex]:
        """The index of that name, for the length of a block."""
        if name == "pgvector":
            yield make_pgvector_index(self.database, embedder.model, embedder.dimension, MemorySettings())
            return
        where = self.weaviate.settings
        async with WeaviateIndex.open(where, self.database, embedder.model, embedder.dimension) as index:
            yield index


class _Heard:
    """An embedder that keeps what it was asked."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model, self.dimension, self.floor = embedder.model, embedder.dimension, embedder.floor
        self.asked: list[list[str]] = []

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embedder.embed_queries(texts)

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.asked.append(list(texts))
        return await self._embedder.embed_texts(texts)


class _Drawn:
    """An embedder that costs next to nothing: a text's vector is drawn from its checksum, near one of the centres."""

    model, dimension = MODEL, DIMENSION
    floor: float | None = None

    def __init__(self) -> None:
        self._source = Synthetic(7)

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        return await self.embed_texts(texts)

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        return [self._source.vector(np.random.default_rng(zlib.crc32(text.encode()))) for text in texts]


async def section(quick: bool) -> list[str]:
    """Its lines."""
    items, many = (60, 1_000) if quick else (300, 25_000)
    lines = [
        "| rebuild of real texts | items/s | the embedder alone, items/s | share (at least 0.8) | recalls that are identical |",
        "|---|---|---|---|---|",
    ]
    for name in ("pgvector", "Weaviate"):
        say(f"rebuild: {items:,} texts into {name}")
        async with _stores() as stores:
            lines.append(await _rate(stores, name, items))
    lines += ["", "| rebuild of items by HNSW | items | items/s | same ten (at least 0.98) |", "|---|---|---|---|"]
    for name in ("pgvector", "Weaviate"):
        say(f"rebuild: {many:,} items into {name}")
        async with _stores() as stores:
            lines.append(await _same_ten(stores, name, many))
    return lines


async def _rate(stores: _Stores, name: str, items: int) -> str:
    async with LocalEmbedder.open(MemorySettings().threads) as model, stores.index(name, model) as index:
        handlers, _ = assemble(stores.database, model, NoGraph(), MemorySettings(), lambda: None, index)
        texts = _texts(items)
        for start in range(0, items, 100):
            batch = tuple(RememberItem(text=text) for text in texts[start : start + 100])
            await handlers.remember(Call(_WHO, "gateway"), Remember(items=batch))

        async def recalls() -> list[Recalled]:
            step = max(1, items // _QUESTIONS)
            asked = [" ".join(text.split()[:12]) for text in texts[::step]]
            return [await handlers.recall(Call(_WHO, "orchestrator"), Recall(query=question)) for question in asked]

        before = await recalls()
        await index.clear()
        heard = _Heard(model)
        rebuilt = await _seconds_of_rebuild(stores.database, index, heard)
        began = time.perf_counter()
        for asked in heard.asked:
            await model.embed_texts(asked)
        alone = time.perf_counter() - began
        same = statistics.mean(one == two for one, two in zip(before, await recalls(), strict=True))
    return f"| {name} | {items / rebuilt:.1f} | {items / alone:.1f} | {alone / rebuilt:.2f} | {same:.2f} |"


async def _same_ten(stores: _Stores, name: str, items: int) -> str:
    embedder, audience = _Drawn(), Audience.of(_WHO)
    await fill(stores.session, _WHO.tenant, _WHO.user, items, Synthetic(1))
    asked = await embedder.embed_texts([f"question {n}" for n in range(200)])
    async with stores.index(name, embedder) as index:
        await _seconds_of_rebuild(stores.database, index, embedder)
        before = [hits for vector in asked for hits in await index.search(audience, [vector], 10)]
        await index.clear()
        rebuilt = await _seconds_of_rebuild(stores.database, index, embedder)
        after = [hits for vector in asked for hits in await index.search(audience, [vector], 10)]
    same = [len({h.id for h in one} & {h.id for h in two}) / len(one) for one, two in zip(before, after, strict=True)]
    return f"| {name} | {items:,} | {items / rebuilt:,.0f} | {statistics.mean(same):.3f} |"


async def _seconds_of_rebuild(database: Database, index: VectorIndex, embedder: Embedder) -> float:
    began = time.perf_counter()
    await rebuild_vectors(database, index, Drafter(embedder), lambda what, done, total: None)
    return time.perf_counter() - began


def _texts(count: int) -> list[str]:
    """Aims and comments of the sample portfolio."""
    columns = ("aims", "rating_comment", "schedule_comment", "budget_comment")
    texts = dict.fromkeys(row[name] for row in read_rows() for name in columns if row.get(name))
    return list(texts)[:count]


@asynccontextmanager
async def _stores() -> AsyncIterator[_Stores]:
    async with AsyncExitStack() as used:
        folder = Path(used.enter_context(tempfile.TemporaryDirectory(prefix="phronesis-bench-")))
        postgres, weaviate = PostgresServer(folder / "postgres"), WeaviateServer(folder / "weaviate")
        for server in (postgres, weaviate):
            used.push_async_callback(server.stop)
            await server.start()
        settings = await used.enter_async_context(postgres.fresh_schema("memory"))
        session = await used.enter_async_context(postgres.session(settings, "memory"))
        patient = settings.model_copy(update={"command_timeout": 600.0})
        yield _Stores(await used.enter_async_context(Database.open(patient, "memory")), session, weaviate)
