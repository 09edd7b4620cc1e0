"""Walks and algorithms through the bus, and what writes of this and of another process do to what is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from phronesis_bus import Bus, ask, ask_each
from phronesis_contracts import BadRequest, Forbidden, NotFound, Nothing, Principal, Unavailable
from phronesis_contracts.constitution import insight, lists, paths, writes
from phronesis_contracts.service import HEALTH
from phronesis_graph.app import build
from phronesis_graph.bolt.driver import Bolt
from phronesis_graph.constitution.engine import Algorithm, AlgorithmOutput, ProcessEngine
from phronesis_graph.constitution.handlers import ALGORITHM_BYTES, ALGORITHM_SECONDS, PROJECTION_NODES
from phronesis_graph.constitution.projection import Projection
from phronesis_graph.settings import GraphSettings
from tests.support.bus import connected, eventually, somebody
from tests.support.graph import settings
from tests.support.personas import Persona
from tests.support.servers import GraphServer, NatsServer

pytestmark = pytest.mark.verify


@asynccontextmanager
async def service(bus: Bus, how: GraphSettings) -> AsyncIterator[None]:
    async with Bolt.open(how) as bolt:
        await build(bus, bolt, how.dialect)
        yield
        await bus.stop()


@pytest.fixture
async def buses(nats_server: NatsServer, graph_server: GraphServer, tmp_path: Path) -> AsyncIterator[list[Bus]]:
    """One copy of the graph service runs; its own bus, and one of the gateway."""
    async with connected(nats_server, "graph", "gateway") as (own, gateway), service(own, settings(graph_server, tmp_path)):
        await eventually(lambda: _ready(gateway))
        yield [own, gateway]


async def _ready(gateway: Bus) -> bool:
    return (await ask(gateway, somebody(), HEALTH["graph"], Nothing())).ready


def owner() -> Principal:
    return somebody(**Persona.ADMIN.rights)


async def create(gateway: Bus, who: Principal, type: str, *ids: str) -> None:
    tool = writes.CREATE[type]
    for id in ids:
        await ask(gateway, who, tool.rpc, tool.rpc.input(id=id, title=f"The {id}"))


async def relate(gateway: Bus, who: Principal, link: str) -> None:
    a, name, b = link.split()
    await ask(gateway, who, writes.RELATE, writes.Relate(from_id=a, to_id=b, type=name))


async def ranks(gateway: Bus, who: Principal) -> paths.NodesRanked:
    return await ask(gateway, who, paths.PAGERANK, paths.RankNodes())


@pytest.mark.req("O-211", "O-214", "O-218", "O-220")
async def test_a_write_drops_what_it_makes_wrong_before_it_is_answered(buses: list[Bus]) -> None:
    own, gateway = buses
    who = owner()
    await create(gateway, who, "value", "v")
    await create(gateway, who, "goal", "g", "h")
    await relate(gateway, who, "g ALIGNS_WITH v")
    first = await ranks(gateway, who)
    assert [(row.id, first.stats.cached) for row in first.rows[:1]] == [("v", False)]
    await eventually(lambda: _cached(gateway, who))
    await ask(gateway, who, writes.UPDATE_NODE, writes.UpdateAnyNode(id="v", title="Renamed"))
    renamed = await ranks(gateway, who)
    assert (renamed.rows[0].title, renamed.stats.cached) == ("Renamed", True)
    await relate(gateway, who, "h ALIGNS_WITH v")
    joined = await ranks(gateway, who)
    assert (joined.stats.relationship_count, joined.stats.cached) == (2, False)
    await ask(gateway, who, writes.UPDATE_NODE, writes.UpdateAnyNode(id="v", status="archived"))
    assert [row.id for row in (await ranks(gateway, who)).rows] == ["g", "h"]
    registry = own.tracing.metrics.registry
    runs = registry.get_sample_value(f"{ALGORITHM_SECONDS.name}_count", {"algorithm": "pagerank", "engine": "service"})
    nodes, memory = (
        registry.get_sample_value(one.name, {"algorithm": "pagerank"}) for one in (PROJECTION_NODES, ALGORITHM_BYTES)
    )
    assert runs is not None
    assert (runs >= 3, nodes) == (True, 2.0)
    assert memory is not None
    assert memory > 10_000_000


async def _cached(gateway: Bus, who: Principal) -> bool:
    """Whether an answer is kept: the news of a write comes a moment after its answer, and drops what it knows once more."""
    return (await ranks(gateway, who)).stats.cached


@pytest.mark.req("O-218")
async def test_a_write_of_another_copy_drops_what_this_one_keeps(
    nats_server: NatsServer, graph_server: GraphServer, tmp_path: Path
) -> None:
    how, who = settings(graph_server, tmp_path), owner()
    async with connected(nats_server, "graph", "graph", "gateway") as (one, two, gateway):
        async with service(one, how), service(two, how):
            await create(gateway, who, "goal", "a", "b")
            for _ in range(8):
                await ranks(gateway, who)
            await create(gateway, who, "goal", "c")
            for _ in range(8):
                await eventually(lambda: _counted(gateway, who, 3))


async def _counted(gateway: Bus, who: Principal, nodes: int) -> bool:
    return (await ranks(gateway, who)).stats.node_count == nodes


@pytest.mark.req("O-219")
async def test_the_health_of_the_service_lists_the_algorithms_that_were_tried(buses: list[Bus]) -> None:
    _, gateway = buses

    async def offered() -> bool:
        [health] = (await ask_each(gateway, somebody(), HEALTH["graph"], Nothing())).values()
        return set(health.offers) == {
            "shortest_path by service",
            "pagerank by service",
            "betweenness by service",
            "communities by service",
        }

    await eventually(offered)


class Off(ProcessEngine):
    """An engine that computes nothing any more."""

    async def compute(self, algorithm: Algorithm, over: Projection) -> AlgorithmOutput:
        raise Unavailable("algorithms are switched off")


@pytest.mark.req("O-407")
async def test_without_algorithms_and_their_projections_everything_else_answers(
    nats_server: NatsServer, graph_server: GraphServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phronesis_graph.app.ProcessEngine", Off)
    who, how = owner(), settings(graph_server, tmp_path)
    async with connected(nats_server, "graph", "gateway") as (own, gateway), service(own, how):
        await eventually(lambda: _ready(gateway))
        await create(gateway, who, "value", "v")
        await create(gateway, who, "goal", "g", "h")
        await relate(gateway, who, "g ALIGNS_WITH v")
        await relate(gateway, who, "g SUPPORTED_BY h")
        with pytest.raises(Unavailable):
            await ranks(gateway, who)
        foundation = await ask(gateway, who, lists.LIST_FOUNDATION, lists.ListFoundation())
        vision = await ask(gateway, who, lists.LIST_VISION, lists.ListVision())
        ladder = await ask(gateway, who, paths.CLIMB_LADDER, paths.ClimbLadder(id="g"))
        assert [[one.id for one in found] for found in (foundation.items, ladder.ladder)] == [["v"], ["g", "h"]]
        assert {one.id: {up.id for up in one.parents or ()} for one in vision.items} == {"g": {"v", "h"}, "h": set()}


@pytest.mark.req("O-224", "O-228", "O-275", "O-395", "O-396")
async def test_an_agent_walks_the_graph_that_was_written(buses: list[Bus]) -> None:
    _, gateway = buses
    who = owner()
    agent = who.model_copy(update=Persona.DISCUSS.rights)
    await create(gateway, who, "value", "v")
    await create(gateway, who, "vision", "w")
    await create(gateway, who, "goal", "g", "h")
    for link in ("g SUPPORTED_BY h", "h SUPPORTED_BY w", "w ALIGNS_WITH v"):
        await relate(gateway, who, link)
    ladder = await ask(gateway, agent, paths.CLIMB_LADDER, paths.ClimbLadder(id="g"))
    assert [rung.id for rung in ladder.ladder] == ["g", "h", "w"]
    near = await ask(gateway, agent, paths.NEAR, paths.Near(id="g"))
    assert [(one.node.id, one.hops) for one in near.reached] == [("h", 1), ("w", 2)]
    why = await ask(gateway, agent, insight.WHY, insight.AskWhy(from_id="g", to_id="v"))
    assert why.reasons[0].sentence == (
        'The goal "The g" rests on the goal "The h", which rests on the vision "The w", which aligns with the value "The v".'
    )
    without = await ask(gateway, agent, insight.WITHOUT, insight.WithoutNode(id="w"))
    assert [loss.node.id for loss in without.orphaned] == ["h", "g"]


async def test_walks_are_for_readers_of_the_graph_and_within_their_tenant(buses: list[Bus]) -> None:
    _, gateway = buses
    who = owner()
    await create(gateway, who, "goal", "mine")
    with pytest.raises(NotFound):
        await ask(gateway, owner(), paths.CLIMB_LADDER, paths.ClimbLadder(id="mine"))
    with pytest.raises(Forbidden):
        await ask(gateway, who.model_copy(update=Persona.NOOR.rights), paths.CLIMB_LADDER, paths.ClimbLadder(id="mine"))
    with pytest.raises(BadRequest):
        await ask(gateway, who, paths.EXPAND_PATH, paths.ExpandPath(id="mine", relationship_types=("a b",)))
