from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_graph.constitution.projection import Projection, build_projection, upward_direction
from phronesis_graph.constitution.reasons import TOPS, find_losses
from phronesis_graph.constitution.routes import distances, find_routes, shortest_route
from phronesis_graph.constitution.traversal import Edge, WalkNode
from phronesis_graph.constitution.walks import find_ladders, longest_ladder, parents_above
from tests.support.constitutions import DAWN

NODES = range(6)
Ways = dict[int, list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Ways:
    """Any directed graph of six nodes."""
    pairs = draw(st.sets(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=14))
    return {node: sorted(b for a, b in pairs if a == node and a != b) for node in NODES}


def every_path(ways: Ways, start: int, end: int) -> list[tuple[int, ...]]:
    """Simple paths, found by trying every order of every choice of nodes."""
    between = [node for node in NODES if node not in (start, end)]
    tried = ((start, *middle, end) for size in range(len(between) + 1) for middle in permutations(between, size))
    return [path for path in tried if all(b in ways[a] for a, b in pairwise(path))]


def turned(ways: Ways) -> Ways:
    return {node: [other for other in NODES if node in ways[other]] for node in NODES}


@given(graphs(), st.integers(1, 5), st.integers(1, 40))
def test_routes_are_the_shortest_simple_paths(ways: Ways, most: int, limit: int) -> None:
    left = distances(turned(ways).__getitem__, (1,))
    found = find_routes(ways.__getitem__, 0, 1, left, most, limit)
    every = sorted((path for path in every_path(ways, 0, 1) if len(path) <= most + 1), key=len)
    assert [len(path) for path in found] == [len(path) for path in every[:limit]]
    assert len(set(found)) == len(found)
    assert set(found) <= set(every)


@given(graphs())
def test_a_shortest_path_is_as_long_as_the_best_of_all(ways: Ways) -> None:
    path = shortest_route(ways.__getitem__, 0, distances(turned(ways).__getitem__, (1,)))
    every = every_path(ways, 0, 1)
    assert len(path) == min(map(len, every), default=0)
    assert not path or path in every


@given(graphs(), st.integers(0, 3))
def test_no_distance_is_longer_than_asked(ways: Ways, most: int) -> None:
    whole = distances(ways.__getitem__, (0,))
    assert distances(ways.__getitem__, (0,), most) == {node: hops for node, hops in whole.items() if hops <= most}


def met(id: str, at: int = 0) -> WalkNode:
    return WalkNode(id, "goal", id, "active", "active", f"2026-01-01T00:00:{at:02}.000000Z")


@pytest.mark.req("O-277", "C-68")
@given(graphs())
def test_the_ladder_is_the_longest_way_up(ways: Ways) -> None:
    upwards = {str(a): [str(b) for b in of if b > a] for a, of in ways.items()}
    edges = [Edge(a, "SUPPORTED_BY", True, met(b)) for a, of in upwards.items() for b in of]
    above = parents_above("0", edges)
    nodes = {str(node): met(str(node)) for node in NODES}
    best = longest_ladder("0", above, nodes)
    numbered = {a: [b for b in of if b > a] for a, of in ways.items()}
    ends = [max((len(path) for path in every_path(numbered, 0, end)), default=1) for end in NODES if end]
    assert len(best) == max(ends)
    assert find_ladders("0", above, nodes)[0][0] == best


@pytest.mark.req("O-279")
@given(graphs())
def test_a_ladder_has_no_rung_twice_whatever_leads_in_a_circle(ways: Ways) -> None:
    edges = [Edge(str(a), "SUPPORTED_BY", True, met(str(b))) for a, of in ways.items() for b in of]
    every, more = find_ladders("0", parents_above("0", edges), {str(node): met(str(node)) for node in NODES})
    assert not more
    assert all(len(set(one)) == len(one) for one in every)


@pytest.mark.req("O-277", "C-68")
def test_of_ladders_of_one_height_the_top_that_changed_last_counts() -> None:
    edges = [Edge("a", "SUPPORTED_BY", True, met(id)) for id in ("b", "c")]
    nodes = {"a": met("a"), "b": met("b", at=1), "c": met("c", at=2)}
    assert longest_ladder("a", parents_above("a", edges), nodes) == ("a", "c")


TYPES_OF = st.sampled_from(["value", "principle", "vision", "goal", "task"])


@st.composite
def projections(draw: st.DrawFn) -> Projection:
    """A small constitutional graph, also of relationships that the registry would refuse."""
    types = {str(node): draw(TYPES_OF) for node in NODES}
    names = ("ALIGNS_WITH", "ENFORCED_BY", "SERVES", "SUPPORTED_BY")
    ends = st.sampled_from(sorted(types))
    links = draw(st.lists(st.tuples(ends, st.sampled_from(names), ends), max_size=12))
    return build_projection(types, names, links, DAWN)


def comes_to(over: Projection, gone: int | None) -> dict[int, set[int]]:
    """By node the values and visions that it comes to by a step or more; one node after the other."""
    found: dict[int, set[int]] = {}
    for start in NODES:
        if start == gone:
            continue
        seen, edge = set[int](), {start}
        while edge:
            edge = {other for node in edge for other, _, _ in over.up[node] if other != gone} - seen
            seen |= edge
        found[start] = {node for node in seen if over.types[node] in TOPS and node != start}
    return found


@pytest.mark.req("O-396")
@given(projections(), st.sampled_from(NODES))
def test_what_is_lost_is_what_each_node_by_itself_no_longer_comes_to(over: Projection, gone: int) -> None:
    before, after = comes_to(over, None), comes_to(over, gone)
    lost = {node: before[node] - after[node] for node in after if before[node] - after[node]}
    found = find_losses(over, gone)
    told = {node: set(tops) for node, tops in (*found.orphaned, *found.weakened)}
    assert told == lost
    assert {node for node, _ in found.orphaned} == {node for node in lost if not held(over, gone, node)}


def held(over: Projection, gone: int, node: int) -> bool:
    """Whether a node still comes to any value or vision, itself by way of others included."""
    seen, edge = set[int](), {node}
    while edge:
        edge = {other for one in edge for other, _, _ in over.up[one] if other != gone} - seen
        seen |= edge
    return any(over.types[one] in TOPS for one in seen)


@pytest.mark.req("O-395")
@pytest.mark.parametrize(
    ("type", "name", "way"),
    [
        ("task", "SERVES", "out"),
        ("strategy", "ALIGNS_WITH", "out"),
        ("goal", "SUPPORTED_BY", "out"),
        ("value", "ENFORCED_BY", "in"),
        ("strategy", "SUPPORTED_BY", "in"),
        ("insight", "SUPPORTED_BY", None),
        ("decision", "LEADS_TO", None),
    ],
)
def test_a_relationship_leads_up_the_way_that_its_meaning_says(type: str, name: str, way: str | None) -> None:
    assert upward_direction(type, name) == way
