"""What the index of constitutional nodes must do, whatever it stands on: filters before the cut, tenants apart, the same
after it was made anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from phronesis_contracts.constitution.maintenance import Regenerate
from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_contracts.constitution.writes import ConstitutionChanged
from phronesis_contracts.memory import EmbeddingMismatch
from phronesis_local.settings import Stores
from phronesis_memory.constitution.ports import NodeFilter, NodeHit
from tests.support.constitution_memory import Constitution, ObedientEmbedder, open_constitution, unit
from tests.support.production import STORES
from tests.support.servers import PostgresServer, VectorServer

PGVECTOR: dict[str, dict[str, Any]] = {
    "pgvector, exact": {},
    "pgvector, hnsw": {"exact_rows": 0},
    "pgvector, hnsw that gives up": {"exact_rows": 0, "max_scan": 1},
}
ADAPTERS = [*PGVECTOR, *(["weaviate"] if STORES is Stores.PRODUCTION else [])]
EVERY = NodeFilter(lifecycle=None)


@pytest.fixture(params=ADAPTERS)
async def held(
    request: pytest.FixtureRequest, postgres: PostgresServer, weaviate: VectorServer | None
) -> AsyncIterator[Constitution]:
    used = weaviate if request.param == "weaviate" else None
    async with open_constitution(postgres, used, **PGVECTOR.get(request.param, {})) as one:
        yield one


@pytest.fixture
def tenant() -> str:
    """A tenant of the test's own: an index outside Postgres outlives its test."""
    return f"t{uuid4().hex[:12]}"


def like(held: Constitution, tenant: str, type: str, id: str, cosine: float, **fields: str) -> ConstitutionChanged:
    """A node whose vector has this cosine with the first axis."""
    held.embedder.set[f"word-{id}."] = unit(p0=cosine)
    return held.graph.put(tenant, type, id, f"word-{id}.", **fields)


async def found(held: Constitution, tenant: str, chosen: NodeFilter, limit: int = 10) -> list[str]:
    return [hit.id for hit in await held.parts.vectors.nearest(tenant, unit(p0=1.0), chosen, limit)]


@pytest.mark.req("O-089", "C-19")
async def test_what_is_left_out_takes_no_place_of_what_is_chosen(held: Constitution, tenant: str) -> None:
    news = [like(held, tenant, "goal", f"old{n:03}", 0.99, status="archived") for n in range(100)]
    news += [like(held, tenant, "goal", f"now{n}", 0.8 - n / 100) for n in range(10)]
    await held.hear(tenant, *news)
    assert await found(held, tenant, NodeFilter()) == [f"now{n}" for n in range(10)]
    assert len(await found(held, tenant, EVERY, 200)) == 110


@pytest.mark.req("O-085", "O-086", "O-088", "C-14", "C-18")
async def test_each_layer_is_a_scope_of_its_own_and_all_are_searched_together(held: Constitution, tenant: str) -> None:
    types = ("value", "goal", "strategy", "project", "decision", "signal", "insight")
    await held.tick()
    await held.hear(tenant, *(like(held, tenant, type, type, 0.9 - n / 10) for n, type in enumerate(types)))
    held.clock.forward(days=7)
    await held.tick()
    for layer, type in zip(Layer, types, strict=True):
        assert await found(held, tenant, NodeFilter(layers=frozenset({layer}))) == [type]
    assert await found(held, tenant, NodeFilter()) == list(types)
    assert [(state.name, state.vectors, state.populating) for state in await held.parts.vectors.state(tenant)] == [
        (f"{layer}_embeddings", 1, False) for layer in Layer
    ]


@pytest.mark.req("C-14")
async def test_filters_narrow_together(held: Constitution, tenant: str) -> None:
    await held.hear(
        tenant,
        like(held, tenant, "goal", "a", 0.9),
        like(held, tenant, "goal", "b", 0.8),
        like(held, tenant, "vision", "c", 0.7),
        like(held, tenant, "value", "d", 0.6),
        like(held, tenant, "goal", "e", 0.5, status="deprecated"),
    )
    await held.parts.vectors.assign(tenant, {"a": "t1", "c": "t1", "d": "t2"})
    vision, goals = frozenset({Layer.VISION}), frozenset({"goal"})
    assert await found(held, tenant, NodeFilter(layers=vision)) == ["a", "b", "c"]
    assert await found(held, tenant, NodeFilter(layers=vision, types=goals)) == ["a", "b"]
    assert await found(held, tenant, NodeFilter(types=goals, lifecycle=Lifecycle.DEPRECATED)) == ["e"]
    assert await found(held, tenant, NodeFilter(ids=frozenset({"b", "d", "e"}))) == ["b", "d"]
    assert await found(held, tenant, NodeFilter(ids=frozenset())) == []
    assert await found(held, tenant, NodeFilter(topic="t1")) == ["a", "c"]
    assert await found(held, tenant, NodeFilter(topic="t1", types=goals)) == ["a"]
    await held.parts.vectors.assign(tenant, {"a": None})
    assert await found(held, tenant, NodeFilter(topic="t1")) == ["c"]


async def test_no_tenant_finds_anothers_nodes(held: Constitution, tenant: str) -> None:
    other = f"{tenant}x"
    await held.hear(tenant, like(held, tenant, "goal", "same", 0.9), like(held, tenant, "goal", "mine", 0.8))
    await held.hear(other, like(held, other, "goal", "same", 0.9))
    assert await found(held, tenant, EVERY) == ["same", "mine"]
    assert await found(held, other, EVERY) == ["same"]
    assert await held.parts.vectors.cosines(other, unit(p0=1.0), ["same", "mine"]) == {"same": pytest.approx(0.9, abs=1e-3)}
    assert [one.id async for one in held.parts.vectors.scan(other, EVERY)] == ["same"]
    await held.hear(tenant, held.graph.drop(tenant, "same"))
    assert await found(held, other, EVERY) == ["same"]


async def test_a_hit_tells_its_cosine_and_when_the_node_changed(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, like(held, tenant, "goal", "a", 0.9))
    changed = held.graph.nodes[tenant, "a"].updated_at
    assert changed is not None
    [hit] = await held.parts.vectors.nearest(tenant, unit(p0=1.0), NodeFilter(), 5)
    assert hit == NodeHit("a", "goal", Layer.VISION, hit.cosine, changed)
    assert hit.cosine == pytest.approx(0.9, abs=1e-3)


async def test_a_scan_gives_every_chosen_vector_in_the_order_of_ids(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, *(like(held, tenant, "goal", id, 0.5) for id in "cab"))
    await held.hear(tenant, like(held, tenant, "value", "z", 0.2))
    scanned = [one async for one in held.parts.vectors.scan(tenant, NodeFilter(layers=frozenset({Layer.VISION})))]
    assert [(one.id, one.type, one.layer) for one in scanned] == [(id, "goal", Layer.VISION) for id in "abc"]
    assert scanned[0].vector.tolist() == pytest.approx(unit(p0=0.5).tolist(), abs=1e-3)


@pytest.mark.req("O-091")
async def test_an_index_made_anew_from_the_kept_vectors_finds_the_same_without_the_model(
    held: Constitution, tenant: str
) -> None:
    await held.hear(tenant, *(like(held, tenant, "goal", f"g{n:02}", n / 40) for n in range(30)))
    before, calls = await held.parts.vectors.nearest(tenant, unit(p0=1.0), NodeFilter(), 10), held.embedder.calls
    done = await held.parts.regenerating.regenerate(tenant, Regenerate(index_only=True))
    assert (done.embedded, done.unchanged, done.removed) == (0, 30, 0)
    assert await held.parts.vectors.nearest(tenant, unit(p0=1.0), NodeFilter(), 10) == before
    assert held.embedder.calls == calls


@pytest.mark.req("O-087", "O-303", "C-16")
async def test_vectors_of_3072_numbers_are_kept_and_found(
    postgres: PostgresServer, weaviate: VectorServer | None, tenant: str
) -> None:
    for exact_rows in (10_000, 0):
        embedder = ObedientEmbedder(3_072, "large")
        async with open_constitution(postgres, weaviate, embedder, exact_rows=exact_rows) as held:
            whose = f"{tenant}{exact_rows}"
            for n, id in enumerate("abc"):
                held.embedder.set[f"word-{id}."] = unit(3_072, p0=0.9 - n / 10)
                await held.hear(whose, held.graph.put(whose, "goal", id, f"word-{id}."))
            hits = await held.parts.vectors.nearest(whose, unit(3_072, p0=1.0), NodeFilter(), 2)
            assert [(hit.id, round(hit.cosine, 2)) for hit in hits] == [("a", 0.9), ("b", 0.8)]
            with pytest.raises(EmbeddingMismatch):
                await held.parts.vectors.nearest(whose, unit(1_536, p0=1.0), NodeFilter(), 2)
