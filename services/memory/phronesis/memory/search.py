"""Hybrid search: by vector and by words, side by side, in one ranking."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from phronesis.contracts import ServiceError, Unavailable
from phronesis.contracts.memory import ItemKind

from .cache import QueryVectors
from .domain.ranking import Weights, fuse
from .domain.values import Audience, TextHit, Vector, VectorHit
from .ports import TextIndex, VectorIndex

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Candidate:
    """An item that one of the searches found."""

    id: str
    kind: ItemKind
    family: str
    score: float
    """0 to 1; half cosine and half BM25, each brought to 0..1 over the candidates."""
    cosine: float | None
    """`None` where it is not known."""
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
    """Searches one audience for one query.

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

    async def find(self, audience: Audience, query: str, limit: int = 0) -> Found:
        """What the audience holds on `query`. One search may fail, and is then named in `degraded`.

        Raises:
            Unavailable: both searches failed.
        """
        most = max(self._candidates, limit)
        degraded: set[str] = set()
        near, worded = await asyncio.gather(
            self._part("vector", self._near(audience, query, most), degraded),
            self._part("text", self._texts.search(audience, query, most), degraded),
        )
        if near is None and worded is None:
            raise Unavailable("neither search answers", retry_after=1)
        cosines, texts = await asyncio.gather(
            self._cosines(audience, near, worded, degraded), self._figures(audience, near, worded, degraded)
        )
        return Found(_ranked(near, cosines, texts), frozenset(degraded))

    async def _near(self, audience: Audience, query: str, limit: int) -> tuple[Vector, list[VectorHit]]:
        vector = await self._queries.of(audience.tenant, query)
        return vector, await self._vectors.search(audience, vector, limit)

    async def _cosines(
        self,
        audience: Audience,
        near: tuple[Vector, list[VectorHit]] | None,
        worded: tuple[Weights, list[TextHit]] | None,
        degraded: set[str],
    ) -> dict[str, float] | None:
        """The cosine of every candidate, those that only the words found included."""
        if near is None:
            return None
        cosines = {hit.id: hit.cosine for hit in near[1]}
        others = [hit.id for hit in worded[1] if hit.id not in cosines] if worded else []
        if others:
            cosines |= await self._part("vector", self._vectors.similarity(audience, near[0], others), degraded) or {}
        return cosines

    async def _figures(
        self,
        audience: Audience,
        near: tuple[Vector, list[VectorHit]] | None,
        worded: tuple[Weights, list[TextHit]] | None,
        degraded: set[str],
    ) -> dict[str, TextHit] | None:
        """BM25 of every candidate, those that only the vectors found included."""
        if worded is None:
            return None
        weights, hits = worded
        texts = {hit.id: hit for hit in hits}
        others = [hit.id for hit in near[1] if hit.id not in texts] if near else []
        if others and weights.idf:
            more = await self._part("text", self._texts.score(audience, weights, others), degraded) or []
            texts |= {hit.id: hit for hit in more}
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
    near: tuple[Vector, list[VectorHit]] | None, cosines: dict[str, float] | None, texts: dict[str, TextHit] | None
) -> tuple[Candidate, ...]:
    hits: dict[str, VectorHit | TextHit] = dict(texts or {})
    hits |= {hit.id: hit for hit in near[1]} if near else {}
    ids = list(hits)
    scores = fuse(
        None if cosines is None else [cosines.get(id, 0.0) for id in ids],
        None if texts is None else [_bm25(texts.get(id)) or 0.0 for id in ids],
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
