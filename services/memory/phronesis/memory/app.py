"""What the memory service does, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable

from phronesis.bus import Bus, Relay, follow, serve, serve_basics
from phronesis.contracts import memory
from phronesis.contracts.graph import NODE_CHANGED
from phronesis.contracts.orchestrator import TURN_ENDED
from phronesis.postgres import Database, PostgresOutbox

from .adapters.bus_graph import BusGraph
from .adapters.knowledge import PostgresKnowledge
from .adapters.pgvector import PgVector
from .adapters.profiles import PostgresProfiles
from .adapters.texts import PostgresTexts
from .cache import QueryVectors
from .drafting import Drafting
from .handlers import Handlers
from .nodes import NodeTexts
from .ports import Embedder, Graph
from .retrieval import Retrieval
from .search import HybridSearch
from .settings import MemorySettings


def assemble(
    database: Database, embedder: Embedder, graph: Graph, settings: MemorySettings, wake: Callable[[], None]
) -> tuple[Handlers, PgVector]:
    """The handlers on their stores, and the vector index that they share.

    Args:
        database: the schema.
        embedder: the model.
        graph: the graph service.
        settings: the service's settings.
        wake: called after a transaction that wrote news.
    """
    vectors = PgVector(
        database,
        embedder.model,
        embedder.dimension,
        exact_rows=settings.exact_rows,
        ef_search=settings.ef_search,
        max_scan=settings.max_scan,
    )
    knowledge = PostgresKnowledge(database, vectors, wake)
    queries = QueryVectors(embedder, settings.query_cache_seconds, settings.query_cache_size)
    seconds = settings.stage_seconds
    search = HybridSearch(vectors, PostgresTexts(database), queries, candidates=settings.candidates, seconds=seconds)
    retrieval = Retrieval(
        search,
        graph,
        knowledge,
        floor=embedder.floor,
        per_phrase=settings.seeds_per_phrase,
        most=settings.max_seeds,
        seconds=seconds,
    )
    drafting = Drafting(embedder)
    nodes = NodeTexts(graph, knowledge, drafting)
    return Handlers(knowledge, PostgresProfiles(database, wake), search, retrieval, drafting, nodes), vectors


async def build(bus: Bus, database: Database, embedder: Embedder, settings: MemorySettings) -> None:
    """Wire the service and let it answer."""
    relay = Relay(bus, PostgresOutbox(database))
    handlers, vectors = assemble(database, embedder, BusGraph(bus), settings, relay.wake)

    relay.start()
    await serve(bus, memory.REMEMBER_TOOL, handlers.remember, workers=8)
    await serve(bus, memory.RECALL_TOOL, handlers.recall)
    await serve(bus, memory.RETRIEVE, handlers.retrieve)
    await serve(bus, memory.PROFILE_GET, handlers.profile_get)
    await serve(bus, memory.PROFILE_PUT, handlers.profile_put)
    await follow(bus, NODE_CHANGED, handlers.on_node_changed, workers=2)
    await follow(bus, TURN_ENDED, handlers.on_turn_ended)
    await serve_basics(bus, {"postgres": database.ping, "vectors": vectors.check})
