"""What the constitutional graph's vectors and searches need from outside, and the values that are handed over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.constitution.paths import Near, Reached
from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_contracts.constitution.search import (
    RateRetrieval,
    RetrievalRated,
    RetrievalReported,
    RetrievalTuned,
    TuneRetrieval,
)
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention

from ..values import Vector


@dataclass(frozen=True)
class NodeFilter:
    """What a search is narrowed to; applied inside the vector query, ahead of its limit."""

    layers: frozenset[Layer] = frozenset()
    """All where none is named."""
    types: frozenset[str] = frozenset()
    """All where none is named; as the registry spells them."""
    lifecycle: Lifecycle | None = Lifecycle.ACTIVE
    """Every one where it is `None`."""
    ids: frozenset[str] | None = None
    """These nodes and no others; every node where it is `None`."""
    topic: str | None = None
    """Only nodes that were assigned to this topic."""


@dataclass(frozen=True)
class NodeHit:
    id: str
    type: str
    layer: Layer
    cosine: float
    updated_at: datetime
    """When the node itself was changed last."""


@dataclass(frozen=True)
class NodeVector:
    """A node's vector, in half precision as it is kept, with its filters."""

    id: str
    type: str
    layer: Layer
    vector: Vector
    lifecycle: Lifecycle = Lifecycle.ACTIVE


@dataclass(frozen=True)
class LayerState:
    """One logical scope of the index."""

    layer: Layer
    vectors: int
    waiting: int
    """Nodes whose vector is not there, or not the one of what they say now, those that wait for a nightly run among them."""
    populating: bool
    """Whether nodes that are embedded at once wait, or the index has not been told all: results may lack some."""

    @property
    def name(self) -> str:
        """Such as `vision_embeddings`."""
        return f"{self.layer}_embeddings"


class NodeVectors(Protocol):
    """The vectors of the nodes of the constitutional graph. Those of types that are never embedded are not there."""

    async def nearest(self, tenant: str, vector: Vector, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        """The chosen nodes that are nearest to `vector`, best first: `limit` of them, or all there are.

        Raises `EmbeddingMismatch` (the stored vectors are another model's, or `vector` has another dimension), `Unavailable`
        (the index does not answer).
        """

    async def worded(self, tenant: str, question: str, chosen: NodeFilter, limit: int) -> list[NodeHit]:
        """The chosen nodes that hold every word of the question, whether they have a vector or not; their cosine is 0.

        Words are compared by their stems, without those that say nothing. Raises `Unavailable`.
        """

    async def cosines(self, tenant: str, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """The cosine of `vector` with those of the nodes that have one, of whatever lifecycle. Raises as `nearest` does."""

    async def sample(self, tenant: str, most: int) -> tuple[list[Vector], int]:
        """Vectors of active nodes, always the same ones of the same nodes, and how many active nodes there are. Raises so."""

    def scan(self, tenant: str, chosen: NodeFilter) -> AsyncIterator[NodeVector]:
        """The vectors of all chosen nodes, in the order of ids. Raises as `nearest` does."""

    async def settled(self, tenant: str) -> None:
        """Wait until writes that were answered before are found here (P0 to P2): `consistency: strong`.

        Raises `Unavailable`: the graph or the embedder does not answer in time, which is a few seconds.
        """

    async def caught_up(self, tenant: str) -> int | None:
        """Wait a moment, if there were writes, until those that were answered before are found here (P0 to P2).

        Returns:
            The number of the tenant's last change; `None` where what was written just before may not be found yet, because
            it takes longer than a search can wait. It raises nothing.
        """

    async def state(self, tenant: str) -> tuple[LayerState, ...]:
        """The seven scopes, in the order of the layers. It counts; a search asks `populating`."""

    async def populating(self, tenant: str) -> frozenset[Layer]:
        """The layers of which a search may lack nodes at the moment; quick."""

    async def assign(self, tenant: str, topics: Mapping[str, str | None]) -> None:
        """Say which topic nodes are of, by id; `None` takes a node out of its topic. Other nodes keep theirs."""


class Texts(Protocol):
    """The texts that the vectors are made from."""

    async def texts(self, tenant: str, ids: Sequence[str]) -> dict[str, str]:
        """By id, of those of the nodes that have one."""


@dataclass(frozen=True)
class Version:
    """One version of a node, as the history keeps it."""

    node_id: str
    type: str
    layer: Layer
    version: int
    operation: str
    at: datetime
    actor: str
    changed: tuple[str, ...]
    fields: Mapping[str, Mapping[str, object]]
    """By field `{"old": ..., "new": ...}`, as JSON; empty where the value was not seen, or the node was deleted for good."""
    drift: float | None
    """1 - cosine to the vector before, where there were both."""


@dataclass(frozen=True)
class Pair:
    """Two nodes of one type that say nearly the same."""

    one: str
    other: str
    type: str
    layer: Layer
    cosine: float


class History(Protocol):
    """How nodes changed, and what is near to what."""

    async def versions(self, tenant: str, node_id: str, limit: int) -> list[Version]:
        """The latest versions of a node, oldest first, those before its deletion too."""

    async def drifted(self, tenant: str, since: datetime | None, layers: frozenset[Layer], threshold: float) -> list[Version]:
        """Versions with a drift over `threshold`, the latest first; a bounded number of them."""

    async def pairs(self, tenant: str, threshold: float, layers: frozenset[Layer], limit: int) -> list[Pair]:
        """Active near-duplicates of cosine `threshold` or more, the most alike first; below `DUPLICATE_COSINE` none is kept."""


class ConstitutionGraph(Protocol):
    """What is asked of the graph service. An event acts for nobody, so memory asks for itself."""

    async def read(self, tenant: str, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        """Those of the nodes that there are, in full."""

    async def walk(self, tenant: str, after: str, limit: int) -> tuple[ConstitutionNode, ...]:
        """Nodes in the order of ids; none at the end."""

    async def walk_links(self, tenant: str, after: ConstitutionLink | None, limit: int) -> tuple[ConstitutionLink, ...]:
        """Relationships in an order of their own, from the one behind `after` on; none at the end."""

    async def changed_since(self, tenant: str, at: datetime) -> Mapping[str, int]:
        """Versions by id of the nodes that changed since then and are embedded at once; a bounded number, the latest."""

    async def count_changes(self, tenant: str) -> int:
        """How many changes the tenant's graph has had."""

    async def restore(
        self,
        who: Principal,
        restore_id: str,
        nodes: Sequence[ConstitutionNode],
        links: Sequence[ConstitutionLink],
        *,
        last: bool,
    ) -> tuple[int, int, int]:
        """One part of a graph as it is to be again: nodes, relationships, and nodes that were removed."""


class Bucket(Protocol):
    async def put(self, name: str, data: bytes) -> None:
        """Store `data` under `name`."""

    async def get(self, name: str) -> bytes:
        """The bytes under `name`. Raises `NotFound`."""

    async def delete(self, name: str) -> None:
        """Remove `name`, if it is there."""

    async def names(self) -> list[str]:
        """Every name."""


class Structure(Protocol):
    """The graph, asked as the caller whose search it is. Each method raises `Unavailable` where the graph is away."""

    async def nodes(self, who: Principal, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        """Those of the nodes that there are, whole."""

    async def linked_nodes(
        self, who: Principal, ids: Sequence[str]
    ) -> dict[str, tuple[ConstitutionNode, tuple[ConstitutionLink, ...]]]:
        """Those of the nodes that there are, each with its relationships."""

    async def near(self, who: Principal, near: Near) -> tuple[Reached, ...]:
        """Nodes around an anchor, nearest first. Raises `NotFound`: there is no such anchor."""

    async def ends(
        self, who: Principal, ids: Sequence[str], relationship: str, types: Sequence[str] = (), statuses: Sequence[str] = ()
    ) -> dict[str, tuple[Mention, ...]]:
        """By node, what a relationship of one type leads to from it."""

    async def create(self, who: Principal, type: str, fields: Mapping[str, Any]) -> ConstitutionNode:
        """Make a node; the same `requestId` again is the node that was made then."""

    async def relate(self, who: Principal, from_id: str, type: str, to_id: str) -> None:
        """Join two nodes; once more changes nothing."""


class Retrievals(Protocol):
    """What is kept of retrievals."""

    async def changed(self, tenant: str) -> dict[str, float]:
        """Defaults that the tenant changed, by name."""

    async def tune(self, call: Call, request: TuneRetrieval) -> RetrievalTuned:
        """Change defaults, once for the call's key."""

    async def rate(self, call: Call, request: RateRetrieval) -> RetrievalRated:
        """Keep what the caller said of a retrieval. Raises `NoSuchRetrieval`: there is none."""

    async def report(self, tenant: str, days: int) -> RetrievalReported:
        """How the searches of the last days went."""


@dataclass(frozen=True)
class TopicMember:
    id: str
    type: str
    layer: str
    closeness: float
    """Cosine to the middle of the topic."""


@dataclass(frozen=True)
class FoundTopic:
    """One topic; its members, those nearest to its middle first."""

    id: str
    keywords: tuple[str, ...]
    members: tuple[TopicMember, ...]


@dataclass(frozen=True)
class TopicRun:
    """Topics as they were found at one time."""

    computed_at: datetime
    silhouette: float
    unassigned: int
    topics: tuple[FoundTopic, ...] = ()


@dataclass(frozen=True)
class TopicSummary:
    """A topic in a list: how many of its nodes are of the layers asked for, and the nearest of those."""

    id: str
    keywords: tuple[str, ...]
    size: int
    nearest: tuple[str, ...]


class TopicStore(Protocol):
    """Where topics are kept. Each method raises `Unavailable` where the store is away."""

    async def run(self, tenant: str) -> TopicRun | None:
        """When the topics were found last and how well they stand apart, without them."""

    async def listed(self, tenant: str, layers: frozenset[Layer], nearest: int) -> list[TopicSummary]:
        """The topics with nodes of these layers (of all where none is named), the largest first."""

    async def members(self, tenant: str, topic_id: str, limit: int) -> tuple[list[str], int] | None:
        """The nodes of a topic that are nearest to its middle, and how many it has; `None` where there is no such topic."""

    async def all(self, tenant: str) -> dict[str, frozenset[str]]:
        """The nodes of every topic."""

    async def replace(self, tenant: str, run: TopicRun) -> None:
        """Keep these topics in place of the former ones."""
