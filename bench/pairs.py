"""The section of both pairs of stores: recall on pgvector and Weaviate, expansion on ArcadeDB and Neo4j, in one run."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from phronesis_memory.vectors.weaviate_index import WeaviateIndex
from phronesis_postgres import Database
from tests.support.graph import opened
from tests.support.production_servers import Neo4jServer, WeaviateServer
from tests.support.servers import ArcadeServer, NatsServer, OwnServer, PostgresServer

from . import expansion, recall
from .processes import megabytes_of
from .progress import say
from .synthetic import DIMENSION, MODEL

Server = TypeVar("Server", bound=OwnServer | NatsServer)

SIZES, QUICK = (10_000, 100_000), (2_000,)
_GRAPHS: dict[str, Callable[[Path], ArcadeServer | Neo4jServer]] = {"ArcadeDB": ArcadeServer, "Neo4j": Neo4jServer}


async def section(quick: bool) -> list[str]:
    """Its lines."""
    sizes, questions = (QUICK, 40) if quick else (SIZES, 200)
    return [*await _recall(sizes, questions), "", *await _expansion(sizes, questions)]


async def _recall(sizes: tuple[int, ...], questions: int) -> list[str]:
    lines = [
        "| recall over items | index | p50 ms | p95 ms (aim 25 at 100,000) | vectors alone, p50 | p95 | words alone, p95 "
        "| recall@10 against exact search inside the filter (at least 0.98) | filled in, s | its server's memory, MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        say(f"recall: {size:,} items")
        async with AsyncExitStack() as used:
            postgres = await used.enter_async_context(started(PostgresServer))
            weaviate = await used.enter_async_context(started(WeaviateServer))
            settings = await used.enter_async_context(postgres.fresh_schema("memory"))
            session = await used.enter_async_context(postgres.session(settings, "memory"))
            patient = settings.model_copy(update={"command_timeout": 600.0})
            database = await used.enter_async_context(Database.open(patient, "memory"))
            other = await used.enter_async_context(WeaviateIndex.open(weaviate.settings, database, MODEL, DIMENSION))
            found = await recall.measure(database, session, {"Weaviate": other}, size, questions=questions)
            memory = {"pgvector": megabytes_of(postgres.pid), "Weaviate": megabytes_of(weaviate.pid)}
        lines += [_recall_row(row, found, memory[row.index]) for row in found.figures]
    return lines


def _recall_row(row: recall.RecallFigures, found: recall.Measured, megabytes: float) -> str:
    return (
        f"| {row.items:,} | {row.index} | {row.p50_ms:.1f} | {row.p95_ms:.1f} "
        f"| {row.vector_p50_ms:.1f} | {row.vector_p95_ms:.1f} | {found.text_p95_ms:.1f} "
        f"| {row.recall_at_10:.3f} | {found.fill_s[row.index]:.0f} | {megabytes:.0f} |"
    )


async def _expansion(sizes: tuple[int, ...], questions: int) -> list[str]:
    lines = [
        "| expansion over items | store | p50 ms | p95 ms | items found | filled in, s | its server's memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        for name, kind in _GRAPHS.items():
            say(f"expansion: {size:,} items on {name}")
            with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
                async with started(kind) as graph, opened(graph, Path(folder)) as stores:
                    row = await expansion.measure(stores.knowledge, size, questions=questions)
                    lines.append(
                        f"| {size:,} | {name} | {row.p50_ms:.1f} | {row.p95_ms:.1f} | {row.found:.1f} | {row.fill_s:.0f} "
                        f"| {megabytes_of(graph.pid):.0f} |"
                    )
    return lines


@asynccontextmanager
async def started(kind: Callable[[Path], Server]) -> AsyncIterator[Server]:
    """A server of its own that answers, for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
        server = kind(Path(folder) / "data")
        try:
            await server.start()
            yield server
        finally:
            await server.stop()
