"""Weaviate behind the constitutional nodes' vectors: what goes wrong there costs no write, and is made good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter

from phronesis_contracts import Unavailable
from phronesis_contracts.constitution.maintenance import Regenerate
from phronesis_contracts.constitution.registry import Layer
from phronesis_local.settings import Stores
from phronesis_memory.constitution.ports import NodeFilter
from phronesis_memory.settings import WeaviateSettings
from phronesis_memory.vectors.weaviate_collections import NODES
from phronesis_memory.vectors.weaviate_index import Weaviate
from tests.support.bus import eventually
from tests.support.constitution_memory import Constitution, open_constitution, unit
from tests.support.production import STORES
from tests.support.production_servers import WeaviateServer
from tests.support.servers import PostgresServer

pytestmark = [
    pytest.mark.skipif(STORES is Stores.EMBEDDED, reason="the tests run on the embedded stores"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WeaviateServer]:
    """A server of this module's own, which its tests kill."""
    own = WeaviateServer(tmp_path_factory.mktemp("own-weaviate"))
    await own.start()
    yield own
    await own.stop()


@pytest.fixture
async def held(postgres: PostgresServer, server: WeaviateServer) -> AsyncIterator[Constitution]:
    async with open_constitution(postgres, server) as one:
        yield one


@pytest.fixture
def tenant() -> str:
    return f"t{uuid4().hex[:12]}"


async def found(held: Constitution, tenant: str, words: str) -> list[str]:
    [vector] = await held.embedder.embed_queries([words])
    return [hit.id for hit in await held.parts.vectors.nearest(tenant, vector, NodeFilter(), 10) if hit.cosine > 0.5]


@pytest.mark.req("O-362", "O-091")
async def test_what_was_taken_from_the_index_or_put_into_it_by_hand_is_made_good(
    held: Constitution, server: WeaviateServer, tenant: str
) -> None:
    await held.hear(tenant, *(held.graph.put(tenant, "goal", id, f"one kind {id}") for id in ("apple", "beech")))
    async with Weaviate.open(server.settings) as weaviate, weaviate.client(30) as client:
        objects = client.collections.use(NODES).with_tenant(tenant)
        await objects.data.delete_many(Filter.by_property("externalId").equal("apple"))
        orphan = {"externalId": "orphan", "type": "goal", "layer": "vision", "lifecycle": "active"}
        await objects.data.insert_many([DataObject(properties=orphan, uuid=str(uuid4()), vector=unit(p0=1.0).tolist())])
    assert await found(held, tenant, "one kind apple") == ["beech"]
    assert await held.index.reconcile(tenant) == (1, 1)
    assert (await found(held, tenant, "one kind apple"))[0] == "apple"
    assert (held.embedder.calls, await held.index.reconcile(tenant)) == (1, (0, 0))


@pytest.mark.req("O-308")
async def test_a_node_is_found_while_it_is_written_anew(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "apple", "one kind apple"))
    written = asyncio.create_task(_write_anew(held, tenant, 20))
    seen = []
    while not written.done():
        seen.append(await found(held, tenant, "one kind apple"))
    await written
    assert (len(seen) > 20, [one for one in seen if one != ["apple"]]) == (True, [])


async def _write_anew(held: Constitution, tenant: str, times: int) -> None:
    for n in range(times):
        await held.hear(tenant, held.graph.put(tenant, "goal", "apple", f"one kind apple {n}"))


@pytest.mark.req("O-361", "O-355")
async def test_a_server_that_is_away_costs_no_write_and_is_told_when_it_is_back(
    held: Constitution, server: WeaviateServer, tenant: str
) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "apple", "one kind apple"))
    await server.kill()
    await held.hear(tenant, held.graph.put(tenant, "goal", "beech", "one kind beech"))
    assert await held.parts.vectors.populating(tenant) == {Layer.VISION}
    with pytest.raises(Unavailable):
        await found(held, tenant, "one kind beech")
    await server.start()

    async def told() -> bool:
        return not await held.parts.vectors.populating(tenant)

    await eventually(told, 60)
    assert sorted(await found(held, tenant, "one kind beech")) == ["apple", "beech"]


@pytest.mark.req("O-093")
async def test_the_figures_of_hnsw_are_settings_that_hold_from_the_next_rebuild_on(
    postgres: PostgresServer, server: WeaviateServer, tenant: str
) -> None:
    assert (WeaviateSettings().max_connections, WeaviateSettings().ef_construction) == (32, 128)
    server_settings = server.settings.model_copy(update={"max_connections": 24, "ef_construction": 96})
    async with open_constitution(postgres, server, connection=server_settings) as held:
        await held.hear(tenant, held.graph.put(tenant, "goal", "apple", "one kind apple"))
        await held.index.clear()
        async with Weaviate.open(server_settings) as weaviate, weaviate.client(30) as client:
            made = (await client.collections.use(NODES).config.get()).vector_config
            assert made is not None
            config = made["default"].vector_index_config
            assert (config.max_connections, config.ef_construction) == (24, 96)  # type: ignore[union-attr]
        done = await held.parts.regenerating.regenerate(tenant, Regenerate(index_only=True))
        assert (done.unchanged, await found(held, tenant, "one kind apple")) == (1, ["apple"])
