"""What the memory service does for experience, and what that is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from phronesis_bus import Bus, serve
from phronesis_contracts import episodes, strategies
from phronesis_postgres import Database

from ..adapters.experience_episodes import PostgresEpisodes
from ..adapters.experience_outcomes import PostgresOutcomes
from ..adapters.experience_strategies import PostgresStrategies
from ..adapters.knowledge import PostgresKnowledge
from ..adapters.profiles import PostgresProfiles
from ..adapters.texts import PostgresTexts
from ..cache import QueryVectors
from ..drafting import Drafting
from ..ports import Embedder, VectorIndex
from ..search import HybridSearch
from ..settings import MemorySettings
from ..spans import traced
from .querying import Querying
from .remembering import Remembering
from .settings import ExperienceSettings
from .strategies import StrategyHandlers

STORE = "experience"
"""The store, as spans name it."""


@dataclass(frozen=True)
class Experience:
    """The handlers of experience."""

    remembering: Remembering
    querying: Querying
    strategies: StrategyHandlers


def assemble_experience(
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    vectors: VectorIndex,
    wake: Callable[[], None],
    experience: ExperienceSettings | None = None,
    queries: QueryVectors | None = None,
) -> Experience:
    """The handlers on their stores.

    Args:
        database: the schema.
        embedder: the model.
        settings: the service's settings.
        vectors: the vector index.
        wake: called after a transaction that wrote news.
        experience: settings of experience; the defaults where none are given.
        queries: the vectors of questions that are kept; those of its own where there are none.
    """
    chosen = experience or ExperienceSettings()
    queries = queries or QueryVectors(embedder, settings.query_cache_seconds, settings.query_cache_size)
    seconds = settings.stage_seconds
    search = HybridSearch(vectors, PostgresTexts(database), queries, candidates=settings.candidates, seconds=seconds)
    outcomes = PostgresOutcomes(database)
    remembering = Remembering(search, PostgresEpisodes(database), outcomes, floor=embedder.floor)
    items, profiles = PostgresKnowledge(database, vectors, wake), PostgresProfiles(database, wake)
    return Experience(
        remembering,
        Querying(remembering, items, profiles, outcomes, seconds=chosen.query_seconds),
        StrategyHandlers(
            PostgresStrategies(database, vectors, wake),
            queries,
            Drafting(embedder),
            floor=chosen.floor(embedder.floor),
            seconds=seconds,
        ),
    )


async def serve_experience(
    bus: Bus,
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    vectors: VectorIndex,
    wake: Callable[[], None],
    queries: QueryVectors,
) -> None:
    """Wire the handlers and let them answer."""
    made = assemble_experience(database, embedder, settings, vectors, wake, queries=queries)
    span = partial(traced, bus.tracing)
    await serve(bus, episodes.RECALL_EPISODES, span("search_memory", STORE, made.remembering.recall_episodes))
    await serve(bus, episodes.TOOL_STATISTICS, span("search_memory", STORE, made.remembering.tool_statistics))
    await serve(bus, episodes.MEMORY_QUERY_TOOL, span("search_memory", STORE, made.querying.memory_query))
    await serve(bus, strategies.RECORD_STRATEGY, span("create_memory", STORE, made.strategies.record_strategy))
    await serve(bus, strategies.RECALL_STRATEGIES, span("search_memory", STORE, made.strategies.recall_strategies))
    await serve(bus, strategies.STRATEGY_OUTCOME, span("update_memory", STORE, made.strategies.strategy_outcome))
