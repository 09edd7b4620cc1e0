"""The graph store is restarted, in order and with -9: nothing that was acknowledged is lost, the same driver goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from phronesis_contracts import Principal, ServiceError, Unavailable
from phronesis_contracts.twin import Upsert
from tests.support.bus import eventually, somebody
from tests.support.graph import Stores, node, opened, ref, stored
from tests.support.production import own_graph_server
from tests.support.servers import GraphServer

pytestmark = [pytest.mark.verify, pytest.mark.timeout(180)]
READY = 60.0
"""Seconds in which the driver has found the store again, on a busy machine."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GraphServer]:
    own = own_graph_server(tmp_path_factory.mktemp("restarted"))
    await own.start()
    yield own
    await own.stop()


@pytest.fixture
async def stores(server: GraphServer, tmp_path: Path) -> AsyncIterator[Stores]:
    async with opened(server, tmp_path) as found:
        yield found


async def answers(stores: Stores) -> bool:
    try:
        await stores.schema.ping()
    except ServiceError:
        return False
    return True


async def test_an_ordered_restart_loses_nothing_and_the_driver_finds_the_store_again(
    server: GraphServer, stores: Stores
) -> None:
    who = somebody()
    await stores.upsert(who, Upsert(nodes=(node("a", budget=5),)), key="k")
    await stores.knowledge.store(who.tenant, stored(who.user, "a", "b", links=("a>b",)))
    await server.stop()
    with pytest.raises(Unavailable):
        await stores.nodes(who, ref("a"))
    await server.start()
    await eventually(lambda: answers(stores), within=READY)
    assert [found.properties for found in await stores.nodes(who, ref("a"))] == [{"budget": 5.0}]
    assert [(item.id, item.hop) for item in await stores.expand(who, "a")] == [("a", 0), ("b", 1)]
    assert (await stores.upsert(who, Upsert(nodes=(node("a", budget=5),)), key="k")).nodes_created == 1


async def test_what_was_acknowledged_before_a_kill_is_there_after_it(server: GraphServer, stores: Stores) -> None:
    who, acknowledged = somebody(), list[str]()
    await stores.schema.declared()
    writing = asyncio.create_task(_write_until_it_is_gone(stores, who, acknowledged))
    await eventually(lambda: len(acknowledged) >= 20)
    await server.kill()
    await writing
    await server.start()
    await eventually(lambda: answers(stores), within=READY)
    found = await stores.nodes(who, *(ref(id) for id in acknowledged))
    assert [node.id for node in found] == acknowledged


async def _write_until_it_is_gone(stores: Stores, who: Principal, acknowledged: list[str]) -> None:
    number = 0
    while True:
        try:
            await stores.upsert(who, Upsert(nodes=(node(f"n{number}"),)))
        except ServiceError:
            return
        acknowledged.append(f"n{number}")
        number += 1
