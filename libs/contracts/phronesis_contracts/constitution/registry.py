"""The registry of the constitutional graph: layers, tiers, statuses, every node type and every relationship type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any


class Layer(StrEnum):
    """The seven layers, in order (O-014)."""

    FOUNDATION = "foundation"
    VISION = "vision"
    STRATEGY = "strategy"
    TACTICS = "tactics"
    EXECUTION = "execution"
    TRACK = "track"
    MIND = "mind"


class Retrieval(StrEnum):
    """How a layer or a type is read (O-009, O-016 to O-022)."""

    ALWAYS = "always"
    SEMANTIC = "semantic"
    TIME_AND_SEMANTIC = "time and semantic"
    AGGREGATE = "aggregate only"


RETRIEVAL: dict[Layer, Retrieval] = {
    Layer.FOUNDATION: Retrieval.ALWAYS,
    Layer.VISION: Retrieval.ALWAYS,
    Layer.STRATEGY: Retrieval.SEMANTIC,
    Layer.TACTICS: Retrieval.SEMANTIC,
    Layer.EXECUTION: Retrieval.TIME_AND_SEMANTIC,
    Layer.TRACK: Retrieval.AGGREGATE,
    Layer.MIND: Retrieval.SEMANTIC,
}
"""How each layer is read."""

ACCESS: dict[Layer, tuple[float, float]] = {
    Layer.FOUNDATION: (0.8, 1.0),
    Layer.STRATEGY: (0.3, 0.4),
    Layer.TACTICS: (0.2, 0.3),
    Layer.MIND: (0.15, 0.2),
}
"""Least and most share of sessions that are expected to read a layer, as the seed states them for planning capacity (O-024)."""


class Tier(IntEnum):
    """When a node is embedded (O-293 to O-297): the first three at once, then nightly, then weekly."""

    P0 = 0
    P1 = 1
    P2 = 2
    P3 = 3
    P4 = 4

    @property
    def at_once(self) -> bool:
        """Whether a write of such a node is embedded as soon as it is announced."""
        return self <= Tier.P2


class Lifecycle(StrEnum):
    """The status of every node but a task's (O-065), and the filter of every list and search."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    DEPRECATED = "deprecated"


class TaskStatus(StrEnum):
    """Where a task is (O-066). A task may be archived or deprecated as well; with these three it counts as active."""

    TODO = "todo"
    IN_PROGRESS = "in_progress"
    DONE = "done"


def lifecycle_of(status: str) -> Lifecycle:
    """What a status counts as for the filters: what is neither archived nor deprecated is active (O-066)."""
    return Lifecycle(status) if status in (Lifecycle.ARCHIVED, Lifecycle.DEPRECATED) else Lifecycle.ACTIVE


class Kind(StrEnum):
    """What a property holds."""

    TEXT = "text"
    TEXTS = "texts"
    NUMBER = "number"
    SHARE = "share"
    """0 to 1."""
    HOURS = "hours"
    """0 or more."""
    PRIORITY = "priority"
    """1 to 5, 5 the highest; `low`, `medium`, `high` and `critical` are taken for 2 to 5 (O-261)."""
    DATE = "date"
    """ISO 8601, a day or a time."""
    ROI = "roi"
    """`{"total": number}`; stored flat as `roiTotal` (O-082)."""


@dataclass(frozen=True)
class Property:
    """A typed property beyond the common ones."""

    name: str
    kind: Kind = Kind.TEXT

    def schema(self) -> dict[str, Any]:
        """The property's JSON schema, as short as a tool's schema must be (O-099)."""
        return _SCHEMAS[self.kind]


_SCHEMAS: dict[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": "string"},
    Kind.TEXTS: {"type": "array", "items": {"type": "string"}},
    Kind.NUMBER: {"type": "number"},
    Kind.SHARE: {"type": "number", "minimum": 0, "maximum": 1},
    Kind.HOURS: {"type": "number", "minimum": 0},
    Kind.PRIORITY: {"type": "integer", "minimum": 1, "maximum": 5},
    Kind.DATE: {"type": "string"},
    Kind.ROI: {"type": "object"},
}


@dataclass(frozen=True)
class NodeType:
    """One type of node: its layer, its properties, and what of it is embedded and when."""

    label: str
    """Its label in the store, such as `KeyResult`."""
    layer: Layer
    tier: Tier | None
    """`None` for a type that is never embedded (O-292)."""
    properties: tuple[Property, ...] = ()
    text: tuple[str, ...] = ("title", "summary", "description", "content")
    """The fields that its embedding is made from, in order (O-300); what is not here may change without a new vector."""

    @property
    def name(self) -> str:
        """Its value of `type`, and the first word of its tools: `keyResult`, `ai` (O-026 to O-060)."""
        return self.label.lower() if self.label.isupper() else self.label[0].lower() + self.label[1:]

    @property
    def statuses(self) -> tuple[str, ...]:
        """What its `status` may be, the default first."""
        return (*TaskStatus, *Lifecycle) if self.label == "Task" else tuple(Lifecycle)

    def property(self, name: str) -> Property | None:
        """Its property of that name, if it has one."""
        return next((one for one in self.properties if one.name == name), None)


NODE_LABEL = "OdeiNode"
"""The label that every node has beside its own (O-061)."""

_F, _V, _S, _T = Layer.FOUNDATION, Layer.VISION, Layer.STRATEGY, Layer.TACTICS
_E, _K, _M = Layer.EXECUTION, Layer.TRACK, Layer.MIND
_PLAIN = ("title", "summary", "description", "content")
_BUSINESS = (Property("narrative"), Property("horizon"), Property("deadline", Kind.DATE), Property("target"))
_CONTENT = Property("content")


def _type(label: str, layer: Layer, tier: Tier | None, *properties: Property, text: tuple[str, ...] = _PLAIN) -> NodeType:
    return NodeType(label, layer, tier, properties, text)


_NODE_TYPES: tuple[NodeType, ...] = (
    _type(
        "Value",
        _F,
        Tier.P0,
        Property("statement"),
        Property("priority", Kind.PRIORITY),
        text=("title", "summary", "description", "statement", "priority"),
    ),
    _type(
        "Principle",
        _F,
        Tier.P0,
        Property("statement"),
        Property("rationale"),
        text=("title", "summary", "description", "statement", "rationale"),
    ),
    _type(
        "Guardrail",
        _F,
        Tier.P0,
        Property("statement"),
        Property("trigger"),
        Property("response"),
        Property("severity"),
        text=("title", "summary", "description", "statement", "trigger", "response", "severity"),
    ),
    _type("Human", _F, None),
    _type("AI", _F, None),
    _type("Policy", _F, Tier.P0),
    _type("Context", _F, Tier.P0),
    _type("Vision", _V, Tier.P1, *_BUSINESS, text=("title", "summary", "description", "narrative", "horizon")),
    _type("Business", _V, Tier.P1, *_BUSINESS),
    _type(
        "Goal",
        _V,
        Tier.P1,
        *_BUSINESS,
        Property("successCriteria", Kind.TEXTS),
        Property("outcome"),
        text=("title", "summary", "description", "narrative", "target", "deadline", "successCriteria"),
    ),
    _type("Season", _V, Tier.P1, *_BUSINESS),
    _type(
        "Strategy",
        _S,
        Tier.P1,
        Property("narrative"),
        Property("timebox"),
        text=("title", "summary", "description", "narrative", "timebox"),
    ),
    _type("Objective", _S, Tier.P1, Property("narrative"), text=("title", "summary", "description", "narrative")),
    _type("KeyResult", _S, Tier.P3, Property("target"), Property("current")),
    _type("Initiative", _S, Tier.P3),
    _type("Milestone", _S, Tier.P3, Property("dueDate", Kind.DATE)),
    _type("Risk", _S, Tier.P3, Property("likelihood", Kind.SHARE), Property("severity")),
    _type("Project", _T, Tier.P3),
    _type("Area", _T, Tier.P3),
    _type("System", _T, Tier.P3),
    _type("Process", _T, Tier.P3),
    _type(
        "Decision",
        _E,
        Tier.P2,
        Property("reasoning"),
        Property("roi", Kind.ROI),
        Property("decidedAt", Kind.DATE),
        text=("title", "summary", "description", "reasoning", "roi", "decidedAt"),
    ),
    _type(
        "Task",
        _E,
        Tier.P3,
        Property("dueDate", Kind.DATE),
        Property("priority", Kind.PRIORITY),
        Property("effortHours", Kind.HOURS),
    ),
    _type("TimeBlock", _E, None, Property("startsAt", Kind.DATE), Property("endsAt", Kind.DATE)),
    _type("WorkSession", _E, None, Property("startsAt", Kind.DATE), Property("endsAt", Kind.DATE)),
    _type("Action", _E, Tier.P3, Property("dueDate", Kind.DATE)),
    _type("Metric", _K, None, Property("unit")),
    _type("Observation", _K, None, Property("observedAt", Kind.DATE), Property("value", Kind.NUMBER)),
    _type("Event", _K, Tier.P4, Property("occurredAt", Kind.DATE)),
    _type("Signal", _K, Tier.P4, Property("observedAt", Kind.DATE)),
    _type(
        "Insight",
        _M,
        Tier.P2,
        Property("insightType"),
        Property("confidence", Kind.SHARE),
        text=("title", "summary", "description", "insightType", "confidence"),
    ),
    _type(
        "Pattern",
        _M,
        Tier.P2,
        Property("pattern"),
        Property("confidence", Kind.SHARE),
        text=("title", "summary", "description", "pattern", "confidence"),
    ),
    _type("Evidence", _M, Tier.P4, _CONTENT),
    _type("Source", _M, Tier.P4, _CONTENT, Property("url")),
    _type("Note", _M, Tier.P4, _CONTENT),
)

TYPES: Mapping[str, NodeType] = {one.name: one for one in _NODE_TYPES}
"""Every node type by its value of `type`, in the order of the layers."""
LABELS: Mapping[str, NodeType] = {one.label: one for one in _NODE_TYPES}
"""Every node type by its label."""


def types_of_layer(layer: Layer) -> tuple[NodeType, ...]:
    """The types of a layer, in the registry's order."""
    return tuple(one for one in _NODE_TYPES if one.layer is layer)


def node_type(given: str) -> NodeType | None:
    """The type that a caller names, in whatever case (O-026)."""
    return _BY_FOLDED.get(given.casefold())


_BY_FOLDED = {one.name.casefold(): one for one in _NODE_TYPES}

RELATIONSHIP_NAME = r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$"
"""What the name of a relationship type looks like."""


@dataclass(frozen=True)
class Ends:
    """Types that a relationship may lead from and to, and what it then says."""

    source: frozenset[str]
    target: frozenset[str]
    meaning: str


@dataclass(frozen=True)
class RelationshipType:
    """One relationship type."""

    name: str
    ends: tuple[Ends, ...]
    acyclic: bool = False
    """Whether a chain of it may not come back to where it began."""

    def joins(self, source: NodeType, target: NodeType) -> bool:
        """Whether it may lead from a node of one type to a node of the other."""
        return any(source.name in ends.source and target.name in ends.target for ends in self.ends)


def _names_of_layers(*layers: Layer) -> frozenset[str]:
    return frozenset(one.name for layer in layers for one in types_of_layer(layer))


_FOUNDATION, _VISION, _STRATEGY, _TACTICS, _EXECUTION, _TRACK, _MIND = Layer
_UPWARDS = (
    Ends(
        _names_of_layers(_VISION),
        _names_of_layers(_FOUNDATION, _VISION),
        "a vision, business, goal or season, and what it rests on",
    ),
    Ends(
        _names_of_layers(_STRATEGY),
        _names_of_layers(_FOUNDATION, _VISION, _STRATEGY),
        "a strategy or what belongs to it, and what it is for",
    ),
    Ends(
        _names_of_layers(_TACTICS),
        _names_of_layers(_FOUNDATION, _VISION, _STRATEGY, _TACTICS),
        "a project, area, system or process, and what it is for",
    ),
    Ends(
        _names_of_layers(_EXECUTION),
        _names_of_layers(_FOUNDATION, _VISION, _STRATEGY, _TACTICS),
        "a decision, task or action, and what it is for",
    ),
)
_RELATIONSHIP_TYPES: tuple[RelationshipType, ...] = (
    RelationshipType(
        "SUPPORTED_BY",
        (
            Ends(
                _names_of_layers(_VISION), _names_of_layers(_FOUNDATION, _VISION), "the parent that a goal or vision rests on"
            ),
            Ends(frozenset({"strategy"}), frozenset({"initiative"}), "an initiative that carries a strategy out"),
            Ends(frozenset({"insight", "pattern"}), frozenset({"evidence"}), "what speaks for an insight or a pattern"),
            Ends(frozenset({"decision"}), frozenset({"evidence", "insight", "pattern"}), "what a decision was made on"),
        ),
        acyclic=True,
    ),
    RelationshipType("SERVES", _UPWARDS, acyclic=True),
    RelationshipType("ALIGNS_WITH", _UPWARDS, acyclic=True),
    RelationshipType(
        "ENFORCED_BY",
        (
            Ends(frozenset({"value"}), frozenset({"principle", "guardrail", "policy"}), "what makes a value count"),
            Ends(frozenset({"principle"}), frozenset({"guardrail", "policy"}), "what makes a principle count"),
        ),
        acyclic=True,
    ),
    RelationshipType(
        "MEASURES",
        (
            Ends(frozenset({"observation"}), frozenset({"metric"}), "a measured value of a metric"),
            Ends(frozenset({"metric"}), _names_of_layers(_VISION, _STRATEGY, _TACTICS), "what a metric is kept for"),
        ),
        acyclic=True,
    ),
    RelationshipType(
        "LEADS_TO",
        (
            Ends(frozenset({"decision"}), _names_of_layers(_EXECUTION, _TACTICS) | {"metric"}, "what came of a decision"),
            Ends(_names_of_layers(_MIND), frozenset({"decision"}), "what an insight led to"),
        ),
    ),
    RelationshipType(
        "PART_OF",
        (
            Ends(frozenset({"task", "milestone"}), frozenset({"project", "initiative"}), "a piece of a project"),
            Ends(frozenset({"action", "timeBlock", "workSession"}), frozenset({"task"}), "a step of a task, or time for it"),
            Ends(frozenset({"project"}), frozenset({"initiative", "area"}), "a project of an initiative or an area"),
            Ends(frozenset({"keyResult"}), frozenset({"objective"}), "how an objective is told to be reached"),
            Ends(frozenset({"process"}), frozenset({"system"}), "a process of a system"),
        ),
        acyclic=True,
    ),
    RelationshipType(
        "THREATENS", (Ends(frozenset({"risk"}), _names_of_layers(_VISION, _STRATEGY, _TACTICS), "what a risk endangers"),)
    ),
    RelationshipType(
        "DRAWN_FROM",
        (Ends(frozenset({"evidence", "note", "insight"}), frozenset({"source", "event", "signal"}), "where it was found"),),
    ),
    RelationshipType(
        "CONTRADICTS",
        (
            Ends(
                _names_of_layers(_FOUNDATION, _VISION),
                _names_of_layers(_FOUNDATION, _VISION),
                "two that cannot both be followed",
            ),
        ),
    ),
)

RELATIONSHIPS: Mapping[str, RelationshipType] = {one.name: one for one in _RELATIONSHIP_TYPES}
"""Every declared relationship type by name."""
CONSTITUTIONAL = ("SUPPORTED_BY", "ENFORCED_BY", "ALIGNS_WITH", "SERVES")
"""The relationship types that algorithms walk (O-211)."""
PARENTS = ("SUPPORTED_BY", "SERVES", "ALIGNS_WITH")
"""The relationship types that lead from a node of the vision layer to a parent (O-142)."""


def declared_types(source: NodeType, target: NodeType) -> Iterator[str]:
    """The declared relationship types that may lead from one type to the other."""
    return (name for name, kind in RELATIONSHIPS.items() if kind.joins(source, target))
