"""The search for memories: by meaning and by words, and messages by what was said right before and behind them, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phronesis_contracts import Principal
from phronesis_contracts.memories import FoundMemories, FoundMemory, MemoryFilter, SearchMemories
from phronesis_contracts.memory import ItemKind

from ..items.search import COVERAGE, Candidate, HybridSearch, SearchResult
from ..values import Audience, owner_of_facts
from .store import SEARCHED, PostgresMemories

WIDTH = 100
"""Candidates of each of the two searches: what is normalised over them needs more than is told."""
NEIGHBOUR = 0.5
"""What the better neighbour's score counts beside a message's own (measured on long conversations: best at one half)."""


@dataclass(frozen=True)
class Ranked:
    """A candidate, and the score of the better message beside it."""

    candidate: Candidate
    neighbour: float | None


def rank(candidates: Sequence[Candidate], beside: Mapping[str, Sequence[str]], floor: float | None) -> list[Ranked]:
    """Candidates that have to do with the query, best first.

    Half of a score is the cosine and half is BM25, each stretched over the candidates, so that neither outweighs the other in
    a conversation that is about one thing; half of the better neighbour's is added, since an answer often stands beside
    the words of the question. What is told as the score is not stretched.

    Args:
        beside: for a message the ids of its neighbours.
        floor: the cosine below which texts are unrelated; `None` where the model knows no such line.
    """
    cosines = _stretched([one.cosine or 0.0 for one in candidates])
    words = _stretched([one.bm25 or 0.0 for one in candidates])
    own = {one.id: (cosine + word) / 2 for one, cosine, word in zip(candidates, cosines, words, strict=True)}
    related = {one.id for one in candidates if _is_related(one, floor)}
    found: list[tuple[float, Ranked]] = []
    scores = {one.id: one.score for one in candidates}
    for one in candidates:
        around = [id for id in beside.get(one.id, ()) if id in own]
        if one.id not in related and related.isdisjoint(around):
            continue
        neighbour = max((own[id] for id in around), default=0.0)
        told = max((scores[id] for id in around), default=None)
        found.append((own[one.id] + NEIGHBOUR * neighbour, Ranked(one, told)))
    found.sort(key=lambda pair: (-pair[0], pair[1].candidate.id))
    return [ranked for _, ranked in found]


def _stretched(values: Sequence[float]) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


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
        only = None
        if _filters(request) or request.as_of is not None:
            only = await self._memories.matching(audience, request, request.as_of)
            if not only:
                return FoundMemories(memories=())
            found = await self._search.score(audience, request.query, only)
        else:
            [found] = await self._search.find(audience, [request.query], WIDTH)
        beside, found = await self._with_neighbours(audience, request.query, found, only)
        best = rank(found.candidates, beside, self._floor)[: request.limit]
        read = await self._memories.read(audience, [one.candidate.id for one in best], request.as_of)
        told = [_found(read[one.candidate.id].model_dump(), one) for one in best if one.candidate.id in read]
        return FoundMemories(memories=tuple(told), degraded=tuple(sorted(found.degraded)))

    async def _with_neighbours(
        self, audience: Audience, query: str, found: SearchResult, only: Sequence[str] | None
    ) -> tuple[dict[str, list[str]], SearchResult]:
        """The neighbours of the messages found, and the candidates with those that were not found by themselves."""
        messages = [one.id for one in found.candidates if one.kind is ItemKind.MESSAGE]
        if not messages:
            return {}, found
        beside = await self._memories.beside(audience, messages)
        known, allowed = {one.id for one in found.candidates}, None if only is None else set(only)
        others = {id for ids in beside.values() for id in ids} - known
        others = others if allowed is None else others & allowed
        if not others:
            return beside, found
        more = await self._search.score(audience, query, sorted(others))
        for one, ids in list(beside.items()):
            for id in ids:
                if id in others:
                    beside.setdefault(id, []).append(one)
        return beside, SearchResult((*found.candidates, *more.candidates), found.degraded | more.degraded)


def _filters(wanted: MemoryFilter) -> bool:
    return wanted.conversation_id is not None or wanted.since is not None or wanted.until is not None or bool(wanted.metadata)


def _found(memory: dict[str, object], one: Ranked) -> FoundMemory:
    why = one.candidate.why | ({"neighbour": round(one.neighbour, 6)} if one.neighbour is not None else {})
    return FoundMemory.model_validate({**memory, "score": round(one.candidate.score, 6), "why": why})
