"""What experience needs from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.episodes import (
    AskToolStatistics,
    Episode,
    MemoryHit,
    RecordStrategy,
    Strategy,
    StrategyOutcome,
    StrategyRecorded,
    StrategyStandings,
    ToolStatistics,
)
from phronesis_contracts.memory import Profile

from ..values import Audience, Draft, Item, Vector


class Episodes(Protocol):
    """The store of episodes."""

    async def episodes(self, who: Principal, scores: Mapping[str, float]) -> list[Episode]:
        """Those of the caller's episodes with these ids and scores, in their order."""
        ...


class Outcomes(Protocol):
    """The store of what came of tool calls."""

    async def statistics(self, who: Principal, asked: AskToolStatistics) -> ToolStatistics:
        """How often the caller's tools were called, and how often that worked."""
        ...

    async def failures(self, who: Principal, query: str, limit: int) -> list[MemoryHit]:
        """Failed calls of the caller: of the tools that the question names, newest first; where it names none, those whose
        errors share words with it."""
        ...


class Strategies(Protocol):
    """The store of strategies."""

    async def record(self, call: Call, request: RecordStrategy, draft: Draft) -> StrategyRecorded:
        """Keep a strategy of the caller's, once for its task and once for the call's key."""
        ...

    async def near(self, who: Principal, goal: Vector, floor: float, most: int) -> list[Strategy]:
        """The caller's strategies that are not retired and whose goals are near, nearest first.

        Args:
            who: the caller.
            goal: vector of the goal that is asked for.
            floor: least cosine.
            most: strategies at most.
        """
        ...

    async def settle(self, call: Call, request: StrategyOutcome) -> StrategyStandings:
        """Count a use of the caller's strategies, once for the call's key."""
        ...


class Profiles(Protocol):
    """Reads profiles."""

    async def get(self, who: Principal) -> Profile:
        """The caller's profile."""
        ...


class Items(Protocol):
    """Reads items."""

    async def items(self, audience: Audience, ids: Sequence[str]) -> list[Item]:
        """Those of the items that the audience holds."""
        ...
