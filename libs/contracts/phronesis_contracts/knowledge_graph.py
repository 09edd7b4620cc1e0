"""Contracts of the six tools by which agents keep knowledge in the graph: nodes and relationships of labels of their own.

Whatever is wrong with a call is told in its envelope: `success` is false, and `message` says why and what to do. So the
arguments cross the bus as they came, and the owner holds them against their form; the schema that callers see is the form's.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from .errors import Conflict
from .messages import Message, Rpc
from .principal import Agent
from .tools import Risk, Tool

NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
"""Labels, relationship types and names of properties."""
MOST_NODES = 100
"""Nodes of one search."""

Properties = Annotated[
    dict[str, Any], Field(description="Names and values: texts, whole numbers, fractions, booleans, or lists of one of these.")
]


class ConfirmationNeeded(Conflict):
    """A dangerous statement was not run; it is with the token, which its envelope tells and no log holds."""

    code = "graph.confirmation_needed"

    def __init__(
        self, detail: str = "", *, field: str | None = None, retry_after: float | None = None, token: str | None = None
    ) -> None:
        super().__init__(detail, field=field, retry_after=retry_after)
        self.token = token


class Form(Message):
    """What the arguments of a tool have to be; nothing is converted, and no other argument is taken."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Given(Message):
    """The arguments of a tool as they came. Every object is taken here, so that its owner answers for what is wrong."""

    model_config = ConfigDict(extra="allow")
    form: ClassVar[type[Form]]

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The schema of the form."""
        return cls.form.model_json_schema(*args, **kwargs)


class CreateNodeForm(Form):
    """A node to create."""

    label: str = Field(pattern=NAME, description="What it is, for instance Product, Standard or Concept.")
    properties: Properties = Field(default_factory=dict)


class CreateRelationshipForm(Form):
    """A relationship to create, from one node to another; parallel ones are several, and both ends may be one node."""

    from_node_id: str = Field(min_length=1, max_length=300, description="The node where it starts.")
    to_node_id: str = Field(min_length=1, max_length=300, description="The node where it ends.")
    type: str = Field(pattern=NAME, description="For instance HAS_PROPERTY, DEFINES or RELATES_TO.")
    properties: Properties = Field(default_factory=dict)


class QueryGraphForm(Form):
    """A statement to run."""

    cypher_query: str = Field(min_length=1, max_length=8_000, description="One Cypher statement.")
    parameters: dict[str, Any] = Field(default_factory=dict, description="Values for its $names.")
    read_only: bool = Field(description="True for reading statements; false lets it create, change and delete.")
    confirm_token: str | None = Field(
        default=None,
        max_length=100,
        description="For a dangerous statement that was refused: the token from that refusal, with all else unchanged.",
    )


class SearchNodesForm(Form):
    """What to search; without a label and properties, everything."""

    label: str | None = Field(default=None, pattern=NAME)
    properties: dict[str, Any] = Field(default_factory=dict, description="Values that all have to be equal.")
    limit: int = Field(default=10, ge=1, le=MOST_NODES)


class GetNodeDetailsForm(Form):
    """Which node."""

    node_id: str = Field(min_length=1, max_length=300)


class DeleteNodeForm(Form):
    """Which node to delete, with all its relationships."""

    node_id: str = Field(min_length=1, max_length=300)
    force_delete: bool = Field(description="Only true deletes.")


class CreateNode(Given):
    """Arguments of `create_node`."""

    form = CreateNodeForm


class CreateRelationship(Given):
    """Arguments of `create_relationship`."""

    form = CreateRelationshipForm


class QueryGraph(Given):
    """Arguments of `query_graph`."""

    form = QueryGraphForm


class SearchNodes(Given):
    """Arguments of `search_nodes`."""

    form = SearchNodesForm


class GetNodeDetails(Given):
    """Arguments of `get_node_details`."""

    form = GetNodeDetailsForm


class DeleteNode(Given):
    """Arguments of `delete_node`."""

    form = DeleteNodeForm


class FoundNode(Message):
    """A node with all its labels and properties."""

    id: str
    """Opaque: what `node_id` is elsewhere."""
    labels: tuple[str, ...]
    properties: dict[str, Any] = Field(default_factory=dict)


class Envelope(Message):
    """How every call of the six tools ends."""

    success: bool
    message: str


class NodeCreated(Envelope):
    """What became of a node to create."""

    node_id: str | None = None


class RelationshipCreated(Envelope):
    """What became of a relationship to create."""

    relationship_id: str | None = None


class QueryExecuted(Envelope):
    """What became of a statement: its rows, each by the names that it returns."""

    results: tuple[dict[str, Any], ...] = ()


class NodesFound(Envelope):
    """What a search found."""

    nodes: tuple[FoundNode, ...] = ()


class NodeDetails(Envelope):
    """The node, or null where there is none."""

    node: FoundNode | None = None


class NodeDeleted(Envelope):
    """What became of a node to delete."""


CURATORS = frozenset({Agent.CURATOR, Agent.MAESTRO})

CREATE_NODE = Rpc("graph.v1.knowledge.node.create", CreateNode, NodeCreated, timeout=30.0)
CREATE_RELATIONSHIP = Rpc("graph.v1.knowledge.relationship.create", CreateRelationship, RelationshipCreated, timeout=30.0)
QUERY_GRAPH = Rpc("graph.v1.knowledge.query", QueryGraph, QueryExecuted, timeout=30.0)
SEARCH_NODES = Rpc("graph.v1.knowledge.search", SearchNodes, NodesFound, timeout=15.0)
GET_NODE_DETAILS = Rpc("graph.v1.knowledge.node.get", GetNodeDetails, NodeDetails, timeout=15.0)
DELETE_NODE = Rpc("graph.v1.knowledge.node.delete", DeleteNode, NodeDeleted, timeout=30.0)

CREATE_NODE_TOOL = Tool(
    "create_node",
    "Create one node in the knowledge graph, with a label and properties. Each call creates another node.",
    CREATE_NODE,
    risk=Risk.MEDIUM,
    agents=CURATORS,
)
CREATE_RELATIONSHIP_TOOL = Tool(
    "create_relationship",
    "Create a relationship from one node of the knowledge graph to another; both have to exist.",
    CREATE_RELATIONSHIP,
    risk=Risk.MEDIUM,
    agents=CURATORS,
)
QUERY_GRAPH_TOOL = Tool(
    "query_graph",
    "Run one Cypher statement on the knowledge graph, values as parameters. With read_only true it may only read; with false"
    " it may change what agents created, and a dangerous one has to be confirmed. Typed nodes of the twin are only read.",
    QUERY_GRAPH,
    risk=Risk.HIGH,
    agents=CURATORS,
    irreversible=True,
)
SEARCH_NODES_TOOL = Tool(
    "search_nodes",
    "Search nodes by label and by equal properties, in a stable order, 10 unless a limit is given.",
    SEARCH_NODES,
    agents=CURATORS,
)
GET_NODE_DETAILS_TOOL = Tool(
    "get_node_details", "All labels and properties of one node, by its id.", GET_NODE_DETAILS, agents=CURATORS
)
DELETE_NODE_TOOL = Tool(
    "delete_node",
    "Delete one node of the knowledge graph with all its relationships. force_delete has to be true: it cannot be undone.",
    DELETE_NODE,
    risk=Risk.HIGH,
    agents=CURATORS,
    irreversible=True,
)
