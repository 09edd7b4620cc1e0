"""What the memory service does for the constitutional graph, and what that is made of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from phronesis_bus import Blobs, Bus, follow, serve
from phronesis_bus.topology import BACKUPS
from phronesis_contracts import ServiceError
from phronesis_contracts.constitution import keeping, writes
from phronesis_postgres import Database

from ..adapters.constitution_audit import KeepingAudit
from ..adapters.constitution_graph import BusConstitution
from ..adapters.constitution_history import NodeHistory
from ..adapters.constitution_pgvector import PgNodeVectors
from ..adapters.constitution_queue import NodeQueue
from ..adapters.constitution_records import NodeRecords
from ..adapters.constitution_restoring import RestoringVectors
from ..adapters.constitution_schedule import NodeSchedule
from ..adapters.constitution_structure import BusStructure
from ..adapters.constitution_told import NodeStanding
from ..cache import QueryVectors
from ..indexes import open_nodes, pg_nodes
from ..ports import Embedder, VectorIndex
from ..settings import MemorySettings
from ..spans import traced
from .backups import Backups
from .embedding import Embedding
from .following import Following
from .handlers import KeepingHandlers
from .keeping import Bucket, ConstitutionGraph, NodeIndex
from .ports import History, NodeVectors, Texts
from .regenerating import Regenerating
from .schedule import runs
from .search_serving import Sources, serve_searches
from .settings import RetrievalSettings
from .vectors import ConstitutionVectors

log = logging.getLogger(__name__)

_WARMING = 10.0
"""Seconds that the service waits for that before it answers."""
STORE = "constitution"
"""The store, as spans name it."""


@dataclass(frozen=True)
class Parts:
    """What the handlers stand on. `assemble_constitution` makes them."""

    vectors: NodeVectors
    history: History
    texts: Texts
    queries: QueryVectors
    following: Following
    queue: NodeQueue
    embedding: Embedding
    schedule: NodeSchedule
    regenerating: Regenerating
    handlers: KeepingHandlers


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def assemble_constitution(
    database: Database,
    embedder: Embedder,
    graph: ConstitutionGraph,
    bucket: Bucket,
    settings: MemorySettings,
    index: NodeIndex | None = None,
    clock: Callable[[], datetime] = now,
    wake: Callable[[], None] = lambda: None,
    queries: QueryVectors | None = None,
    *,
    drift: bool = True,
) -> Parts:
    """The parts on their stores.

    Args:
        database: the schema.
        embedder: the model.
        graph: the graph service.
        bucket: where backups are kept.
        settings: the service's settings.
        index: the index of the nodes' vectors; the one in the schema where there is none.
        clock: the time.
        wake: called after a transaction that may have written news.
        queries: the vectors of questions that are kept; those of its own where there are none.
        drift: whether nodes are embedded anew by the clock, to see whether their vectors drifted.
    """
    of = (embedder.model, embedder.dimension)
    rows: PgNodeVectors = pg_nodes(database, *of, settings)
    index = index or rows
    queue, records, standing = NodeQueue(database, index, *of, wake), NodeRecords(database, index, *of), NodeStanding(database)
    schedule = NodeSchedule(database, queue, runs(drift=drift))
    embedding = Embedding(queue, embedder, index, rows.nearest, schedule, clock)
    following = Following(graph, records, standing, index, embedding.wake, clock)
    vectors = ConstitutionVectors(rows, index, records, queue, following)
    backups = Backups(graph, standing, RestoringVectors(database, index, *of), following, bucket, clock)
    regenerating = Regenerating(graph, following, standing, index, clock)
    audit = KeepingAudit(database, wake)
    handlers = KeepingHandlers(following, vectors, standing, schedule, regenerating, backups, audit, embedder.dimension)
    queries = queries or QueryVectors(embedder, settings.query_cache_seconds, settings.query_cache_size)
    return Parts(
        vectors=vectors,
        history=NodeHistory(database),
        texts=standing,
        queries=queries,
        following=following,
        queue=queue,
        embedding=embedding,
        schedule=schedule,
        regenerating=regenerating,
        handlers=handlers,
    )


async def warm(rows: PgNodeVectors, embedder: Embedder) -> None:
    """Ask once, so that the first question after the start is as quick as the next ones (O-092, O-338)."""
    try:
        async with asyncio.timeout(_WARMING):
            await embedder.embed_queries(["what matters here"])
            await rows.warm()
    except (ServiceError, TimeoutError):
        log.warning("the vectors of the constitutional graph are not warm: a store or the model does not answer yet")


async def serve_constitution(
    bus: Bus,
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    index: VectorIndex,
    wake: Callable[[], None],
    queries: QueryVectors,
    *,
    drift: bool,
) -> None:
    """Serve the questions about the constitutional graph, and follow its news.

    Args:
        bus: the connected bus.
        database: the schema.
        embedder: the model.
        settings: the service's settings.
        index: the index of items; that of nodes stands beside it.
        wake: called after a transaction that may have written news.
        queries: the vectors of questions that are kept.
        drift: whether nodes are embedded anew by the clock, to see whether their vectors drifted.
    """
    stack = AsyncExitStack()
    opened = open_nodes(index, database, embedder.model, embedder.dimension, settings)
    nodes, rows = await stack.enter_async_context(opened)
    bus.on_stop(stack.aclose)
    await warm(rows, embedder)
    bucket = Blobs(bus, BACKUPS)
    parts = assemble_constitution(
        database, embedder, BusConstitution(bus), bucket, settings, nodes, wake=wake, queries=queries, drift=drift
    )
    handlers, span = parts.handlers, partial(traced, bus.tracing)
    parts.embedding.start()
    bus.on_stop(parts.embedding.stop)
    changed = span("upsert_memory", STORE, handlers.on_constitution_changed)
    await follow(bus, writes.CONSTITUTION_CHANGED, changed, workers=4)
    await serve(bus, keeping.EMBEDDINGS_TOOL, handlers.embeddings)
    await serve(bus, keeping.REGENERATE_TOOL, handlers.regenerate, workers=2)
    await serve(bus, keeping.BACKUP_RESTORE_TOOL, handlers.backup_restore, workers=2)
    sources = Sources(parts.vectors, parts.history, parts.texts, parts.queries, embedder, database, BusStructure(bus))
    await serve_searches(bus, sources, RetrievalSettings(), wake)
