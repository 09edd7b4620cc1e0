"""Contracts that list the constitutional graph: by layer in two versions, whole, one node, and its inventory.

No answer has more than `values.MAX_TOKENS` tokens. What does not fit stands behind a cursor, which names a place in an order
that does not change; a node that alone does not fit has its longest texts cut, and the answer says `truncated`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ..messages import Message, Nothing, Rpc
from ..tools import Tool
from .registry import Layer, Lifecycle
from .values import READERS, Asked, Camel, Chosen, ConstitutionLink, ConstitutionNode, ListStats, Mention, NodeId, absent

MOST = 2_000
"""Nodes of one page, whatever their size."""
WHOLE = 5_000
"""Nodes of a layer that is listed whole; there may be ten times as many relationships."""
_Name = Annotated[str, Field(max_length=64)]
_CURSOR = 1_500
"""Characters of a cursor."""
FOUNDATION_BUDGET = ((0, 15_000), (500, 17_000), (1_000, 18_000), (5_000, 20_000))
"""Tokens of the foundation's list, by the nodes that the graph has at least (section 37)."""
VISION_BUDGET = ((0, 8_000), (500, 9_000), (1_000, 10_000))
"""Tokens of the vision's list, likewise."""


class ListLayer(Asked):
    """Nodes of one layer, whole records, page by page (version 1)."""

    status: Lifecycle | None = None
    """Every status where none is named."""
    types: tuple[_Name, ...] = Field(default=(), max_length=7)
    limit: int = Field(default=MOST, ge=1, le=MOST)
    cursor: str | None = Field(default=None, max_length=_CURSOR)
    """The `nextCursor` of the page before."""


class LayerListed(Camel):
    """A page, in the order of ids."""

    items: tuple[ConstitutionNode, ...]
    stats: ListStats
    """Of this page."""
    next_cursor: str | None = None
    """Where to go on; the answer was cut at its greatest size, or at the limit."""
    truncated: bool = False
    """Whether texts were cut of a node that alone is larger than an answer."""


class ListFoundation(Asked):
    """The foundation layer, whole, without what costs tokens."""

    exclude_fields: tuple[_Name, ...] = Field(default=("properties", "metadata", "embedding", "provenance"), max_length=40)
    """Fields to leave out; what names a node stays. `properties` stands for typed properties as well."""
    include_relationships: bool = True
    status: Lifecycle = Lifecycle.ACTIVE
    description_types: tuple[_Name, ...] = Field(default=("value", "principle", "guardrail"), max_length=35)
    """Types whose description is told. The others have a summary: their own, or the description's beginning."""
    cursor: str | None = Field(default=None, max_length=_CURSOR)


class FoundationListed(Camel):
    """The layer, by type and age."""

    items: tuple[ConstitutionNode, ...]
    relationships: tuple[ConstitutionLink, ...] = ()
    """Between two nodes of the layer in the status asked for; each stands beside the node that it leads from."""
    stats: ListStats
    truncated: bool = False
    """Whether fields were left out to keep to `FOUNDATION_BUDGET`, of each kind the longest first: provenance,
    metadata, properties, then descriptions, then summaries. Nodes are not left out."""
    next_cursor: str | None = None
    """Where to go on, for a layer whose nodes alone are larger than an answer."""


class ListVision(Asked):
    """The vision layer with its parents."""

    exclude_fields: tuple[_Name, ...] = Field(
        default=("properties", "metadata", "embedding", "description", "provenance"), max_length=40
    )
    """Fields to leave out, as in the foundation's list."""
    include_hierarchy: bool = True
    status: Lifecycle = Lifecycle.ACTIVE
    cursor: str | None = Field(default=None, max_length=_CURSOR)


class VisionNode(ConstitutionNode):
    """A node of the vision layer."""

    parents: tuple[Mention, ...] | None = absent()
    """Active nodes of whatever layer that it is supported by, serves or aligns with."""


class VisionListed(Camel):
    """The layer, by type rank, horizon and age."""

    items: tuple[VisionNode, ...]
    stats: ListStats
    truncated: bool = False
    """Whether fields were left out to keep to `VISION_BUDGET`, in the order of the foundation's list."""
    next_cursor: str | None = None


class GetAll(Chosen):
    """The whole graph, page by page: nodes first, then relationships."""

    limit: int = Field(default=500, ge=1, le=MOST)
    """Nodes and relationships of one page."""
    cursor: str | None = Field(default=None, max_length=_CURSOR)
    exclude_fields: tuple[_Name, ...] = Field(
        default=("properties", "metadata", "embedding", "provenance", "description"), max_length=40
    )


class GraphPage(Camel):
    """A page of the graph."""

    nodes: tuple[ConstitutionNode, ...] = ()
    relationships: tuple[ConstitutionLink, ...] = ()
    """Between two nodes that fit the question."""
    stats: ListStats
    """Of this page."""
    next_cursor: str | None = None
    truncated: bool = False
    """Whether texts were cut of a node that alone is larger than an answer."""


class GetConstitutionNode(NodeId):
    """One node, in full."""

    include_relationships: bool = False


class ConstitutionNodeFound(Camel):
    """The node."""

    node: ConstitutionNode
    relationships: tuple[ConstitutionLink, ...] = ()
    """Those that lead from it and to it."""
    truncated: bool = False
    """Whether relationships were left out, or texts cut, because they do not fit into one answer."""


class TypeCount(Camel):
    """A node type, and how many there are."""

    type: str
    label: str
    layer: Layer
    tier: str | None
    """`P0` to `P4`; none for a type that is never embedded."""
    retrieval: str
    """How it is read."""
    properties: dict[str, str]
    statuses: tuple[str, ...]
    count: int = 0
    undeclared: tuple[str, ...] = ()
    """Names in `properties` that the type does not declare, at most 20."""


class RelationshipCount(Camel):
    """A relationship type: its ends as the registry has them, and how many there are."""

    type: str
    declared: bool
    ends: tuple[dict[str, Any], ...] = ()
    """`from`, `to` and `meaning`."""
    count: int = 0


class IndexState(Camel):
    """One index of the store."""

    name: str
    type: str
    state: str
    population_percent: float
    """How much of what it is about it holds, 0 to 100."""


class Inventory(Camel):
    """What there is in the graph store; the scopes of the vector index are in `embeddings.status.v1`."""

    layers: tuple[Layer, ...]
    retrieval: dict[str, str]
    """How each layer is read."""
    types: tuple[TypeCount, ...]
    relationship_types: tuple[RelationshipCount, ...]
    indexes: tuple[IndexState, ...]
    total_nodes: int
    total_relationships: int
    truncated: bool = False
    """Whether the rarest relationship types that are not declared, or undeclared names, were left out."""


class ReadNodes(Message):
    """Nodes by id, for services that hold projections of them."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=500)


class NodesRead(Message):
    """Those that there are, in full, in no order."""

    nodes: tuple[ConstitutionNode, ...]


class WalkNodes(Message):
    """Every node in the order of ids, for what is made anew from the graph.

    A page may hold fewer than `limit`, because of its size; the one without nodes is the end.
    """

    after: str = ""
    """Id of the last node of the page before."""
    limit: int = Field(default=200, ge=1, le=500)


def _list(layer: Layer) -> Tool[ListLayer, LayerListed]:
    rpc = Rpc(f"graph.v1.constitution.{layer}.list", ListLayer, LayerListed, timeout=10.0)
    return Tool(f"{layer}.list.v1", f"Every node of the {layer} layer, whole, page by page.", rpc, agents=READERS)


LISTS: dict[Layer, Tool[ListLayer, LayerListed]] = {layer: _list(layer) for layer in Layer}
"""The first version of the layers' lists."""
LIST_FOUNDATION = Rpc("graph.v2.constitution.foundation.list", ListFoundation, FoundationListed, timeout=10.0)
LIST_VISION = Rpc("graph.v2.constitution.vision.list", ListVision, VisionListed, timeout=10.0)
GET_ALL = Rpc("graph.v1.constitution.all", GetAll, GraphPage, timeout=15.0)
INVENTORY = Rpc("graph.v1.constitution.inventory", Nothing, Inventory, timeout=15.0)
GET_NODE = Rpc("graph.v1.constitution.node.get", GetConstitutionNode, ConstitutionNodeFound, timeout=10.0)
READ_NODES = Rpc("graph.v1.constitution.read", ReadNodes, NodesRead, timeout=10.0)
WALK_NODES = Rpc("graph.v1.constitution.walk", WalkNodes, NodesRead, timeout=10.0)

LIST_FOUNDATION_TOOL = Tool(
    "foundation.list.v2",
    "The values, principles, guardrails and people that everything rests on.",
    LIST_FOUNDATION,
    agents=READERS,
)
LIST_VISION_TOOL = Tool(
    "vision.list.v2", "Visions, businesses, goals and seasons, each with what it rests on.", LIST_VISION, agents=READERS
)
GET_ALL_TOOL = Tool("graph.getAll.v1", "The whole graph, page by page.", GET_ALL, agents=READERS)
INVENTORY_TOOL = Tool(
    "schema.inventory.v1", "Layers, types, relationships with their ends, counts and indexes.", INVENTORY, agents=READERS
)
GET_NODE_TOOL = Tool("node.get.v1", "One node in full, by id.", GET_NODE, agents=READERS)
