"""Routes through a graph that is at hand: simple paths, the shortest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)
Ways = Callable[[N], Iterable[N]]
"""The nodes that one step leads to."""

_STEPS = 50_000
"""Steps that are tried at most; what is not found by then is left out."""


def distances(
    ways: Ways[N], starts: Iterable[N], longest: int | None = None, until: Container[N] = frozenset()
) -> dict[N, int]:
    """Steps from the nearest start to each node that is reached, in the order reached.

    Args:
        ways: where a step leads.
        starts: nodes to begin at, 0 steps away.
        longest: steps at most; any number by default.
        until: nodes of which the first that is gone on from ends it.
    """
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


def shortest(ways: Ways[N], start: N, left: Mapping[N, int]) -> tuple[N, ...]:
    """A shortest path, the first in the order of `ways` at each step; empty where none leads there.

    Args:
        ways: where a step leads.
        start: where it begins.
        left: fewest steps from each node to the end.
    """
    if start not in left:
        return ()
    path = [start]
    while left[path[-1]]:
        path.append(next(node for node in ways(path[-1]) if left.get(node) == left[path[-1]] - 1))
    return tuple(path)


def routes(ways: Ways[N], start: N, end: N, left: Mapping[N, int], longest: int, limit: int) -> list[tuple[N, ...]]:
    """Up to `limit` simple paths from one node to another, the shortest first.

    Args:
        ways: where a step leads, in the order in which equals are told.
        start: where they begin.
        end: where they end; another node.
        left: fewest steps from each node to the end; a node without an entry does not lead there.
        longest: steps at most.
        limit: paths at most.
    """
    tries = iter(range(_STEPS))
    found: list[tuple[N, ...]] = []
    for length in range(left.get(start, longest + 1), longest + 1):
        for path in _of_length(ways, (start,), end, left, length, tries):
            found.append(path)
            if len(found) == limit:
                return found
    return found


def _of_length(
    ways: Ways[N], path: tuple[N, ...], end: N, left: Mapping[N, int], length: int, tries: Iterator[int]
) -> Iterator[tuple[N, ...]]:
    """Simple paths that go on from `path` for exactly `length` steps."""
    for node in ways(path[-1]):
        if next(tries, None) is None:
            return
        if node in path or left.get(node, length) > length - 1:
            continue
        if node == end:
            if length == 1:
                yield (*path, node)
        elif length > 1:
            yield from _of_length(ways, (*path, node), end, left, length - 1, tries)
