"""The services that a turn asks, over the bus."""

from __future__ import annotations

import logging
import time

from phronesis.bus import Bus, ask
from phronesis.contracts import Nothing, Principal, Rpc, TimedOut, Unavailable
from phronesis.contracts.instructions import AGENT_GET, AgentProfile, AgentRef
from phronesis.contracts.media import CAPTION, EXTRACT_TEXT, MEDIA_GET, TRANSCRIBE, ExtractedText, Media, MediaKind, MediaRef
from phronesis.contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, Retrieve
from phronesis.contracts.messages import In, Out_

log = logging.getLogger(__name__)

_FRESH = 60.0
_PROFILE_LIMIT = 1.0
_TOOLS = {MediaKind.DOCUMENT: EXTRACT_TEXT, MediaKind.IMAGE: CAPTION, MediaKind.AUDIO: TRANSCRIBE}
"""The kind alone decides which tool reads a medium (D-021)."""


class BusNeighbours:
    """Asks over the bus. Agents' profiles are cached, dropped at a release, and looked up anew every minute."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._agents: dict[str, tuple[AgentProfile, float]] = {}

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        """An agent's profile. A stale one is better than none while the instructions service is away."""
        cached = self._agents.get(name)
        if cached is not None and time.monotonic() - cached[1] < _FRESH:
            return cached[0]
        try:
            profile = await ask(self._bus, who, AGENT_GET, AgentRef(agent=name), timeout=2)
        except (Unavailable, TimedOut):
            if cached is None:
                raise
            log.warning("instructions are away; the profile of %s is an older one", name)
            return cached[0]
        self._agents[name] = (profile, time.monotonic())
        return profile

    def forget_agents(self) -> None:
        """Look every profile up anew; those at hand still serve while the instructions service is away."""
        self._agents = {name: (profile, -_FRESH) for name, (profile, _) in self._agents.items()}

    async def profile(self, who: Principal) -> dict[str, object]:
        """What memory knows of the user."""
        return (await ask(self._bus, who, PROFILE_GET, Nothing(), timeout=_PROFILE_LIMIT)).profile

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        """Hybrid retrieval for key phrases."""
        return await ask(self._bus, who, RETRIEVE, Retrieve(key_phrases=phrases, budget_tokens=budget), timeout=limit)

    async def media(self, who: Principal, media_id: str) -> Media:
        """One medium of the caller."""
        return await ask(self._bus, who, MEDIA_GET, MediaRef(media_id=media_id))

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        """The text of a medium, by the tool of its kind."""
        return await ask(self._bus, who, _TOOLS[medium.kind], MediaRef(media_id=medium.id), timeout=limit)

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        """Ask a tool's owner."""
        return await ask(self._bus, who, rpc, request, key=key)
