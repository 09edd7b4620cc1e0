"""Contracts of strategies: how a task that went well was done, found again by goals that are like its own."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .messages import Message, Rpc

MIN_SCORE = 0.75
"""The score of a critic from which on a task's approach is kept (V-121)."""
MAX_GOAL = 2_000
MAX_APPROACH = 4_000
"""Characters of an approach, and of what to avoid."""


class RecordStrategy(Message):
    """How a background task was done, to be kept for the caller if it went well."""

    task_id: str = Field(min_length=1, max_length=100)
    """The task; a strategy is kept once for each (V-132)."""
    goal: str = Field(min_length=1, max_length=MAX_GOAL)
    approach: str = Field(min_length=1, max_length=MAX_APPROACH)
    tools_used: tuple[str, ...] = Field(default=(), max_length=50)
    """In the order in which they were used (V-126)."""
    score: float | None = None
    """The critic's, 0 to 1; without one the task counts as not successful (V-044)."""
    succeeded: bool
    """Whether the task ended well; a failed one is no advice (V-122)."""
    avoid: str = Field(default="", max_length=MAX_APPROACH)
    """What failed on the way and was recovered from (V-126)."""
    conversation_id: str | None = Field(default=None, max_length=64)
    """The conversation that it was learnt from; the strategy goes with it."""


class Recording(StrEnum):
    """What became of a strategy that was to be recorded."""

    RECORDED = "recorded"
    KNOWN = "known"
    """This task's was there already."""
    REFUSED = "refused"


class StrategyRecorded(Message):
    """What became of it, and why (V-123)."""

    status: Recording
    id: str | None = None
    reason: str = ""
    """Why it was refused."""


class RecallStrategies(Message):
    """A goal, for which strategies of the caller are looked for."""

    goal: str = Field(min_length=1, max_length=MAX_GOAL)
    n: int = Field(default=2, ge=1, le=10)


class Strategy(Message):
    """One strategy."""

    id: str
    goal: str
    approach: str
    avoid: str = ""
    tools_used: tuple[str, ...] = ()
    score: float
    """The critic's."""
    similarity: float
    """Cosine of its goal to the one that was asked for."""
    uses: int
    """How often it was used since."""
    wins: int
    """How often that went well."""
    created_at: datetime


class RecalledStrategies(Message):
    """Strategies, best first: by similarity and by how well they have worked since."""

    strategies: tuple[Strategy, ...] = ()
    degraded: tuple[str, ...] = ()
    """What could not be searched: `vector`, `memory`."""


class StrategyOutcome(Message):
    """What came of a task that strategies were used for."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=10)
    worked: bool


class StrategyStanding(Message):
    """How a strategy stands."""

    id: str
    uses: int
    wins: int
    retired: bool
    """It has stopped working and is recalled no more."""


class StrategyStandings(Message):
    """Those of the strategies that are the caller's."""

    strategies: tuple[StrategyStanding, ...] = ()


RECORD_STRATEGY = Rpc("memory.v1.strategies.record", RecordStrategy, StrategyRecorded, timeout=10.0)
RECALL_STRATEGIES = Rpc("memory.v1.strategies.recall", RecallStrategies, RecalledStrategies)
STRATEGY_OUTCOME = Rpc("memory.v1.strategies.outcome", StrategyOutcome, StrategyStandings)
