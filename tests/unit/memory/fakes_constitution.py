"""What searches of the constitutional graph stand on, in memory: vectors compared one by one, a graph of dictionaries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np

from phronesis.bus import Call
from phronesis.contracts import NotFound, Principal, Role, Unavailable
from phronesis.contracts.constitution.insight import Duplicate
from phronesis.contracts.constitution.kinds import Layer, Lifecycle, lifecycle
from phronesis.contracts.constitution.paths import Near, Reached, Step
from phronesis.contracts.constitution.registry import TYPES
from phronesis.contracts.constitution.retrieval import RetrievalReported, RetrievalTuned, TuneRetrieval
from phronesis.contracts.constitution.search import NoSuchRetrieval, RateRetrieval, RetrievalRated
from phronesis.contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention
from phronesis.memory.cache import QueryVectors
from phronesis.memory.constitution.answers import Answers
from phronesis.memory.constitution.finding import Finding
from phronesis.memory.constitution.log import Retrieval, RetrievalLog
from phronesis.memory.constitution.meaning import Meaning
from phronesis.memory.constitution.ports import Chosen, LayerState, NodeHit, NodeVector, Pair, Version
from phronesis.memory.constitution.searching import Searching
from phronesis.memory.constitution.tuning import told
from phronesis.memory.domain.values import Vector

DIMENSION = 16
JANUARY = datetime(2026, 1, 1, tzinfo=UTC)


def at_cosine(cosine: float, turn: int = 1) -> Vector:
    """A vector of this cosine to the question of the tests, which is the first direction."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[0], vector[turn] = cosine, np.sqrt(1 - cosine**2)
    return vector


@dataclass
class ScriptedEmbedder:
    """A model whose vectors are written down; what is not, is the first direction."""

    known: dict[str, Vector] = field(default_factory=dict)
    model: str = "scripted"
    dimension: int = DIMENSION
    floor: float | None = None
    calls: int = 0
    down: bool = False

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions."""
        self.calls += 1
        if self.down:
            raise Unavailable("the model is down")
        return [self.known.get(text, at_cosine(1.0)) for text in texts]

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts."""
        return await self.embed_queries(texts)


@dataclass
class ScriptedGraph:
    """Nodes and relationships, and what is asked of them."""

    nodes_by_id: dict[str, ConstitutionNode] = field(default_factory=dict)
    links: list[tuple[str, str, str]] = field(default_factory=list)
    """From, type, to."""
    down: bool = False
    near_down: bool = False
    requests: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def nodes(self, who: Principal, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        """Those that there are."""
        self._answer("nodes")
        return {id: self.nodes_by_id[id] for id in ids if id in self.nodes_by_id}

    async def linked_nodes(
        self, who: Principal, ids: Sequence[str]
    ) -> dict[str, tuple[ConstitutionNode, tuple[ConstitutionLink, ...]]]:
        """Those that there are, with their relationships."""
        found = await self.nodes(who, ids)
        return {
            id: (
                node,
                tuple(
                    ConstitutionLink(id=f"{a}-{name}-{b}", type=name, from_id=a, to_id=b)
                    for a, name, b in self.links
                    if id in (a, b)
                ),
            )
            for id, node in found.items()
        }

    async def near(self, who: Principal, near: Near) -> tuple[Reached, ...]:
        """Breadth first, over active nodes."""
        self._answer("near")
        if self.near_down:
            raise Unavailable("walks do not answer")
        if near.id not in self.nodes_by_id:
            raise NotFound("there is no such node")
        paths: dict[str, tuple[Step, ...]] = {near.id: (self._step(near.id),)}
        edge = [near.id]
        for _ in range(near.max_depth):
            following: list[str] = []
            for a, name, b in self.links:
                for here, there, way in ((a, b, "out"), (b, a, "in")):
                    if here in edge and there not in paths and self._active(there):
                        paths[there] = (*paths[here], self._step(there, name, way))
                        following.append(there)
            edge = following
        found = [
            Reached(node=self.nodes_by_id[id], hops=len(path) - 1, path=path) for id, path in paths.items() if len(path) > 1
        ]
        wanted = [
            one
            for one in found
            if (not near.types or one.node.type in near.types) and (not near.layers or one.node.layer in near.layers)
        ]
        return tuple(sorted(wanted, key=lambda one: one.hops)[: near.limit])

    async def ends(
        self, who: Principal, ids: Sequence[str], relationship: str, types: Sequence[str] = (), statuses: Sequence[str] = ()
    ) -> dict[str, tuple[Mention, ...]]:
        """What a relationship leads to."""
        self._answer("ends")
        found: dict[str, list[Mention]] = {}
        for a, name, b in self.links:
            node = self.nodes_by_id.get(b)
            fits = node is not None and (not types or node.type in types) and (not statuses or node.status in statuses)
            if a in ids and name == relationship and node is not None and fits:
                found.setdefault(a, []).append(
                    Mention(id=b, type=node.type, title=node.title, status=node.status, relationship=name)
                )
        return {id: tuple(some) for id, some in found.items()}

    async def create(self, who: Principal, type: str, fields: Mapping[str, Any]) -> ConstitutionNode:
        """One node for one request."""
        self._answer("create")
        request = fields["requestId"]
        if request not in self.requests:
            made = node(
                f"{type}-{uuid4().hex[:8]}", type, **{name: value for name, value in fields.items() if name != "requestId"}
            )
            self.nodes_by_id[made.id] = made
            self.requests[request] = made.id
        if (id := self.requests[request]) not in self.nodes_by_id:
            raise NotFound("it was deleted")
        return self.nodes_by_id[id]

    async def relate(self, who: Principal, from_id: str, type: str, to_id: str) -> None:
        """One relationship."""
        self._answer("relate")
        if from_id not in self.nodes_by_id or to_id not in self.nodes_by_id:
            raise NotFound("there is no such node")
        if (from_id, type, to_id) not in self.links:
            self.links.append((from_id, type, to_id))

    def _answer(self, what: str) -> None:
        self.asked.append(what)
        if self.down:
            raise Unavailable("the graph is down")

    def _active(self, id: str) -> bool:
        found = self.nodes_by_id.get(id)
        return found is not None and lifecycle(found.status or "") is Lifecycle.ACTIVE

    def _step(self, id: str, name: str | None = None, way: Any = None) -> Step:
        found = self.nodes_by_id[id]
        return Step(node_id=id, type=found.type, title=found.title, relationship=name, direction=way)


@dataclass
class ScriptedVectors:
    """Vectors that are compared one by one, with the filters inside; and the topics of nodes."""

    graph: ScriptedGraph
    kept: dict[str, Vector] = field(default_factory=dict)
    topics: dict[str, str | None] = field(default_factory=dict)
    filling: frozenset[Layer] = frozenset()
    down: bool = False
    settlings: int = 0
    asked: list[tuple[Chosen, int]] = field(default_factory=list)
    removed: dict[str, NodeVector] = field(default_factory=dict)

    async def nearest(self, tenant: str, vector: Vector, chosen: Chosen, limit: int) -> list[NodeHit]:
        """Best first."""
        self._answer()
        self.asked.append((chosen, limit))
        hits = [
            NodeHit(one.id, one.type, one.layer, _cosine(vector, one.vector), self._updated(one.id))
            for one in self._chosen(chosen)
        ]
        return sorted(hits, key=lambda hit: -hit.cosine)[:limit]

    async def cosines(self, tenant: str, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """Of those that have a vector."""
        self._answer()
        return {id: _cosine(vector, self.kept[id]) for id in ids if id in self.kept}

    async def scan(self, tenant: str, chosen: Chosen) -> AsyncIterator[NodeVector]:
        """In the order of ids."""
        self._answer()
        for one in self._chosen(chosen):
            yield one

    async def settled(self, tenant: str) -> None:
        """At once."""
        self.settlings += 1

    async def state(self, tenant: str) -> tuple[LayerState, ...]:
        """All layers."""
        return tuple(LayerState(layer, 0, 0, layer in self.filling) for layer in Layer)

    async def populating(self, tenant: str) -> frozenset[Layer]:
        """Those that are being filled."""
        return self.filling

    async def assign(self, tenant: str, topics: Mapping[str, str | None]) -> None:
        """Say which topic nodes are of."""
        self.topics |= topics

    async def texts(self, tenant: str, ids: Sequence[str]) -> dict[str, str]:
        """What the nodes say, after a line with their type."""
        nodes = {id: self.graph.nodes_by_id[id] for id in ids if id in self.graph.nodes_by_id}
        return {id: f"{one.type}\n{one.title}\n{one.description or ''}" for id, one in nodes.items()}

    def _chosen(self, chosen: Chosen) -> list[NodeVector]:
        return [one for one in self._all() if _fits(one, chosen, self.topics.get(one.id))]

    def _all(self) -> list[NodeVector]:
        return [self._vector(id) for id in sorted(self.kept)]

    def _vector(self, id: str) -> NodeVector:
        found = self.graph.nodes_by_id.get(id)
        if found is None:
            return self.removed[id]
        return NodeVector(id, found.type, found.layer, self.kept[id], lifecycle(found.status or ""))

    def _updated(self, id: str) -> datetime:
        found = self.graph.nodes_by_id.get(id)
        return (found.updated_at if found else None) or JANUARY

    def _answer(self) -> None:
        if self.down:
            raise Unavailable("the index is down")


@dataclass
class ScriptedHistory:
    """Versions and pairs that are written down."""

    kept: list[Version] = field(default_factory=list)
    noted: list[Pair] = field(default_factory=list)

    async def versions(self, tenant: str, node_id: str, limit: int) -> list[Version]:
        """Oldest first."""
        return [one for one in self.kept if one.node_id == node_id][-limit:]

    async def drifted(self, tenant: str, since: datetime | None, layers: frozenset[Layer], threshold: float) -> list[Version]:
        """Latest first."""
        found = [one for one in self.kept if one.drift is not None and one.drift > threshold]
        return [one for one in reversed(found) if (not layers or one.layer in layers) and (since is None or one.at >= since)]

    async def pairs(self, tenant: str, threshold: float, layers: frozenset[Layer], limit: int) -> list[Pair]:
        """The most alike first."""
        found = [one for one in self.noted if one.cosine >= threshold and (not layers or one.layer in layers)]
        return sorted(found, key=lambda one: -one.cosine)[:limit]


@dataclass
class KeptRetrievals:
    """The log, the ratings and the defaults, in memory."""

    rows: dict[str, Retrieval] = field(default_factory=dict)
    ratings: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    down: bool = False
    appended: int = 0

    async def append(self, rows: Sequence[Retrieval]) -> None:
        """Keep rows."""
        if self.down:
            raise Unavailable("the store is down")
        self.appended += 1
        self.rows |= {row.id: row for row in rows}

    async def prune(self, before: datetime) -> int:
        """Remove the old ones."""
        old = [id for id, row in self.rows.items() if row.at < before]
        for id in old:
            del self.rows[id]
        return len(old)

    async def changed(self, tenant: str) -> dict[str, float]:
        """The tenant's own defaults."""
        if self.down:
            raise Unavailable("the store is down")
        return dict(self.values)

    async def tune(self, call: Call, request: TuneRetrieval) -> RetrievalTuned:
        """Change them."""
        self.values |= {name: value for name, value in request.values.items() if value is not None}
        return told(self.values)

    async def rate(self, call: Call, request: RateRetrieval) -> RetrievalRated:
        """Keep a rating."""
        if request.retrieval_id not in self.rows:
            raise NoSuchRetrieval("there is none")
        self.ratings[request.retrieval_id, request.node_id or "", call.who.user] = request.relevant
        good = sum(self.ratings.values())
        return RetrievalRated(satisfaction=good / len(self.ratings), ratings=len(self.ratings))

    async def report(self, tenant: str, days: int) -> RetrievalReported:
        """Nothing."""
        return RetrievalReported(tools=(), layers={})


@dataclass
class Ground:
    """A graph with vectors, and the searches on it."""

    graph: ScriptedGraph = field(default_factory=ScriptedGraph)
    embedder: ScriptedEmbedder = field(default_factory=ScriptedEmbedder)
    kept: KeptRetrievals = field(default_factory=KeptRetrievals)
    clock: float = 0.0

    def __post_init__(self) -> None:
        self.vectors = ScriptedVectors(self.graph)
        self.queries = QueryVectors(self.embedder, 900, 100)
        self.meaning = Meaning(self.vectors, self.graph, self.queries)
        self.finding = Finding(self.meaning)
        self.answers = Answers(lambda: self.clock)
        self.log = RetrievalLog(self.kept, 30)
        self.searching = Searching(self.finding, self.kept, self.log, self.answers)

    def add(self, id: str, type: str, where: float | Vector | None = None, **fields: Any) -> ConstitutionNode:
        """A node, with a vector or a cosine to the question."""
        made = self.graph.nodes_by_id[id] = node(id, type, **fields)
        if where is not None:
            self.vectors.kept[id] = at_cosine(where) if isinstance(where, float | int) else where
        return made

    def link(self, *links: tuple[str, str, str]) -> None:
        """Relationships: from, type, to."""
        self.graph.links.extend(links)

    def remove(self, id: str) -> None:
        """Take a node out of the graph; the index still has it."""
        self.vectors.removed[id] = self.vectors._vector(id)
        del self.graph.nodes_by_id[id]


def node(id: str, type: str, **fields: Any) -> ConstitutionNode:
    """A node of a type."""
    kind = TYPES[type]
    given = {"title": id, "status": kind.statuses[0], "createdAt": JANUARY, "updatedAt": JANUARY, "version": 1} | fields
    return ConstitutionNode.model_validate({"id": id, "type": type, "layer": kind.layer, **given})


def calling(role: Role = Role.DISCUSS, tenant: str = "acme", user: str = "ann") -> Call:
    """A call of the orchestrator."""
    return Call(Principal(tenant=tenant, user=user, role=role), "orchestrator", None)


def ids(found: Sequence[Any]) -> list[str]:
    """The ids of what was found."""
    return [one.node.id for one in found]


def pair_ids(found: Sequence[Duplicate]) -> list[tuple[str, str]]:
    """The ids of pairs."""
    return [(pair.one.id, pair.other.id) for pair in found]


async def flushed(ground: Ground) -> list[Retrieval]:
    """The rows of the log."""
    await ground.log.flush()
    return list(ground.kept.rows.values())


def _fits(one: NodeVector, chosen: Chosen, topic: str | None) -> bool:
    return (
        (not chosen.layers or one.layer in chosen.layers)
        and (not chosen.types or one.type in chosen.types)
        and (chosen.lifecycle is None or one.lifecycle is chosen.lifecycle)
        and (chosen.ids is None or one.id in chosen.ids)
        and (chosen.topic is None or topic == chosen.topic)
    )


def _cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))
