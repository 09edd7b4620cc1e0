"""The search for memories: by meaning and by words, and messages by what was said right before and behind them, too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phronesis_contracts import Principal
from phronesis_contracts.memories import FoundMemories, FoundMemory, MemoryFilter, SearchMemories
from phronesis_contracts.memory import ItemKind

from ..items.search import COVERAGE, Candidate, HybridSearch, SearchResult
from ..values import Audience, owner_of_facts
from ..words.ranking import Weights, match_share
from .store import SEARCHED, PostgresMemories, fit

WIDTH = 100
"""Candidates of each of the two searches."""
AROUND = 60
"""Candidates, the best by themselves, whose neighbours are looked at."""
TEXT = 0.8
"""Weight of the words' share beside the cosine's 1 (`bench.conversations`, the tuning half: flat from 0.6 to 0.8)."""
NEIGHBOUR = 0.4
"""What the better neighbour's own score counts beside a message's (likewise: flat from 0.3 to 0.5)."""


FRESH = 16
"""Memories without vectors, of the caller, that a search waits for: who has just added a few looks for them next."""
PATIENCE = 0.15
"""Seconds that it waits at most."""
_LOOK = 0.01
"""Seconds between two looks."""


@dataclass(frozen=True)
class Ranked:
    """A candidate, and the score of the better message beside it."""

    candidate: Candidate
    score: float
    """0 to 1."""
    neighbour: float | None


def rank(
    candidates: Sequence[Candidate], weights: Weights | None, beside: Mapping[str, Sequence[str]], floor: float | None
) -> list[Ranked]:
    """Candidates that have to do with the query, best first.

    A candidate's own score is its cosine with the share of the query's words that it has; a part of the better neighbour's is
    added, since an answer often stands beside the words of its question. Nothing is stretched over the candidates, so that the
    best of poor matches stays poor, and scores of two searches can be compared.

    Args:
        weights: how the query's words weigh; `None` where they were not searched.
        beside: for a message the ids of its neighbours.
        floor: the cosine below which texts are unrelated; `None` where the model knows no such line.
    """
    own = {one.id: _own_score(one, weights) for one in candidates}
    related = {one.id for one in candidates if _is_related(one, floor)}
    found: list[Ranked] = []
    for one in candidates:
        around = [id for id in beside.get(one.id, ()) if id in own]
        if one.id not in related and related.isdisjoint(around):
            continue
        better = max((own[id] for id in around), default=None)
        found.append(Ranked(one, (own[one.id] + NEIGHBOUR * (better or 0.0)) / (1 + NEIGHBOUR), better))
    return sorted(found, key=lambda ranked: (-ranked.score, ranked.candidate.id))


def _own_score(one: Candidate, weights: Weights | None) -> float:
    share = match_share(one.bm25 or 0.0, weights) if weights is not None else 0.0
    return (max(0.0, one.cosine or 0.0) + TEXT * share) / (1 + TEXT)


def _is_related(one: Candidate, floor: float | None) -> bool:
    if one.coverage >= COVERAGE:
        return True
    return one.cosine is not None and (floor is None or one.cosine >= floor)


class MemorySearch:
    """Searches the caller's memories. `floor`: the cosine below which the model's texts are unrelated."""

    def __init__(self, search: HybridSearch, memories: PostgresMemories, floor: float | None) -> None:
        self._search, self._memories, self._floor = search, memories, floor

    async def find(self, who: Principal, request: SearchMemories) -> FoundMemories:
        """Memories that have to do with the query, best first. Raises `Unavailable`: neither search answers."""
        audience = Audience(who.tenant, (who.user, owner_of_facts(who.user)), request.kinds or SEARCHED)
        async with self._search.embedding(audience, request.query):
            await self._embedded(who)
            async with self._memories.reading(who.tenant):
                return await self._find(audience, request)

    async def _find(self, audience: Audience, request: SearchMemories) -> FoundMemories:
        only = None
        if _filters(request) or request.as_of is not None:
            only = await self._memories.matching(audience, request, request.as_of)
            if not only:
                return FoundMemories(memories=())
            found = await self._search.score(audience, request.query, only)
        else:
            [found] = await self._search.find(audience, [request.query], WIDTH)
        beside, found = await self._with_neighbours(audience, request.query, found, only)
        ranked = rank(found.candidates, found.weights, beside, self._floor)
        best = ranked[: request.limit]
        read = await self._memories.read(audience, [one.candidate.id for one in best], request.as_of)
        if len(read) < len(best) < len(ranked):
            # Some have expired, and are swept out of the indexes in a moment: the next best take their places.
            left = [one for one in ranked[request.limit :] if one.candidate.id not in read]
            read |= await self._memories.read(audience, [one.candidate.id for one in left], request.as_of)
            best = [one for one in ranked if one.candidate.id in read][: request.limit]
        told = [_found(read[one.candidate.id].model_dump(), one) for one in best if one.candidate.id in read]
        fitting = fit(told)
        degraded = found.degraded | ({"size"} if len(fitting) < len(told) else set())
        return FoundMemories(memories=tuple(fitting), degraded=tuple(sorted(degraded)))

    async def _embedded(self, who: Principal) -> None:
        """Wait a moment where a few memories of the caller have no vectors yet."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                # Another process may embed them, so that there is no event to wait for.
                while 0 < await self._memories.waiting(who.tenant, FRESH + 1, who.user) <= FRESH:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK)

    async def _with_neighbours(
        self, audience: Audience, query: str, found: SearchResult, only: Sequence[str] | None
    ) -> tuple[dict[str, list[str]], SearchResult]:
        """The neighbours of the messages found, and the candidates with those that were not found by themselves."""
        best = sorted(found.candidates, key=lambda one: -_own_score(one, found.weights))[:AROUND]
        messages = [one.id for one in best if one.kind is ItemKind.MESSAGE]
        if not messages:
            return {}, found
        beside = await self._memories.beside(audience, messages)
        known, allowed = {one.id for one in found.candidates}, None if only is None else set(only)
        others = {id for ids in beside.values() for id in ids} - known
        others = others if allowed is None else others & allowed
        if not others:
            return beside, found
        more = await self._search.score(audience, query, sorted(others), found)
        for one, ids in list(beside.items()):
            for id in ids:
                if id in others:
                    beside.setdefault(id, []).append(one)
        whole = (*found.candidates, *more.candidates)
        return beside, SearchResult(whole, found.degraded | more.degraded, found.weights)


def _filters(wanted: MemoryFilter) -> bool:
    return wanted.conversation_id is not None or wanted.since is not None or wanted.until is not None or bool(wanted.metadata)


def _found(memory: dict[str, object], one: Ranked) -> FoundMemory:
    why = one.candidate.why | ({"neighbour": round(one.neighbour, 6)} if one.neighbour is not None else {})
    return FoundMemory.model_validate({**memory, "score": round(one.score, 6), "why": why})
