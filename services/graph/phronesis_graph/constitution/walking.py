"""A walk, breadth first: every node that is reached, and the shortest way to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from phronesis_contracts.constitution.paths import Step

from .walkable import MOST_EDGES, Edge, Follow, Met, Reader

FRONTIER = 1_000
"""Nodes of one hop that a walk goes on from, those changed last; it goes past the others no further."""


@dataclass(frozen=True)
class Way:
    """A node that was reached."""

    hops: int
    edge: Edge
    """The last step to it."""

    @property
    def node(self) -> Met:
        """The node."""
        return self.edge.node


@dataclass
class Walked:
    """What a walk came to."""

    found: list[Way] = field(default_factory=list)
    """Nearest first, and within a hop what changed last; no node twice, and none that the walk began at."""
    edges: list[Edge] = field(default_factory=list)
    """Every relationship that was looked at."""
    cut: bool = False
    """Whether a hop had more than is looked at."""
    _came: dict[str, Edge] = field(default_factory=dict)

    def path(self, id: str) -> tuple[Step, ...]:
        """The steps to a node that was reached, its own the last."""
        steps = []
        while (edge := self._came.get(id)) is not None:
            steps.append(edge.step)
            id = edge.source
        return tuple(reversed(steps))

    def reach(self, hop: int, edges: Iterable[Edge]) -> None:
        """Take over the first edge to each new node of a hop."""
        for edge in edges:
            self._came[edge.node.id] = edge
            self.found.append(Way(hop, edge))


async def walk(
    reader: Reader,
    starts: Sequence[str],
    depth: int,
    follow: Follow,
    *,
    keep: Callable[[Edge], bool] = lambda edge: True,
    enough: Callable[[Sequence[Way]], bool] = lambda found: False,
) -> Walked:
    """Walk from nodes, hop by hop, each hop one question to the store; it goes on from active nodes alone.

    Args:
        reader: the tenant's nodes.
        starts: ids to begin at, whatever their status.
        depth: hops at most.
        follow: which relationships it takes.
        keep: whether it takes an edge that the store has given.
        enough: whether what it has reached will do; asked before each hop.
    """
    walked, seen, frontier = Walked(), set(starts), list(starts)
    for hop in range(1, depth + 1):
        if not frontier or enough(walked.found):
            break
        given = await reader.around(frontier[:FRONTIER], follow)
        walked.cut |= len(frontier) > FRONTIER or len(given) >= MOST_EDGES
        edges = [edge for edge in given if keep(edge)]
        walked.edges += edges
        new = newest_first(_first(edges, frontier, seen))
        walked.reach(hop, new)
        seen |= {edge.node.id for edge in new}
        frontier = [edge.node.id for edge in new if edge.node.active]
    return walked


def newest_first(edges: Iterable[Edge]) -> list[Edge]:
    """Edges by the time when the node that they come to changed, the last first; of equals by id."""
    return sorted(sorted(edges, key=lambda edge: edge.node.id), key=lambda edge: edge.node.updated_at, reverse=True)


def _first(edges: Iterable[Edge], frontier: Sequence[str], seen: set[str]) -> Iterable[Edge]:
    """Of the edges to each new node the one whose beginning was reached first, so that a repeat takes the same way."""
    rank = {id: place for place, id in enumerate(frontier)}
    best: dict[str, Edge] = {}
    for edge in sorted(edges, key=lambda edge: (rank[edge.source], edge.relationship, not edge.out)):
        if edge.node.id not in seen:
            best.setdefault(edge.node.id, edge)
    return best.values()
