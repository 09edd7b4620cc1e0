"""What searches of the constitutional graph stand on, in memory: a model, vectors compared one by one, a history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from phronesis_bus import Call
from phronesis_contracts import Principal, Unavailable
from phronesis_contracts.constitution.insight import Duplicate
from phronesis_contracts.constitution.registry import Layer, lifecycle_of
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_memory.constitution.ports import LayerState, NodeFilter, NodeHit, NodeVector, Pair, Version
from phronesis_memory.constitution.retrievals import AnswerCache, Retrieval, RetrievalLog
from phronesis_memory.constitution.search import NodeSearch
from phronesis_memory.constitution.search_handlers import SearchHandlers
from phronesis_memory.constitution.semantic import SemanticFinder
from phronesis_memory.embedding.queries import QueryVectors
from phronesis_memory.values import Vector
from tests.support.personas import Persona
from tests.unit.memory.fakes_nodes import JANUARY, ScriptedGraph, node
from tests.unit.memory.fakes_retrievals import KeptRetrievals

DIMENSION = 16


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
class ScriptedVectors:
    """Vectors that are compared one by one, with the filters inside; and the topics of nodes."""

    graph: ScriptedGraph
    kept: dict[str, Vector] = field(default_factory=dict)
    topics: dict[str, str | None] = field(default_factory=dict)
    filling: frozenset[Layer] = frozenset()
    late: bool = False
    down: bool = False
    settlings: int = 0
    asked: list[tuple[NodeFilter, int]] = field(default_factory=list)
    removed: dict[str, NodeVector] = field(default_factory=dict)

    async def nearest(self, tenant: str, vector: Vector, chosen: NodeFilter, limit: int) -> list[NodeHit]:
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

    async def scan(self, tenant: str, chosen: NodeFilter) -> AsyncIterator[NodeVector]:
        """In the order of ids."""
        self._answer()
        for one in self._chosen(chosen):
            yield one

    async def worded(self, tenant: str, question: str, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        """Those whose title is the question."""
        self._answer()
        return [
            NodeHit(id, one.type, one.layer, 0.0, self._updated(id))
            for id, one in self.graph.nodes_by_id.items()
            if one.title == question
        ]

    async def sample(self, tenant: str, most: int) -> tuple[list[Vector], int]:
        """The first ones."""
        return list(self.kept.values())[:most], len(self.kept)

    async def caught_up(self, tenant: str) -> int | None:
        """There was no change, or it takes long."""
        return None if self.late else 0

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

    def _chosen(self, chosen: NodeFilter) -> list[NodeVector]:
        return [one for one in self._all() if _fits(one, chosen, self.topics.get(one.id))]

    def _all(self) -> list[NodeVector]:
        return [self._vector(id) for id in sorted(self.kept)]

    def _vector(self, id: str) -> NodeVector:
        found = self.graph.nodes_by_id.get(id)
        if found is None:
            return self.removed[id]
        return NodeVector(id, found.type, found.layer, self.kept[id], lifecycle_of(found.status or ""))

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
class Ground:
    """A graph with vectors, and the searches on it."""

    graph: ScriptedGraph = field(default_factory=ScriptedGraph)
    embedder: ScriptedEmbedder = field(default_factory=ScriptedEmbedder)
    kept: KeptRetrievals = field(default_factory=KeptRetrievals)
    clock: float = 0.0

    def __post_init__(self) -> None:
        self.vectors = ScriptedVectors(self.graph)
        self.queries = QueryVectors(self.embedder, 900, 100)
        self.meaning = SemanticFinder(self.vectors, self.graph, self.queries)
        self.finding = NodeSearch(self.meaning)
        self.answers = AnswerCache(lambda: self.clock)
        self.log = RetrievalLog(self.kept, 30)
        self.searching = SearchHandlers(self.finding, self.kept, self.log, self.answers)

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


def calling(role: Persona = Persona.DISCUSS, tenant: str = "acme", user: str = "ann") -> Call:
    """A call of the orchestrator."""
    return Call(Principal(tenant=tenant, user=user, **role.rights), "orchestrator", None)


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


def _fits(one: NodeVector, chosen: NodeFilter, topic: str | None) -> bool:
    return (
        (not chosen.layers or one.layer in chosen.layers)
        and (not chosen.types or one.type in chosen.types)
        and (chosen.lifecycle is None or one.lifecycle is chosen.lifecycle)
        and (chosen.ids is None or one.id in chosen.ids)
        and (chosen.topic is None or topic == chosen.topic)
    )


def _cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))
