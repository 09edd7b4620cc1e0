"""Past turns and tools: what is near to a question, and how often each tool worked."""

from __future__ import annotations

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.episodes import AskToolStatistics, RecalledEpisodes, RecallEpisodes, ToolStatistics
from phronesis_contracts.memory import ItemKind

from ..domain.values import Audience
from ..search import Candidate, HybridSearch
from .ports import Episodes, Outcomes

COVERAGE = 0.5
"""Share of a question's weight that something must hold to be found without being near in meaning."""


class Remembering:
    """The handlers of episodes and of the figures of tools.

    Args:
        search: hybrid search.
        episodes: the store of episodes.
        outcomes: the store of what came of tools.
        floor: the cosine below which texts are unrelated (D-079).
    """

    def __init__(self, search: HybridSearch, episodes: Episodes, outcomes: Outcomes, *, floor: float | None) -> None:
        self._search = search
        self._episodes = episodes
        self._outcomes = outcomes
        self._floor = floor

    async def recall_episodes(self, call: Call, request: RecallEpisodes) -> RecalledEpisodes:
        """Past turns of the caller on a question, with their outcomes (V-137)."""
        return await self.past(call.who, request.query, request.limit)

    async def tool_statistics(self, call: Call, request: AskToolStatistics) -> ToolStatistics:
        """How often the caller's tools worked (V-136)."""
        return await self._outcomes.statistics(call.who, request)

    async def past(self, who: Principal, query: str, limit: int) -> RecalledEpisodes:
        """The caller's episodes on a question."""
        found, degraded = await self.near(who, query, limit, (ItemKind.EPISODE,))
        episodes = await self._episodes.episodes(who, {one.id: one.score for one in found})
        return RecalledEpisodes(episodes=tuple(episodes), degraded=degraded)

    async def near(
        self, who: Principal, query: str, limit: int, kinds: tuple[ItemKind, ...]
    ) -> tuple[list[Candidate], tuple[str, ...]]:
        """The caller's own items on a question, and the parts of the search that failed.

        Raises:
            Unavailable: neither search answers.
        """
        [found] = await self._search.find(Audience(who.tenant, (who.user,), kinds), [query], limit)
        related = [one for one in found.candidates if self._related(one)]
        return related[:limit], tuple(sorted(found.degraded))

    def _related(self, candidate: Candidate) -> bool:
        if candidate.coverage >= COVERAGE:
            return True
        return candidate.cosine is not None and (self._floor is None or candidate.cosine >= self._floor)
