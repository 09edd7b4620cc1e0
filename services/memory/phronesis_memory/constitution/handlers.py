"""The handlers of the constitutional graph's vectors, and the wiring of everything about that graph."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from phronesis_bus import Blobs, Bus, Call, News, follow, serve
from phronesis_bus.topology import BACKUPS
from phronesis_contracts import ServiceError
from phronesis_contracts.constitution import maintenance, search, writes
from phronesis_contracts.constitution.maintenance import (
    BACKUP_RESTORE_TOOL,
    REGENERATE_TOOL,
    AskEmbeddings,
    BackupDone,
    BackupOrRestore,
    EmbeddingCount,
    EmbeddingsTold,
    IndexScope,
    Regenerate,
    Regenerated,
    SpotCheck,
)
from phronesis_contracts.constitution.writes import ConstitutionChanged
from phronesis_postgres import Database

from ..embedding.queries import QueryVectors
from ..indexes import make_pgvector_nodes, open_nodes
from ..ports import Embedder, VectorIndex
from ..settings import MemorySettings, RetrievalSettings
from ..tracing import trace_handler
from ..vectors.format import from_halfvec
from .backups import Backups
from .embedding import EmbeddingWorker
from .graph import BusConstitutionGraph, BusStructure
from .history import NodeHistory
from .pgvector import PgNodeVectors
from .ports import Bucket, ConstitutionGraph, History, LayerState, NodeFilter, NodeIndex, NodeVectors, Texts
from .projection import ConstitutionVectors, GraphFollower, Regeneration
from .queue import NodeQueue, NodeSchedule, select_runs
from .search_handlers import Sources, serve_searches
from .store import NodeRecords, RecordReader, VectorAudit, VectorRestore


class VectorHandlers:
    """The handlers.

    Args:
        following: the follower of the graph.
        vectors: the vectors.
        standing: what the records say.
        schedule: the runs by the clock.
        regenerating: makes vectors anew.
        backups: makes backups and restores them.
        audit: where it is entered who did so.
        dimension: numbers in the vectors of the service's model.
    """

    def __init__(
        self,
        following: GraphFollower,
        vectors: NodeVectors,
        standing: RecordReader,
        schedule: NodeSchedule,
        regenerating: Regeneration,
        backups: Backups,
        audit: VectorAudit,
        dimension: int,
    ) -> None:
        self._following = following
        self._vectors = vectors
        self._standing = standing
        self._schedule = schedule
        self._regenerating = regenerating
        self._backups = backups
        self._audit = audit
        self._dimension = dimension

    async def on_constitution_changed(self, news: News, event: ConstitutionChanged) -> None:
        """Make the records of changed nodes what the graph says."""
        await self._following.follow(news.tenant, event)

    async def embeddings(self, call: Call, request: AskEmbeddings) -> EmbeddingsTold:
        """Records of vectors, counts, scopes and batches."""
        tenant = call.who.tenant
        counts, tokens = await self._standing.counts(tenant)
        state = await self._vectors.state(tenant)
        return EmbeddingsTold(
            records=await self._standing.records(tenant, request.ids) if request.ids else (),
            counts=counts,
            scopes=tuple(_index_scope(layer, self._dimension) for layer in state),
            schedule=await self._schedule.told(),
            backlog=sum(layer.waiting for layer in state),
            tokens=tokens,
            spot_checks=await self._spot(tenant, request.spot_check),
            findings=_findings(counts, self._dimension),
        )

    async def regenerate(self, call: Call, request: Regenerate) -> Regenerated:
        """Make vectors anew, and make the index agree with the graph."""
        await self._audit.enter(call.who, REGENERATE_TOOL.name, request.model_dump(mode="json"))
        return await self._regenerating.regenerate(call.who.tenant, request)

    async def backup_restore(self, call: Call, request: BackupOrRestore) -> BackupDone:
        """Back up the graph with its vectors, or restore it."""
        if request.operation in ("backup", "restore"):
            which = {"operation": request.operation, "backup_id": request.backup_id}
            await self._audit.enter(call.who, BACKUP_RESTORE_TOOL.name, which)
        return await self._backups.do(call.who, request)

    async def _spot(self, tenant: str, most: int) -> tuple[SpotCheck, ...]:
        rows = await self._standing.spot(tenant, most) if most else []
        return tuple([await self._checked(tenant, row) for row in rows])

    async def _checked(self, tenant: str, row: dict[str, Any]) -> SpotCheck:
        id, norm, rank = row["node_id"], float(row["norm"]), 0
        if row["dimension"] == self._dimension and norm > 0:
            near = await self._vectors.nearest(tenant, from_halfvec(row["numbers"]), NodeFilter(lifecycle=None), 10)
            own = next((hit.cosine for hit in near if hit.id == id), None)
            rank = 0 if own is None else 1 + sum(hit.cosine > own + search.COSINE_ROUNDING for hit in near)
        return SpotCheck(node_id=id, dimension=row["dimension"], norm=norm, rank=rank)


def _index_scope(layer: LayerState, dimension: int) -> IndexScope:
    state = "POPULATING" if layer.populating else "ONLINE"
    return IndexScope.model_validate(
        {"name": layer.name, "layer": layer.layer, "vectors": layer.vectors, "dimension": dimension, "state": state}
    )


def _findings(counts: Sequence[EmbeddingCount], dimension: int) -> tuple[str, ...]:
    """What keeps one from relying on the vectors (O-368). No vector without a direction is ever stored."""
    findings = []
    for count in counts:
        wrong = sum(nodes for size, nodes in count.dimensions.items() if size != str(dimension))
        due = sum(nodes for state, nodes in count.states.items() if state != "skipped")
        lacking = due - sum(count.dimensions.values())
        if wrong:
            findings.append(f"{wrong} vectors of type {count.type} do not have {dimension} numbers")
        if lacking > 0:
            findings.append(f"{lacking} nodes of type {count.type} have no vector")
    return tuple(findings)


log = logging.getLogger(__name__)

_WARM_UP = 10.0
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
    following: GraphFollower
    queue: NodeQueue
    embedding: EmbeddingWorker
    schedule: NodeSchedule
    regenerating: Regeneration
    handlers: VectorHandlers


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def assemble_constitution(
    database: Database,
    embedder: Embedder,
    graph: ConstitutionGraph,
    bucket: Bucket,
    settings: MemorySettings,
    index: NodeIndex | None = None,
    clock: Callable[[], datetime] = utc_now,
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
    rows: PgNodeVectors = make_pgvector_nodes(database, *of, settings)
    index = index or rows
    queue, records, standing = NodeQueue(database, index, *of, wake), NodeRecords(database, index, *of), RecordReader(database)
    schedule = NodeSchedule(database, queue, select_runs(drift=drift))
    embedding = EmbeddingWorker(queue, embedder, index, rows.nearest, schedule, clock)
    following = GraphFollower(graph, records, standing, index, embedding.wake, clock)
    vectors = ConstitutionVectors(rows, index, records, queue, following)
    backups = Backups(graph, standing, VectorRestore(database, index, *of), following, bucket, clock)
    regenerating = Regeneration(graph, following, standing, index, clock)
    audit = VectorAudit(database, wake)
    handlers = VectorHandlers(following, vectors, standing, schedule, regenerating, backups, audit, embedder.dimension)
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


async def warm_up(rows: PgNodeVectors, embedder: Embedder) -> None:
    """Ask once, so that the first question after the start is as quick as the next ones (O-092, O-338)."""
    try:
        async with asyncio.timeout(_WARM_UP):
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
    await warm_up(rows, embedder)
    bucket = Blobs(bus, BACKUPS)
    parts = assemble_constitution(
        database, embedder, BusConstitutionGraph(bus), bucket, settings, nodes, wake=wake, queries=queries, drift=drift
    )
    handlers, span = parts.handlers, partial(trace_handler, bus.tracing)
    parts.embedding.start()
    bus.on_stop(parts.embedding.stop)
    changed = span("upsert_memory", STORE, handlers.on_constitution_changed)
    await follow(bus, writes.CONSTITUTION_CHANGED, changed, workers=4)
    await serve(bus, maintenance.EMBEDDINGS_TOOL, handlers.embeddings)
    await serve(bus, maintenance.REGENERATE_TOOL, handlers.regenerate, workers=2)
    await serve(bus, maintenance.BACKUP_RESTORE_TOOL, handlers.backup_restore, workers=2)
    sources = Sources(parts.vectors, parts.history, parts.texts, parts.queries, embedder, database, BusStructure(bus))
    await serve_searches(bus, sources, RetrievalSettings(), wake)
