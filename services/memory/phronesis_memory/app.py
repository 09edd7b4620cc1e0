"""What the memory service does, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from phronesis_bus import Bus, News, Relay, follow, serve, serve_basics
from phronesis_contracts import memory
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.orchestrator import CONVERSATION_DELETED, TURN_ENDED
from phronesis_contracts.twin import NODE_CHANGED
from phronesis_postgres import Database, PostgresOutbox

from .constitution.handlers import serve_constitution
from .documents.handlers import serve_documents
from .embedding.queries import QueryVectors
from .episodes.handlers import serve_experience
from .facts.handlers import serve_facts
from .indexes import make_pgvector_index, make_queries, make_search
from .items.drafts import Drafter
from .items.handlers import BusGraph, ItemHandlers, NodeTextProjection
from .items.rows import ItemRemover
from .items.scopes import PostgresScopedMemories, ScopeHandlers
from .items.search import Retrieval
from .items.store import PostgresKnowledge
from .memories.ending import serve_ending
from .memories.handlers import serve_memories
from .ports import Embedder, Graph, VectorIndex
from .profiles.handlers import ProfileHandlers
from .profiles.store import PostgresProfiles
from .settings import ConstitutionSettings, MemorySettings
from .tracing import KNOWLEDGE, LOCAL, PROFILES, SCOPES, TracedEmbedder, trace_handler


def assemble(
    database: Database,
    embedder: Embedder,
    graph: Graph,
    settings: MemorySettings,
    wake: Callable[[], None],
    vectors: VectorIndex | None = None,
    queries: QueryVectors | None = None,
) -> tuple[ItemHandlers, VectorIndex]:
    """The handlers on their stores, and the vector index that they share."""
    vectors = vectors or make_pgvector_index(database, embedder.model, embedder.dimension, settings)
    knowledge = PostgresKnowledge(database, vectors, wake)
    search = make_search(database, vectors, queries or make_queries(embedder, settings), settings)
    retrieval = Retrieval(
        search,
        graph,
        knowledge,
        floor=embedder.floor,
        per_phrase=settings.seeds_per_phrase,
        most=settings.max_seeds,
        seconds=settings.stage_seconds,
    )
    drafting = Drafter(embedder)
    nodes = NodeTextProjection(graph, knowledge, drafting)
    return ItemHandlers(knowledge, ItemRemover(database, vectors, wake), search, retrieval, drafting, nodes), vectors


def assemble_scopes(
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    wake: Callable[[], None],
    vectors: VectorIndex,
    queries: QueryVectors | None = None,
) -> ScopeHandlers:
    """The handlers of memories by scope, on the stores that `assemble` was given."""
    queries = queries or make_queries(embedder, settings)
    memories = PostgresScopedMemories(database, vectors, wake)
    return ScopeHandlers(memories, queries, Drafter(embedder), seconds=settings.stage_seconds)


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
    queries = make_queries(embedding, settings)
    handlers, vectors = assemble(database, embedding, BusGraph(bus), settings, relay.wake, index, queries)
    scopes = assemble_scopes(database, embedding, settings, relay.wake, vectors, queries)
    profiles = ProfileHandlers(PostgresProfiles(database, relay.wake))
    span = partial(trace_handler, bus.tracing)

    relay.start()
    await serve(bus, memory.REMEMBER_TOOL, span("upsert_memory", KNOWLEDGE, handlers.remember), workers=8)
    await serve(bus, memory.RECALL_TOOL, span("search_memory", KNOWLEDGE, handlers.recall))
    await serve(bus, memory.RETRIEVE, span("search_memory", KNOWLEDGE, handlers.retrieve))
    await serve(bus, memory.FORGET_TOOL, span("delete_memory", KNOWLEDGE, handlers.forget))
    await serve(bus, memory.PROFILE_GET_TOOL, span("search_memory", PROFILES, profiles.get))
    await serve(bus, memory.PROFILE_PUT, span("upsert_memory", PROFILES, profiles.put))
    await serve(bus, memory.RECALL_MEMORY_TOOL, span("search_memory", SCOPES, scopes.recall_memory))
    await serve(bus, memory.KEEP_MEMORY_TOOL, span("upsert_memory", SCOPES, scopes.keep_memory))
    await serve(bus, memory.FORGET_MEMORY_TOOL, span("delete_memory", SCOPES, scopes.forget_memory))
    await follow(bus, NODE_CHANGED, span("upsert_memory", KNOWLEDGE, handlers.on_node_changed), workers=2)
    await serve(bus, memory.PROFILE_UPDATE_TOOL, span("update_memory", PROFILES, profiles.update))
    await serve(bus, memory.PROFILE_DELETE_TOOL, span("delete_memory", PROFILES, profiles.delete))
    await follow(bus, TURN_ENDED, span("create_memory", KNOWLEDGE, handlers.on_turn_ended))
    await serve_ending(bus, database, vectors, relay.wake)
    await serve_memories(bus, database, embedding, settings, vectors, relay.wake, queries)
    await serve_documents(bus, database, embedding, settings, vectors, queries)
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
