"""The services that a turn asks, over the bus, and what memory knows of earlier turns."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from phronesis_bus import Bus, Call, ask
from phronesis_contracts import Nothing, Principal, Rpc, TimedOut, Tool, Unavailable
from phronesis_contracts.episodes import (
    MEMORY_QUERY,
    RECALL_EPISODES,
    RECALL_STRATEGIES,
    TOOL_STATISTICS,
    AskToolStatistics,
    MemoryOperation,
    MemoryQuery,
    RecallEpisodes,
    RecallStrategies,
)
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef
from phronesis_contracts.media import CAPTION, EXTRACT_TEXT, MEDIA_GET, TRANSCRIBE, ExtractedText, Media, MediaKind, MediaRef
from phronesis_contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, Retrieve
from phronesis_contracts.messages import In, Out_

from ..agents.cognition.thought import KnownStrategy, PastEpisode, ToolRecord
from ..models.limits import OPTIONAL_CALLS, OptionalCall
from ..models.templates import without_calls

log = logging.getLogger(__name__)

_FRESH = 60.0
_PROFILE_LIMIT = 1.0
_PROFILES = 300
"""Profiles that are kept at most: one for each agent and tenant, and for each user who is in an experiment."""
_TOOLS = {MediaKind.DOCUMENT: EXTRACT_TEXT, MediaKind.IMAGE: CAPTION, MediaKind.AUDIO: TRANSCRIBE}
"""The kind alone decides which tool reads a medium."""


class BusNeighbours:
    """Asks over the bus. Agents' profiles are cached, dropped at a release, and looked up anew every minute.

    Args:
        optional: optional model calls that are made; the prompts of the others are left out of every profile.
    """

    def __init__(self, bus: Bus, optional: Collection[OptionalCall] = OPTIONAL_CALLS) -> None:
        self._bus = bus
        self._optional = optional
        self._agents: dict[tuple[str, str, str], tuple[AgentProfile, float]] = {}
        self._inside: dict[str, Callable[[Call, Any], Awaitable[Any]]] = {}

    def inside(self, tool: Tool[In, Out_], handler: Callable[[Call, In], Awaitable[Out_]]) -> None:
        """Let turns ask a tool of this service itself: on the bus no service may ask its own."""
        self._inside[tool.rpc.subject] = handler

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        of_user, of_all = (who.tenant, who.user, name), (who.tenant, "", name)
        cached = self._agents.get(of_user) or self._agents.get(of_all)
        if cached is not None and time.monotonic() - cached[1] < _FRESH:
            return cached[0]
        try:
            found = await ask(self._bus, who, AGENT_GET, AgentRef(agent=name), timeout=2)
            profile = without_calls(found, self._optional)
        except (Unavailable, TimedOut):
            if cached is None:
                raise
            log.warning("instructions are away; the profile of %s is an older one", name)
            return cached[0]
        for key in (of_user, of_all):
            self._agents.pop(key, None)
        self._agents[of_user if profile.arms else of_all] = (profile, time.monotonic())
        if len(self._agents) > _PROFILES:
            del self._agents[next(iter(self._agents))]
        return profile

    def forget_agents(self) -> None:
        """Look every profile up anew; those at hand still serve while the instructions service is away."""
        self._agents = {key: (profile, -_FRESH) for key, (profile, _) in self._agents.items()}

    async def profile(self, who: Principal) -> dict[str, object]:
        return (await ask(self._bus, who, PROFILE_GET, Nothing(), timeout=_PROFILE_LIMIT)).profile

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        return await ask(self._bus, who, RETRIEVE, Retrieve(key_phrases=phrases, budget_tokens=budget), timeout=limit)

    async def media(self, who: Principal, media_id: str) -> Media:
        return await ask(self._bus, who, MEDIA_GET, MediaRef(media_id=media_id))

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        return await ask(self._bus, who, _TOOLS[medium.kind], MediaRef(media_id=medium.id), timeout=limit)

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        if handler := self._inside.get(rpc.subject):
            own: Out_ = await handler(Call(who, self._bus.name, key), request)
            return own
        if rpc.subject.startswith(f"{self._bus.name}."):
            raise Unavailable(f"turns cannot ask {rpc.subject}")
        return await ask(self._bus, who, rpc, request, key=key)


_NAMED = 50
"""Tools that one question names; of more of them the most used are asked for."""


class BusExperience:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def recall_episodes(self, who: Principal, query: str, limit: int) -> tuple[PastEpisode, ...]:
        found = await ask(self._bus, who, RECALL_EPISODES, RecallEpisodes(query=query, limit=limit))
        return tuple(PastEpisode(one.text, one.outcome.value, f"{one.at:%Y-%m-%d}") for one in found.episodes)

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        named = tools if len(tools) <= _NAMED else ()
        found = await ask(self._bus, who, TOOL_STATISTICS, AskToolStatistics(tools=named))
        return tuple(ToolRecord(one.name, one.uses, one.successes) for one in found.tools)

    async def recall_strategies(self, who: Principal, query: str, limit: int) -> tuple[KnownStrategy, ...]:
        found = await ask(self._bus, who, RECALL_STRATEGIES, RecallStrategies(goal=query, n=limit))
        return tuple(KnownStrategy(one.goal, one.approach, one.tools_used, one.score, one.avoid) for one in found.strategies)

    async def style_examples(self, who: Principal, query: str, limit: int) -> tuple[str, ...]:
        wanted = MemoryQuery(operation=MemoryOperation.STYLE, query=query, limit=limit)
        found = await ask(self._bus, who, MEMORY_QUERY, wanted)
        if found.error:
            raise Unavailable(found.error)
        return tuple(one.text for one in found.results)
