"""The handlers of the constitutional graph's vectors, and the wiring of everything about that graph."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from phronesis_bus import Blobs, Bus, Call, News, follow, serve
from phronesis_bus.topology import BACKUPS
from phronesis_contracts import ServiceError
from phronesis_contracts.constitution import maintenance, search, writes
from phronesis_contracts.constitution.writes import ConstitutionChanged
from phronesis_postgres import Database

from ..embedding.queries import QueryVectors
from ..indexes import make_pgvector_nodes, make_queries, open_nodes
from ..ports import Embedder, VectorIndex
from ..settings import MemorySettings, RetrievalSettings
from ..tracing import trace_handler
from ..values import utc_now
from ..vectors.format import from_halfvec
from .backups import Backups
from .embedding import EmbeddingWorker
from .graph import BusConstitutionGraph, BusStructure
from .history import NodeHistory
from .pgvector import PgNodeVectors
from .ports import Bucket, ConstitutionGraph, History, LayerState, NodeFilter, NodeVectors, Texts
from .projection import ConstitutionVectors, GraphFollower, Regeneration
from .queue import NodeQueue, NodeSchedule, select_runs
from .search_handlers import Sources, serve_searches
from .semantic import NoiseLevel
from .store import NodeRecords, RecordReader, VectorAudit, VectorRestore


class VectorHandlers:
    def __init__(
        self,
        following: GraphFollower,
        vectors: NodeVectors,
        reader: RecordReader,
        schedule: NodeSchedule,
        regenerating: Regeneration,
        backups: Backups,
        audit: VectorAudit,
        dimension: int,
    ) -> None:
        self._following, self._vectors, self._reader = following, vectors, reader
        self._schedule, self._regenerating, self._backups = schedule, regenerating, backups
        self._audit, self._dimension = audit, dimension

    async def on_constitution_changed(self, news: News, event: ConstitutionChanged) -> None:
        await self._following.follow(news.tenant, event)

    async def embeddings(self, call: Call, request: maintenance.AskEmbeddings) -> maintenance.EmbeddingsTold:
        tenant = call.who.tenant
        counts, tokens = await self._reader.counts(tenant)
        state = await self._vectors.state(tenant)
        return maintenance.EmbeddingsTold(
            records=await self._reader.records(tenant, request.ids) if request.ids else (),
            counts=counts,
            scopes=tuple(_index_scope(layer, self._dimension) for layer in state),
            schedule=await self._schedule.told(),
            backlog=sum(layer.waiting for layer in state),
            tokens=tokens,
            spot_checks=await self._spot(tenant, request.spot_check),
            findings=_findings(counts, self._dimension),
        )

    async def regenerate(self, call: Call, request: maintenance.Regenerate) -> maintenance.Regenerated:
        """Make vectors anew, and make the index agree with the graph."""
        await self._audit.enter(call.who, maintenance.REGENERATE_TOOL.name, request.model_dump(mode="json"))
        return await self._regenerating.regenerate(call.who.tenant, request)

    async def backup_restore(self, call: Call, request: maintenance.BackupOrRestore) -> maintenance.BackupDone:
        if request.operation in ("backup", "restore"):
            which = {"operation": request.operation, "backup_id": request.backup_id}
            await self._audit.enter(call.who, maintenance.BACKUP_RESTORE_TOOL.name, which)
        return await self._backups.do(call.who, request)

    async def _spot(self, tenant: str, most: int) -> tuple[maintenance.SpotCheck, ...]:
        rows = await self._reader.spot(tenant, most) if most else []
        return tuple([await self._checked(tenant, row) for row in rows])

    async def _checked(self, tenant: str, row: dict[str, Any]) -> maintenance.SpotCheck:
        id, norm, rank = row["node_id"], float(row["norm"]), 0
        if row["dimension"] == self._dimension and norm > 0:
            near = await self._vectors.nearest(tenant, from_halfvec(row["numbers"]), NodeFilter(lifecycle=None), 10)
            own = next((hit.cosine for hit in near if hit.id == id), None)
            rank = 0 if own is None else 1 + sum(hit.cosine > own + search.COSINE_ROUNDING for hit in near)
        return maintenance.SpotCheck(node_id=id, dimension=row["dimension"], norm=norm, rank=rank)


def _index_scope(layer: LayerState, dimension: int) -> maintenance.IndexScope:
    state = "POPULATING" if layer.populating else "ONLINE"
    return maintenance.IndexScope.model_validate(
        {"name": layer.name, "layer": layer.layer, "vectors": layer.vectors, "dimension": dimension, "state": state}
    )


def _findings(counts: Sequence[maintenance.EmbeddingCount], dimension: int) -> tuple[str, ...]:
    """What keeps one from relying on the vectors. No vector without a direction is ever stored."""
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


def assemble_constitution(
    database: Database,
    embedder: Embedder,
    graph: ConstitutionGraph,
    bucket: Bucket,
    settings: MemorySettings,
    index: PgNodeVectors | None = None,
    clock: Callable[[], datetime] = utc_now,
    wake: Callable[[], None] = lambda: None,
    queries: QueryVectors | None = None,
    *,
    drift: bool = True,
) -> Parts:
    """The parts on their stores. `drift`: nodes are embedded anew by the clock, to see whether their vectors drifted."""
    of = (embedder.model, embedder.dimension)
    index = index or make_pgvector_nodes(database, *of, settings)
    queue, records, reader = NodeQueue(database, index, *of, wake), NodeRecords(database, index, *of), RecordReader(database)
    schedule = NodeSchedule(database, queue, select_runs(drift=drift))
    embedding = EmbeddingWorker(queue, embedder, index, schedule, clock)
    following = GraphFollower(graph, records, reader, index, embedding.wake, clock)
    vectors = ConstitutionVectors(index, records, queue, following)
    backups = Backups(graph, reader, VectorRestore(database, index, *of), following, bucket, clock)
    regenerating = Regeneration(graph, following, reader, index, clock)
    audit = VectorAudit(database, wake)
    handlers = VectorHandlers(following, vectors, reader, schedule, regenerating, backups, audit, embedder.dimension)
    queries = queries or make_queries(embedder, settings)
    return Parts(
        vectors=vectors,
        history=NodeHistory(database),
        texts=reader,
        queries=queries,
        following=following,
        queue=queue,
        embedding=embedding,
        schedule=schedule,
        regenerating=regenerating,
        handlers=handlers,
    )


async def warm_up(nodes: PgNodeVectors, noise: NoiseLevel) -> None:
    """Ask once, so that the first question after the start is as quick as the next ones."""
    try:
        async with asyncio.timeout(_WARM_UP):
            await noise.of()
            await nodes.warm()
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
    """Serve the questions about the constitutional graph, and follow its news. `drift` is that of `assemble_constitution`."""
    stack = AsyncExitStack()
    opened = open_nodes(index, database, embedder.model, embedder.dimension, settings)
    nodes = await stack.enter_async_context(opened)
    bus.on_stop(stack.aclose)
    noise = NoiseLevel(embedder)
    await warm_up(nodes, noise)
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
    structure = BusStructure(bus)
    sources = Sources(parts.vectors, parts.history, parts.texts, parts.queries, embedder, database, structure, noise)
    await serve_searches(bus, sources, RetrievalSettings(), wake)
