"""What searches of the constitutional graph need: the vectors of its nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from phronesis_contracts.constitution.kinds import Layer, Lifecycle

from ..domain.values import Vector


@dataclass(frozen=True)
class Chosen:
    """What a search is narrowed to; applied inside the vector query, ahead of its limit (O-089)."""

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
    """A node near a vector."""

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
    """One logical scope of the index (O-085)."""

    layer: Layer
    vectors: int
    waiting: int
    """Nodes whose vector is not there, or not the one of what they say now, those that wait for a nightly run among them."""
    populating: bool
    """Whether nodes that are embedded at once wait, or the index has not been told all: results may lack some (O-361)."""

    @property
    def name(self) -> str:
        """Such as `vision_embeddings`."""
        return f"{self.layer}_embeddings"


class NodeVectors(Protocol):
    """The vectors of the nodes of the constitutional graph. Those of types that are never embedded are not there."""

    async def nearest(self, tenant: str, vector: Vector, chosen: Chosen, limit: int) -> list[NodeHit]:
        """The chosen nodes that are nearest to `vector`, best first: `limit` of them, or all there are.

        Raises:
            EmbeddingMismatch: the stored vectors are another model's, or `vector` has another dimension.
            Unavailable: the index does not answer.
        """
        ...

    async def cosines(self, tenant: str, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """The cosine of `vector` with those of the nodes that have one, of whatever lifecycle. Raises as `nearest` does."""
        ...

    def scan(self, tenant: str, chosen: Chosen) -> AsyncIterator[NodeVector]:
        """The vectors of all chosen nodes, in the order of ids. Raises as `nearest` does."""
        ...

    async def settled(self, tenant: str) -> None:
        """Wait until writes that were answered before are found here (P0 to P2): `consistency: strong`.

        Raises:
            Unavailable: the graph or the embedder does not answer in time, which is a few seconds.
        """
        ...

    async def state(self, tenant: str) -> tuple[LayerState, ...]:
        """The seven scopes, in the order of the layers. It counts; a search asks `populating`."""
        ...

    async def populating(self, tenant: str) -> frozenset[Layer]:
        """The layers of which a search may lack nodes at the moment (O-361); quick."""
        ...

    async def assign(self, tenant: str, topics: Mapping[str, str | None]) -> None:
        """Say which topic nodes are of, by id; `None` takes a node out of its topic. Other nodes keep theirs."""
        ...


class Texts(Protocol):
    """The texts that the vectors are made from."""

    async def texts(self, tenant: str, ids: Sequence[str]) -> dict[str, str]:
        """By id, of those of the nodes that have one."""
        ...


@dataclass(frozen=True)
class Version:
    """One version of a node, as the history keeps it (O-387)."""

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
        ...

    async def drifted(self, tenant: str, since: datetime | None, layers: frozenset[Layer], threshold: float) -> list[Version]:
        """Versions with a drift over `threshold`, the latest first; a bounded number of them."""
        ...

    async def pairs(self, tenant: str, threshold: float, layers: frozenset[Layer], limit: int) -> list[Pair]:
        """Active near-duplicates of cosine `threshold` or more, the most alike first; below `DUPLICATE` none is kept."""
        ...
