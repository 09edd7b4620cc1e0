"""The strategies of tasks, kept by the memory service (V-121, V-128): without it a task is done all the same (V-134)."""

from __future__ import annotations

import logging

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.strategies import (
    MAX_APPROACH,
    MAX_GOAL,
    RECALL_STRATEGIES,
    RECORD_STRATEGY,
    STRATEGY_OUTCOME,
    RecallStrategies,
    RecordStrategy,
    StrategyOutcome,
)

from ..domain import Claim
from ..ports import Neighbours
from .ports import Strategy

log = logging.getLogger(__name__)


class RememberedStrategies:
    """Asks the memory.

    Args:
        neighbours: the services that may be asked.
    """

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours

    async def recall(self, who: Principal, goal: str, n: int) -> tuple[Strategy, ...]:
        """Those for goals like this one, best first."""
        try:
            found = await self._neighbours.ask(who, RECALL_STRATEGIES, RecallStrategies(goal=goal[:MAX_GOAL], n=n))
        except ServiceError as error:
            log.warning("no strategies could be recalled: %s", error.code)
            return ()
        return tuple(Strategy(one.id, one.goal, one.approach, one.tools_used, one.avoid) for one in found.strategies)

    async def record(self, claim: Claim, goal: str, told: Strategy, score: float | None, *, succeeded: bool) -> None:
        """Keep how a task was done; the memory keeps it once for each task (V-132)."""
        request = RecordStrategy(
            task_id=claim.turn_id,
            goal=goal[:MAX_GOAL],
            approach=told.approach[:MAX_APPROACH],
            tools_used=told.tools_used,
            score=score,
            succeeded=succeeded,
            avoid=told.avoid[:MAX_APPROACH],
            conversation_id=claim.conversation_id,
        )
        try:
            await self._neighbours.ask(claim.who, RECORD_STRATEGY, request, key=f"{claim.turn_id}/task.strategy")
        except ServiceError as error:
            log.warning("a strategy could not be recorded: %s", error.code)

    async def outcome(self, claim: Claim, ids: tuple[str, ...], *, worked: bool) -> None:
        """Say what came of using strategies."""
        try:
            request = StrategyOutcome(ids=ids, worked=worked)
            await self._neighbours.ask(claim.who, STRATEGY_OUTCOME, request, key=f"{claim.turn_id}/task.outcome")
        except ServiceError as error:
            log.warning("the outcome of strategies could not be told: %s", error.code)
