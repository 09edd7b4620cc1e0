from __future__ import annotations

import asyncio
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.insight import AskWhy, WithoutNode
from phronesis_contracts.constitution.paths import FindBridges, FindCommunities, FindShortestPath, RankNodes
from phronesis_contracts.constitution.registry import CONSTITUTIONAL, Layer
from phronesis_contracts.constitution.writes import ConstitutionChanged, LinkNews, NodeNews, Operation
from phronesis_graph.constitution.algorithms import AlgorithmHandlers
from phronesis_graph.constitution.engine import Algorithm, AlgorithmOutput, EngineAvailability
from phronesis_graph.constitution.projection import Projection, ProjectionCache, build_projection
from phronesis_graph.constitution.reasons import ReasonHandlers
from phronesis_graph.constitution.routes import ShortestPathHandlers
from tests.support.constitutions import DAWN, thing, things
from tests.unit.graph.fakes_constitution import ANN, Clock, Engine, Graph, over

HUB = (thing("hub", "value"), *things("goal", "a", "b", "c", "d"))
STAR = ("a SERVES hub", "b SERVES hub", "c ALIGNS_WITH hub", "d SUPPORTED_BY hub")
CLIQUES = [f"{a}{x} SERVES {a}{y}" for a in "lr" for x, y in combinations(range(4), 2)]
TWO = [*things("goal", *(f"{a}{x}" for a in "lr" for x in range(4)))]


class Service:
    """The handlers over one graph."""

    def __init__(self, graph: Graph, **engine: int) -> None:
        self.graph, self.engine, self.clock = graph, Engine(**engine), Clock()
        self.watched: list[tuple[Any, ...]] = []
        self.projections = ProjectionCache(graph, self.clock)
        self.algorithms = AlgorithmHandlers(
            self.projections, self.engine, graph, self.clock, lambda *seen: self.watched.append((seen[0], seen[3]))
        )
        self.alignment = ShortestPathHandlers(self.projections, graph, self.clock)
        self.reasons = ReasonHandlers(self.projections, graph)


def ids(found: Any) -> list[str]:
    return [row.id for row in found.rows]


@pytest.mark.req("O-207")
async def test_the_hub_of_a_star_ranks_first() -> None:
    found = await Service(Graph(HUB, *STAR)).algorithms.pagerank(ANN, RankNodes())
    assert ids(found) == ["hub", "a", "b", "c", "d"]
    assert [row.score for row in found.rows] == sorted((row.score for row in found.rows), reverse=True)
    assert (found.stats.node_count, found.stats.relationship_count, found.stats.engine) == (5, 4, "service")


@pytest.mark.req("O-207", "C-51")
async def test_ten_rows_are_told_where_nothing_is_said() -> None:
    found = await Service(Graph(things("goal", *(f"g{place:02}" for place in range(30))))).algorithms.pagerank(ANN, RankNodes())
    assert ids(found) == [f"g{place:02}" for place in range(10)]


@pytest.mark.req("O-221", "O-213", "C-52")
async def test_the_most_influential_values_are_ranked_among_all_nodes_and_told_alone() -> None:
    graph = Graph((*HUB, thing("v", "value")), *STAR, "a ALIGNS_WITH v")
    found = await Service(graph).algorithms.pagerank(ANN, RankNodes(types=("Value",)))
    assert ids(found) == ["hub", "v"]
    assert found.stats.node_count == 6


@pytest.mark.req("O-211", "C-51", "C-52")
async def test_an_algorithm_runs_over_the_layers_that_are_named() -> None:
    graph = Graph((*HUB, thing("t", "task")), *STAR, "t SERVES a")
    found = await Service(graph).algorithms.pagerank(ANN, RankNodes(layers=(Layer.FOUNDATION, Layer.VISION)))
    assert (found.stats.node_count, found.stats.relationship_count, "t" in ids(found)) == (5, 4, False)


@pytest.mark.req("O-208")
async def test_two_cliques_with_a_bridge_are_two_communities() -> None:
    service = Service(Graph(TWO, *CLIQUES, "l0 SERVES r0"))
    found = await service.algorithms.communities(ANN, FindCommunities())
    assert [(row.id, row.size, sorted(node.id for node in row.nodes)) for row in found.rows] == [
        (1, 4, ["l0", "l1", "l2", "l3"]),
        (2, 4, ["r0", "r1", "r2", "r3"]),
    ]
    assert found.modularity > 0.3
    again = await service.algorithms.communities(ANN, FindCommunities(refresh=True))
    assert again.rows == found.rows


@pytest.mark.req("O-209")
async def test_the_ends_of_the_bridge_stand_between() -> None:
    found = await Service(Graph(TWO, *CLIQUES, "l0 SERVES r0")).algorithms.betweenness(ANN, FindBridges(limit=3))
    assert [(row.id, row.score) for row in found.rows] == [("l0", 12.0), ("r0", 12.0), ("l1", 0.0)]
    assert found.stats.pivots is None


async def test_betweenness_of_a_large_graph_is_estimated_and_says_so() -> None:
    exact = await Service(Graph(TWO, *CLIQUES, "l0 SERVES r0")).algorithms.betweenness(ANN, FindBridges())
    whole = Service(Graph(TWO, *CLIQUES, "l0 SERVES r0"), exact=4, pivots=8)
    found = await whole.algorithms.betweenness(ANN, FindBridges())
    assert (found.rows, found.stats.pivots) == (exact.rows, 8)


@st.composite
def small(draw: st.DrawFn) -> list[str]:
    node = st.integers(0, 5)
    pairs = draw(st.sets(st.tuples(node, node).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=12))
    return [f"{a} SERVES {b}" for a, b in sorted(pairs)]


@settings(max_examples=40)
@given(small())
def test_pagerank_is_where_a_walk_by_chance_would_be(links: list[str]) -> None:
    graph = over({str(node): "goal" for node in range(6)}, *links)
    ways = {node: [b for a, b, _ in graph.links if a == node] or list(range(6)) for node in range(6)}
    rank = [1 / 6] * 6
    for _ in range(200):
        rank = [0.15 / 6 + 0.85 * sum(rank[a] / len(ways[a]) for a in range(6) if b in ways[a]) for b in range(6)]
    assert list(Engine().of(Algorithm.PAGERANK, graph).values) == pytest.approx(rank, abs=1e-6)


@settings(max_examples=40)
@given(small())
def test_betweenness_counts_the_shortest_paths_that_pass(links: list[str]) -> None:
    graph = over({str(node): "goal" for node in range(6)}, *links)
    beside = {
        node: {b for a, b, _ in graph.links if a == node} | {a for a, b, _ in graph.links if b == node} for node in range(6)
    }
    expected = [0.0] * 6
    for start, end in combinations(range(6), 2):
        paths, whole = [(start,)], list[tuple[int, ...]]()
        while paths and not whole:
            paths = [(*path, node) for path in paths for node in beside[path[-1]] if node not in path]
            whole = [path for path in paths if path[-1] == end]
        for path in whole:
            for node in path[1:-1]:
                expected[node] += 1 / len(whole)
    assert list(Engine().of(Algorithm.BETWEENNESS, graph).values) == pytest.approx(expected, abs=1e-9)


CHAIN = (thing("x", "task"), thing("s", "strategy"), thing("g", "goal"), thing("y", "value"), thing("far", "goal"))
UP = ("x SERVES s", "s SERVES g", "g SUPPORTED_BY y")


@pytest.mark.req("O-210", "O-213", "C-50")
async def test_a_task_is_joined_to_a_value_by_the_shortest_chain() -> None:
    service = Service(Graph(CHAIN, *UP, "g SERVES far", "far SUPPORTED_BY y"))
    found = await service.alignment.shortest_path(ANN, FindShortestPath(from_id="y", to_id="x"))
    assert [(step.node_id, step.relationship, step.direction) for step in found.path] == [
        ("y", None, None),
        ("g", "SUPPORTED_BY", "in"),
        ("s", "SERVES", "in"),
        ("x", "SERVES", "in"),
    ]
    assert (found.hops, found.stats.engine) == (3, "service")


@pytest.mark.req("O-210")
async def test_where_there_is_no_chain_the_path_is_empty() -> None:
    service = Service(Graph(CHAIN, *UP))
    none = await service.alignment.shortest_path(ANN, FindShortestPath(from_id="x", to_id="far"))
    short = await service.alignment.shortest_path(ANN, FindShortestPath(from_id="x", to_id="y", max_depth=2))
    assert [(found.path, found.hops) for found in (none, short)] == [((), 0), ((), 0)]
    with pytest.raises(NotFound):
        await service.alignment.shortest_path(ANN, FindShortestPath(from_id="x", to_id="nobody"))


@pytest.mark.req("O-214", "O-327", "C-51")
async def test_an_answer_is_cached_for_an_hour() -> None:
    service = Service(Graph(HUB, *STAR))
    first = await service.algorithms.pagerank(ANN, RankNodes())
    service.clock.pass_(minutes=59)
    second = await service.algorithms.pagerank(ANN, RankNodes(limit=1))
    assert [found.stats.cached for found in (first, second)] == [False, True]
    assert second.stats.computed_at == first.stats.computed_at
    service.clock.pass_(minutes=2)
    third = await service.algorithms.pagerank(ANN, RankNodes())
    assert (third.stats.cached, third.stats.computed_at) == (False, service.clock.now)
    assert service.engine.runs == [Algorithm.PAGERANK] * 2


@pytest.mark.req("O-214")
async def test_each_answer_has_an_hour_of_its_own() -> None:
    service = Service(Graph(HUB, *STAR))
    await service.algorithms.pagerank(ANN, RankNodes())
    service.clock.pass_(minutes=30)
    await service.algorithms.betweenness(ANN, FindBridges())
    service.clock.pass_(minutes=31)
    assert not (await service.algorithms.pagerank(ANN, RankNodes())).stats.cached
    assert (await service.algorithms.betweenness(ANN, FindBridges())).stats.cached


def link(type: str, operation: Operation = Operation.CREATE) -> ConstitutionChanged:
    news = LinkNews(id="1", type=type, from_id="a", to_id="b", operation=operation, layers=(Layer.VISION,))
    return ConstitutionChanged(relationships=(news,))


def node(operation: Operation, *changed: str) -> ConstitutionChanged:
    news = NodeNews(id="a", type="goal", layer=Layer.VISION, operation=operation, version=2, changed=changed)
    return ConstitutionChanged(nodes=(news,))


@pytest.mark.req("O-211", "O-218")
@pytest.mark.parametrize(
    ("news", "dropped"),
    [
        (link("SERVES"), True),
        (link("SERVES", Operation.DELETE), True),
        (link("LEADS_TO"), False),
        (node(Operation.CREATE, "title"), True),
        (node(Operation.DELETE), True),
        (node(Operation.UPDATE, "status"), True),
        (node(Operation.UPDATE, "title", "summary"), False),
    ],
)
async def test_news_drops_what_it_has_made_wrong(news: ConstitutionChanged, dropped: bool) -> None:
    service = Service(Graph(HUB, *STAR))
    await service.algorithms.pagerank(ANN, RankNodes())
    service.projections.changed("acme", news)
    found = await service.algorithms.pagerank(ANN, RankNodes())
    assert (found.stats.cached, service.graph.reads) == (not dropped, 1 + dropped)


async def test_another_tenants_news_drops_nothing() -> None:
    service = Service(Graph(HUB, *STAR))
    await service.algorithms.pagerank(ANN, RankNodes())
    service.projections.changed("other", link("SERVES"))
    assert (await service.algorithms.pagerank(ANN, RankNodes())).stats.cached


async def test_what_changes_while_it_is_read_is_not_kept() -> None:
    class Busy(Graph):
        async def project(self, tenant: str, names: tuple[str, ...]) -> Any:
            found = await super().project(tenant, names)
            if self.reads == 1:
                service.projections.changed("acme", link("SERVES"))
            return found

    service = Service(Busy(HUB, *STAR))
    assert not (await service.algorithms.pagerank(ANN, RankNodes())).stats.cached
    assert not (await service.algorithms.pagerank(ANN, RankNodes())).stats.cached
    assert (await service.algorithms.pagerank(ANN, RankNodes())).stats.cached


async def test_a_long_computation_holds_up_no_reason_and_is_not_made_twice() -> None:
    class Slow(Engine):
        async def compute(self, algorithm: Algorithm, over: Projection) -> AlgorithmOutput:
            await done.wait()
            return await super().compute(algorithm, over)

    done, service = asyncio.Event(), Service(Graph(HUB, *STAR))
    service.engine = Slow()
    service.algorithms = AlgorithmHandlers(
        service.projections, service.engine, service.graph, service.clock, lambda *seen: None
    )
    asked = [asyncio.create_task(service.algorithms.betweenness(ANN, FindBridges())) for _ in range(3)]
    assert len((await service.reasons.why(ANN, AskWhy(from_id="a"))).reasons) == 1
    done.set()
    assert sorted(found.stats.cached for found in await asyncio.gather(*asked)) == [False, True, True]
    assert service.engine.runs == [Algorithm.BETWEENNESS]


async def test_few_results_are_kept_of_one_projection() -> None:
    service = Service(Graph(HUB, *STAR))
    for layers in combinations(Layer, 2):
        await service.algorithms.pagerank(ANN, RankNodes(layers=layers))
    kept = service.projections.kept(ANN.who.tenant, tuple(sorted(CONSTITUTIONAL)))
    assert kept is not None
    assert len(kept.results) == 12


@pytest.mark.req("O-217", "O-218")
async def test_a_dropped_projection_is_read_again_and_its_age_is_told() -> None:
    service = Service(Graph(HUB, *STAR))
    first = await service.algorithms.pagerank(ANN, RankNodes())
    service.clock.pass_(minutes=5)
    service.projections.drop_all()
    again = await service.algorithms.pagerank(ANN, RankNodes())
    service.clock.pass_(minutes=5)
    anew = await service.algorithms.pagerank(ANN, RankNodes(refresh=True))
    ages = [found.stats.projected_at for found in (first, again, anew)]
    assert ages == sorted(set(ages))
    assert (again.rows, anew.rows, service.graph.reads) == (first.rows, first.rows, 3)


@pytest.mark.req("O-212", "C-53")
async def test_an_archived_hub_is_gone_after_a_refresh() -> None:
    service = Service(Graph(HUB, *STAR))
    await service.algorithms.pagerank(ANN, RankNodes())
    service.graph.of["hub"] = thing("hub", "value", status="archived")
    assert "hub" not in ids(await service.algorithms.pagerank(ANN, RankNodes(refresh=True)))


async def test_an_empty_graph_has_no_rows() -> None:
    service = Service(Graph(()))
    assert (await service.algorithms.pagerank(ANN, RankNodes())).rows == ()
    assert (await service.algorithms.communities(ANN, FindCommunities())).rows == ()


@pytest.mark.req("O-220")
async def test_each_computation_is_measured_and_no_cached_answer() -> None:
    service = Service(Graph(HUB, *STAR))
    await service.algorithms.pagerank(ANN, RankNodes())
    await service.algorithms.pagerank(ANN, RankNodes())
    assert service.watched == [(Algorithm.PAGERANK, 5)]


@pytest.mark.req("O-219")
async def test_what_can_be_computed_is_found_out_by_computing_it() -> None:
    available = EngineAvailability(Engine())
    await available.look()
    assert available.found() == (
        "shortest_path by service",
        "pagerank by service",
        "betweenness by service",
        "communities by service",
    )


@pytest.mark.req("O-395")
async def test_why_is_told_by_chains_upwards_and_in_words() -> None:
    service = Service(
        Graph((*CHAIN, thing("p", "principle"), thing("r", "guardrail")), *UP, "y ENFORCED_BY p", "p ENFORCED_BY r")
    )
    found = await service.reasons.why(ANN, AskWhy(from_id="x", to_id="y"))
    assert [reason.sentence for reason in found.reasons] == [
        'The task "The x" serves the strategy "The s", which serves the goal "The g", which rests on the value "The y".'
    ]
    rule = await service.reasons.why(ANN, AskWhy(from_id="r"))
    assert [reason.sentence for reason in rule.reasons] == [
        'The guardrail "The r" enforces the principle "The p", which enforces the value "The y".'
    ]
    down = await service.reasons.why(ANN, AskWhy(from_id="y", to_id="x"))
    assert down.reasons == ()


@pytest.mark.req("O-395")
async def test_every_value_and_vision_above_is_a_reason_the_nearest_first() -> None:
    nodes = (*CHAIN, thing("v", "vision"), thing("w", "vision", status="archived"))
    service = Service(Graph(nodes, *UP, "s SERVES v", "s SERVES w"))
    found = await service.reasons.why(ANN, AskWhy(from_id="x"))
    assert [[step.node_id for step in reason.path] for reason in found.reasons] == [["x", "s", "v"], ["x", "s", "g", "y"]]
    with pytest.raises(NotFound):
        await service.reasons.why(ANN, AskWhy(from_id="nobody"))


@pytest.mark.req("O-396")
async def test_without_a_principle_what_rests_on_it_alone_is_orphaned() -> None:
    nodes = (thing("v", "value"), thing("w", "vision"), thing("p", "principle"), *things("goal", "only", "both", "none"))
    links = ("v ENFORCED_BY p", "only SUPPORTED_BY p", "both SUPPORTED_BY p", "both SERVES w")
    graph = Graph((*nodes, thing("t", "task")), *links, "t SERVES only")
    found = await Service(graph).reasons.without(ANN, WithoutNode(id="p"))
    assert [(loss.node.id, [top.id for top in loss.lost]) for loss in found.orphaned] == [("only", ["v"]), ("t", ["v"])]
    assert [(loss.node.id, [top.id for top in loss.lost]) for loss in found.weakened] == [("both", ["v"])]
    assert found.total == 3
    assert len(graph.links_of) == 5


async def test_what_is_not_active_carries_nothing() -> None:
    with pytest.raises(NotFound):
        await Service(Graph((thing("p", "principle", status="archived"),))).reasons.without(ANN, WithoutNode(id="p"))


@pytest.mark.req("C-53")
def test_a_projection_leaves_out_what_is_not_live_and_what_leads_to_itself() -> None:
    found = build_projection(
        {"b": "goal", "a": "value"}, ("SERVES",), [("b", "SERVES", "a"), ("b", "SERVES", "b"), ("c", "SERVES", "a")], DAWN
    )
    assert (found.ids, found.types, found.links) == (["a", "b"], ["value", "goal"], [(1, 0, 0)])
