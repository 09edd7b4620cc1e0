"""What memory keeps of earlier turns, asked over the bus."""

from __future__ import annotations

from phronesis_bus import Bus, ask
from phronesis_contracts import Principal, Unavailable
from phronesis_contracts.episodes import (
    MEMORY_QUERY,
    RECALL_EPISODES,
    TOOL_STATISTICS,
    AskToolStatistics,
    MemoryOperation,
    MemoryQuery,
    RecallEpisodes,
)
from phronesis_contracts.strategies import RECALL_STRATEGIES, RecallStrategies

from ..cognition.remembered import KnownStrategy, PastEpisode, ToolRecord

_NAMED = 50
"""Tools that one question names; of more of them the most used are asked for."""


class BusExperience:
    """`Experience` of the memory service.

    Args:
        bus: the connected bus.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def recall_episodes(self, who: Principal, query: str, limit: int) -> tuple[PastEpisode, ...]:
        """See `Experience`."""
        found = await ask(self._bus, who, RECALL_EPISODES, RecallEpisodes(query=query, limit=limit))
        return tuple(PastEpisode(one.text, one.outcome.value, f"{one.at:%Y-%m-%d}") for one in found.episodes)

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        """See `Experience`."""
        named = tools if len(tools) <= _NAMED else ()
        found = await ask(self._bus, who, TOOL_STATISTICS, AskToolStatistics(tools=named))
        return tuple(ToolRecord(one.name, one.uses, one.successes) for one in found.tools)

    async def recall_strategies(self, who: Principal, query: str, limit: int) -> tuple[KnownStrategy, ...]:
        """See `Experience`."""
        found = await ask(self._bus, who, RECALL_STRATEGIES, RecallStrategies(goal=query, n=limit))
        return tuple(KnownStrategy(one.goal, one.approach, one.tools_used, one.score, one.avoid) for one in found.strategies)

    async def style_examples(self, who: Principal, query: str, limit: int) -> tuple[str, ...]:
        """See `Experience`."""
        wanted = MemoryQuery(operation=MemoryOperation.STYLE, query=query, limit=limit)
        found = await ask(self._bus, who, MEMORY_QUERY, wanted)
        if found.error:
            raise Unavailable(found.error)
        return tuple(one.text for one in found.results)
