"""`memory_query` over small stores: what is logged, what is cut, and what a store that is away leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from phronesis_contracts import Principal, Unavailable
from phronesis_contracts.episodes import (
    AskToolStatistics,
    Episode,
    MemoryFound,
    MemoryHit,
    MemoryOperation,
    MemoryQuery,
    ToolStatistics,
)
from phronesis_contracts.memory import Profile
from phronesis_memory.embedding.queries import QueryVectors
from phronesis_memory.episodes.recall import EpisodeRecall, MemoryQueries
from phronesis_memory.items.search import HybridSearch
from phronesis_memory.values import Audience, Item, TextHit, Vector, VectorHit
from phronesis_memory.words.ranking import Weights
from tests.support.logs import logged
from tests.support.memory import WordEmbedder, calling, someone

WHO = someone()


@dataclass
class Stores:
    """Every store that a question reaches; those in `down` are away, those in `slow` never answer."""

    down: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    failed: tuple[MemoryHit, ...] = ()

    async def _reach(self, name: str) -> None:
        if name in self.down:
            raise Unavailable("away")
        if name in self.slow:
            await asyncio.Event().wait()

    async def search(self, audience: Audience, vectors: Sequence[Vector], limit: int) -> list[list[VectorHit]]:
        await self._reach("vectors")
        return [[] for _ in vectors]

    async def similarity(
        self, audience: Audience, vectors: Sequence[Vector], ids: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        return [{} for _ in vectors]

    async def get(self, who: Principal) -> Profile:
        await self._reach("profiles")
        return Profile(profile={"likes": "tea"})

    async def items(self, audience: Audience, ids: Sequence[str]) -> list[Item]:
        return []

    async def episodes(self, who: Principal, scores: Mapping[str, float]) -> list[Episode]:
        return []

    async def statistics(self, who: Principal, asked: AskToolStatistics) -> ToolStatistics:
        return ToolStatistics()

    async def failures(self, who: Principal, query: str, limit: int) -> list[MemoryHit]:
        await self._reach("outcomes")
        return [*self.failed]


@dataclass
class Texts:
    """A full-text index without texts."""

    stores: Stores

    async def search(self, audience: Audience, queries: Sequence[str], limit: int) -> list[tuple[Weights, list[TextHit]]]:
        if "texts" in self.stores.down:
            raise Unavailable("away")
        return [(Weights({}, 0.0, {}), []) for _ in queries]

    async def score(self, audience: Audience, weights: Sequence[Weights], ids: Sequence[Sequence[str]]) -> list[list[TextHit]]:
        return [[] for _ in weights]


async def asked(stores: Stores, operation: str, query: str = "tea", limit: int = 5) -> MemoryFound:
    queries = QueryVectors(WordEmbedder(), 60, 10)
    search = HybridSearch(stores, Texts(stores), queries, candidates=10, seconds=1)  # type: ignore[arg-type]
    remembering = EpisodeRecall(search, stores, stores, floor=0.28)
    request = MemoryQuery(operation=MemoryOperation(operation), query=query, limit=limit)
    return await MemoryQueries(remembering, stores, stores, stores, seconds=0.2).memory_query(calling(WHO), request)


@pytest.mark.req("V-065", "V-T06")
async def test_a_vector_store_that_is_away_leaves_failures_and_a_word_about_it() -> None:
    stores = Stores(down={"vectors", "texts"}, failed=(MemoryHit(id="1", text="late", score=1, source="search"),))
    assert (await asked(stores, "failures")).count == 1
    for operation in ("episodes", "style", "context"):
        found = await asked(stores, operation)
        assert (found.results, found.error) == ((), "memory unavailable: unavailable")


@pytest.mark.req("V-065")
async def test_half_a_search_is_an_answer_that_says_so() -> None:
    assert (await asked(Stores(down={"vectors"}), "style")).error == "part of the memory did not answer: vector"
    found = await asked(Stores(down={"vectors"}), "context")
    assert ([hit.text for hit in found.results], found.error) == (
        ["likes: tea"],
        "part of the memory did not answer: vector",
    )


@pytest.mark.req("V-056", "V-065")
async def test_a_store_that_never_answers_is_an_unavailable_memory_in_time() -> None:
    found = await asked(Stores(slow={"outcomes"}), "failures")
    assert (found.results, found.error) == ((), "memory unavailable: timed_out")


@pytest.mark.req("V-063")
async def test_a_thousand_matches_are_as_many_as_were_asked_for_and_each_is_cut() -> None:
    many = tuple(MemoryHit(id=str(n), text="x" * 10_000, score=1, source="search") for n in range(1_000))
    found = await asked(Stores(failed=many), "failures", limit=20)
    assert (found.count, {len(hit.text) for hit in found.results}) == (20, {600})


@pytest.mark.req("V-168", "V-170")
@pytest.mark.parametrize("operation", list(MemoryOperation))
async def test_each_call_is_logged_with_its_operation_and_without_its_words(
    operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await asked(Stores(), operation, "jazz for two")
    lines = [record.getMessage() for record in logged(caplog, "memory") if "memory_query" in record.getMessage()]
    assert lines == [f"memory_query {operation}: 0 results"]
