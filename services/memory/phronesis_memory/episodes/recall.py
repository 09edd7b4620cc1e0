"""The handlers of past turns and tools, and the tool `memory_query`, which asks the caller's memory and writes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts import episodes as contract
from phronesis_contracts.episodes import AskToolStatistics, Episode, MemoryHit, ToolStatistics
from phronesis_contracts.memory import ItemKind, Profile

from ..items.search import Candidate, HybridSearch
from ..values import Audience, Item
from .strategies import profile_entries, word_overlap

COVERAGE = 0.5
"""Share of a question's weight that something must hold to be found without being near in meaning."""


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


class EpisodeRecall:
    """The handlers of episodes and of the figures of tools. `floor`: the cosine below which texts are unrelated."""

    def __init__(self, search: HybridSearch, episodes: Episodes, outcomes: Outcomes, *, floor: float | None) -> None:
        self._search, self._episodes = search, episodes
        self._outcomes, self._floor = outcomes, floor

    async def recall_episodes(self, call: Call, request: contract.RecallEpisodes) -> contract.RecalledEpisodes:
        return await self.past(call.who, request.query, request.limit)

    async def tool_statistics(self, call: Call, request: contract.AskToolStatistics) -> contract.ToolStatistics:
        return await self._outcomes.statistics(call.who, request)

    async def past(self, who: Principal, query: str, limit: int) -> contract.RecalledEpisodes:
        """The caller's episodes on a question."""
        found, degraded = await self.near(who, query, limit, (ItemKind.EPISODE,))
        episodes = await self._episodes.episodes(who, {one.id: one.score for one in found})
        return contract.RecalledEpisodes(episodes=tuple(episodes), degraded=degraded)

    async def near(
        self, who: Principal, query: str, limit: int, kinds: tuple[ItemKind, ...]
    ) -> tuple[list[Candidate], tuple[str, ...]]:
        """The caller's own items on a question, and the parts of the search that failed. Raises `Unavailable`."""
        [found] = await self._search.find(Audience(who.tenant, (who.user,), kinds), [query], limit)
        related = [one for one in found.candidates if self._related(one)]
        return related[:limit], tuple(sorted(found.degraded))

    def _related(self, candidate: Candidate) -> bool:
        if candidate.coverage >= COVERAGE:
            return True
        return candidate.cosine is not None and (self._floor is None or candidate.cosine >= self._floor)


log = logging.getLogger(__name__)

_LONGEST = 600
"""Characters of one result."""
_KNOWN = (ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT)
"""What is known of somebody, as items."""
_Answer = tuple[list[contract.MemoryHit], tuple[str, ...]]
"""What was found, and the parts that failed."""


class MemoryQueries:
    """The handler of `memory_query`. `seconds`: time that one question may take."""

    def __init__(
        self, remembering: EpisodeRecall, items: Items, profiles: Profiles, outcomes: Outcomes, *, seconds: float
    ) -> None:
        self._remembering, self._items, self._profiles = remembering, items, profiles
        self._outcomes, self._seconds = outcomes, seconds

    async def memory_query(self, call: Call, request: contract.MemoryQuery) -> contract.MemoryFound:
        """Look something up for the caller, and for nobody else; a store that is away is said, not raised."""
        error: str | None = None
        hits: list[contract.MemoryHit] = []
        try:
            async with asyncio.timeout(self._seconds):
                hits, missing = await self._found(call.who, request)
            if missing:
                error = f"part of the memory did not answer: {', '.join(missing)}"
        except (ServiceError, TimeoutError) as failed:
            error = f"memory unavailable: {getattr(failed, 'code', 'timed_out')}"
        results = tuple(_shorten_hit(hit) for hit in hits[: request.limit])
        log.log(
            logging.WARNING if error else logging.INFO,
            "memory_query %s: %d results%s",
            request.operation,
            len(results),
            f", {error}" if error else "",
        )
        return contract.MemoryFound(
            operation=request.operation, query=request.query, results=results, count=len(results), error=error
        )

    async def _found(self, who: Principal, request: contract.MemoryQuery) -> _Answer:
        query, limit = request.query, request.limit
        match request.operation:
            case contract.MemoryOperation.EPISODES:
                return await self._episodes(who, query, limit)
            case contract.MemoryOperation.CONTEXT:
                return await self._context(who, query, limit)
            case contract.MemoryOperation.STYLE:
                return await self._known(who, query, limit, (ItemKind.STYLE,))
            case contract.MemoryOperation.FAILURES:
                return await self._outcomes.failures(who, query, limit), ()

    async def _episodes(self, who: Principal, query: str, limit: int) -> _Answer:
        found = await self._remembering.past(who, query, limit)
        return [_hit_of_episode(one) for one in found.episodes], found.degraded

    async def _context(self, who: Principal, query: str, limit: int) -> _Answer:
        """Preferences and contacts; what room is left is for what happened."""
        profile, (known, missing), (past, gone) = await asyncio.gather(
            self._profile(who, query), self._known(who, query, limit, _KNOWN), self._episodes(who, query, limit)
        )
        stated = sorted([*profile, *known], key=lambda hit: -hit.score)
        return [*stated, *past], tuple(sorted({*missing, *gone}))

    async def _profile(self, who: Principal, query: str) -> list[contract.MemoryHit]:
        profile = await self._profiles.get(who)
        found = [(path, text, word_overlap(query, f"{path} {text}")) for path, text in profile_entries(profile.profile)]
        return [
            contract.MemoryHit(
                id=f"profile:{path}",
                text=f"{path}: {text}",
                when=profile.updated_at,
                score=score,
                source="profile",
                labels=profile.labels,
            )
            for path, text, score in found
            if score >= COVERAGE
        ]

    async def _known(self, who: Principal, query: str, limit: int, kinds: tuple[ItemKind, ...]) -> _Answer:
        found, missing = await self._remembering.near(who, query, limit, kinds)
        audience = Audience(who.tenant, (who.user,), kinds)
        items = {item.id: item for item in await self._items.items(audience, [one.id for one in found])} if found else {}
        hits = [
            contract.MemoryHit(
                id=one.id,
                text=f"{item.title}: {item.text}" if item.title else item.text,
                when=item.updated_at,
                score=one.score,
                source=item.kind,
                labels=item.labels,
            )
            for one in found
            if (item := items.get(one.id)) is not None
        ]
        return hits, missing


def _hit_of_episode(episode: contract.Episode) -> contract.MemoryHit:
    """An episode with what came of it: first its outcome, which is what is asked for, then what was said."""
    outcome = f"{episode.outcome} ({episode.code})" if episode.code else str(episode.outcome)
    tools = [f"{tool.name} {'ok' if tool.ok else f'failed ({tool.code})'}" for tool in episode.tools[:10]]
    called = f"Tools: {', '.join(tools)}. " if tools else ""
    said = f"Outcome: {outcome}. {called}{episode.text}"
    return contract.MemoryHit(
        id=episode.id, text=said, when=episode.at, score=episode.score, source="episode", labels=episode.labels
    )


def _shorten_hit(hit: contract.MemoryHit) -> contract.MemoryHit:
    return hit if len(hit.text) <= _LONGEST else hit.model_copy(update={"text": f"{hit.text[: _LONGEST - 1]}…"})
