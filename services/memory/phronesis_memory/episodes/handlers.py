"""The handlers of strategies, and the wiring of everything about experience."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from phronesis_bus import Bus, Call, serve
from phronesis_contracts import BadRequest, Label, ServiceError, Unavailable, episodes, merge_labels
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

_CANDIDATES = 60
"""Strategies that are near, of which the best are taken; those that are not recalled any more are among them."""
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
        if reason := refusal_reason(request.score, request.succeeded, request.verified_by is not None):
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
                near = await self._strategies.near(call.who, vectors[request.goal], self._floor, _CANDIDATES, request)
        except (ServiceError, TimeoutError) as error:
            return _answer_without("memory", error)
        best = sorted(near, key=lambda one: (-one.similarity * expected_success(one.uses, one.wins), one.id))
        return episodes.RecalledStrategies(strategies=tuple(best[: request.n]))

    async def strategy_outcome(self, call: Call, request: episodes.StrategyOutcome) -> episodes.StrategyStandings:
        """What the version before says of a task, which nobody verified, changes nothing."""
        return episodes.StrategyStandings()

    async def verify_strategies(self, call: Call, request: episodes.VerifyStrategies) -> episodes.StrategyStandings:
        return await self._strategies.verify(call, request)

    async def list_strategies(self, call: Call, request: episodes.ListStrategies) -> episodes.KeptStrategies:
        return await self._strategies.list(call.who, request)

    async def get_strategy(self, call: Call, request: episodes.StrategyRef) -> episodes.KeptStrategy:
        return await self._strategies.get(call.who, request.strategy_id)

    async def update_strategy(self, call: Call, request: episodes.UpdateStrategy) -> episodes.KeptStrategy:
        known = await self._strategies.get(call.who, request.strategy_id)
        if not request.changes_text:
            return await self._strategies.update(call, request, known, None)
        after = _edited_strategy(known, request, labels_of_call(call, ()))
        text = episodes.RecordStrategy(task_id=after.task_id, goal=after.goal, approach=after.approach, succeeded=True)
        [draft] = await self._drafting.complete([draft_from_strategy(text, after.labels)], {})
        return await self._strategies.update(call, request, after, draft)

    async def retire_strategy(self, call: Call, request: episodes.StrategyRef) -> episodes.KeptStrategy:
        return await self._strategies.retire(call, request)


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


def _edited_strategy(
    known: episodes.KeptStrategy, request: episodes.UpdateStrategy, own: tuple[Label, ...]
) -> episodes.KeptStrategy:
    """A strategy with the text that its user states, which is the user's own; what the user leaves keeps where it comes from.

    Raises:
        BadRequest: nothing is left of a text once it is clean.
    """
    goal = known.goal if request.goal is None else clean_text(request.goal, episodes.MAX_GOAL)
    approach = known.approach if request.approach is None else clean_text(request.approach, episodes.MAX_APPROACH)
    avoid = known.avoid if request.avoid is None else clean_text(request.avoid, episodes.MAX_APPROACH)
    if not goal or not approach:
        raise BadRequest("it says nothing", field="approach" if goal else "goal")
    # The goal is the user's own in any case: it is what the task was asked for.
    whole = request.approach is not None and (request.avoid is not None or not known.avoid)
    labels = own if whole else merge_labels(own, known.labels)
    return known.model_copy(update={"goal": goal, "approach": approach, "avoid": avoid, "labels": labels})


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
    await serve(bus, episodes.STRATEGY_OUTCOME, made.strategies.strategy_outcome)
    await serve(bus, episodes.VERIFY_STRATEGIES, span("update_memory", STORE, made.strategies.verify_strategies))
    await serve(bus, episodes.LIST_STRATEGIES, made.strategies.list_strategies)
    await serve(bus, episodes.GET_STRATEGY, made.strategies.get_strategy)
    await serve(bus, episodes.UPDATE_STRATEGY, span("update_memory", STORE, made.strategies.update_strategy))
    await serve(bus, episodes.RETIRE_STRATEGY, span("update_memory", STORE, made.strategies.retire_strategy))
