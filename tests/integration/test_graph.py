from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from phronesis_bus import Bus, News, announce, ask, follow
from phronesis_contracts import BadRequest, Forbidden, KeyReused, Nothing, Principal, Unavailable
from phronesis_contracts.memory import KNOWLEDGE_STORED
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED, HEALTH, Health
from phronesis_contracts.twin import (
    EXPAND,
    NODE_CHANGED,
    NODES,
    UPSERT,
    ChangedNode,
    Expand,
    Neighbour,
    NodeChanged,
    NodeKeys,
    Upsert,
    Upserted,
)
from phronesis_graph.app import build
from phronesis_graph.bolt.driver import Bolt
from phronesis_graph.settings import GraphSettings
from tests.support.bus import connected, eventually, somebody
from tests.support.graph import Stores, joined, node, opened, ref, settings, stored
from tests.support.personas import Persona
from tests.support.production import own_graph_server
from tests.support.servers import GraphServer, NatsServer

PAIR = Upsert(
    nodes=(node("a"), node("r", type="EntityRisk")), relationships=(joined("RATED", ref("a"), ref("r", "EntityRisk")),)
)


@asynccontextmanager
async def service(bus: Bus, how: GraphSettings) -> AsyncIterator[None]:
    async with Bolt.open(how) as bolt:
        await build(bus, bolt, how.dialect)
        yield
        await bus.stop()


@pytest.fixture
async def buses(nats_server: NatsServer, graph_server: GraphServer, tmp_path: Path) -> AsyncIterator[list[Bus]]:
    """The graph service runs; buses of the gateway, of memory and of the orchestrator. The outbox is empty at the end."""
    async with connected(nats_server, "graph", "gateway", "memory", "orchestrator") as (own, *others):
        async with service(own, settings(graph_server, tmp_path)):
            yield others
            async with opened(graph_server, tmp_path) as stores:
                await eventually(lambda: _empty(stores))


async def _empty(stores: Stores) -> bool:
    return not await stores.outbox.unsent(1)


def curator() -> Principal:
    return somebody(**Persona.CURATOR.rights)


async def test_a_batch_is_written_read_and_announced(buses: list[Bus]) -> None:
    gateway, memory, orchestrator = buses
    who = curator()
    changed, entries = list[NodeChanged](), list[Audited]()

    async def on_changed(news: News, event: NodeChanged) -> None:
        if news.tenant == who.tenant:
            changed.append(event)

    async def on_audited(news: News, event: Audited) -> None:
        if news.tenant == who.tenant:
            entries.append(event)

    await follow(memory, NODE_CHANGED, on_changed)
    await follow(orchestrator, AUDITED["graph"], on_audited)
    assert await ask(gateway, who, UPSERT, PAIR, key="k") == Upserted(nodes_created=2, relationships_created=1)
    await eventually(lambda: bool(changed and entries))
    names = tuple(ChangedNode(key=key, version=1) for key in ("EntityProject/a/2023", "EntityRisk/r/2023"))
    assert changed == [NodeChanged(nodes=names)]
    assert [(entry.who, entry.action, entry.outcome) for entry in entries] == [(who.user, "graph_upsert", "done")]
    found = await ask(memory, who, NODES, NodeKeys(keys=tuple(name.key for name in names)))
    assert [each.name for each in found.nodes] == ["The a", "The r"]


async def test_a_repeat_with_its_key_gets_the_first_result_and_another_batch_a_conflict(buses: list[Bus]) -> None:
    gateway, who = buses[0], curator()
    first = await ask(gateway, who, UPSERT, PAIR, key="k")
    assert await ask(gateway, who, UPSERT, PAIR, key="k") == first
    with pytest.raises(KeyReused):
        await ask(gateway, who, UPSERT, Upsert(nodes=(node("b"),)), key="k")


async def test_a_refusal_names_the_field(buses: list[Bus]) -> None:
    with pytest.raises(BadRequest) as caught:
        await ask(buses[0], curator(), UPSERT, Upsert(nodes=(node("a"), node("b", rating="Purple"))))
    assert caught.value.field == "nodes.1.properties.rating"


async def test_a_role_that_may_not_write_is_refused(buses: list[Bus]) -> None:
    with pytest.raises(Forbidden):
        await ask(buses[0], somebody(**Persona.NOOR.rights), UPSERT, PAIR)


async def test_stored_knowledge_is_linked_and_walked(buses: list[Bus]) -> None:
    memory, who = buses[1], somebody()
    await announce(memory, who.tenant, KNOWLEDGE_STORED, stored(who.user, "a", "b", links=("a>b",)))

    async def linked() -> bool:
        found = await ask(memory, who, EXPAND, Expand(ids=("a",)))
        return found.items == (
            Neighbour(id="a", type="MemoryUnit", hop=0),
            Neighbour(id="b", type="MemoryUnit", hop=1),
        )

    await eventually(linked)


async def test_it_says_that_it_is_ready(buses: list[Bus]) -> None:
    who = somebody()

    async def ready() -> bool:
        return (await ask(buses[0], who, HEALTH["graph"], Nothing())).ready

    await eventually(ready)


@pytest.mark.verify
@pytest.mark.req("NC-090")
async def test_it_starts_without_its_store_and_works_when_the_store_comes(nats_server: NatsServer, tmp_path: Path) -> None:
    server, who = own_graph_server(tmp_path / "late"), curator()
    async with connected(nats_server, "graph", "gateway") as (own, gateway), service(own, settings(server, tmp_path)):
        health = await ask(gateway, who, HEALTH["graph"], Nothing(), timeout=5)
        assert (health.ready, health.down) == (False, ("graph",))
        async with asyncio.timeout(5):
            with pytest.raises(Unavailable):
                await ask(gateway, who, UPSERT, PAIR)
        await server.start()
        try:
            await eventually(lambda: _is_ready(gateway, who))
            assert (await ask(gateway, who, UPSERT, PAIR)).nodes_created == 2
            await server.kill()
            with pytest.raises(Unavailable):
                await ask(gateway, who, NODES, NodeKeys(keys=("EntityProject/a/2023",)))
            await server.start()
            await eventually(lambda: _is_ready(gateway, who))
            found = await ask(gateway, who, NODES, NodeKeys(keys=("EntityProject/a/2023",)))
            assert [each.id for each in found.nodes] == ["a"]
        finally:
            await server.stop()


async def _is_ready(gateway: Bus, who: Principal) -> bool:
    health: Health = await ask(gateway, who, HEALTH["graph"], Nothing(), timeout=5)
    return health.ready
