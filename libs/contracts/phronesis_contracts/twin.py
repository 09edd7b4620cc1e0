"""Contracts of the twin: its typed nodes, reading it by query, and reasoning over it by surveys, chains and gaps."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from .deletions import Purged
from .errors import BadRequest
from .messages import Event, Message, Rpc
from .principal import Agent
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


Alias = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^;]+$")]
"""Another name of a thing."""


class UpsertNode(NodeRef):
    """A node as it should be; properties that are absent or null are removed."""

    name: str = Field(min_length=1, max_length=500)
    aliases: tuple[Alias, ...] = Field(default=(), max_length=20)
    """Other names: by them it is found as by its name."""
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
    aliases: tuple[str, ...] = ()
    level: Level
    version: int
    properties: dict[str, Any] = Field(default_factory=dict)
    texts: tuple[NodeText, ...] = ()


class Nodes(Message):
    """The nodes that exist, in the order asked."""

    nodes: tuple[Node, ...]


class Expand(Message):
    """Neighbours of knowledge items, 1 to 2 hops away, in either direction."""

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
NODE_CHANGED = Event("graph.v1.node.changed", NodeChanged, followers=("memory",), hearers=("orchestrator",))
GRAPH_PURGED = Event("graph.v1.conversation.purged", Purged, followers=("orchestrator", "memory"))

UPSERT_TOOL = Tool(
    "graph_upsert",
    "Create or change typed nodes and relationships of the twin, checked against its ontology. The batch is atomic.",
    UPSERT,
    risk=Risk.MEDIUM,
    agents=frozenset({Agent.MAESTRO, Agent.CURATOR}),
)


class QueryRefused(BadRequest):
    """The query is not one that may be read with; the detail names the rule, and what to write instead."""

    code = "graph.query_refused"


class ReadCypher(Message):
    """One question to the twin."""

    model_config = ConfigDict(extra="forbid")

    cypher_query: str = Field(min_length=1, max_length=8_000)
    """One reading statement."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Values for its `$names`, for instance year, level or last_seen_id."""


class CypherRows(Message):
    """What it read."""

    rows: tuple[dict[str, Any], ...]
    truncated: bool = False
    """Whether there were more rows, or more bytes, than one answer takes."""
    warnings: tuple[str, ...] = ()
    """What was allowed and could be written better."""


READ_CYPHER = Rpc("graph.v1.cypher.read", ReadCypher, CypherRows, timeout=15.0)
READ_CYPHER_TOOL = Tool(
    "read_neo4j_cypher",
    "Step 3, recall: read the twin with one Cypher statement. Page by key (WHERE n.id > $last_seen_id ORDER BY n.id LIMIT 30),"
    " join nodes of one level only, never read embeddings, and return id and name or aggregates; count before listing.",
    READ_CYPHER,
    agents=frozenset({Agent.NOOR, Agent.MAESTRO}),
)

READERS = frozenset({Agent.NOOR, Agent.MAESTRO})
MAX_ROWS = 500


class LinkedWhere(Message):
    """One condition on a linked node itself."""

    property: str
    """A declared property, or `id`, `name`, `level`, `quarter`."""
    op: Literal["=", "<>", "<", "<=", ">", ">=", "in", "contains", "unknown", "known"] = "="
    value: str | int | float | bool | tuple[str | int | float, ...] | None = None


class Where(Message):
    """One condition on nodes: a property of theirs, or (with `via`) of nodes that they are joined to."""

    property: str
    """A declared property, or `id`, `name`, `level`, `quarter`. With `linked` and `unlinked` it says nothing."""
    op: Literal["=", "<>", "<", "<=", ">", ">=", "in", "contains", "unknown", "known", "linked", "unlinked"] = "="
    """`unknown` finds nodes without the property: what is not published is unknown, never zero. `known` finds the others,
    `linked` and `unlinked` those with and without such a relationship."""
    value: str | int | float | bool | tuple[str | int | float, ...] | None = None
    via: str | None = None
    """The relationship type that leads from the node to the one with the property."""
    to: str | None = None
    """With `via`: the node type at its other end. For `linked` and `unlinked` any where absent."""
    forward: bool | None = None
    """With `via`: whether the node is the relationship's source (`True`) or its target; either where absent."""
    negated: bool = False
    """With `via`: whether those are wanted that are linked to no such node."""
    linked: tuple[LinkedWhere, ...] = Field(default=(), max_length=4)
    """For `linked` and `unlinked` with `to`: what one and the same linked node has to meet."""


class GroupBy(Message):
    """What rows are grouped by: `year`, a property, or (with `via` and `to`) one of nodes that they are joined to."""

    property: str
    via: str | None = None
    to: str | None = None


class Survey(Message):
    """A question over nodes of one type: count, add up or list them, by group and by year."""

    type: str
    years: tuple[int, ...] = Field(default=(), max_length=20)
    """All years where none is stated."""
    level: Level | None = None
    where: tuple[Where, ...] = Field(default=(), max_length=8)
    group_by: tuple[GroupBy, ...] = Field(default=(), max_length=2)
    measure: Literal["count", "sum", "avg", "median", "min", "max", "list"] = "count"
    of: str | None = None
    """The property that the measures but `count` take, whose absence is counted; for a list, what `value` orders by."""
    via: str | None = None
    """For a list in place of `of`: the relationship type whose linked nodes are counted, as `linked` in each row."""
    to: str | None = None
    """With `via`: only nodes of this type are counted."""
    show: tuple[str, ...] = Field(default=(), max_length=12)
    """Properties of a listed node beside id, name and year."""
    order: Literal["value", "-value", "group", "-group"] = "group"
    """By group or by value, `-` downwards; what is unknown comes last. A list has its ids for groups."""
    after: str | None = None
    """For a list in the order of its ids: the `next` of the page before, or an id."""
    limit: int = Field(default=100, ge=1, le=MAX_ROWS)


class Surveyed(Message):
    """Rows of the answer."""

    rows: tuple[dict[str, Any], ...]
    """For a list `id`, `name`, `year` and what was to be shown, `None` where it is unknown.

    Else `group` (and `group2`), `value`, and how many nodes of the group have the property `of` (`known`) or lack it
    (`unknown`); without `of`, how many have what they are grouped by. A `value` of which nothing is known is `None`.
    """
    total: int
    """Nodes that fit the question, whatever the limit."""
    next: str | None = None
    """For a list of which more is left: where to go on after."""
    statement: str
    """The Cypher that gave the rows, for the record of the answer."""


MAX_LINKS = 2_000


class LinksOf(Message):
    """Which nodes some nodes are linked to, inside their year."""

    keys: tuple[str, ...] = Field(min_length=1, max_length=MAX_ROWS)
    """The nodes (`type/id/year`)."""
    relationships: tuple[str, ...] = Field(default=(), max_length=60)
    """Only relationships of these types; all where none is stated."""
    types: tuple[str, ...] = Field(default=(), max_length=60)
    """Only linked nodes of these types; all where none is stated."""
    forward: bool | None = None
    """Only relationships that the nodes are the source of (`True`) or the target of; both where absent."""
    limit: int = Field(default=MAX_ROWS, ge=1, le=MAX_LINKS)


class Link(Message):
    """A relationship, seen from the node that was asked about."""

    node: str
    """Key of that node."""
    relationship: str
    forward: bool
    """Whether that node is the relationship's source."""
    type: str
    id: str
    name: str
    level: Level


class Links(Message):
    """The relationships, by node, relationship type and name."""

    links: tuple[Link, ...]
    truncated: bool = False
    """Whether there are more than the limit."""
    statement: str


class RunChain(Message):
    """Walk a chain of the ontology in one year and on one level."""

    chain: str
    year: int = Field(ge=1900, le=2200)
    level: Level
    start: str | None = Field(default=None, max_length=200)
    """Id of the node to begin at; every node of the first type where absent."""
    start_type: str | None = None
    """Type of the node to begin at, where that is not the chain's first one."""
    limit: int = Field(default=30, ge=1, le=MAX_ROWS)


class ChainNode(Message):
    """One node of a path."""

    type: str
    id: str
    name: str


class ChainPath(Message):
    """One walk: its nodes in order, and the relationships between them."""

    nodes: tuple[ChainNode, ...]
    relationships: tuple[str, ...]
    whole: bool
    """Whether it reaches the chain's end."""


class ChainRun(Message):
    """The walks found: whole ones, or where there is none those that stop on the way, the longest first."""

    paths: tuple[ChainPath, ...]
    truncated: bool = False
    statement: str


class GapType(StrEnum):
    """The four gaps that there are. Where several fit, the first counts."""

    TEMPORAL = "TemporalGap"
    LEVEL = "LevelMismatch"
    CHAIN = "ChainBreak"
    DIRECT = "DirectRelationshipMissing"


class GapQuestion(Message):
    """What is to be held against the graph.

    One node; or, with `other`, a pair that the ontology joins; or, with `relationship` alone, whether the node has any such
    relationship; or, with `chain`, whether that chain reaches its end from the node.
    """

    id: str = Field(min_length=1, max_length=64)
    """The asker's name for the question; findings repeat it."""
    node: NodeRef
    """Its year is the year asked about."""
    level: Level
    other: NodeRef | None = None
    """The second node of a pair, of the same year."""
    relationship: str | None = None
    """The relationship type asked about; for a pair, any that may join the two where absent."""
    chain: str | None = None
    """A chain that has nodes of the type of `node`: it is walked from there to its end."""


class DiagnoseGaps(Message):
    """Questions to diagnose together."""

    questions: tuple[GapQuestion, ...] = Field(min_length=1, max_length=200)


class Gap(Message):
    """One finding, from data alone."""

    question: str
    type: GapType
    year: int
    level: Level
    chain: str | None = None
    pair: tuple[str, str] | None = None
    """Keys of the two nodes of a pair."""
    last_node: str | None = None
    """Key of the last node reached; of several, the first in order. `None` where `node` itself is what is missing."""
    missing_step: str
    """What should be there and is not: the key of a node, or `RELATIONSHIP | OTHER -> NodeType | OTHER` or `... -> key`."""
    because: str
    """What the graph holds instead, in one sentence."""


class Diagnosed(Message):
    """The findings, in the order of the questions; a question without one has no gap, unless it is `unknown`."""

    gaps: tuple[Gap, ...]
    asked: int
    unknown: tuple[str, ...] = ()
    """Questions that name a node which the graph has in no year: nothing can be said about those."""


class FindEntities(Message):
    """Nodes by name: whole, in part, or inside a sentence; folded in case. An id and each alias count as names."""

    text: str = Field(min_length=1, max_length=300)
    types: tuple[str, ...] = Field(default=(), max_length=20)
    year: int | None = None
    limit: int = Field(default=10, ge=1, le=50)


class Entity(Message):
    """A thing that nodes of several years stand for."""

    type: str
    id: str
    name: str
    aliases: tuple[str, ...] = ()
    level: Level
    years: tuple[int, ...]
    score: float
    """1 for the whole name, less for a part of it."""


class Entities(Message):
    """The best first."""

    entities: tuple[Entity, ...]


SURVEY = Rpc("graph.v1.twin.survey", Survey, Surveyed, timeout=15.0)
RUN_CHAIN = Rpc("graph.v1.chain.run", RunChain, ChainRun, timeout=15.0)
LINKS = Rpc("graph.v1.twin.links", LinksOf, Links, timeout=15.0, max_bytes=1_000_000)
DIAGNOSE_GAPS = Rpc("graph.v1.gaps.diagnose", DiagnoseGaps, Diagnosed, timeout=20.0)
FIND_ENTITIES = Rpc("graph.v1.entities.find", FindEntities, Entities, timeout=10.0)

SURVEY_TOOL = Tool(
    "survey_twin",
    "Count, add up, group or list nodes of one type of the twin, by year; what is not published is counted apart.",
    SURVEY,
    agents=READERS,
)
LINKS_TOOL = Tool(
    "twin_links",
    "Which nodes some nodes of the twin are linked to, in either direction, inside their year.",
    LINKS,
    agents=READERS,
)
RUN_CHAIN_TOOL = Tool(
    "run_chain",
    "Walk one of the ontology's chains in one year and on one level, from a node or from all of its first type.",
    RUN_CHAIN,
    agents=READERS,
)
DIAGNOSE_GAPS_TOOL = Tool(
    "diagnose_gaps",
    "Find what is missing: for nodes, pairs or chains in a year and on a level, which of the four gaps there is, and where.",
    DIAGNOSE_GAPS,
    agents=READERS,
)
FIND_ENTITIES_TOOL = Tool(
    "find_entities", "Find nodes of the twin by name, with the years in which each is there.", FIND_ENTITIES, agents=READERS
)
