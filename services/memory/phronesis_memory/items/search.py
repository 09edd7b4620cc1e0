"""Hybrid search by vector and by words, and retrieval: seeds, their neighbours in the graph, and a context that fits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

from phronesis_contracts import Principal, ServiceError, Unavailable
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, EntityType, ItemKind, Retrieve, Seed
from phronesis_tokens import count, cut

from ..embedding.queries import QueryVectors
from ..ports import Graph, Knowledge, TextIndex, VectorIndex
from ..values import Audience, Item, TextHit, Vector, VectorHit, parse_ids
from ..words.ranking import Weights, fuse, match_share

log = logging.getLogger(__name__)

T = TypeVar("T")
_VectorHits: TypeAlias = tuple[Vector, list[VectorHit]]
_TextHits: TypeAlias = tuple[Weights, list[TextHit]]
_Embedding: TypeAlias = asyncio.Task[dict[str, Vector]]
"""The vectors of the queries, once they are there."""
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
        signals = {"vector": self.cosine, "text": self.bm25}
        return {name: round(value, 6) for name, value in signals.items() if value is not None}


@dataclass(frozen=True)
class SearchResult:
    """Candidates, best first, and the parts that failed: `vector`, `text`."""

    candidates: tuple[Candidate, ...] = ()
    degraded: frozenset[str] = frozenset()
    weights: Weights | None = None
    """How the query's words weigh in the audience, for scoring more items; `None` where the words were not searched."""


@dataclass(frozen=True)
class _Judged:
    """What is known by now of one query's candidates."""

    vector: Vector | None
    """`None` where the vectors could not be searched."""
    near: Sequence[VectorHit]
    weights: Weights | None
    """`None` where the words could not be searched."""
    worded: Sequence[TextHit]
    cosines: dict[str, float]
    texts: dict[str, TextHit]

    @classmethod
    def of(cls, near: _VectorHits | None, worded: _TextHits | None, cosines: Mapping[str, float]) -> _Judged:
        """As the two searches have found them. `cosines`: of what the words have found."""
        vector, hits = near or (None, ())
        weights, texts = worded or (None, ())
        known = {**cosines, **{hit.id: hit.nearest for hit in hits}}
        return cls(vector, hits, weights, texts, known, {hit.id: hit for hit in texts})

    def without_cosine(self, more: Sequence[str]) -> list[str]:
        """Those of the candidates and of `more` whose cosine is not known."""
        others = dict.fromkeys([*(hit.id for hit in self.worded), *more])
        return [id for id in others if id not in self.cosines]

    def without_figures(self, more: Sequence[str]) -> list[str]:
        """Those of the candidates and of `more` whose BM25 is not known."""
        # Where no item has a word of the query, nothing is to be learnt of the candidates.
        near = [hit.id for hit in self.near] if self.weights is not None and self.weights.idf else []
        return [id for id in dict.fromkeys([*near, *more]) if id not in self.texts]

    def result(self, degraded: AbstractSet[str]) -> SearchResult:
        hits: dict[str, VectorHit | TextHit] = {**self.texts, **{hit.id: hit for hit in self.near}}
        cosines, texts = None if self.vector is None else self.cosines, None if self.weights is None else self.texts
        ranked = _rank(hits, cosines, texts, self.weights or _NO_WEIGHTS)
        return SearchResult(ranked, frozenset(degraded | ({"vector"} if self.vector is None else set())), self.weights)


Widening: TypeAlias = Callable[[SearchResult], Awaitable[Sequence[str]]]
"""Told what a search has found, each candidate with the figures that are known by then: the ids of more items to judge."""


class HybridSearch:
    """Searches one audience for several queries, each with its own candidates. `seconds` is the time of each stage."""

    def __init__(
        self, vectors: VectorIndex, texts: TextIndex, queries: QueryVectors, *, candidates: int, seconds: float
    ) -> None:
        self._vectors, self._texts, self._queries = vectors, texts, queries
        self._candidates, self._seconds = candidates, seconds

    async def find(
        self, audience: Audience, queries: Sequence[str], limit: int = 0, widen: Widening | None = None
    ) -> list[SearchResult]:
        """For each query what the audience holds; a failed search is named in `degraded`.

        Args:
            limit: candidates of each of the two searches, where that is more than usual.
            widen: names more items, which become candidates beside those that were found.

        Raises:
            Unavailable: both searches failed.
        """
        most = max(self._candidates, limit)
        degraded: set[str] = set()
        async with self.embedding(audience, queries) as embedding:
            near, (worded, cosines) = await asyncio.gather(
                self._part("vector", self._near(audience, queries, embedding, most), degraded),
                # What is named later is compared together with what the words have found: one statement in place of two.
                self._worded(audience, queries, embedding if widen is None else None, most, degraded),
            )
        if near is None and worded is None:
            raise Unavailable("neither search answers", retry_after=1)
        none = [None] * len(queries)
        found = [_Judged.of(*hits) for hits in zip(near or none, worded or none, cosines, strict=True)]
        if widen is None:
            await self._complete_figures(audience, found, [()] * len(queries), degraded)
        else:
            more = await asyncio.gather(*(widen(one.result(degraded)) for one in found))
            await asyncio.gather(
                self._complete_cosines(audience, found, more, degraded),
                self._complete_figures(audience, found, more, degraded),
            )
        return [one.result(degraded) for one in found]

    @asynccontextmanager
    async def embedding(self, audience: Audience, queries: Sequence[str]) -> AsyncIterator[_Embedding]:
        """Embed queries beside the work of a block: a search in it joins the embedding, and gives it up with the block."""
        work = asyncio.create_task(self._queries.of(audience.tenant, queries))
        try:
            yield work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def score(self, audience: Audience, query: str, ids: Sequence[str]) -> SearchResult:
        """The same figures for those of `ids` that the audience holds. Raises `Unavailable`: both searches failed."""
        degraded: set[str] = set()
        async with self.embedding(audience, [query]) as embedding:
            told, worded = await asyncio.gather(
                self._part("vector", self._cosines(audience, [query], embedding, [ids]), degraded),
                self._part("text", self._figures_of(audience, query, ids), degraded),
            )
        if told is None and worded is None:
            raise Unavailable("neither search answers", retry_after=1)
        cosines = told[0] if told is not None else None
        known, texts = worded or (_NO_WEIGHTS, [TextHit(id, audience.kinds[0], 0.0, 0.0) for id in cosines or {}])
        hits = {hit.id: hit for hit in texts}
        return SearchResult(_rank(hits, cosines, hits, known), frozenset(degraded), known)

    async def _figures_of(self, audience: Audience, query: str, ids: Sequence[str]) -> tuple[Weights, list[TextHit]]:
        [(weights, _)] = await self._texts.search(audience, [query], 1)
        [found] = await self._texts.score(audience, [weights], [ids])
        return weights, found

    async def _near(
        self, audience: Audience, queries: Sequence[str], embedding: _Embedding, limit: int
    ) -> list[_VectorHits | None]:
        vectors = await asyncio.shield(embedding)
        found = await self._vectors.search(audience, list(vectors.values()), limit)
        of_query = {query: (vector, hits) for (query, vector), hits in zip(vectors.items(), found, strict=True)}
        return [of_query.get(query) for query in queries]

    async def _worded(
        self, audience: Audience, queries: Sequence[str], embedding: _Embedding | None, limit: int, degraded: set[str]
    ) -> tuple[list[_TextHits] | None, list[dict[str, float]]]:
        """What the words find and, where an embedding is given, the cosines of that, beside the search by vectors."""
        found = await self._part("text", self._texts.search(audience, queries, limit), degraded)
        told = None
        if embedding is not None and any(ids := [[hit.id for hit in hits] for _, hits in found or ()]):
            told = await self._part("vector", self._cosines(audience, queries, embedding, ids), degraded)
        return found, told or [{} for _ in queries]

    async def _cosines(
        self, audience: Audience, queries: Sequence[str], embedding: _Embedding, ids: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        vectors = await asyncio.shield(embedding)
        wanted = [(query, some) for query, some in zip(queries, ids, strict=True) if query in vectors and some]
        if not wanted:
            return [{} for _ in queries]
        told = await self._vectors.similarity(audience, [vectors[query] for query, _ in wanted], [some for _, some in wanted])
        of_query = dict(zip((query for query, _ in wanted), told, strict=True))
        return [of_query.get(query, {}) for query in queries]

    async def _complete_cosines(
        self, audience: Audience, found: Sequence[_Judged], more: Sequence[Sequence[str]], degraded: set[str]
    ) -> None:
        """Add the cosines of what the vectors have not found."""
        wanted = [
            (one.cosines, one.vector, ids)
            for one, added in zip(found, more, strict=True)
            if one.vector is not None and (ids := one.without_cosine(added))
        ]
        if wanted:
            work = self._vectors.similarity(audience, [vector for _, vector, _ in wanted], [ids for *_, ids in wanted])
            for (known, *_), told in zip(wanted, await self._part("vector", work, degraded) or [], strict=False):
                known.update(told)

    async def _complete_figures(
        self, audience: Audience, found: Sequence[_Judged], more: Sequence[Sequence[str]], degraded: set[str]
    ) -> None:
        """Add the BM25 of what the words have not found."""
        wanted = [
            (one.texts, one.weights, ids)
            for one, added in zip(found, more, strict=True)
            if one.weights is not None and (ids := one.without_figures(added))
        ]
        if wanted:
            work = self._texts.score(audience, [weights for _, weights, _ in wanted], [ids for *_, ids in wanted])
            for (known, *_), told in zip(wanted, await self._part("text", work, degraded) or [], strict=False):
                known.update({hit.id: hit for hit in told})

    async def _part(self, name: str, work: Coroutine[Any, Any, T], degraded: set[str]) -> T | None:
        """What a part gives; `None` where it fails, or has failed before."""
        if name in degraded:
            work.close()
            return None
        try:
            async with asyncio.timeout(self._seconds):
                return await work
        except (ServiceError, TimeoutError) as error:
            log.warning("the %s part of a search failed: %s", name, getattr(error, "code", "timed_out"))
            degraded.add(name)
            return None


def _rank(
    hits: Mapping[str, VectorHit | TextHit],
    cosines: Mapping[str, float] | None,
    texts: Mapping[str, TextHit] | None,
    weights: Weights,
) -> tuple[Candidate, ...]:
    ids = list(hits)
    scores = fuse(
        None if cosines is None else [cosines.get(id, 0.0) for id in ids],
        None if texts is None else [match_share(_bm25_of(texts.get(id)) or 0.0, weights) for id in ids],
    )
    found = [
        _to_candidate(hits[id], score, cosines or {}, (texts or {}).get(id)) for id, score in zip(ids, scores, strict=True)
    ]
    return tuple(sorted(found, key=lambda candidate: (-candidate.score, candidate.id)))


def _to_candidate(hit: VectorHit | TextHit, score: float, cosines: Mapping[str, float], text: TextHit | None) -> Candidate:
    coverage = text.coverage if text else 0.0
    return Candidate(hit.id, hit.kind, hit.family, score, cosines.get(hit.id), _bm25_of(text), coverage)


def _bm25_of(hit: TextHit | None) -> float | None:
    return hit.bm25 if hit is not None and hit.bm25 > 0 else None


def limit_families(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The candidates, best first, with at most `most` of one family (chunks of a node, and its states over the years)."""
    taken: dict[str, int] = {}
    kept: list[Candidate] = []
    for candidate in candidates:
        taken[candidate.family] = taken.get(candidate.family, 0) + 1
        if not candidate.family or taken[candidate.family] <= most:
            kept.append(candidate)
    return kept


DECAY = 0.5
"""What a hop away from a seed costs: the neighbour of the best seed scores half of it, two hops away a quarter."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_SHORT = 80
_MARK = "…"


def item_name(title: str | None, text: str) -> str:
    """The title of an item, or the beginning of its text."""
    if title:
        return title
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else line[: _SHORT - 1] + "…"


def sort_items(items: Sequence[ContextItem]) -> list[ContextItem]:
    """Best first: by score, then nearest, then newest."""
    return sorted(items, key=lambda item: (-item.score, item.hop, -(item.created_at or _EARLIEST).timestamp()))


def fit_budget(items: Sequence[ContextItem], budget: int) -> tuple[list[ContextItem], int]:
    """The first of `items` that fit into `budget` tokens, and how many were dropped.

    No item that is kept ranks below one that is dropped. The first is kept in any case, cut to the budget.
    """
    kept: list[ContextItem] = []
    left = budget
    for item in items:
        cost = count(item.title, left) + count(item.text, left)
        if cost > left and not kept:
            title = cut(item.title, left // 2, _MARK)
            kept.append(item.model_copy(update={"title": title, "text": cut(item.text, left - count(title, left), _MARK)}))
            break
        if cost > left:
            break
        kept.append(item)
        left -= cost
    return kept, len(items) - len(kept)


MOST_OF_FAMILY = 4
"""Seeds of one node, whatever year and chunk: room for its several texts, and yet not for it alone among a phrase's five."""
NEIGHBOURS = 100
"""Items that the walk may return, seeds included."""
COVERAGE = 0.5
"""Share of a phrase's weight that an item must hold to be a seed without being near in meaning."""
_PARTS = ("vector", "text", "graph", "content")


@dataclass(frozen=True)
class _Place:
    """Where an item stands: what it scores, how far from a seed, and which phrase found it."""

    score: float
    hop: int
    phrase: str | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    """What the searches said of a seed."""


class Retrieval:
    """Answers `Retrieve`. `floor`: the cosine below which texts are unrelated; `seconds`: the time of each stage."""

    def __init__(
        self,
        search: HybridSearch,
        graph: Graph,
        knowledge: Knowledge,
        *,
        floor: float | None,
        per_phrase: int,
        most: int,
        seconds: float,
    ) -> None:
        self._search, self._graph, self._knowledge = search, graph, knowledge
        self._floor, self._per_phrase, self._most = floor, per_phrase, most
        self._seconds = seconds

    async def retrieve(self, who: Principal, request: Retrieve) -> AugmentedMemoryContext:
        """The context for the caller's phrases. Whatever fails is named in `degraded`; what is left is still returned."""
        began = time.perf_counter()
        degraded: set[str] = set()
        seeds = await self._seeds(who, request.key_phrases, degraded)
        searched = time.perf_counter()
        context = AugmentedMemoryContext(
            user_id=who.user,
            key_phrases=request.key_phrases,
            seeds=tuple(seeds),
            timings_ms={"vector": _milliseconds(began, searched)},
        )
        if not seeds:
            return context.model_copy(update={"degraded": _degraded_parts(degraded)})
        types, places = await self._walk(who, seeds, request.hops, degraded)
        walked = time.perf_counter()
        items, missing = await self._hydrate(who, types, places, degraded)
        kept, dropped = fit_budget(sort_items(items), request.budget_tokens)
        timings = context.timings_ms | {
            "graph": _milliseconds(searched, walked),
            "content": _milliseconds(walked, time.perf_counter()),
        }
        return context.model_copy(
            update={
                "memory_units": _select_type(kept, EntityType.MEMORY_UNIT),
                "concepts": _select_type(kept, EntityType.CONCEPT),
                "missing_ids": tuple(missing),
                "dropped": dropped,
                "degraded": _degraded_parts(degraded),
                "timings_ms": timings,
            }
        )

    async def _seeds(self, who: Principal, phrases: Sequence[str], degraded: set[str]) -> list[Seed]:
        distinct = list(dict.fromkeys(phrases))
        best: dict[str, tuple[Candidate, str]] = {}
        for phrase, found in zip(distinct, await self._found(Audience.of(who), distinct), strict=True):
            degraded |= found.degraded
            relevant = [candidate for candidate in found.candidates if self._relevant(candidate)]
            for candidate in limit_families(relevant, MOST_OF_FAMILY)[: self._per_phrase]:
                known = best.get(candidate.id)
                if known is None or candidate.score > known[0].score:
                    best[candidate.id] = (candidate, phrase)
        ranked = sorted((candidate for candidate, _ in best.values()), key=lambda c: (-c.score, c.id))
        return [
            Seed(id=c.id, type=c.kind.entity_type, score=c.score, phrase=best[c.id][1], why=best[c.id][0].why)
            for c in limit_families(ranked, MOST_OF_FAMILY)[: self._most]
        ]

    async def _found(self, audience: Audience, phrases: Sequence[str]) -> list[SearchResult]:
        try:
            return await self._search.find(audience, phrases)
        except ServiceError as error:
            log.warning("the phrases could not be searched: %s", error.code)
            return [SearchResult(degraded=frozenset({"vector", "text"}))] * len(phrases)

    def _relevant(self, candidate: Candidate) -> bool:
        if candidate.coverage >= COVERAGE:
            return True
        return candidate.cosine is not None and (self._floor is None or candidate.cosine >= self._floor)

    async def _walk(
        self, who: Principal, seeds: Sequence[Seed], hops: int, degraded: set[str]
    ) -> tuple[dict[str, str], dict[str, _Place]]:
        types: dict[str, str] = {seed.id: seed.type for seed in seeds}
        places = {seed.id: _Place(seed.score, 0, seed.phrase, seed.why) for seed in seeds}
        try:
            async with asyncio.timeout(self._seconds):
                found = await self._graph.expand(who, [seed.id for seed in seeds], hops, NEIGHBOURS)
        except (ServiceError, TimeoutError) as error:
            log.warning("the graph could not be walked: %s", getattr(error, "code", "timed_out"))
            degraded.add("graph")
            return types, places
        for neighbour in found:
            if neighbour.id not in places:
                types[neighbour.id] = neighbour.type
                places[neighbour.id] = _Place(seeds[0].score * DECAY**neighbour.hop, neighbour.hop)
        return types, places

    async def _hydrate(
        self, who: Principal, types: Mapping[str, str], places: Mapping[str, _Place], degraded: set[str]
    ) -> tuple[list[ContextItem], list[str]]:
        wanted = {t: list(map(str, parse_ids(id for id, of in types.items() if of == t))) for t in EntityType}
        try:
            async with asyncio.timeout(self._seconds):
                batches = await asyncio.gather(
                    *(self._knowledge.items(Audience.of(who, _kinds_of_type(t)), ids) for t, ids in wanted.items() if ids)
                )
        except (ServiceError, TimeoutError) as error:
            log.warning("items could not be read: %s", getattr(error, "code", "timed_out"))
            degraded.add("content")
            return [], []
        items = {item.id: item for batch in batches for item in batch}
        missing = [id for id in types if id not in items]
        return [_context_item(items[id], place) for id, place in places.items() if id in items], missing


def _context_item(item: Item, place: _Place) -> ContextItem:
    return ContextItem(
        id=item.id,
        external_id=item.external_id,
        kind=item.kind,
        title=item_name(item.title, item.text),
        text=item.told,
        score=place.score,
        hop=place.hop,
        matched_phrase=place.phrase,
        created_at=item.created_at,
        labels=item.labels,
        why=_explain_fact(item, place),
    )


def _explain_fact(item: Item, place: _Place) -> dict[str, object] | None:
    return {**place.signals, **item.metadata} if item.family.startswith("fact/") else None


def _select_type(items: Sequence[ContextItem], type: EntityType) -> tuple[ContextItem, ...]:
    return tuple(item for item in items if item.kind.entity_type is type)


def _kinds_of_type(type: EntityType) -> list[ItemKind]:
    return [kind for kind in ItemKind if kind.entity_type is type]


def _degraded_parts(degraded: set[str]) -> tuple[str, ...]:
    return tuple(part for part in _PARTS if part in degraded)


def _milliseconds(start: float, end: float) -> float:
    return round((end - start) * 1000, 3)
