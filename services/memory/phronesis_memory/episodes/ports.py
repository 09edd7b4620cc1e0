"""What experience needs from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from phronesis_contracts import Principal
from phronesis_contracts.episodes import AskToolStatistics, Episode, MemoryHit, ToolStatistics
from phronesis_contracts.memory import Profile

from ..values import Audience, Item


class Episodes(Protocol):
    async def episodes(self, who: Principal, scores: Mapping[str, float]) -> list[Episode]:
        """Those of the caller's episodes with these ids and scores, in their order."""


class Outcomes(Protocol):
    """The store of what came of tool calls."""

    async def statistics(self, who: Principal, request: AskToolStatistics) -> ToolStatistics:
        """How often the caller's tools were called, and how often that worked."""

    async def failures(self, who: Principal, query: str, limit: int) -> list[MemoryHit]:
        """Failed calls of the caller: of the tools that the question names, newest first; where it names none, those whose
        errors share words with it."""


class Profiles(Protocol):
    async def get(self, who: Principal) -> Profile:
        """The caller's profile."""


class Items(Protocol):
    async def items(self, audience: Audience, ids: Sequence[str]) -> list[Item]:
        """Those of the items that the audience holds."""
