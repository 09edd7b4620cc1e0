"""Hybrid search over indexes that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from phronesis_contracts import Unavailable
from phronesis_contracts.memory import ItemKind
from phronesis_memory.embedding.queries import QueryVectors
from phronesis_memory.items.search import Candidate, HybridSearch, limit_families
from phronesis_memory.ports import Transaction
from phronesis_memory.values import Audience, TextHit, Vector, VectorEntry, VectorHit
from phronesis_memory.words.ranking import Weights
from tests.support.memory import WordEmbedder

FACT = ItemKind.FACT
ANN = Audience("acme", ("ann",))


class _Vectors:
    """An index that holds cosines, and may be down or slow."""

    def __init__(self, **cosines: float) -> None:
        self.cosines = cosines
        self.passages: dict[str, float] = {}
        self.down = False
        self.slow = False
        self.after: asyncio.Event | None = None
        """What the search waits for."""
        self.asked = asyncio.Event()
        """Set by the first question for cosines."""

    async def search(self, audience: Audience, vectors: Sequence[Vector], limit: int) -> list[list[VectorHit]]:
        if self.slow:
            await asyncio.Event().wait()
        if self.down:
            raise Unavailable("down")
        if self.after is not None:
            await self.after.wait()
        best = sorted(self.cosines.items(), key=lambda pair: -pair[1])[:limit]
        return [[VectorHit(id, FACT, cosine, self._nearest(id)) for id, cosine in best] for _ in vectors]

    async def similarity(
        self, audience: Audience, vectors: Sequence[Vector], ids: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        self.asked.set()
        if self.down:
            raise Unavailable("down")
        return [{id: self._nearest(id) for id in some if id in self.cosines} for _, some in zip(vectors, ids, strict=True)]

    def _nearest(self, id: str) -> float:
        return max(self.cosines[id], self.passages.get(id, -1))

    async def upsert(self, entries: Sequence[VectorEntry], *, within: Transaction | None = None) -> None:
        raise NotImplementedError

    async def delete(self, tenant: str, ids: Sequence[str], *, within: Transaction | None = None) -> None:
        raise NotImplementedError

    async def check(self) -> None:
        raise NotImplementedError


class _Texts:
    """An index that holds figures, and may be down."""

    def __init__(self, **figures: float) -> None:
        self.figures = figures
        self.down = False

    async def search(self, audience: Audience, queries: Sequence[str], limit: int) -> list[tuple[Weights, list[TextHit]]]:
        if self.down:
            raise Unavailable("down")
        best = sorted(self.figures.items(), key=lambda pair: -pair[1])[:limit]
        return [(Weights({1: 10.0}, 10.0, {}), [TextHit(id, FACT, figure, 1.0) for id, figure in best]) for _ in queries]

    async def score(self, audience: Audience, weights: Sequence[Weights], ids: Sequence[Sequence[str]]) -> list[list[TextHit]]:
        return [[TextHit(id, FACT, self.figures[id], 1.0) for id in some if id in self.figures] for some in ids]


def _search(vectors: _Vectors, texts: _Texts, candidates: int = 50) -> HybridSearch:
    return HybridSearch(vectors, texts, QueryVectors(WordEmbedder(), 900, 10), candidates=candidates, seconds=0.2)


async def test_every_candidate_is_ranked_by_both_signals_whoever_found_it() -> None:
    vectors = _Vectors(a=0.9, b=0.5, c=0.1)
    texts = _Texts(c=10.0, b=6.0, a=0.5)
    [found] = await _search(vectors, texts, candidates=1).find(ANN, ["x"])
    assert [(c.id, c.why) for c in found.candidates] == [
        ("a", {"vector": 0.9, "text": 0.5}),
        ("c", {"vector": 0.1, "text": 10.0}),
    ]


async def test_a_candidate_counts_by_its_nearest_passage() -> None:
    vectors = _Vectors(a=0.5, b=0.4)
    vectors.passages = {"b": 0.7}
    [found] = await _search(vectors, _Texts()).find(ANN, ["x"])
    assert [(c.id, c.cosine) for c in found.candidates] == [("b", 0.7), ("a", 0.5)]


async def test_what_the_words_find_is_compared_beside_the_search_by_vectors() -> None:
    vectors, texts = _Vectors(a=0.5, b=0.4), _Texts(b=2.0)
    vectors.after = vectors.asked
    [found] = await _search(vectors, texts, candidates=1).find(ANN, ["x"])
    assert ([(c.id, c.why) for c in found.candidates], found.degraded) == (
        [("a", {"vector": 0.5}), ("b", {"vector": 0.4, "text": 2.0})],
        frozenset(),
    )


async def test_without_vectors_words_alone_decide() -> None:
    vectors, texts = _Vectors(a=0.9), _Texts(b=2.0, c=1.0)
    vectors.down = True
    [found] = await _search(vectors, texts).find(ANN, ["x"])
    assert ([(c.id, c.score) for c in found.candidates], found.degraded) == (
        [("b", 2 / 19), ("c", 1 / 19)],
        frozenset({"vector"}),
    )


async def test_a_slow_index_is_not_waited_for() -> None:
    vectors, texts = _Vectors(a=0.9), _Texts(b=2.0)
    vectors.slow = True
    async with asyncio.timeout(2):
        [found] = await _search(vectors, texts).find(ANN, ["x"])
    assert ([c.id for c in found.candidates], found.degraded) == (["b"], frozenset({"vector"}))


async def test_without_words_vectors_alone_decide() -> None:
    vectors, texts = _Vectors(a=0.9, b=0.4), _Texts()
    texts.down = True
    [found] = await _search(vectors, texts).find(ANN, ["x"])
    assert ([(c.id, c.score) for c in found.candidates], found.degraded) == ([("a", 0.9), ("b", 0.4)], frozenset({"text"}))


async def test_a_query_that_the_model_refuses_is_searched_by_words_beside_the_others() -> None:
    class Refusing(WordEmbedder):
        async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
            if "bad" in texts:
                raise Unavailable("refused")
            return await super().embed_queries(texts)

    vectors, texts = _Vectors(a=0.9), _Texts(b=2.0)
    search = HybridSearch(vectors, texts, QueryVectors(Refusing(), 900, 10), candidates=50, seconds=5)
    found = await search.find(ANN, ["x", "bad"])
    assert [([c.id for c in one.candidates], one.degraded) for one in found] == [
        (["a", "b"], frozenset()),
        (["b"], frozenset({"vector"})),
    ]


async def test_with_neither_the_search_is_unavailable() -> None:
    vectors, texts = _Vectors(), _Texts()
    vectors.down = texts.down = True
    with pytest.raises(Unavailable):
        await _search(vectors, texts).find(ANN, ["x"])


async def test_what_nothing_finds_is_an_empty_answer() -> None:
    [found] = await _search(_Vectors(), _Texts()).find(ANN, ["x"])
    assert (found.candidates, found.degraded) == ((), frozenset())


async def test_a_score_does_not_depend_on_the_other_items() -> None:
    [alone] = await _search(_Vectors(a=0.4), _Texts(a=3.8)).find(ANN, ["x"])
    [beside] = await _search(_Vectors(a=0.4, b=0.9), _Texts(a=3.8, b=9.5)).find(ANN, ["x"])
    assert [c.score for c in alone.candidates] == [c.score for c in beside.candidates if c.id == "a"] == [pytest.approx(0.184)]


def test_a_family_fills_no_more_than_its_places() -> None:
    def one(id: str, family: str) -> Candidate:
        return Candidate(id, FACT, family, 1.0, None, None, 0.0)

    ranked = [one("1", "p"), one("2", "p"), one("3", ""), one("4", "p"), one("5", ""), one("6", "q")]
    assert [c.id for c in limit_families(ranked, 2)] == ["1", "2", "3", "5", "6"]
