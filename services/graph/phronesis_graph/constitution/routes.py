"""Routes through a graph in memory: simple paths, shortest first, and the shortest chain between two nodes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import TypeVar

from phronesis_bus import Call
from phronesis_contracts.constitution.paths import AlgorithmStats, FindShortestPath, ShortestPathFound

from .projection import Projection, ProjectionCache
from .traversal import WalkStore, check_relationship_types, read_walk_nodes, require_nodes

N = TypeVar("N", bound=Hashable)
Ways = Callable[[N], Iterable[N]]
"""The nodes that one step leads to."""

_STEPS = 50_000
"""Steps that are tried at most; what is not found by then is left out."""


def distances(
    ways: Ways[N], starts: Iterable[N], longest: int | None = None, until: Container[N] = frozenset()
) -> dict[N, int]:
    """Steps from the nearest start to each node reached, in that order; `longest` steps at most, by default any number."""
    hops = dict.fromkeys(starts, 0)
    queue = deque(hops)
    while queue:
        node = queue.popleft()
        if hops[node] == longest or node in until:
            break
        for other in ways(node):
            if other not in hops:
                hops[other] = hops[node] + 1
                queue.append(other)
    return hops


def shortest_route(ways: Ways[N], start: N, left: Mapping[N, int]) -> tuple[N, ...]:
    """A shortest path, the first in the order of `ways` at each step; empty where none leads there."""
    if start not in left:
        return ()
    path = [start]
    while left[path[-1]]:
        path.append(next(node for node in ways(path[-1]) if left.get(node) == left[path[-1]] - 1))
    return tuple(path)


def find_routes(ways: Ways[N], start: N, end: N, left: Mapping[N, int], longest: int, limit: int) -> list[tuple[N, ...]]:
    """Up to `limit` simple paths from one node to another, the shortest first.

    Args:
        ways: where a step leads, in the order in which equals are told.
        end: where they end; another node.
        left: fewest steps from each node to the end; a node without an entry does not lead there.
    """
    tries = iter(range(_STEPS))
    found: list[tuple[N, ...]] = []
    for length in range(left.get(start, longest + 1), longest + 1):
        for path in _routes_of_length(ways, (start,), end, left, length, tries):
            found.append(path)
            if len(found) == limit:
                return found
    return found


def _routes_of_length(
    ways: Ways[N], path: tuple[N, ...], end: N, left: Mapping[N, int], length: int, tries: Iterator[int]
) -> Iterator[tuple[N, ...]]:
    for node in ways(path[-1]):
        if next(tries, None) is None:
            return
        if node in path or left.get(node, length) > length - 1:
            continue
        if node == end:
            if length == 1:
                yield (*path, node)
        elif length > 1:
            yield from _routes_of_length(ways, (*path, node), end, left, length - 1, tries)


class ShortestPathHandlers:
    """Answers from `projections`: a chain in one costs less than the store would take for it."""

    def __init__(self, projections: ProjectionCache, walks: WalkStore, now: Callable[[], datetime]) -> None:
        self._projections, self._walks, self._now = projections, walks, now

    async def shortest_path(self, call: Call, request: FindShortestPath) -> ShortestPathFound:
        """How a node is joined to another. Raises `NotFound`, `BadRequest` (a type), `TooLarge`, `Unavailable`."""
        tenant, names = call.who.tenant, check_relationship_types(request.relationship_types)
        held = self._projections.kept(tenant, names)
        kept = await self._projections.fresh(tenant, names, refresh=request.refresh)
        over, began = kept.projection, time.perf_counter()
        path = await asyncio.to_thread(_find_path, over, request)
        milliseconds = (time.perf_counter() - began) * 1_000
        await self._walks.read(tenant, lambda reader: require_nodes(reader, request.from_id, request.to_id))
        met = await read_walk_nodes(self._walks, tenant, over, path)
        steps = [met[path[0]].step()] if path and len(met) == len(path) else []
        for before, node in pairwise(path) if steps else ():
            name, out = next((name, out) for other, name, out in over.around[before] if other == node)
            steps.append(met[node].step(over.names[name], "out" if out else "in"))
        stats = AlgorithmStats(
            node_count=len(over.ids),
            relationship_count=len(over.links),
            computed_at=self._now(),
            projected_at=over.at,
            cached=kept is held,
            engine="service",
            milliseconds=round(milliseconds, 1),
        )
        return ShortestPathFound(path=tuple(steps), hops=max(0, len(steps) - 1), stats=stats)


def _find_path(over: Projection, request: FindShortestPath) -> tuple[int, ...]:
    begin, end = over.number.get(request.from_id), over.number.get(request.to_id)
    if begin is None or end is None:
        return ()

    def ways(node: int) -> list[int]:
        return [other for other, _, _ in over.around[node]]

    return shortest_route(ways, begin, distances(ways, (end,), request.max_depth, (begin,)))
