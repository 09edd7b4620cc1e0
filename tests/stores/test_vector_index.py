"""What any vector index must do, whatever it stands on. Each adapter is opened by one function below."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import pytest

from phronesis.contracts.memory import SHARED, EmbeddingMismatch, ItemKind
from phronesis.memory.adapters.pgvector import PgVector
from phronesis.memory.domain.values import Audience, Vector, VectorEntry, VectorHit
from phronesis.memory.ports import VectorIndex
from phronesis.postgres import Database
from tests.support.servers import PostgresServer

DIMENSION = 384
Open: TypeAlias = Callable[[str, int], VectorIndex]


@dataclass(frozen=True)
class Store:
    """An adapter that can be opened again for another model."""

    index: VectorIndex
    of_model: Open


@asynccontextmanager
async def _pgvector(postgres: PostgresServer, exact_rows: int, max_scan: int) -> AsyncIterator[Store]:
    async with postgres.fresh_schema("memory") as settings, Database.open(settings, "memory") as database:

        def open(model: str, dimension: int) -> VectorIndex:
            return PgVector(database, model, dimension, exact_rows=exact_rows, max_scan=max_scan)

        yield Store(open("model", DIMENSION), open)


ADAPTERS: dict[str, Callable[[PostgresServer], AbstractAsyncContextManager[Store]]] = {
    "pgvector, exact": lambda postgres: _pgvector(postgres, 10_000, 20_000),
    "pgvector, hnsw": lambda postgres: _pgvector(postgres, 0, 20_000),
    "pgvector, hnsw that gives up": lambda postgres: _pgvector(postgres, 0, 1),
}


@pytest.fixture(params=ADAPTERS)
async def store(request: pytest.FixtureRequest, postgres: PostgresServer) -> AsyncIterator[Store]:
    async with ADAPTERS[request.param](postgres) as opened:
        yield opened


def _vector(seed: int) -> Vector:
    vector = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def _entry(
    seed: int, owner: str = "ann", tenant: str = "acme", kind: ItemKind = ItemKind.FACT, family: str = ""
) -> VectorEntry:
    return VectorEntry(str(uuid4()), tenant, owner, kind, _vector(seed), family)


ANN = Audience("acme", ("ann", SHARED))


async def _search(index: VectorIndex, audience: Audience, vector: Vector, limit: int) -> list[VectorHit]:
    [hits] = await index.search(audience, [vector], limit)
    return hits


async def _similarity(index: VectorIndex, audience: Audience, vector: Vector, ids: list[str]) -> dict[str, float]:
    [cosines] = await index.similarity(audience, [vector], [ids])
    return cosines


async def test_the_nearest_come_first_with_their_cosine(store: Store) -> None:
    entries = [_entry(seed, family=f"f{seed}") for seed in range(20)]
    await store.index.upsert(entries)
    asked = _vector(3) + np.float32(0.4) * _vector(7)
    hits = await _search(store.index, ANN, asked, 5)
    cosines = {e.id: float(e.vector @ asked / np.linalg.norm(asked)) for e in entries}
    best = sorted(entries, key=lambda e: -cosines[e.id])[:5]
    assert [(hit.id, hit.kind, hit.family) for hit in hits] == [(e.id, e.kind, e.family) for e in best]
    assert [hit.cosine for hit in hits] == pytest.approx([cosines[e.id] for e in best], abs=2e-3)


async def test_several_vectors_find_what_each_finds_alone(store: Store) -> None:
    entries = [_entry(seed, owner="ann" if seed % 3 else SHARED) for seed in range(40)]
    entries = [replace(entry, passages=(_vector(100 + seed),) * (seed % 3)) for seed, entry in enumerate(entries)]
    await store.index.upsert(entries)
    asked = [_vector(seed) for seed in (3, 101, 7, 3)]
    ids = [[entry.id for entry in entries[n :: 2 + n]] for n in range(3)] + [[]]
    assert await store.index.search(ANN, asked, 10) == [await _search(store.index, ANN, vector, 10) for vector in asked]
    alone = [await _similarity(store.index, ANN, vector, some) for vector, some in zip(asked, ids, strict=True)]
    assert (await store.index.similarity(ANN, asked, ids), alone[3]) == (alone, {})


async def test_an_item_is_as_near_as_its_nearest_passage(store: Store) -> None:
    one, plain = _entry(1), _entry(4)
    passages = (_vector(2), _vector(3))
    await store.index.upsert([VectorEntry(one.id, "acme", "ann", ItemKind.NOTE, one.vector, "", passages), plain])
    for seed in (1, 2, 3):
        found = await _similarity(store.index, ANN, _vector(seed), [one.id, plain.id])
        assert found == {one.id: pytest.approx(1, abs=2e-3), plain.id: pytest.approx(_vector(seed) @ _vector(4), abs=2e-3)}
    await store.index.upsert([one])
    assert (await _similarity(store.index, ANN, _vector(2), [one.id]))[one.id] < 0.5


async def test_a_passage_of_another_dimension_is_refused(store: Store) -> None:
    one = _entry(1)
    with pytest.raises(EmbeddingMismatch):
        await store.index.upsert([VectorEntry(one.id, "acme", "ann", ItemKind.NOTE, one.vector, "", (one.vector[:5],))])


@pytest.mark.req("D-078", "D-165")
async def test_neither_another_user_nor_another_tenant_is_ever_found(store: Store) -> None:
    mine, shared = _entry(1), _entry(1, owner=SHARED)
    foreign = [_entry(1, owner="bob"), _entry(1, tenant="other"), _entry(1, owner=SHARED, tenant="other")]
    await store.index.upsert([mine, shared, *foreign])
    hits = await _search(store.index, ANN, _vector(1), 50)
    assert {hit.id for hit in hits} == {mine.id, shared.id}
    ids = [e.id for e in (mine, shared, *foreign)]
    assert set(await _similarity(store.index, ANN, _vector(1), ids)) == {mine.id, shared.id}


async def test_only_the_kinds_asked_for_are_found(store: Store) -> None:
    fact, episode = _entry(1), _entry(1, kind=ItemKind.EPISODE)
    await store.index.upsert([fact, episode])
    assert [hit.id for hit in await _search(store.index, ANN, _vector(1), 10)] == [fact.id]
    episodes = Audience("acme", ("ann",), (ItemKind.EPISODE,))
    assert [hit.id for hit in await _search(store.index, episodes, _vector(1), 10)] == [episode.id]
    assert await _similarity(store.index, episodes, _vector(1), [fact.id]) == {}


@pytest.mark.req("D-074")
async def test_a_filter_never_returns_fewer_rows_than_exist(store: Store) -> None:
    # The caller's rows lie on the far side of everything else, where a walk by nearness comes last.
    near = [_entry(5, owner="bob") for _ in range(400)]
    far = [
        VectorEntry(str(uuid4()), "acme", "ann", ItemKind.FACT, -_vector(5) + np.float32(0.1) * _vector(n)) for n in range(30)
    ]
    await store.index.upsert(near + far)
    assert {hit.id for hit in await _search(store.index, ANN, _vector(5), 30)} == {entry.id for entry in far}
    assert len(await _search(store.index, ANN, _vector(5), 12)) == 12
    assert len(await _search(store.index, ANN, _vector(5), 100)) == 30


async def test_a_second_vector_of_an_item_takes_the_place_of_the_first(store: Store) -> None:
    entry = _entry(1)
    await store.index.upsert([entry])
    await store.index.upsert([VectorEntry(entry.id, "acme", "ann", ItemKind.NOTE, _vector(2))])
    hits = await _search(store.index, ANN, _vector(2), 10)
    assert [(hit.id, hit.kind, round(hit.cosine, 2)) for hit in hits] == [(entry.id, ItemKind.NOTE, 1.0)]


async def test_nobody_takes_the_place_of_another_tenants_vector(store: Store) -> None:
    entry = _entry(1)
    await store.index.upsert([entry])
    await store.index.upsert([VectorEntry(entry.id, "other", "ann", ItemKind.FACT, _vector(2))])
    assert await _search(store.index, Audience("other", ("ann",)), _vector(2), 10) == []
    assert [hit.id for hit in await _search(store.index, ANN, _vector(1), 10)] == [entry.id]


async def test_what_is_deleted_is_gone_and_deleting_again_does_no_harm(store: Store) -> None:
    kept, gone, foreign = _entry(1), _entry(1), _entry(1, tenant="other")
    await store.index.upsert([kept, gone, foreign])
    for _ in range(2):
        await store.index.delete("acme", [gone.id, foreign.id])
    assert [hit.id for hit in await _search(store.index, ANN, _vector(1), 10)] == [kept.id]
    assert len(await _search(store.index, Audience("other", ("ann",)), _vector(1), 10)) == 1


async def test_an_empty_index_finds_nothing(store: Store) -> None:
    found: list[VectorHit] = await _search(store.index, ANN, _vector(1), 10)
    assert (found, await _similarity(store.index, ANN, _vector(1), [str(uuid4())])) == ([], {})
    await store.index.upsert([])
    await store.index.check()


async def test_another_model_is_refused_and_named(store: Store) -> None:
    await store.index.upsert([_entry(1)])
    other = store.of_model("other-model", DIMENSION)
    for work in (other.check(), other.upsert([_entry(2)]), _search(other, ANN, _vector(1), 5)):
        with pytest.raises(EmbeddingMismatch, match="model") as error:
            await work
        assert "other-model" in error.value.detail
    assert len(await _search(store.index, ANN, _vector(1), 10)) == 1


async def test_a_vector_of_another_dimension_is_refused(store: Store) -> None:
    short = np.ones(7, np.float32)
    with pytest.raises(EmbeddingMismatch):
        await store.index.upsert([VectorEntry(str(uuid4()), "acme", "ann", ItemKind.FACT, short)])
    with pytest.raises(EmbeddingMismatch):
        await _search(store.index, ANN, short, 5)


async def test_a_model_whose_dimension_has_no_index_is_searched_all_the_same(store: Store) -> None:
    index = store.of_model("tiny", 3)
    entry = VectorEntry(str(uuid4()), "acme", "ann", ItemKind.FACT, np.array([0, 1, 0], np.float32))
    await index.upsert([entry])
    assert [hit.id for hit in await _search(index, ANN, np.array([0, 1, 1], np.float32), 5)] == [entry.id]
