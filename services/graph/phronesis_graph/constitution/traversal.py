"""A breadth-first walk: what it needs of a store, where it begins, what it reaches, and the shortest way there."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.constitution.paths import Step
from phronesis_contracts.constitution.registry import RELATIONSHIP_NAME, TYPES, Layer, Lifecycle, node_type
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention

from ..twin.ontology import suggest_nearest
from .projection import Projection

T = TypeVar("T")
Direction = Literal["out", "in", "both"]

MOST_EDGES = 20_000
"""Relationships that one hop looks at in each direction; a hop that has more of them is cut."""


@dataclass(frozen=True)
class WalkNode:
    """A node as a walk meets it: what names it, and what decides whether the walk goes on."""

    id: str
    type: str
    title: str
    status: str
    lifecycle: str
    updated_at: str
    """In the store's form, whose order is the order of time."""

    @property
    def layer(self) -> Layer:
        return TYPES[self.type].layer

    @property
    def active(self) -> bool:
        """Whether walks go on from it."""
        return self.lifecycle == Lifecycle.ACTIVE

    def mention(self, relationship: str | None = None) -> Mention:
        return Mention(id=self.id, type=self.type, title=self.title, status=self.status, relationship=relationship)

    def step(self, relationship: str | None = None, direction: Literal["out", "in"] | None = None) -> Step:
        return Step(node_id=self.id, type=self.type, title=self.title, relationship=relationship, direction=direction)

    def node(self) -> ConstitutionNode:
        return ConstitutionNode(
            id=self.id,
            type=self.type,
            layer=self.layer,
            title=self.title,
            status=self.status,
            updated_at=datetime.fromisoformat(self.updated_at),
        )


@dataclass(frozen=True)
class Edge:
    """A relationship as a walk takes it, from a node that it has come to."""

    source: str
    """Id of the node that the walk comes from."""
    relationship: str
    out: bool
    """Whether the relationship leads the way that the walk takes."""
    node: WalkNode

    @property
    def step(self) -> Step:
        return self.node.step(self.relationship, "out" if self.out else "in")


@dataclass(frozen=True)
class EdgeFilter:
    names: tuple[str, ...] = ()
    """All where none is named."""
    direction: Direction = "both"
    lifecycles: tuple[Lifecycle, ...] = (Lifecycle.ACTIVE,)
    """Of the nodes that it meets."""


class WalkReader(Protocol):
    """One tenant's nodes within one read."""

    async def met(self, ids: Sequence[str]) -> dict[str, WalkNode]:
        """Those of the nodes that there are, by id."""

    async def around(self, ids: Sequence[str], follow: EdgeFilter) -> list[Edge]:
        """The relationships from nodes to their neighbours, in no order, `MOST_EDGES` in each direction at most."""

    async def nodes(self, ids: Sequence[str], *, full: bool) -> list[ConstitutionNode]:
        """Those of the nodes that there are, in the order asked, without free properties; descriptions only with `full`."""

    async def links(self, ids: Sequence[str], most: int) -> list[ConstitutionLink]:
        """Relationships between two of the nodes, by id, `most` at most."""


class WalkStore(Protocol):
    """The store of the constitutional graph, for walks."""

    async def read(self, tenant: str, work: Callable[[WalkReader], Awaitable[T]]) -> T:
        """Do some work in one read, which may begin anew on a broken connection. Raises `Unavailable`, `TimedOut`."""


FRONTIER = 1_000
"""Nodes of one hop that a walk goes on from, those changed last; it goes past the others no further."""


@dataclass(frozen=True)
class ReachedNode:
    hops: int
    edge: Edge
    """The last step to it."""

    @property
    def node(self) -> WalkNode:
        return self.edge.node


@dataclass
class WalkResult:
    """What a walk came to."""

    found: list[ReachedNode] = field(default_factory=list)
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
            self.found.append(ReachedNode(hop, edge))


async def walk(
    reader: WalkReader,
    starts: Sequence[str],
    depth: int,
    follow: EdgeFilter,
    *,
    keep: Callable[[Edge], bool] = lambda edge: True,
    enough: Callable[[Sequence[ReachedNode]], bool] = lambda found: False,
) -> WalkResult:
    """Walk from nodes, hop by hop, each hop one question to the store; it goes on from active nodes alone.

    Args:
        depth: hops at most.
        follow: which relationships it takes.
        keep: whether it takes an edge that the store has given.
        enough: whether what it has reached will do; asked before each hop.
    """
    walked, seen, frontier = WalkResult(), set(starts), list(starts)
    for hop in range(1, depth + 1):
        if not frontier or enough(walked.found):
            break
        given = await reader.around(frontier[:FRONTIER], follow)
        walked.cut |= len(frontier) > FRONTIER or len(given) >= MOST_EDGES
        edges = [edge for edge in given if keep(edge)]
        walked.edges += edges
        new = sort_newest_first(_first_edges(edges, frontier, seen))
        walked.reach(hop, new)
        seen |= {edge.node.id for edge in new}
        frontier = [edge.node.id for edge in new if edge.node.active]
    return walked


def sort_newest_first(edges: Iterable[Edge]) -> list[Edge]:
    """Edges by the time when the node that they come to changed, the last first; of equals by id."""
    return sorted(sorted(edges, key=lambda edge: edge.node.id), key=lambda edge: edge.node.updated_at, reverse=True)


def _first_edges(edges: Iterable[Edge], frontier: Sequence[str], seen: set[str]) -> Iterable[Edge]:
    """Of the edges to each new node the one whose beginning was reached first, so that a repeat takes the same way."""
    rank = {id: place for place, id in enumerate(frontier)}
    best: dict[str, Edge] = {}
    for edge in sorted(edges, key=lambda edge: (rank[edge.source], edge.relationship, not edge.out)):
        if edge.node.id not in seen:
            best.setdefault(edge.node.id, edge)
    return best.values()


async def require_nodes(reader: WalkReader, *ids: str) -> list[WalkNode]:
    """The nodes. Raises `NotFound`: one of them is not there."""
    met = await reader.met(ids)
    missing = [id for id in ids if id not in met]
    if missing:
        raise NotFound(f"there is no node {missing[0]}")
    return [met[id] for id in ids]


async def read_walk_nodes(walks: WalkStore, tenant: str, over: Projection, nodes: Iterable[int]) -> dict[int, WalkNode]:
    """Nodes of a projection as they are now, in the order asked; one that went since is left out."""
    ids = {over.ids[node]: node for node in nodes}
    met = await walks.read(tenant, lambda reader: reader.met(list(ids))) if ids else {}
    return {node: met[id] for id, node in ids.items() if id in met}


def check_type_names(given: Iterable[str]) -> frozenset[str]:
    """Names of node types as the registry spells them. Raises `BadRequest`."""
    found = set()
    for name in given:
        kind = node_type(name)
        if kind is None:
            raise BadRequest(f"there is no node type {name[:64]}{suggest_nearest(name, TYPES)}", field="types")
        found.add(kind.name)
    return frozenset(found)


def check_relationship_types(given: Iterable[str]) -> tuple[str, ...]:
    """Names of relationship types, each once, in order. Raises `BadRequest`: no relationship type can have such a name."""
    names = tuple(sorted(set(given)))
    for name in names:
        if len(name) > 64 or not re.fullmatch(RELATIONSHIP_NAME, name):
            raise BadRequest("a relationship type is written in capitals, such as SERVES", field="relationshipTypes")
    return names
