"""Strategies: what went well is kept, found again by goals that are like its own, and retired when it works no more."""

from __future__ import annotations

import asyncio
import logging

from phronesis_bus import Call
from phronesis_contracts import ServiceError, Unavailable
from phronesis_contracts.strategies import (
    MAX_APPROACH,
    MAX_GOAL,
    RecalledStrategies,
    RecallStrategies,
    Recording,
    RecordStrategy,
    StrategyOutcome,
    StrategyRecorded,
    StrategyStandings,
)

from ..cache import QueryVectors
from ..drafting import Drafting, of_strategy
from .domain import plain, refusal, worth
from .ports import Strategies

log = logging.getLogger(__name__)

_CANDIDATES = 20
"""Strategies that are near, of which the best are taken."""
_NAME = 200
"""Characters of a tool's name."""


class StrategyHandlers:
    """The handlers of strategies.

    Args:
        strategies: the store.
        queries: the vectors of questions.
        drafting: completes what is to be kept.
        floor: the cosine below which goals are unrelated (V-133).
        seconds: time that each stage of a recall may take.
    """

    def __init__(
        self, strategies: Strategies, queries: QueryVectors, drafting: Drafting, *, floor: float, seconds: float
    ) -> None:
        self._strategies = strategies
        self._queries = queries
        self._drafting = drafting
        self._floor = floor
        self._seconds = seconds

    async def record_strategy(self, call: Call, request: RecordStrategy) -> StrategyRecorded:
        """Keep how a task of the caller was done, if it went well (V-119, V-121, V-123), once for the task (V-132)."""
        if reason := refusal(request.score, request.succeeded):
            log.info("the strategy of task %s is not kept: %s", request.task_id, reason)
            return StrategyRecorded(status=Recording.REFUSED, reason=reason)
        clean = _clean(request)
        if not (clean.goal and clean.approach and clean.task_id):
            return StrategyRecorded(status=Recording.REFUSED, reason="it says nothing")
        [draft] = await self._drafting.complete([of_strategy(clean)], {})
        done = await self._strategies.record(call, clean, draft)
        log.info("the strategy of task %s: %s", request.task_id, done.status)
        return done

    async def recall_strategies(self, call: Call, request: RecallStrategies) -> RecalledStrategies:
        """The caller's strategies for goals like this one (V-120, V-124, V-131); what does not answer is named (V-134)."""
        try:
            async with asyncio.timeout(self._seconds):
                vectors = await self._queries.of(call.who.tenant, [request.goal])
                if request.goal not in vectors:
                    raise Unavailable("the model makes no vector of this goal")
        except (ServiceError, TimeoutError) as error:
            return _without("vector", error)
        try:
            async with asyncio.timeout(self._seconds):
                near = await self._strategies.near(call.who, vectors[request.goal], self._floor, _CANDIDATES)
        except (ServiceError, TimeoutError) as error:
            return _without("memory", error)
        best = sorted(near, key=lambda one: (-one.similarity * worth(one.uses, one.wins), one.id))
        return RecalledStrategies(strategies=tuple(best[: request.n]))

    async def strategy_outcome(self, call: Call, request: StrategyOutcome) -> StrategyStandings:
        """Raise or lower strategies of the caller by what came of their use; one that stops working is retired."""
        return await self._strategies.settle(call, request)


def _clean(request: RecordStrategy) -> RecordStrategy:
    return request.model_copy(
        update={
            "task_id": plain(request.task_id, 100),
            "goal": plain(request.goal, MAX_GOAL),
            "approach": plain(request.approach, MAX_APPROACH),
            "avoid": plain(request.avoid, MAX_APPROACH),
            "tools_used": tuple(name for tool in request.tools_used if (name := plain(tool, _NAME))),
        }
    )


def _without(part: str, error: Exception) -> RecalledStrategies:
    log.warning("the %s part of recalling strategies failed: %s", part, getattr(error, "code", "timed_out"))
    return RecalledStrategies(degraded=(part,))
