"""The handlers of strategies, and the wiring of everything about experience."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from phronesis_bus import Bus, Call, serve
from phronesis_contracts import ServiceError, Unavailable, episodes
from phronesis_postgres import Database

from ..embedding.queries import QueryVectors
from ..indexes import make_queries, make_search
from ..items.drafts import Drafter, draft_from_strategy
from ..items.store import PostgresKnowledge
from ..ports import Embedder, VectorIndex
from ..profiles.store import PostgresProfiles
from ..settings import ExperienceSettings, MemorySettings
from ..tracing import trace_handler
from ..values import labels_of_call
from .recall import EpisodeRecall, MemoryQueries
from .store import PostgresEpisodes, PostgresOutcomes, PostgresStrategies
from .strategies import clean_text, expected_success, refusal_reason

log = logging.getLogger(__name__)

_CANDIDATES = 20
"""Strategies that are near, of which the best are taken."""
_NAME = 200
"""Characters of a tool's name."""


class StrategyHandlers:
    """The handlers of strategies.

    Args:
        floor: the cosine below which goals are unrelated.
        seconds: time that each stage of a recall may take.
    """

    def __init__(
        self, strategies: PostgresStrategies, queries: QueryVectors, drafting: Drafter, *, floor: float, seconds: float
    ) -> None:
        self._strategies, self._queries, self._drafting = strategies, queries, drafting
        self._floor, self._seconds = floor, seconds

    async def record_strategy(self, call: Call, request: episodes.RecordStrategy) -> episodes.StrategyRecorded:
        if reason := refusal_reason(request.score, request.succeeded):
            log.info("the strategy of task %s is not kept: %s", request.task_id, reason)
            return episodes.StrategyRecorded(status=episodes.Recording.REFUSED, reason=reason)
        clean = _clean_strategy(request)
        if not (clean.goal and clean.approach and clean.task_id):
            return episodes.StrategyRecorded(status=episodes.Recording.REFUSED, reason="it says nothing")
        [draft] = await self._drafting.complete([draft_from_strategy(clean, labels_of_call(call, request.labels))], {})
        done = await self._strategies.record(call, clean, draft)
        log.info("the strategy of task %s: %s", request.task_id, done.status)
        return done

    async def recall_strategies(self, call: Call, request: episodes.RecallStrategies) -> episodes.RecalledStrategies:
        try:
            async with asyncio.timeout(self._seconds):
                vectors = await self._queries.of(call.who.tenant, [request.goal])
                if request.goal not in vectors:
                    raise Unavailable("the model makes no vector of this goal")
        except (ServiceError, TimeoutError) as error:
            return _answer_without("vector", error)
        try:
            async with asyncio.timeout(self._seconds):
                near = await self._strategies.near(call.who, vectors[request.goal], self._floor, _CANDIDATES)
        except (ServiceError, TimeoutError) as error:
            return _answer_without("memory", error)
        best = sorted(near, key=lambda one: (-one.similarity * expected_success(one.uses, one.wins), one.id))
        return episodes.RecalledStrategies(strategies=tuple(best[: request.n]))

    async def strategy_outcome(self, call: Call, request: episodes.StrategyOutcome) -> episodes.StrategyStandings:
        return await self._strategies.settle(call, request)


def _clean_strategy(request: episodes.RecordStrategy) -> episodes.RecordStrategy:
    return request.model_copy(
        update={
            "task_id": clean_text(request.task_id, 100),
            "goal": clean_text(request.goal, episodes.MAX_GOAL),
            "approach": clean_text(request.approach, episodes.MAX_APPROACH),
            "avoid": clean_text(request.avoid, episodes.MAX_APPROACH),
            "tools_used": tuple(name for tool in request.tools_used if (name := clean_text(tool, _NAME))),
        }
    )


def _answer_without(part: str, error: Exception) -> episodes.RecalledStrategies:
    log.warning("the %s part of recalling strategies failed: %s", part, getattr(error, "code", "timed_out"))
    return episodes.RecalledStrategies(degraded=(part,))


STORE = "experience"
"""The store, as spans name it."""


@dataclass(frozen=True)
class Experience:
    remembering: EpisodeRecall
    querying: MemoryQueries
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
    """The handlers on their stores."""
    chosen = experience or ExperienceSettings()
    queries = queries or make_queries(embedder, settings)
    search = make_search(database, vectors, queries, settings)
    outcomes = PostgresOutcomes(database)
    remembering = EpisodeRecall(search, PostgresEpisodes(database), outcomes, floor=embedder.floor)
    items, profiles = PostgresKnowledge(database, vectors, wake), PostgresProfiles(database, wake)
    return Experience(
        remembering,
        MemoryQueries(remembering, items, profiles, outcomes, seconds=chosen.query_seconds),
        StrategyHandlers(
            PostgresStrategies(database, vectors, wake),
            queries,
            Drafter(embedder),
            floor=chosen.floor(embedder.floor),
            seconds=settings.stage_seconds,
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
    made = assemble_experience(database, embedder, settings, vectors, wake, queries=queries)
    span = partial(trace_handler, bus.tracing)
    await serve(bus, episodes.RECALL_EPISODES, span("search_memory", STORE, made.remembering.recall_episodes))
    await serve(bus, episodes.TOOL_STATISTICS, span("search_memory", STORE, made.remembering.tool_statistics))
    await serve(bus, episodes.MEMORY_QUERY_TOOL, span("search_memory", STORE, made.querying.memory_query))
    await serve(bus, episodes.RECORD_STRATEGY, span("create_memory", STORE, made.strategies.record_strategy))
    await serve(bus, episodes.RECALL_STRATEGIES, span("search_memory", STORE, made.strategies.recall_strategies))
    await serve(bus, episodes.STRATEGY_OUTCOME, span("update_memory", STORE, made.strategies.strategy_outcome))
