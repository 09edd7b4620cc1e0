"""The ports of walks and algorithms over a graph in lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.constitution.registry import Lifecycle, lifecycle_of
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_graph.constitution import algorithm_worker
from phronesis_graph.constitution.engine import DAMPING, MOST_EXACT, PIVOTS, SEED, Algorithm, AlgorithmOutput
from phronesis_graph.constitution.projection import Projection, build_projection
from phronesis_graph.constitution.records import format_time
from phronesis_graph.constitution.traversal import Edge, EdgeFilter, WalkNode, WalkReader
from tests.support.constitutions import DAWN, triples

T = TypeVar("T")
ANN = Call(Principal(tenant="acme", user="ann"), "gateway")


class Graph:
    """One tenant's graph; both of a walk's ports, and that of projections."""

    def __init__(self, nodes: Iterable[ConstitutionNode], *links: str) -> None:
        self.of = {node.id: node for node in nodes}
        self.links_of = triples(*links)
        self.reads = 0

    async def read(self, tenant: str, work: Callable[[WalkReader], Awaitable[T]]) -> T:
        return await work(self)

    async def met(self, ids: Sequence[str]) -> dict[str, WalkNode]:
        return {id: self._met(id) for id in ids if id in self.of}

    async def around(self, ids: Sequence[str], follow: EdgeFilter) -> list[Edge]:
        edges = []
        for a, name, b in self.links_of:
            for way, source, target in (("out", a, b), ("in", b, a)):
                if source in ids and follow.direction in (way, "both") and (not follow.names or name in follow.names):
                    edges.append(Edge(source, name, way == "out", self._met(target)))
        return [edge for edge in edges if edge.node.lifecycle in follow.lifecycles]

    async def nodes(self, ids: Sequence[str], *, full: bool) -> list[ConstitutionNode]:
        return [self.of[id] for id in ids if id in self.of]

    async def links(self, ids: Sequence[str], most: int) -> list[ConstitutionLink]:
        return [
            ConstitutionLink(id=f"{a} {name} {b}", type=name, from_id=a, to_id=b)
            for a, name, b in self.links_of
            if a in ids and b in ids
        ][:most]

    async def project(self, tenant: str, names: tuple[str, ...]) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
        self.reads += 1
        live = {id: node.type for id, node in self.of.items() if lifecycle_of(node.status or "") is Lifecycle.ACTIVE}
        return live, [link for link in self.links_of if link[1] in names]

    def _met(self, id: str) -> WalkNode:
        node = self.of[id]
        assert node.status is not None
        assert node.updated_at is not None
        return WalkNode(id, node.type, node.title, node.status, lifecycle_of(node.status), format_time(node.updated_at))


class Engine:
    """The engine in the test's own process."""

    name: Literal["gds", "service"] = "service"

    def __init__(self, exact: int = MOST_EXACT, pivots: int = PIVOTS) -> None:
        self.runs: list[Algorithm] = []
        self._limits = {"exact": exact, "most_pivots": pivots}

    async def compute(self, algorithm: Algorithm, over: Projection) -> AlgorithmOutput:
        self.runs.append(algorithm)
        return self.of(algorithm, over)

    def of(self, algorithm: Algorithm, over: Projection) -> AlgorithmOutput:
        job = {
            "algorithm": algorithm.value,
            "nodes": len(over.ids),
            "sources": [source for source, _, _ in over.links],
            "targets": [target for _, target, _ in over.links],
            "seed": SEED,
            "damping": DAMPING,
            **self._limits,
        }
        return AlgorithmOutput(**algorithm_worker.compute(job))


class Clock:
    """A time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 22, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)


def over(types: dict[str, str], *links: str) -> Projection:
    """A projection over whatever relationship types the links have."""
    found = triples(*links)
    return build_projection(types, tuple(sorted({name for _, name, _ in found})), found, DAWN)
