"""Contracts of the graph service: typed nodes of the twin, and the links between users' knowledge items."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Any

from pydantic import Field

from .deletions import Purged
from .messages import Event, Message, Rpc
from .principal import Role
from .tools import Risk, Tool

MAX_BATCH = 500


class Level(StrEnum):
    """The three levels of the ontology."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"


class NodeRef(Message):
    """A node of the twin. Unique with the tenant; text form `type/id/year`."""

    type: str
    id: str = Field(min_length=1, max_length=200)
    year: int = Field(ge=1900, le=2200)

    @property
    def key(self) -> str:
        """`type/id/year`, unique inside a tenant."""
        return f"{self.type}/{self.id}/{self.year}"


class UpsertNode(NodeRef):
    """A node as it should be; properties that are absent or null are removed."""

    name: str = Field(min_length=1, max_length=500)
    level: Level
    quarter: str | None = Field(default=None, pattern=r"^Q[1-4]$")
    properties: dict[str, str | int | float | bool | date | None] = Field(default_factory=dict)


class UpsertRelationship(Message):
    """A relationship as it should be, between nodes that exist or are in the same batch."""

    type: str
    source: NodeRef
    target: NodeRef
    properties: dict[str, str | int | float | bool | date | None] = Field(default_factory=dict)


class Upsert(Message):
    """A batch of nodes and relationships; all of it takes effect, or nothing."""

    nodes: tuple[UpsertNode, ...] = Field(default=(), max_length=MAX_BATCH)
    relationships: tuple[UpsertRelationship, ...] = Field(default=(), max_length=2 * MAX_BATCH)


class Upserted(Message):
    """What the batch changed."""

    nodes_created: int = 0
    nodes_updated: int = 0
    nodes_unchanged: int = 0
    relationships_created: int = 0
    relationships_unchanged: int = 0


class NodeKeys(Message):
    """Nodes by key (`type/id/year`)."""

    keys: tuple[str, ...] = Field(min_length=1, max_length=200)


class NodeText(Message):
    """One text of a node: the property it stands in, and the text."""

    field: str
    text: str


class Node(Message):
    """A node as the graph holds it."""

    key: str
    type: str
    id: str
    year: int
    name: str
    level: Level
    version: int
    properties: dict[str, Any] = Field(default_factory=dict)
    texts: tuple[NodeText, ...] = ()


class Nodes(Message):
    """The nodes that exist, in the order asked."""

    nodes: tuple[Node, ...]


class Expand(Message):
    """Neighbours of knowledge items, 1 to 2 hops away, in either direction (D-083)."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=25)
    hops: int = Field(default=2, ge=1, le=2)
    limit: int = Field(default=100, ge=1, le=500)


class Neighbour(Message):
    """An item that the walk reached; seeds themselves stand at hop 0."""

    id: str
    type: str
    hop: int


class Expanded(Message):
    """Seeds and neighbours, nearest first."""

    items: tuple[Neighbour, ...]


class ChangedNode(Message):
    """One changed node: followers ask for its content."""

    key: str
    version: int


class NodeChanged(Message):
    """Nodes that were created, changed or deleted."""

    nodes: tuple[ChangedNode, ...]


UPSERT = Rpc("graph.v1.upsert", Upsert, Upserted, timeout=30.0, max_bytes=1_000_000)
NODES = Rpc("graph.v1.nodes", NodeKeys, Nodes, timeout=10.0)
EXPAND = Rpc("graph.v1.expand", Expand, Expanded)
NODE_CHANGED = Event("graph.v1.node.changed", NodeChanged, followers=("memory",))
GRAPH_PURGED = Event("graph.v1.conversation.purged", Purged, followers=("orchestrator", "memory"))

UPSERT_TOOL = Tool(
    "graph_upsert",
    "Create or change typed nodes and relationships of the twin, checked against its ontology. The batch is atomic.",
    UPSERT,
    risk=Risk.MEDIUM,
    roles=frozenset({Role.MAESTRO, Role.CURATOR, Role.ADMIN}),
)
