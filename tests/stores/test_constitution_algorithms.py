from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from random import Random

import pytest

from phronesis_bus import Call
from phronesis_contracts.constitution.insight import AskWhy, WithoutNode
from phronesis_contracts.constitution.paths import FindBridges, FindCommunities, FindShortestPath, RankNodes
from phronesis_graph.constitution.algorithms import AlgorithmHandlers
from phronesis_graph.constitution.engine import EngineAvailability, ProcessEngine
from phronesis_graph.constitution.projection import ProjectionCache
from phronesis_graph.constitution.reasons import ReasonHandlers
from phronesis_graph.constitution.routes import ShortestPathHandlers
from phronesis_graph.constitution.walk_store import BoltProjection, BoltWalks
from tests.support.bus import somebody
from tests.support.constitutions import join, plant, thing, things, triples
from tests.support.graph import Stores, opened
from tests.support.servers import GraphServer

WITHIN = 5.0
"""Seconds that an algorithm may take at 1,000 nodes (O-215)."""


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("algorithms")) as found:
        await found.schema.declared()
        yield found


class Service:
    """The handlers over a real store, each with a projection of its own making."""

    def __init__(self, stores: Stores) -> None:
        now, walks = partial(datetime.now, UTC), BoltWalks(stores.bolt)
        projections = ProjectionCache(BoltProjection(stores.bolt), now)
        self.algorithms = AlgorithmHandlers(projections, ProcessEngine(), walks, now, lambda *seen: None)
        self.alignment, self.reasons = ShortestPathHandlers(projections, walks, now), ReasonHandlers(projections, walks)


@pytest.fixture
def service(stores: Stores) -> Service:
    return Service(stores)


CLIQUES = [f"{a}{x} SERVES {a}{y}" for a in "lr" for x, y in combinations(range(4), 2)]


@pytest.mark.req("O-207", "O-211", "O-212", "O-383")
async def test_the_hub_ranks_first_until_it_is_archived(stores: Stores, service: Service) -> None:
    call = Call(somebody(), "gateway")
    star = ("a SERVES hub", "b SERVES hub", "c ALIGNS_WITH hub")
    await plant(stores, call.who, (thing("hub", "value"), *things("goal", "a", "b", "c")), *star)
    await plant(stores, somebody(), (thing("hub", "value"), thing("x", "goal")), "x SERVES hub")
    found = await service.algorithms.pagerank(call, RankNodes())
    assert [(row.id, row.type, row.title) for row in found.rows[:2]] == [("hub", "value", "The hub"), ("a", "goal", "The a")]
    assert (found.stats.node_count, found.stats.relationship_count) == (4, 3)
    await join(stores, call.who, triples("hub LEADS_TO a", "hub MEASURES b"))
    assert (await service.algorithms.pagerank(call, RankNodes(refresh=True))).rows == found.rows
    await join(stores, call.who, triples("hub SERVES a"))
    assert (await service.algorithms.pagerank(call, RankNodes(refresh=True))).rows != found.rows
    await stores.run("MATCH (n:Value {id: 'hub', tenant: $t}) SET n.lifecycle = 'archived'", t=call.who.tenant)
    assert "hub" not in [row.id for row in (await service.algorithms.pagerank(call, RankNodes(refresh=True))).rows]


@pytest.mark.req("O-208", "O-209", "O-213", "O-383")
async def test_cliques_are_communities_and_their_bridge_stands_between(stores: Stores, service: Service) -> None:
    call = Call(somebody(), "gateway")
    await plant(stores, call.who, things("goal", *(f"{a}{x}" for a in "lr" for x in range(4))), *CLIQUES, "l0 SERVES r0")
    found = await service.algorithms.communities(call, FindCommunities())
    assert [sorted(node.id for node in row.nodes) for row in found.rows] == [[f"{a}{x}" for x in range(4)] for a in "lr"]
    between = await service.algorithms.betweenness(call, FindBridges(limit=2))
    assert [row.id for row in between.rows] == ["l0", "r0"]
    assert between.stats.projected_at == found.stats.projected_at


@pytest.mark.req("O-210", "O-213", "O-395", "O-396")
async def test_a_task_is_aligned_with_a_value_and_loses_it_with_the_goal_between(stores: Stores, service: Service) -> None:
    call = Call(somebody(), "gateway")
    nodes = (thing("t", "task"), thing("s", "strategy"), thing("g", "goal"), thing("v", "value"), thing("p", "principle"))
    orphan = thing("o", "goal")
    links = ("t SERVES s", "s SERVES g", "g SUPPORTED_BY v", "v ENFORCED_BY p", "o SUPPORTED_BY p")
    await plant(stores, call.who, (*nodes, orphan), *links)
    path = await service.alignment.shortest_path(call, FindShortestPath(from_id="t", to_id="v"))
    assert [(step.node_id, step.relationship) for step in path.path] == [
        ("t", None),
        ("s", "SERVES"),
        ("g", "SERVES"),
        ("v", "SUPPORTED_BY"),
    ]
    why = await service.reasons.why(call, AskWhy(from_id="t", to_id="v"))
    assert [[step.node_id for step in reason.path] for reason in why.reasons] == [["t", "s", "g", "v"]]
    without = await service.reasons.without(call, WithoutNode(id="g"))
    assert [loss.node.id for loss in without.orphaned] == ["s", "t"]
    principle = await service.reasons.without(call, WithoutNode(id="p"))
    assert [(loss.node.id, [top.id for top in loss.lost]) for loss in principle.orphaned] == [("o", ["v"])]
    assert len((await service.reasons.why(call, AskWhy(from_id="o"))).reasons) == 1


@pytest.mark.req("O-216", "O-219", "C-54")
async def test_algorithms_are_computed_without_a_plugin_of_the_store() -> None:
    available = EngineAvailability(ProcessEngine())
    await available.look()
    assert available.found() == (
        "shortest_path by service",
        "pagerank by service",
        "betweenness by service",
        "communities by service",
    )


@pytest.mark.req("O-215", "O-382")
async def test_a_thousand_nodes_take_less_than_five_seconds(stores: Stores, service: Service) -> None:
    call, chance = Call(somebody(), "gateway"), Random(1)
    nodes = [thing(f"n{place:04}", "goal") for place in range(1_000)]
    pairs = {(chance.randrange(1_000), chance.randrange(1_000)) for _ in range(2_500)}
    await plant(stores, call.who, nodes, *(f"n{a:04} SERVES n{b:04}" for a, b in sorted(pairs) if a != b))
    took = []
    for ask in (
        service.algorithms.pagerank(call, RankNodes(refresh=True)),
        service.algorithms.communities(call, FindCommunities(refresh=True)),
        service.algorithms.betweenness(call, FindBridges(refresh=True)),
        service.alignment.shortest_path(call, FindShortestPath(from_id="n0001", to_id="n0002", refresh=True)),
    ):
        began = time.perf_counter()
        assert (await ask).stats.node_count == 1_000
        took.append(time.perf_counter() - began)
    assert max(took) < WITHIN, took
