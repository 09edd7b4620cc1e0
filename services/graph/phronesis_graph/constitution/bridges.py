"""Bridges: what joins two nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from phronesis_contracts.constitution.paths import BridgeConcepts, BridgeFound

from .budgets import measured
from .meeting import must_meet
from .routes import distances, routes
from .walkable import Edge, Follow, Met, Reader
from .walking import walk


async def bridge(reader: Reader, request: BridgeConcepts) -> BridgeFound:
    """The shortest paths between two nodes over active ones, met in the middle: each end is walked half the way.

    Raises:
        NotFound: one of the nodes is not there.
    """
    begin, end = await must_meet(reader, request.from_id, request.to_id)
    half = request.max_depth // 2
    first = await walk(reader, (begin.id,), request.max_depth - half, Follow())
    second = await walk(reader, (end.id,), half, Follow())
    ways = _both_ways(begin, end, (*first.edges, *second.edges))
    beside = {id: sorted(of) for id, of in ways.items()}

    def step(id: str) -> Sequence[str]:
        return beside.get(id, ())

    left = distances(step, (end.id,), request.max_depth)
    found = routes(step, begin.id, end.id, left, request.max_depth, request.limit)
    paths = tuple((begin.step(), *(ways[a][b].step for a, b in pairwise(path))) for path in found)
    met = {id: edge.node for of in ways.values() for id, edge in of.items()}
    often = Counter(id for path in found for id in path[1:-1])
    between = tuple(met[id].mention() for id, _ in sorted(often.items(), key=lambda one: (-one[1], one[0])))
    used = measured((*(one for path in paths for one in path), *between))
    return BridgeFound(paths=paths, between=between, token_estimate=used)


def _both_ways(begin: Met, end: Met, edges: Iterable[Edge]) -> Mapping[str, dict[str, Edge]]:
    """By node its neighbours, each with one relationship to it; whichever end a walk had come from."""
    met = {begin.id: begin, end.id: end, **{edge.node.id: edge.node for edge in edges}}
    ways: dict[str, dict[str, Edge]] = defaultdict(dict)
    for edge in sorted(edges, key=lambda edge: (edge.relationship, not edge.out)):
        ways[edge.source].setdefault(edge.node.id, edge)
        back = Edge(edge.node.id, edge.relationship, not edge.out, met[edge.source])
        ways[edge.node.id].setdefault(edge.source, back)
    return ways
