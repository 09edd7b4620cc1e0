"""The vectors of questions, kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from phronesis_contracts import Unavailable
from phronesis_memory.embedding.queries import QueryVectors
from phronesis_memory.values import Vector
from tests.support.memory import WordEmbedder


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.req("C-84")
async def test_a_question_is_embedded_once_in_a_quarter_of_an_hour() -> None:
    embedder, clock = WordEmbedder(), _Clock()
    queries = QueryVectors(embedder, 900, 10, clock)
    first = await queries.of("acme", ["tea"])
    clock.now = 899
    assert (await queries.of("acme", ["tea"]))["tea"] is first["tea"]
    clock.now = 901
    await queries.of("acme", ["tea"])
    assert embedder.queries == ["tea", "tea"]


async def test_the_key_is_tenant_text_model_and_dimension() -> None:
    embedder = WordEmbedder(model="one")
    queries = QueryVectors(embedder, 900, 10)
    for tenant, text, model, dimension in (
        ("acme", "tea", "one", 384),
        ("other", "tea", "one", 384),
        ("acme", "coffee", "one", 384),
        ("acme", "tea", "two", 384),
        ("acme", "tea", "one", 385),
    ):
        embedder.model, embedder.dimension = model, dimension
        for _ in range(2):
            await queries.of(tenant, [text])
    assert embedder.queries == ["tea", "tea", "coffee", "tea", "tea"]


async def test_the_one_unused_for_longest_goes_first() -> None:
    embedder = WordEmbedder()
    queries = QueryVectors(embedder, 900, 2)
    for text in ("a1", "b1", "a1", "c1", "a1", "b1"):
        await queries.of("acme", [text])
    assert embedder.queries == ["a1", "b1", "c1", "b1"]


async def test_a_failure_is_not_kept() -> None:
    embedder = WordEmbedder()
    queries = QueryVectors(embedder, 900, 2)
    embedder.down = True
    with pytest.raises(Unavailable):
        await queries.of("acme", ["tea"])
    embedder.down = False
    assert (await queries.of("acme", ["tea"]))["tea"].shape == (384,)


async def test_several_questions_are_one_call_for_those_that_are_new() -> None:
    embedder = _Refusing()
    queries = QueryVectors(embedder, 900, 10)
    alone = await queries.of("acme", ["tea"])
    together = await queries.of("acme", ["coffee", "tea", "coffee", "milk"])
    assert ([*together], together["tea"] is alone["tea"]) == (["tea", "coffee", "milk"], True)
    assert embedder.asked == [["tea"], ["coffee", "milk"]]


@pytest.mark.req("D-081")
async def test_a_question_that_the_model_refuses_does_not_lose_the_others() -> None:
    queries = QueryVectors(_Refusing("bad"), 900, 10)
    assert [*await queries.of("acme", ["tea", "bad", "milk"])] == ["tea", "milk"]
    with pytest.raises(Unavailable):
        await queries.of("acme", ["bad"])


@pytest.mark.req("V-T01")
async def test_a_question_that_is_asked_twice_at_once_is_embedded_once() -> None:
    embedder = _Held()
    queries = QueryVectors(embedder, 900, 10)
    asked = [asyncio.create_task(queries.of(tenant, ["tea"])) for tenant in ("acme", "acme", "other")]
    await embedder.begun(2)
    embedder.go.set()
    first, second, _ = await asyncio.gather(*asked)
    assert (first["tea"] is second["tea"], embedder.queries) == (True, ["tea", "tea"])


async def test_who_gives_up_takes_the_vector_from_nobody_else() -> None:
    embedder = _Held()
    queries = QueryVectors(embedder, 900, 10)
    gone, stays = (asyncio.create_task(queries.of("acme", ["tea"])) for _ in range(2))
    await embedder.begun(1)
    gone.cancel()
    await asyncio.wait([gone])
    embedder.go.set()
    assert [*await stays] == ["tea"]


async def test_what_nobody_waits_for_any_more_is_given_up() -> None:
    embedder = _Held()
    queries = QueryVectors(embedder, 900, 10)
    gone = asyncio.create_task(queries.of("acme", ["tea"]))
    await embedder.begun(1)
    gone.cancel()
    await asyncio.wait([gone])
    embedder.go.set()
    assert [*await queries.of("acme", ["tea"])] == ["tea"]
    assert embedder.queries == ["tea"]


class _Held(WordEmbedder):
    """A model that answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self._calls: asyncio.Queue[None] = asyncio.Queue()

    async def begun(self, calls: int) -> None:
        """Return when so many calls more have come."""
        async with asyncio.timeout(5):
            for _ in range(calls):
                await self._calls.get()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        self._calls.put_nowait(None)
        await self.go.wait()
        return await super().embed_queries(texts)


class _Refusing(WordEmbedder):
    """A model that refuses calls with some text in them."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.asked: list[list[str]] = []

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        self.asked.append(list(texts))
        if any(text in self.refused for text in texts):
            raise Unavailable("refused")
        return await super().embed_queries(texts)


async def test_what_a_tenant_asked_is_dropped_when_it_forgets_and_no_other_tenants() -> None:
    embedder = WordEmbedder()
    queries = QueryVectors(embedder, 900, 10)
    for tenant in ("acme", "other"):
        await queries.of(tenant, ["tea"])
    queries.drop("acme")
    for tenant in ("acme", "other"):
        await queries.of(tenant, ["tea"])
    assert embedder.queries == ["tea"] * 3
