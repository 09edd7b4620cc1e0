"""What the memory service does with facts and for forgetting, and what that is made of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from phronesis_bus import Bus, News, follow, serve
from phronesis_contracts import ServiceError, facts, forgetting
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.graph import GRAPH_PURGED
from phronesis_postgres import Database

from ..adapters.fact_forgetting import PostgresForgettings
from ..adapters.facts import PostgresFacts
from ..adapters.texts import PostgresTexts
from ..cache import QueryVectors
from ..drafting import Drafting
from ..ports import Embedder, VectorIndex
from ..search import HybridSearch
from ..settings import MemorySettings
from ..spans import traced
from .handlers import FactHandlers

log = logging.getLogger(__name__)

STORE = "facts"
"""The store, as spans name it."""
_AGAIN = 5.0
"""Seconds until a store that was away is tried once more."""


def assemble_facts(
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    wake: Callable[[], None],
    vectors: VectorIndex,
    queries: QueryVectors | None = None,
) -> tuple[FactHandlers, PostgresForgettings]:
    """The handlers on their stores. The arguments are those of `assemble`."""
    queries = queries or QueryVectors(embedder, settings.query_cache_seconds, settings.query_cache_size)
    seconds = settings.stage_seconds
    search = HybridSearch(vectors, PostgresTexts(database), queries, candidates=settings.candidates, seconds=seconds)
    forgettings = PostgresForgettings(database, vectors, wake)
    return FactHandlers(PostgresFacts(database, vectors, wake), forgettings, search, Drafting(embedder)), forgettings


async def serve_facts(
    bus: Bus,
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    vectors: VectorIndex,
    wake: Callable[[], None],
    queries: QueryVectors,
) -> Callable[[News, ConversationDeleted], Awaitable[None]]:
    """Let the service answer for facts. The arguments are those of `assemble`.

    Returns:
        What is to be done with the facts of a deleted conversation, before the service reports on it.
    """
    handlers, forgettings = assemble_facts(database, embedder, settings, wake, vectors, queries)
    span = partial(traced, bus.tracing)
    await serve(bus, facts.LEARN, span("upsert_memory", STORE, handlers.learn))
    await serve(bus, facts.LIST_FACTS_TOOL, span("search_memory", STORE, handlers.list_facts))
    await serve(bus, facts.RECALL_FACTS_TOOL, span("search_memory", STORE, handlers.recall_facts))
    await serve(bus, facts.IMPORT_MEMORY_TOOL, span("upsert_memory", STORE, handlers.import_memory))
    await serve(bus, forgetting.PREVIEW_FORGETTING_TOOL, span("search_memory", STORE, handlers.preview_forgetting))
    await serve(bus, forgetting.FORGET_FOR_GOOD_TOOL, span("delete_memory", STORE, handlers.forget_for_good))
    await serve(bus, forgetting.GET_FORGETTING_TOOL, span("search_memory", STORE, handlers.get_forgetting))
    await follow(bus, GRAPH_PURGED, handlers.on_purged, workers=1)
    await follow(bus, forgetting.COPIES_PURGED, handlers.on_copies_purged, workers=1)
    repeating = asyncio.create_task(_repeat(forgettings), name="memory-forget-again")
    bus.on_stop(lambda: _ended(repeating))
    return handlers.on_conversation_deleted


async def _repeat(forgettings: PostgresForgettings) -> None:
    """Forget again what a restored backup brought back."""
    while True:
        try:
            if count := await forgettings.repeat():
                log.info("%d forgettings were made again", count)
            return
        except ServiceError as error:
            log.warning("what was forgotten cannot be forgotten again yet: %s", error.code)
            await asyncio.sleep(_AGAIN)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
