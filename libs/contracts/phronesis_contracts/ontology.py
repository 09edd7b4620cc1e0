"""Contracts of the twin's ontology: what a tenant's twin may hold, what people call it, and which values and names it has."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from .errors import BadRequest
from .messages import Event, Message, Rpc
from .principal import Agent
from .tools import Risk, Tool
from .twin import READERS, Level

Words = dict[str, tuple[str, ...]]
"""What people say, by language as ISO 639 has it (`en`, `de`); the first of a language is the label that answers use."""
PropertyKind = Literal["number", "string", "text", "date"]
"""`text` is long and found by meaning, `string` is short and compared."""
LevelRule = Literal["same", "down", "any"]
"""Which levels a relationship joins: two of one level, a node to one of its own type one level down, or any."""


class OntologyRefused(BadRequest):
    """The file is no ontology; `field` is the path to what is at fault, and the detail begins with its line."""

    code = "graph.ontology_refused"


class PropertyView(Message):
    """A declared property of a node type."""

    name: str
    kind: PropertyKind
    unit: str | None = None
    choices: tuple[str, ...] = ()
    """The closed set of its values, in the order that the ontology declares; empty where any value will do."""
    lowest: float | None = None
    highest: float | None = None
    high_above: float | None = None
    """The value above which it counts as high."""
    words: Words = Field(default_factory=dict)
    """Made of the name where the ontology gives none."""
    most: Words = Field(default_factory=dict)
    """Superlatives for the node whose value is the greatest (heaviest, most expensive, latest)."""
    least: Words = Field(default_factory=dict)
    """Superlatives for the node whose value is the least."""
    value_words: dict[str, Words] = Field(default_factory=dict)
    """What else a value of `choices` is called."""


class TypeView(Message):
    """A node type."""

    name: str
    words: Words = Field(default_factory=dict)
    """Label, plural and synonyms; made of the name where the ontology gives none."""
    levels: dict[Level, Words] = Field(default_factory=dict)
    """What its nodes are called on each level; empty where the type has no levels, and all its nodes stand at L3."""
    properties: tuple[PropertyView, ...] = ()


class RelationshipView(Message):
    """A relationship type."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    forward: Words = Field(default_factory=dict)
    """How one says it from a source to a target: `delivered by`."""
    backward: Words = Field(default_factory=dict)
    """How one says it from a target to a source: `delivers`."""
    rule: LevelRule


class ChainView(Message):
    """A declared path: node types and relationship types in turn, each with its alternatives."""

    name: str
    steps: tuple[tuple[str, ...], ...]
    words: Words = Field(default_factory=dict)


class OntologyView(Message):
    """What a tenant's twin may hold. Types, properties, relationships and chains stand in the order of the file."""

    name: str
    version: str
    """Changes with each change of the ontology; it says nothing of the nodes."""
    types: tuple[TypeView, ...]
    relationships: tuple[RelationshipView, ...] = ()
    chains: tuple[ChainView, ...] = ()
    hierarchy: str | None = None
    """The relationship that joins a node to one of its own type, one level down."""


class AskVocabulary(Message):
    """The vocabulary of the caller's twin, page by page."""

    after: str | None = Field(default=None, max_length=1_000)
    """The `next` of the page before."""
    limit: int = Field(default=2_000, ge=1, le=2_000)
    """Nodes that one page looks at; those of several years are one name."""


class ValueCount(Message):
    """A value, and how many nodes have it."""

    value: str
    nodes: int


class PropertyValues(Message):
    """What the twin's nodes have in a property. Properties that no node has are left out."""

    type: str
    property: str
    known: int
    """Nodes that have the property."""
    values: tuple[ValueCount, ...] = ()
    """Of a string property, the most frequent first; at most 200."""
    cut: bool = False
    """Whether there are more values, or longer ones, than are listed."""


class EntityName(Message):
    """A thing that nodes of several years stand for, with what it is called."""

    type: str
    id: str
    name: str
    """In its latest year."""
    aliases: tuple[str, ...] = ()
    """Other names: those that the nodes were given, and those of other years."""
    level: Level
    """In its latest year."""
    years: tuple[int, ...]


class Vocabulary(Message):
    """A page: the ontology on each, years and values on the first alone, and the names that the page has."""

    version: str
    """That of the ontology; where it changes between two pages, begin again."""
    ontology: OntologyView
    years: tuple[int, ...] = ()
    values: tuple[PropertyValues, ...] = ()
    names: tuple[EntityName, ...] = ()
    """In the order of type and id. One whose years lie on two pages stands on both."""
    next: str | None = None
    """Where to go on after; `None` on the last page."""


VOCABULARY = Rpc("graph.v1.twin.vocabulary", AskVocabulary, Vocabulary, timeout=6.0)

VOCABULARY_TOOL = Tool(
    "twin_vocabulary",
    "What the twin may hold and what people call it: types, properties, relationships; then its years, values and names.",
    VOCABULARY,
    agents=READERS,
)

WRITERS = frozenset({Agent.MAESTRO, Agent.CURATOR})
MAX_FILE = 300_000
"""Characters of an ontology file; it may have as many bytes."""
MAX_VERSIONS = 50
"""Versions that a tenant keeps; of more the oldest is dropped."""


class PublishOntology(Message):
    """An ontology of the tenant's own, as its file has it."""

    text: str = Field(min_length=1, max_length=MAX_FILE)
    dry_run: bool = False
    """Whether to report what would change, and change nothing."""


class Misfit(Message):
    """Stored nodes that the ontology no longer fits."""

    type: str
    property: str | None = None
    relationship: str | None = None
    count: int
    """Nodes, or relationships where `relationship` is stated."""
    because: str
    blocking: bool = False
    """Whether the ontology cannot be published while there are such nodes."""


class OntologyChanges(Message):
    """What differs from the active ontology: names of types, relationships and chains, properties as `Type.property`."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Words do not count."""
    removed: tuple[str, ...] = ()
    misfits: tuple[Misfit, ...] = ()


class OntologyPublished(Message):
    """The active ontology, or after a dry run the one that would be."""

    version: int
    """0 is the packaged one."""
    changes: OntologyChanges
    ontology: OntologyView
    dry_run: bool = False


class GetOntology(Message):
    """An ontology of the tenant."""

    version: int | None = Field(default=None, ge=0)
    """The active one by default; 0 is the packaged one."""


class OntologyFile(Message):
    """An ontology as its file has it."""

    version: int
    active: bool
    text: str
    ontology: OntologyView


class ListOntologies(Message):
    """The versions that the tenant keeps."""


class OntologyVersion(Message):
    """One version."""

    version: int
    name: str
    active: bool
    at: datetime | None = None
    """When it was published; absent for the packaged one."""
    by: str | None = None
    """The user who published it."""


class OntologyVersions(Message):
    """The newest first, the packaged one last."""

    versions: tuple[OntologyVersion, ...]


class RollBackOntology(Message):
    """A version to make the active one again."""

    version: int = Field(ge=0)
    """0 is the packaged one."""
    dry_run: bool = False


class OntologyChanged(Message):
    """A tenant's active ontology changed; what was kept of it is stale."""

    version: int


PUBLISH = Rpc("graph.v1.ontology.publish", PublishOntology, OntologyPublished, timeout=60.0, max_bytes=1_300_000)
GET = Rpc("graph.v1.ontology.get", GetOntology, OntologyFile, timeout=10.0, max_bytes=2_000_000)
VERSIONS = Rpc("graph.v1.ontology.versions", ListOntologies, OntologyVersions, timeout=10.0)
ROLL_BACK = Rpc("graph.v1.ontology.rollback", RollBackOntology, OntologyPublished, timeout=60.0)
ONTOLOGY_CHANGED = Event("graph.v1.ontology.changed", OntologyChanged, hearers=("orchestrator", "graph"))

PUBLISH_TOOL = Tool(
    "ontology.publish",
    "Publish an ontology of the tenant's own for its twin, or report what it would change (dry run).",
    PUBLISH,
    risk=Risk.HIGH,
    agents=WRITERS,
)
GET_TOOL = Tool("ontology.get", "An ontology of the tenant as its file has it.", GET, agents=READERS | WRITERS)
VERSIONS_TOOL = Tool(
    "ontology.versions", "The versions of the tenant's ontology, and which is active.", VERSIONS, agents=READERS | WRITERS
)
ROLL_BACK_TOOL = Tool(
    "ontology.rollback",
    "Make an earlier version of the tenant's ontology the active one again; 0 is the packaged one.",
    ROLL_BACK,
    risk=Risk.HIGH,
    agents=WRITERS,
)
