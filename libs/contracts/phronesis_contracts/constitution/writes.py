"""Contracts that change the constitutional graph.

Two tools for each type, those that fit every type, and loading many nodes at a time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, create_model, model_serializer

from ..errors import BadRequest, Conflict
from ..messages import Event, Message, Rpc
from ..principal import ADMINISTRATORS_ALONE
from ..tools import Risk, Tool
from .registry import RELATIONSHIP_NAME, TYPES, Kind, Layer, NodeType
from .values import EVERY_LAYER, LINKERS, MAX_TEXT, WRITERS, Asked, Camel, ConstitutionLink, ConstitutionNode, NodeId

_BAG = 40
"""Entries of a bag of free properties."""


class RegistryRefused(BadRequest):
    """A write that the registry does not allow; the text says why and names the nearest legal choice."""

    code = "constitution.refused"


class GuardrailHit(Conflict):
    """A write or a decision that breaks a guardrail or a principle.

    One that blocks is overridden by an admin with a reason (`override`); any other is acknowledged by name (`acknowledge`).
    """

    code = "constitution.guardrail"


class Operation(StrEnum):
    """What was done."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class NodeWrite(Asked):
    """What every node may be given; a name that its type does not declare goes to `properties`."""

    model_config = ConfigDict(extra="allow")

    summary: str | None = Field(default=None, max_length=MAX_TEXT)
    description: str | None = Field(default=None, max_length=MAX_TEXT)
    status: str | None = Field(default=None, max_length=20)
    properties: dict[str, Any] | None = Field(default=None, max_length=_BAG)
    metadata: dict[str, Any] | None = Field(default=None, max_length=_BAG)
    provenance: dict[str, Any] | None = Field(default=None, max_length=_BAG)
    acknowledge: tuple[str, ...] = Field(default=(), max_length=20)
    """Ids of guardrails and principles that this goes against, knowingly."""
    override: str | None = Field(default=None, min_length=3, max_length=500)
    """Why an admin breaks rules, those that block too, for this write alone. It is audited. Nobody else may give a reason."""

    @model_serializer(mode="wrap")
    def _as_given(self, told: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # What was not named stays as it is, and null removes: the two have to differ on the wire.
        fields = type(self).model_fields
        unset = {name: fields[name].serialization_alias for name in fields.keys() - self.model_fields_set}
        return {name: value for name, value in told(self).items() if name not in unset and name not in unset.values()}


class CreateConstitutionNode(NodeWrite):
    """A new node."""

    title: str = Field(min_length=1, max_length=500)
    id: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")
    """The caller's own id for it; one is made where there is none."""
    request_id: str | None = Field(default=None, min_length=1, max_length=200)
    """The same again makes no second node."""


class UpdateConstitutionNode(NodeWrite):
    """Fields to change; what is not named stays, and null removes."""

    id: str = Field(min_length=1, max_length=200)
    title: str | None = Field(default=None, min_length=1, max_length=500)
    version: int | None = Field(default=None, ge=1)
    """The version to change, whatever it is if absent."""


class UpdateAnyNode(UpdateConstitutionNode):
    """The same for a node of whatever type; its typed properties stand in `fields`."""

    fields: dict[str, Any] = Field(default_factory=dict, max_length=_BAG)


class NodeWritten(Camel):
    """The node as it is now."""

    node: ConstitutionNode
    changed: tuple[str, ...] = ()
    """Fields that really changed; all that were given, for a new node."""
    embedding_state: str = "none"
    """`pending` where a vector is to be made, `current` where the one that there is still fits, `none` for types without."""
    acknowledged: tuple[str, ...] = ()
    """Rules that it goes against and that were acknowledged."""
    overridden: tuple[str, ...] = ()
    """Rules that an admin overrode for this write."""
    enforced: bool | None = None
    """Of a guardrail: whether writes are held against it. One without a trigger, or that is not active, stops nothing."""


class DeleteConstitutionNode(NodeId):
    """A node to remove for good, with its relationships."""


class NodeDeletedForGood(Camel):
    """What went."""

    id: str
    type: str
    relationships: int


class Relate(Asked):
    """A relationship to make; the same triple again is the one that there is."""

    from_id: str = Field(min_length=1, max_length=200)
    to_id: str = Field(min_length=1, max_length=200)
    type: str = Field(max_length=64, pattern=RELATIONSHIP_NAME)


class Related(Camel):
    """The relationship."""

    relationship: ConstitutionLink
    created: bool


class Unrelate(Asked):
    """A relationship to remove, by id."""

    id: str = Field(min_length=1, max_length=200)


class Unrelated(Camel):
    """The relationship that went."""

    relationship: ConstitutionLink


class NodeNews(Message):
    """One changed node, without its content: followers ask for that (`graph.v1.constitution.read`)."""

    id: str
    type: str
    layer: Layer
    operation: Operation
    version: int
    changed: tuple[str, ...] = ()


class LinkNews(Message):
    """One changed relationship."""

    id: str
    type: str
    from_id: str
    to_id: str
    operation: Operation
    layers: tuple[Layer, ...]
    """Of its two ends."""


class ConstitutionChanged(Message):
    """What one write changed."""

    nodes: tuple[NodeNews, ...] = Field(default=(), max_length=500)
    relationships: tuple[LinkNews, ...] = Field(default=(), max_length=500)
    actor: str = ""
    """User of the caller."""
    number: int = 0
    """Which of its tenant's changes this is, without a gap; 0 where they were not counted yet."""


_PYTHON: dict[Kind, Any] = {
    Kind.TEXT: str,
    Kind.TEXTS: tuple[str, ...],
    Kind.NUMBER: float,
    Kind.SHARE: float,
    Kind.HOURS: float,
    Kind.PRIORITY: int | str,
    Kind.DATE: str,
    Kind.ROI: dict[str, float] | float,
}


def _model(verb: str, kind: NodeType, base: type[NodeWrite]) -> type[Any]:
    fields: dict[str, Any] = {
        one.name: (_PYTHON[one.kind] | None, Field(default=None, max_length=MAX_TEXT) if one.kind is Kind.TEXT else None)
        for one in kind.properties
    }
    return create_model(f"{verb}{kind.label}", __base__=base, __module__=__name__, __doc__=f"{verb} a {kind.name}.", **fields)


def _create(kind: NodeType) -> Tool[Any, NodeWritten]:
    rpc = Rpc(f"graph.v1.{_subject(kind)}.create", _model("Create", kind, CreateConstitutionNode), NodeWritten, timeout=10.0)
    name = f"{kind.name}.create.v1"
    return Tool(name, f"Create a {kind.name} ({kind.layer} layer).", rpc, risk=Risk.LOW, agents=WRITERS[kind.layer])


def _update(kind: NodeType) -> Tool[Any, NodeWritten]:
    rpc = Rpc(f"graph.v1.{_subject(kind)}.update", _model("Update", kind, UpdateConstitutionNode), NodeWritten, timeout=10.0)
    name = f"{kind.name}.update.v1"
    return Tool(name, f"Change fields of a {kind.name}.", rpc, risk=Risk.LOW, agents=WRITERS[kind.layer])


def _subject(kind: NodeType) -> str:
    return f"constitution.{kind.name.lower()}"


CREATE: dict[str, Tool[Any, NodeWritten]] = {name: _create(kind) for name, kind in TYPES.items()}
"""The tool that creates each type."""
UPDATE: dict[str, Tool[Any, NodeWritten]] = {name: _update(kind) for name, kind in TYPES.items()}
"""The tool that changes each type."""

UPDATE_NODE = Rpc("graph.v1.constitution.node.update", UpdateAnyNode, NodeWritten, timeout=10.0)
DELETE_NODE = Rpc("graph.v1.constitution.node.delete", DeleteConstitutionNode, NodeDeletedForGood, timeout=10.0)
RELATE = Rpc("graph.v1.constitution.relationship.create", Relate, Related, timeout=10.0)
UNRELATE = Rpc("graph.v1.constitution.relationship.delete", Unrelate, Unrelated, timeout=10.0)
CONSTITUTION_CHANGED = Event(
    "graph.v1.constitution.changed",
    ConstitutionChanged,
    followers=("memory", "orchestrator"),
    hearers=("orchestrator", "graph", "memory"),
)

UPDATE_NODE_TOOL = Tool(
    "node.update.v1", "Change fields of a node of any type, by id.", UPDATE_NODE, risk=Risk.LOW, agents=LINKERS
)
DELETE_CONSTITUTION_NODE_TOOL = Tool(
    "node.delete.v1",
    "Remove a node for good, with its relationships and its vector. Archive it instead to keep it (status archived).",
    DELETE_NODE,
    risk=Risk.HIGH,
    agents=EVERY_LAYER,
    irreversible=True,
)
RELATE_TOOL = Tool(
    "relationship.create.v1",
    "Join two nodes. Declared types are held to their ends; schema.inventory.v1 lists them.",
    RELATE,
    risk=Risk.LOW,
    agents=LINKERS,
)
UNRELATE_TOOL = Tool(
    "relationship.delete.v1", "Remove a relationship, by its id.", UNRELATE, risk=Risk.MEDIUM, agents=LINKERS, irreversible=True
)

NODES = 250
"""Nodes of one part."""
RELATIONSHIPS = 500
"""Relationships of one part: as many as one announcement of changes holds."""


class LoadNode(CreateConstitutionNode):
    """A node with its type; its typed properties stand beside the common ones, as its create tool takes them."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(min_length=1, max_length=64)
    id: str = Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")


class LoadConstitution(Asked):
    """A part of a graph, written in one transaction: what has to go, then nodes, then relationships.

    All is held to the registry, and nothing is written where one thing breaks it. A node that is there already gets the
    fields that are given; what is as it was stays as it is, with its version. Guardrails may come with it and do not stop it.
    """

    remove: tuple[str, ...] = Field(default=(), max_length=NODES)
    """Ids of nodes to remove for good, with their relationships; unknown ones are passed over."""
    nodes: tuple[LoadNode, ...] = Field(default=(), max_length=NODES)
    relationships: tuple[Relate, ...] = Field(default=(), max_length=RELATIONSHIPS)


class ConstitutionLoaded(Camel):
    """What the part changed."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    relationships: int = 0
    """Relationships that were not there before."""


LOAD = Rpc("graph.v1.constitution.load", LoadConstitution, ConstitutionLoaded, timeout=60.0, max_bytes=1_000_000)

LOAD_TOOL = Tool(
    "constitution.load.v1",
    "Write a part of a constitutional graph: up to 250 nodes and 500 relationships in one transaction.",
    LOAD,
    risk=Risk.HIGH,
    agents=ADMINISTRATORS_ALONE,
    irreversible=True,
)
