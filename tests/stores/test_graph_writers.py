"""Many writers at once, of one tenant and of several: nothing is lost, nothing is mixed up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.twin import Upsert, Upserted
from tests.support.bus import somebody
from tests.support.graph import Stores, joined, node, opened, ref, stored
from tests.support.servers import GraphServer

TENANTS, WRITERS = 6, 5


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("writers")) as found:
        yield found


def copies(stores: Stores) -> list[Stores]:
    """Two copies of the service: what takes turns in one process knows nothing of the other."""
    return [Stores(stores.bolt, stores.ontology, stores.dialect) for _ in range(2)]


async def owned(stores: Stores, who: Principal) -> list[str]:
    rows = await stores.run("MATCH (n) WHERE n.tenant = $tenant RETURN n.id AS id ORDER BY id", tenant=who.tenant)
    return [row["id"] for row in rows]


async def test_writers_of_one_tenant_and_of_several_lose_nothing_and_mix_nothing_up(stores: Stores) -> None:
    await stores.schema.declared()
    two, people = copies(stores), [somebody() for _ in range(TENANTS)]

    async def write(who: Principal, i: int) -> Upserted:
        links = (joined("PARENT_OF", ref("hub"), ref(f"n{i}")),)
        batch = Upsert(nodes=(node("hub", "L2", budget=i), node(f"n{i}")), relationships=links)
        return await two[i % 2].upsert(who, batch)

    written = await asyncio.gather(*(write(who, i) for i in range(WRITERS) for who in people))
    assert sum(result.relationships_created for result in written) == TENANTS * WRITERS
    for who in people:
        assert await owned(stores, who) == ["hub", *(f"n{i}" for i in range(WRITERS))]
        assert [found.version for found in await stores.nodes(who, ref("hub"))] == [WRITERS]


async def test_news_of_one_owner_that_arrives_at_once_in_two_processes_is_all_linked(stores: Stores) -> None:
    await stores.schema.declared()
    two, who = copies(stores), somebody()
    links = [("hub", f"m{i}") for i in range(8)]
    await asyncio.gather(
        *(two[i % 2].knowledge.store(who.tenant, stored(who.user, a, b, links=(f"{b}>{a}",))) for i, (a, b) in enumerate(links))
    )
    found = await stores.expand(who, "hub", hops=1)
    assert sorted((item.id, item.hop) for item in found) == [("hub", 0), *((f"m{i}", 1) for i in range(8))]


async def test_no_relationship_of_parallel_writers_joins_two_tenants(stores: Stores) -> None:
    await stores.schema.declared()
    people = [somebody() for _ in range(4)]
    await asyncio.gather(
        *(stores.knowledge.store(who.tenant, stored(who.user, "a", "b", links=("a>b",))) for who in people for _ in range(3))
    )
    rows = await stores.run(
        "MATCH (a:MemoryUnit)-[link]->(b:MemoryUnit) WHERE a.tenant IN $tenants OR b.tenant IN $tenants "
        "RETURN a.tenant AS source, b.tenant AS target",
        tenants=[who.tenant for who in people],
    )
    assert sorted((row["source"], row["target"]) for row in rows) == sorted((who.tenant, who.tenant) for who in people)
