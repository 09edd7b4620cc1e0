"""What the memory service does, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from phronesis_bus import Bus, News, Relay, follow, serve, serve_basics
from phronesis_contracts import memory, scoped_memory
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.graph import NODE_CHANGED
from phronesis_contracts.orchestrator import CONVERSATION_DELETED, TURN_ENDED
from phronesis_postgres import Database, PostgresOutbox

from .adapters.bus_graph import BusGraph
from .adapters.forgetting import Forgetting
from .adapters.knowledge import PostgresKnowledge
from .adapters.profiles import PostgresProfiles
from .adapters.rooms import PostgresRooms
from .adapters.texts import PostgresTexts
from .cache import QueryVectors
from .constitution.serving import serve_constitution
from .drafting import Drafting
from .experience.serving import serve_experience
from .facts.serving import serve_facts
from .handlers import Handlers
from .indexes import pgvector
from .nodes import NodeTexts
from .ports import Embedder, Graph, VectorIndex
from .retrieval import Retrieval
from .scoping import Scoping
from .search import HybridSearch
from .settings import ConstitutionSettings, MemorySettings
from .spans import KNOWLEDGE, LOCAL, PROFILES, SCOPES, TracedEmbedder, traced


def assemble(
    database: Database,
    embedder: Embedder,
    graph: Graph,
    settings: MemorySettings,
    wake: Callable[[], None],
    vectors: VectorIndex | None = None,
    queries: QueryVectors | None = None,
) -> tuple[Handlers, VectorIndex]:
    """The handlers on their stores, and the vector index that they share.

    Args:
        database: the schema.
        embedder: the model.
        graph: the graph service.
        settings: the service's settings.
        wake: called after a transaction that wrote news.
        vectors: the vector index; one in the schema where there is none.
        queries: the vectors of questions that are kept; those of its own where there are none.
    """
    vectors = vectors or pgvector(database, embedder.model, embedder.dimension, settings)
    knowledge = PostgresKnowledge(database, vectors, wake)
    queries = queries or QueryVectors(embedder, settings.query_cache_seconds, settings.query_cache_size)
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
    forgetting = Forgetting(database, vectors, wake)
    profiles = PostgresProfiles(database, wake)
    return Handlers(knowledge, forgetting, profiles, search, retrieval, drafting, nodes), vectors


def scoped(
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    wake: Callable[[], None],
    vectors: VectorIndex,
    queries: QueryVectors | None = None,
) -> Scoping:
    """The handlers of memories by scope, on the stores that `assemble` was given."""
    queries = queries or QueryVectors(embedder, settings.query_cache_seconds, settings.query_cache_size)
    rooms = PostgresRooms(database, vectors, wake)
    return Scoping(rooms, queries, Drafting(embedder), seconds=settings.stage_seconds)


async def build(
    bus: Bus,
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    index: VectorIndex,
    constitution: ConstitutionSettings | None = None,
) -> None:
    """Wire the service and let it answer."""
    drift = (constitution or ConstitutionSettings()).drift_recompute
    relay = Relay(bus, PostgresOutbox(database))
    embedding = TracedEmbedder(embedder, bus.tracing, "openai" if settings.embedding_url else LOCAL)
    queries = QueryVectors(embedding, settings.query_cache_seconds, settings.query_cache_size)
    handlers, vectors = assemble(database, embedding, BusGraph(bus), settings, relay.wake, index, queries)
    scopes = scoped(database, embedding, settings, relay.wake, vectors, queries)
    span = partial(traced, bus.tracing)

    relay.start()
    await serve(bus, memory.REMEMBER_TOOL, span("upsert_memory", KNOWLEDGE, handlers.remember), workers=8)
    await serve(bus, memory.RECALL_TOOL, span("search_memory", KNOWLEDGE, handlers.recall))
    await serve(bus, memory.RETRIEVE, span("search_memory", KNOWLEDGE, handlers.retrieve))
    await serve(bus, memory.FORGET_TOOL, span("delete_memory", KNOWLEDGE, handlers.forget))
    await serve(bus, memory.PROFILE_GET_TOOL, span("search_memory", PROFILES, handlers.profile_get))
    await serve(bus, memory.PROFILE_PUT, span("upsert_memory", PROFILES, handlers.profile_put))
    await serve(bus, scoped_memory.RECALL_MEMORY_TOOL, span("search_memory", SCOPES, scopes.recall_memory))
    await serve(bus, scoped_memory.KEEP_MEMORY_TOOL, span("upsert_memory", SCOPES, scopes.keep_memory))
    await serve(bus, scoped_memory.FORGET_MEMORY_TOOL, span("delete_memory", SCOPES, scopes.forget_memory))
    await follow(bus, NODE_CHANGED, span("upsert_memory", KNOWLEDGE, handlers.on_node_changed), workers=2)
    await serve(bus, memory.PROFILE_UPDATE_TOOL, span("update_memory", PROFILES, handlers.profile_update))
    await serve(bus, memory.PROFILE_DELETE_TOOL, span("delete_memory", PROFILES, handlers.profile_delete))
    await follow(bus, TURN_ENDED, span("create_memory", KNOWLEDGE, handlers.on_turn_ended))
    of_facts = await serve_facts(bus, database, embedding, settings, vectors, relay.wake, queries)

    async def on_conversation_deleted(news: News, event: ConversationDeleted) -> None:
        await of_facts(news, event)
        await handlers.on_conversation_deleted(news, event)

    await follow(bus, CONVERSATION_DELETED, span("delete_memory", KNOWLEDGE, on_conversation_deleted), workers=2)

    async def on_items_forgotten(news: News, event: memory.ItemsForgotten) -> None:
        queries.drop(news.tenant)

    await follow(bus, memory.ITEMS_FORGOTTEN, on_items_forgotten, every_copy=True)
    await serve_constitution(bus, database, embedding, settings, vectors, relay.wake, queries, drift=drift)
    await serve_experience(bus, database, embedding, settings, vectors, relay.wake, queries)
    await serve_basics(bus, {"postgres": database.ping, "vectors": vectors.check})
