"""Hybrid search: by vector and by words, side by side, in one ranking."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from phronesis_contracts import ServiceError, Unavailable
from phronesis_contracts.memory import ItemKind

from .cache import QueryVectors
from .domain.ranking import Weights, fuse, matched
from .domain.values import Audience, TextHit, Vector, VectorHit
from .ports import TextIndex, VectorIndex

log = logging.getLogger(__name__)

T = TypeVar("T")
_Near: TypeAlias = tuple[Vector, list[VectorHit]]
_Worded: TypeAlias = tuple[Weights, list[TextHit]]
_NO_WEIGHTS = Weights({}, 0.0, {})


@dataclass(frozen=True)
class Candidate:
    """An item that one of the searches found."""

    id: str
    kind: ItemKind
    family: str
    score: float
    """0 to 1; see `fuse`."""
    cosine: float | None
    """Of the item or its nearest passage; `None` where it is not known."""
    bm25: float | None
    """`None` where no word of the query stands in the item."""
    coverage: float
    """0 to 1: how much of the query's weight stands in the item."""

    @property
    def why(self) -> dict[str, float]:
        """The raw signals."""
        signals = {"vector": self.cosine, "text": self.bm25}
        return {name: round(value, 6) for name, value in signals.items() if value is not None}


@dataclass(frozen=True)
class Found:
    """Candidates, best first, and the parts that failed: `vector`, `text`."""

    candidates: tuple[Candidate, ...] = ()
    degraded: frozenset[str] = frozenset()


class HybridSearch:
    """Searches one audience, for several queries at once: each has its own candidates, and all share their statements.

    Args:
        vectors: the vector index.
        texts: the full-text index.
        queries: the vectors of questions.
        candidates: items that each search contributes.
        seconds: time that each stage may take.
    """

    def __init__(
        self, vectors: VectorIndex, texts: TextIndex, queries: QueryVectors, *, candidates: int, seconds: float
    ) -> None:
        self._vectors = vectors
        self._texts = texts
        self._queries = queries
        self._candidates = candidates
        self._seconds = seconds

    async def find(self, audience: Audience, queries: Sequence[str], limit: int = 0) -> list[Found]:
        """For each query what the audience holds on it. One search may fail, and is then named in `degraded`.

        Raises:
            Unavailable: both searches failed.
        """
        most = max(self._candidates, limit)
        degraded: set[str] = set()
        near, worded = await asyncio.gather(
            self._part("vector", self._near(audience, queries, most), degraded),
            self._part("text", self._texts.search(audience, queries, most), degraded),
        )
        if near is None and worded is None:
            raise Unavailable("neither search answers", retry_after=1)
        nears: list[_Near | None] = list(near) if near is not None else [None] * len(queries)
        wordeds: list[_Worded | None] = list(worded) if worded is not None else [None] * len(queries)
        cosines, texts = await asyncio.gather(
            self._cosines(audience, nears, wordeds, degraded), self._figures(audience, nears, wordeds, degraded)
        )
        return [
            Found(_ranked(*of_query), frozenset(degraded | ({"vector"} if of_query[0] is None else set())))
            for of_query in zip(nears, cosines, texts, [one[0] if one else _NO_WEIGHTS for one in wordeds], strict=True)
        ]

    async def _near(self, audience: Audience, queries: Sequence[str], limit: int) -> list[_Near | None]:
        """For each query its vector and what is near; `None` where the model refuses the query."""
        vectors = await self._queries.of(audience.tenant, queries)
        found = await self._vectors.search(audience, list(vectors.values()), limit)
        of_query = {query: (vector, hits) for (query, vector), hits in zip(vectors.items(), found, strict=True)}
        return [of_query.get(query) for query in queries]

    async def _cosines(
        self, audience: Audience, near: Sequence[_Near | None], worded: Sequence[_Worded | None], degraded: set[str]
    ) -> list[dict[str, float] | None]:
        """The cosine of every candidate: of those that only the words found too, and by the passages of what has some."""
        cosines = [None if one is None else {hit.id: hit.cosine for hit in one[1]} for one in near]
        closer: list[tuple[dict[str, float], Vector, list[str]]] = []
        for known, one, words in zip(cosines, near, worded, strict=True):
            if one is not None and known is not None:
                others = [hit.id for hit in words[1] if hit.id not in known] if words else []
                closer.append((known, one[0], [hit.id for hit in one[1] if hit.kind is not ItemKind.NODE] + others))
        if any(ids for *_, ids in closer):
            work = self._vectors.similarity(audience, [vector for _, vector, _ in closer], [ids for *_, ids in closer])
            for (known, *_), more in zip(closer, await self._part("vector", work, degraded) or [], strict=False):
                known |= more
        return cosines

    async def _figures(
        self, audience: Audience, near: Sequence[_Near | None], worded: Sequence[_Worded | None], degraded: set[str]
    ) -> list[dict[str, TextHit] | None]:
        """BM25 of every candidate, those that only the vectors found included."""
        texts = [None if one is None else {hit.id: hit for hit in one[1]} for one in worded]
        closer: list[tuple[dict[str, TextHit], Weights, list[str]]] = []
        for known, one, vectors in zip(texts, worded, near, strict=True):
            if one is not None and known is not None and one[0].idf and vectors is not None:
                closer.append((known, one[0], [hit.id for hit in vectors[1] if hit.id not in known]))
        if any(ids for *_, ids in closer):
            work = self._texts.score(audience, [weights for _, weights, _ in closer], [ids for *_, ids in closer])
            for (known, *_), more in zip(closer, await self._part("text", work, degraded) or [], strict=False):
                known |= {hit.id: hit for hit in more}
        return texts

    async def _part(self, name: str, work: Awaitable[T], degraded: set[str]) -> T | None:
        try:
            async with asyncio.timeout(self._seconds):
                return await work
        except (ServiceError, TimeoutError) as error:
            log.warning("the %s part of a search failed: %s", name, getattr(error, "code", "timed_out"))
            degraded.add(name)
            return None


def _ranked(
    near: _Near | None,
    cosines: dict[str, float] | None,
    texts: dict[str, TextHit] | None,
    weights: Weights,
) -> tuple[Candidate, ...]:
    hits: dict[str, VectorHit | TextHit] = dict(texts or {})
    hits |= {hit.id: hit for hit in near[1]} if near else {}
    ids = list(hits)
    scores = fuse(
        None if cosines is None else [cosines.get(id, 0.0) for id in ids],
        None if texts is None else [matched(_bm25(texts.get(id)) or 0.0, weights) for id in ids],
    )
    found = [_candidate(hits[id], score, cosines or {}, (texts or {}).get(id)) for id, score in zip(ids, scores, strict=True)]
    return tuple(sorted(found, key=lambda candidate: (-candidate.score, candidate.id)))


def _candidate(hit: VectorHit | TextHit, score: float, cosines: dict[str, float], text: TextHit | None) -> Candidate:
    coverage = text.coverage if text else 0.0
    return Candidate(hit.id, hit.kind, hit.family, score, cosines.get(hit.id), _bm25(text), coverage)


def _bm25(hit: TextHit | None) -> float | None:
    return hit.bm25 if hit is not None and hit.bm25 > 0 else None


def best_of_family(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The candidates, best first, with at most `most` of one family (chunks of a node, and its states over the years)."""
    taken: dict[str, int] = {}
    kept: list[Candidate] = []
    for candidate in candidates:
        taken[candidate.family] = taken.get(candidate.family, 0) + 1
        if not candidate.family or taken[candidate.family] <= most:
            kept.append(candidate)
    return kept
