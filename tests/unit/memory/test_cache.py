"""The vectors of questions, kept for a while."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from phronesis.contracts import Unavailable
from phronesis.memory.cache import QueryVectors
from phronesis.memory.domain.values import Vector
from tests.support.memory import WordEmbedder


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


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
