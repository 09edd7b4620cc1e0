"""What any vector index must do, whatever it stands on. Each adapter is opened by one function below."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import pytest

from phronesis_contracts.memory import SHARED, EmbeddingMismatch, ItemKind
from phronesis_local.settings import Stores
from phronesis_memory.ports import VectorIndex
from phronesis_memory.values import Audience, Vector, VectorEntry, VectorHit
from phronesis_memory.vectors.pgvector import PgVector
from phronesis_memory.vectors.weaviate_index import Weaviate, WeaviateIndex
from phronesis_postgres import EVERY_TENANT, Database
from tests.support.production import STORES
from tests.support.servers import PostgresServer, VectorServer

DIMENSION = 384
Open: TypeAlias = Callable[[str, int], VectorIndex]


@dataclass(frozen=True)
class Store:
    """An adapter that can be opened again for another model."""

    index: VectorIndex
    of_model: Open
    database: Database


@asynccontextmanager
async def _pgvector(postgres: PostgresServer, exact_rows: int, max_scan: int) -> AsyncIterator[Store]:
    async with postgres.fresh_schema("memory") as settings, Database.open(settings, "memory") as database:

        def open(model: str, dimension: int) -> VectorIndex:
            return PgVector(database, model, dimension, exact_rows=exact_rows, max_scan=max_scan)

        yield Store(open("model", DIMENSION), open, database)


@asynccontextmanager
async def _weaviate(postgres: PostgresServer, server: VectorServer) -> AsyncIterator[Store]:
    async with (
        postgres.fresh_schema("memory") as settings,
        Database.open(settings, "memory") as database,
        Weaviate.open(server.settings) as weaviate,
    ):

        def open(model: str, dimension: int) -> VectorIndex:
            return WeaviateIndex(database, weaviate, model, dimension)

        yield Store(open("model", DIMENSION), open, database)


PGVECTOR: dict[str, Callable[[PostgresServer], AbstractAsyncContextManager[Store]]] = {
    "pgvector, exact": lambda postgres: _pgvector(postgres, 10_000, 20_000),
    "pgvector, hnsw": lambda postgres: _pgvector(postgres, 0, 20_000),
    "pgvector, hnsw that gives up": lambda postgres: _pgvector(postgres, 0, 1),
}
ADAPTERS = [*PGVECTOR, *(["weaviate"] if STORES is Stores.PRODUCTION else [])]


@pytest.fixture(params=ADAPTERS)
async def store(
    request: pytest.FixtureRequest, postgres: PostgresServer, weaviate: VectorServer | None
) -> AsyncIterator[Store]:
    opened = _weaviate(postgres, weaviate) if weaviate and request.param == "weaviate" else PGVECTOR[request.param](postgres)
    async with opened as one:
        yield one


@pytest.fixture
def tenant() -> str:
    """A tenant of the test's own: an index outside Postgres outlives its test."""
    return f"t{uuid4().hex[:12]}"


def _vector(seed: int) -> Vector:
    vector = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def _entry(tenant: str, seed: int, owner: str = "ann", kind: ItemKind = ItemKind.FACT, family: str = "") -> VectorEntry:
    return VectorEntry(str(uuid4()), tenant, owner, kind, _vector(seed), family)


def _ann(tenant: str) -> Audience:
    return Audience(tenant, ("ann", SHARED))


async def _search(index: VectorIndex, audience: Audience, vector: Vector, limit: int) -> list[VectorHit]:
    [hits] = await index.search(audience, [vector], limit)
    return hits


async def _similarity(index: VectorIndex, audience: Audience, vector: Vector, ids: list[str]) -> dict[str, float]:
    [cosines] = await index.similarity(audience, [vector], [ids])
    return cosines


async def test_the_nearest_come_first_with_their_cosine(store: Store, tenant: str) -> None:
    entries = [_entry(tenant, seed, family=f"f{seed}") for seed in range(20)]
    await store.index.upsert(entries)
    asked = _vector(3) + np.float32(0.4) * _vector(7)
    hits = await _search(store.index, _ann(tenant), asked, 5)
    cosines = {e.id: float(e.vector @ asked / np.linalg.norm(asked)) for e in entries}
    best = sorted(entries, key=lambda e: -cosines[e.id])[:5]
    assert [(hit.id, hit.kind, hit.family) for hit in hits] == [(e.id, e.kind, e.family) for e in best]
    assert [hit.cosine for hit in hits] == pytest.approx([cosines[e.id] for e in best], abs=2e-3)


async def test_several_vectors_find_what_each_finds_alone(store: Store, tenant: str) -> None:
    entries = [_entry(tenant, seed, owner="ann" if seed % 3 else SHARED) for seed in range(40)]
    entries = [replace(entry, passages=(_vector(100 + seed),) * (seed % 3)) for seed, entry in enumerate(entries)]
    await store.index.upsert(entries)
    asked = [_vector(seed) for seed in (3, 101, 7, 3)]
    ids = [[entry.id for entry in entries[n :: 2 + n]] for n in range(3)] + [[]]
    assert await store.index.search(_ann(tenant), asked, 10) == [
        await _search(store.index, _ann(tenant), vector, 10) for vector in asked
    ]
    alone = [await _similarity(store.index, _ann(tenant), vector, some) for vector, some in zip(asked, ids, strict=True)]
    together = await store.index.similarity(_ann(tenant), asked, ids)
    assert together == [pytest.approx(one, abs=1e-6) for one in alone]
    assert alone[3] == {}


async def test_an_item_is_as_near_as_its_nearest_passage(store: Store, tenant: str) -> None:
    one, plain = _entry(tenant, 1), _entry(tenant, 4)
    passages = (_vector(2), _vector(3))
    await store.index.upsert([VectorEntry(one.id, tenant, "ann", ItemKind.NOTE, one.vector, "", passages), plain])
    for seed in (1, 2, 3):
        found = await _similarity(store.index, _ann(tenant), _vector(seed), [one.id, plain.id])
        assert found == {one.id: pytest.approx(1, abs=2e-3), plain.id: pytest.approx(_vector(seed) @ _vector(4), abs=2e-3)}
    await store.index.upsert([one])
    assert (await _similarity(store.index, _ann(tenant), _vector(2), [one.id]))[one.id] < 0.5


async def test_a_passage_of_another_dimension_is_refused(store: Store, tenant: str) -> None:
    one = _entry(tenant, 1)
    with pytest.raises(EmbeddingMismatch):
        await store.index.upsert([VectorEntry(one.id, tenant, "ann", ItemKind.NOTE, one.vector, "", (one.vector[:5],))])


@pytest.mark.req("D-078", "D-165")
async def test_neither_another_user_nor_another_tenant_is_ever_found(store: Store, tenant: str) -> None:
    other = f"{tenant}x"
    mine, shared = _entry(tenant, 1), _entry(tenant, 1, owner=SHARED)
    foreign = [_entry(tenant, 1, owner="bob"), _entry(other, 1), _entry(other, 1, owner=SHARED)]
    await store.index.upsert([mine, shared, *foreign])
    hits = await _search(store.index, _ann(tenant), _vector(1), 50)
    assert {hit.id for hit in hits} == {mine.id, shared.id}
    ids = [e.id for e in (mine, shared, *foreign)]
    assert set(await _similarity(store.index, _ann(tenant), _vector(1), ids)) == {mine.id, shared.id}


async def test_only_the_kinds_asked_for_are_found(store: Store, tenant: str) -> None:
    fact, episode = _entry(tenant, 1), _entry(tenant, 1, kind=ItemKind.EPISODE)
    await store.index.upsert([fact, episode])
    assert [hit.id for hit in await _search(store.index, _ann(tenant), _vector(1), 10)] == [fact.id]
    episodes = Audience(tenant, ("ann",), (ItemKind.EPISODE,))
    assert [hit.id for hit in await _search(store.index, episodes, _vector(1), 10)] == [episode.id]
    assert await _similarity(store.index, episodes, _vector(1), [fact.id]) == {}


@pytest.mark.req("D-074")
async def test_a_filter_never_returns_fewer_rows_than_exist(store: Store, tenant: str) -> None:
    # The caller's rows lie on the far side of everything else, where a walk by nearness comes last.
    near = [_entry(tenant, 5, owner="bob") for _ in range(400)]
    far = [
        VectorEntry(str(uuid4()), tenant, "ann", ItemKind.FACT, -_vector(5) + np.float32(0.1) * _vector(n)) for n in range(30)
    ]
    await store.index.upsert(near + far)
    assert {hit.id for hit in await _search(store.index, _ann(tenant), _vector(5), 30)} == {entry.id for entry in far}
    assert len(await _search(store.index, _ann(tenant), _vector(5), 12)) == 12
    assert len(await _search(store.index, _ann(tenant), _vector(5), 100)) == 30


async def test_a_second_vector_of_an_item_takes_the_place_of_the_first(store: Store, tenant: str) -> None:
    entry = _entry(tenant, 1)
    await store.index.upsert([entry])
    await store.index.upsert([VectorEntry(entry.id, tenant, "ann", ItemKind.NOTE, _vector(2))])
    hits = await _search(store.index, _ann(tenant), _vector(2), 10)
    assert [(hit.id, hit.kind, round(hit.cosine, 2)) for hit in hits] == [(entry.id, ItemKind.NOTE, 1.0)]


async def test_nobody_takes_the_place_of_another_tenants_vector(store: Store, tenant: str) -> None:
    entry, other = _entry(tenant, 1), f"{tenant}x"
    await store.index.upsert([entry])
    await store.index.upsert([VectorEntry(entry.id, other, "ann", ItemKind.FACT, _vector(2))])
    assert [hit for hit in await _search(store.index, Audience(other, ("ann",)), _vector(1), 10) if hit.cosine > 0.9] == []
    assert [hit.id for hit in await _search(store.index, _ann(tenant), _vector(1), 10)] == [entry.id]


async def test_what_is_deleted_is_gone_and_deleting_again_does_no_harm(store: Store, tenant: str) -> None:
    other = f"{tenant}x"
    kept, gone, foreign = _entry(tenant, 1), _entry(tenant, 1), _entry(other, 1)
    await store.index.upsert([kept, gone, foreign])
    for _ in range(2):
        await store.index.delete(tenant, [gone.id, foreign.id])
    assert [hit.id for hit in await _search(store.index, _ann(tenant), _vector(1), 10)] == [kept.id]
    assert len(await _search(store.index, Audience(other, ("ann",)), _vector(1), 10)) == 1


async def test_an_empty_index_finds_nothing(store: Store, tenant: str) -> None:
    found: list[VectorHit] = await _search(store.index, _ann(tenant), _vector(1), 10)
    assert (found, await _similarity(store.index, _ann(tenant), _vector(1), [str(uuid4())])) == ([], {})
    await store.index.upsert([])
    await store.index.check()


@pytest.mark.req("D-T07", "X-C07")
async def test_another_model_is_refused_and_named(store: Store, tenant: str) -> None:
    await store.index.upsert([_entry(tenant, 1)])
    other = store.of_model("other-model", DIMENSION)
    for work in (other.check(), other.upsert([_entry(tenant, 2)]), _search(other, _ann(tenant), _vector(1), 5)):
        with pytest.raises(EmbeddingMismatch, match="model") as error:
            await work
        assert "other-model" in error.value.detail
    assert len(await _search(store.index, _ann(tenant), _vector(1), 10)) == 1


@pytest.mark.req("D-T07")
async def test_a_vector_of_another_dimension_is_refused(store: Store, tenant: str) -> None:
    short = np.ones(7, np.float32)
    with pytest.raises(EmbeddingMismatch):
        await store.index.upsert([VectorEntry(str(uuid4()), tenant, "ann", ItemKind.FACT, short)])
    with pytest.raises(EmbeddingMismatch):
        await _search(store.index, _ann(tenant), short, 5)


async def test_a_model_whose_dimension_has_no_index_is_searched_all_the_same(store: Store, tenant: str) -> None:
    index = store.of_model("tiny", 3)
    entry = VectorEntry(str(uuid4()), tenant, "ann", ItemKind.FACT, np.array([0, 1, 0], np.float32))
    await index.upsert([entry])
    assert [hit.id for hit in await _search(index, _ann(tenant), np.array([0, 1, 1], np.float32), 5)] == [entry.id]


async def test_every_index_ranks_as_exact_search_over_half_precision_does(store: Store, tenant: str) -> None:
    """The same data, the same questions: each adapter is held against the same figures, cosines within 0.001."""
    rng = np.random.default_rng(5)
    centres = [_vector(1_000 + n) for n in range(12)]
    entries = []
    for n in range(240):
        near = centres[n % 12] + np.float32(0.6) * _vector(n)
        passages = tuple(_vector(2_000 + n + k) for k in range(n % 3))
        one = _entry(
            tenant, n, owner="ann" if n % 4 else SHARED, kind=(ItemKind.FACT, ItemKind.NODE)[n % 2], family=f"f{n % 7}"
        )
        entries.append(replace(one, vector=near / np.linalg.norm(near), passages=passages))
    await store.index.upsert(entries)
    asked = [centres[k] + np.float32(0.3) * _vector(int(rng.integers(10_000))) for k in (0, 5, 11)]
    found = await store.index.search(_ann(tenant), asked, 20)
    closest = await store.index.similarity(_ann(tenant), asked, [[entry.id for entry in entries]] * 3)
    for vector, hits, near_passages in zip(asked, found, closest, strict=True):
        exact = {entry.id: _cosine(entry.vector, vector) for entry in entries}
        ranked = sorted(exact.values(), reverse=True)
        assert [hit.cosine for hit in hits] == pytest.approx(ranked[:20], abs=1e-3)
        assert {hit.id: hit.cosine for hit in hits} == pytest.approx({hit.id: exact[hit.id] for hit in hits}, abs=1e-3)
        by_passages = {entry.id: max(_cosine(v, vector) for v in (entry.vector, *entry.passages)) for entry in entries}
        assert near_passages == pytest.approx(by_passages, abs=1e-3)
        assert {hit.id: hit.nearest for hit in hits} == pytest.approx({hit.id: by_passages[hit.id] for hit in hits}, abs=1e-3)


def _cosine(stored: Vector, asked: Vector) -> float:
    half = stored.astype(np.float16).astype(np.float64)
    return float(half @ asked / np.linalg.norm(half) / np.linalg.norm(asked))


async def test_writers_side_by_side_lose_nothing_and_mix_nothing(store: Store, tenant: str) -> None:
    tenants = [f"{tenant}{n}" for n in range(6)]
    batches = [[_entry(one, seed) for seed in range(20)] for one in tenants for _ in range(3)]
    await asyncio.gather(*(store.index.upsert(batch) for batch in batches))
    for one in tenants:
        wanted = {entry.id for batch in batches for entry in batch if entry.tenant == one}
        assert {hit.id for hit in await _search(store.index, _ann(one), _vector(1), 200)} == wanted


async def test_an_item_that_becomes_another_kind_is_found_as_that_kind_alone(store: Store, tenant: str) -> None:
    entry = _entry(tenant, 1)
    for kind in (ItemKind.EPISODE, ItemKind.NODE, ItemKind.CONCEPT):
        await store.index.upsert([replace(entry, kind=kind)])
        found = await _search(store.index, Audience(tenant, ("ann",), tuple(ItemKind)), _vector(1), 10)
        assert [(hit.id, hit.kind) for hit in found] == [(entry.id, kind)]


async def _held(index: VectorIndex, tenant: str, size: int) -> list[VectorEntry]:
    batches = [batch async for batch in index.scan(size)]
    assert all(0 < len(batch) <= size for batch in batches)
    return [entry for batch in batches for entry in batch if entry.tenant.startswith(tenant)]


async def test_a_scan_gives_every_entry_of_every_tenant_once_as_it_is_kept(store: Store, tenant: str) -> None:
    entries = [_entry(f"{tenant}{n % 3}", n, owner=SHARED, kind=list(ItemKind)[n % 5], family=f"f{n}") for n in range(30)]
    entries = [replace(entry, passages=(_vector(n + 50),) * (n % 3)) for n, entry in enumerate(entries)]
    await store.index.upsert(entries)
    held = {entry.id: _plain(entry) for entry in await _held(store.index, tenant, 7)}
    assert held == {entry.id: _plain(entry) for entry in entries}


def _plain(entry: VectorEntry) -> tuple[object, ...]:
    numbers = [vector.astype(np.float16).tolist() for vector in (entry.vector, *entry.passages)]
    return (entry.id, entry.tenant, entry.owner, entry.kind, entry.family, numbers)


async def test_what_was_scanned_can_be_stored_again_and_stays_the_same(store: Store, tenant: str) -> None:
    entry = replace(_entry(tenant, 1, family="f"), passages=(_vector(2),))
    await store.index.upsert([entry])
    once = await _held(store.index, tenant, 10)
    await store.index.upsert(once)
    [again] = await _held(store.index, tenant, 10)
    assert (again.vector.tolist(), again.passages[0].tolist()) == (once[0].vector.tolist(), once[0].passages[0].tolist())


async def test_a_cleared_index_holds_nothing_and_takes_another_model(store: Store, tenant: str) -> None:
    await store.index.upsert([_entry(tenant, 1), _entry(f"{tenant}x", 2, kind=ItemKind.EPISODE)])
    await store.index.clear()
    assert await _held(store.index, tenant, 10) == []
    other = store.of_model("tiny", 3)
    await other.check()
    entry = VectorEntry(str(uuid4()), tenant, "ann", ItemKind.FACT, np.array([0, 1, 0], np.float32))
    await other.upsert([entry])
    assert [hit.id for hit in await _search(other, _ann(tenant), np.array([0, 1, 1], np.float32), 5)] == [entry.id]
    with pytest.raises(EmbeddingMismatch):
        await store.index.check()


async def test_what_a_transaction_wrote_is_found_when_it_is_settled_and_not_when_it_is_undone(
    store: Store, tenant: str
) -> None:
    kept, undone, gone = _entry(tenant, 1), _entry(tenant, 1), _entry(tenant, 1)
    await store.index.upsert([gone])
    async with store.database.transaction(EVERY_TENANT) as connection:
        await store.index.upsert([kept], within=connection)
        await store.index.delete(tenant, [gone.id], within=connection)

    async def broken() -> None:
        async with store.database.transaction(EVERY_TENANT) as connection:
            await store.index.upsert([undone], within=connection)
            await store.index.delete(tenant, [kept.id], within=connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken()
    await store.index.settle(tenant, [kept.id, undone.id, gone.id])
    assert [hit.id for hit in await _search(store.index, _ann(tenant), _vector(1), 10)] == [kept.id]


async def test_of_many_writers_of_one_item_the_last_one_committed_is_found(store: Store, tenant: str) -> None:
    entry = _entry(tenant, 0)
    committed: list[int] = []

    async def write(seed: int) -> None:
        async with store.database.transaction(EVERY_TENANT) as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(7)")  # as the writers of an owner's items do
            await store.index.upsert([replace(entry, vector=_vector(seed))], within=connection)
            committed.append(seed)
        await store.index.settle(tenant, [entry.id])

    await asyncio.gather(*(write(seed) for seed in range(24)))
    [hit] = await _search(store.index, _ann(tenant), _vector(committed[-1]), 5)
    assert (hit.id, round(hit.cosine, 2)) == (entry.id, 1.0)


async def test_a_small_part_of_a_large_table_is_searched_exactly(postgres: PostgresServer, tenant: str) -> None:
    assert await _candidates(postgres, tenant, (0, 1_000)) == [160, 0]


async def test_the_larger_a_table_the_more_candidates_are_looked_at(postgres: PostgresServer, tenant: str) -> None:
    rows = (200_000, 800_000, 1_800_000, 20_000_000)
    assert await _candidates(postgres, tenant, rows, exact_rows=0) == [160, 320, 480, 1_000]


async def _candidates(postgres: PostgresServer, tenant: str, sizes: Sequence[int], exact_rows: int = 4) -> list[int]:
    """With how many candidates five vectors are searched in a table of so many rows, by its statistics."""
    async with postgres.fresh_schema("memory") as settings, Database.open(settings, "memory") as database:
        await PgVector(database, "model", DIMENSION).upsert([_entry(tenant, seed) for seed in range(5)])
        found = []
        async with postgres.session(settings, "memory") as owner:
            for rows in sizes:
                await owner.execute("UPDATE pg_class SET reltuples = $1::float8 WHERE oid = 'vectors'::regclass", float(rows))
                index = PgVector(database, "model", DIMENSION, exact_rows=exact_rows)
                found.append(await index.candidates(tenant, _ann(tenant)))
        return found
