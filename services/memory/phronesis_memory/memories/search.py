"""The search for memories: by meaning and by words, and messages by what was said around them, too."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phronesis_contracts import Principal
from phronesis_contracts.memories import FoundMemories, FoundMemory, MemoryFilter, SearchMemories
from phronesis_contracts.memory import ItemKind

from ..items.search import COVERAGE, Candidate, HybridSearch, SearchResult
from ..values import Audience, owner_of_facts
from ..words.ranking import Weights, match_share
from .store import SEARCHED, Beside, PostgresMemories, fit

AROUND = 40
"""Candidates, the best by what the two searches say of them at once, whose neighbours are looked at."""
TEXT = 0.8
"""Weight of the words' share beside the cosine's 1 (`bench.conversations`, the tuning half: flat from 0.6 to 0.8)."""
NEIGHBOURS: Mapping[int, float] = {-2: 0.3, -1: 0.5, 1: 0.1}
"""What the score of a message counts for another, by where it stands: two places before it, one before, one after.

An answer follows its question, at once or after a remark (likewise: flat from 0.2 to 0.3, 0.4 to 0.6, and 0 to 0.2).
"""
ASKING = 0.85
"""What is left of the score of a message that asks something, which is seldom the answer (likewise: flat from 0.8 to 0.9)."""
ALONE = 0.4
"""What a memory that is no message has for its neighbours' scores: this much of its own.

Set so that such a memory scores what it did when one neighbour counted 0.4; not measured.
"""
_COUNTED = sum(NEIGHBOURS.values())
_STEPS = (0, *{sign * step for step in NEIGHBOURS for sign in (1, -1)})
"""Where a message stands itself, its neighbours, and those whose neighbour it is."""


FRESH = 16
"""Memories without vectors, of the caller, that a search waits for: who has just added a few looks for them next."""
PATIENCE = 0.15
"""Seconds that it waits at most."""
_LOOK = 0.01
"""Seconds between two looks."""


@dataclass(frozen=True)
class Ranked:
    """A candidate, and what the messages around it score."""

    candidate: Candidate
    score: float
    """0 to 1."""
    neighbour: float | None
    """0 to 1, by `NEIGHBOURS`; `None` where no message around it is known."""


@dataclass(frozen=True)
class Around:
    """Where messages stand in their conversations."""

    near: Mapping[str, Mapping[int, str]]
    """For a message the ids of those near it, by how many places after it they stand; below 0, before it."""
    asking: frozenset[str]
    """Messages that ask something."""

    @staticmethod
    def of(found: Sequence[Beside]) -> Around:
        """What some messages have beside them, and so what these have beside each other."""
        rows: dict[str, dict[int, str]] = defaultdict(dict)
        for one in found:
            rows[one.id][one.step] = one.other
        near: dict[str, dict[int, str]] = defaultdict(dict)
        for row in rows.values():
            for (at, id), (place, other) in itertools.permutations(row.items(), 2):
                near[id][place - at] = other
        return Around(near, frozenset(one.other for one in found if one.asks))


def rank(candidates: Sequence[Candidate], weights: Weights | None, around: Around, floor: float | None) -> list[Ranked]:
    """Candidates that have to do with the query, best first.

    A candidate's own score is its cosine with the share of the query's words that it has; parts of its neighbours' are added,
    since an answer often comes after the words of its question. Nothing is stretched over the candidates, so that the best of
    poor matches stays poor, and scores of two searches can be compared.

    Args:
        weights: how the query's words weigh; `None` where they were not searched.
        floor: the cosine below which texts are unrelated; `None` where the model knows no such line.
    """
    own = {one.id: _own_score(one, weights) for one in candidates}
    related = {one.id for one in candidates if _is_related(one, floor)}
    found: list[Ranked] = []
    for one in candidates:
        near = {step: id for step, id in around.near.get(one.id, {}).items() if step in NEIGHBOURS and id in own}
        if one.id not in related and related.isdisjoint(near.values()):
            continue
        told = sum(NEIGHBOURS[step] * own[id] for step, id in near.items()) / _COUNTED
        counted = told if one.kind is ItemKind.MESSAGE else ALONE * own[one.id]
        score = (own[one.id] + _COUNTED * counted) / (1 + _COUNTED) * (ASKING if one.id in around.asking else 1.0)
        found.append(Ranked(one, score, told if near else None))
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
        async with self._search.embedding(audience, [request.query]), self._memories.reading(who.tenant):
            await self._embedded(who)
            return await self._find(audience, request)

    async def _find(self, audience: Audience, request: SearchMemories) -> FoundMemories:
        around = Around.of(())

        async def widen(found: SearchResult) -> Sequence[str]:
            nonlocal around
            around = await self._around(audience, found)
            return sorted(around.near.keys() - {one.id for one in found.candidates})

        if _filters(request) or request.as_of is not None:
            only = await self._memories.matching(audience, request, request.as_of)
            if not only:
                return FoundMemories(memories=())
            found = await self._search.score(audience, request.query, only)
            around = await self._around(audience, found)
        else:
            [found] = await self._search.find(audience, [request.query], request.limit, widen)
        ranked = rank(found.candidates, found.weights, around, self._floor)
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

    async def _around(self, audience: Audience, found: SearchResult) -> Around:
        """Where the best of the messages found stand in their conversations."""
        best = sorted(found.candidates, key=lambda one: -_own_score(one, found.weights))[:AROUND]
        messages = [one.id for one in best if one.kind is ItemKind.MESSAGE]
        return Around.of(await self._memories.beside(audience, messages, _STEPS) if messages else ())


def _filters(wanted: MemoryFilter) -> bool:
    return wanted.conversation_id is not None or wanted.since is not None or wanted.until is not None or bool(wanted.metadata)


def _found(memory: dict[str, object], one: Ranked) -> FoundMemory:
    why = one.candidate.why | ({"neighbour": round(one.neighbour, 6)} if one.neighbour is not None else {})
    return FoundMemory.model_validate({**memory, "score": round(one.score, 6), "why": why})
