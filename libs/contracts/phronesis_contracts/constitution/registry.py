"""The registry: every node type and relationship type of the constitutional graph.

Labels, indexes, tools, validation, the inventory, documents and the console's forms are made from it. Where the seed names
35 types in its table of layers and 32 in its text, the table counts (O-026 to O-060).
"""

from __future__ import annotations

from collections.abc import Mapping

from .kinds import Kind, Layer, NodeType, Property, Tier

NODE_LABEL = "OdeiNode"
"""The label that every node has beside its own (O-061)."""

_F, _V, _S, _T = Layer.FOUNDATION, Layer.VISION, Layer.STRATEGY, Layer.TACTICS
_E, _K, _M = Layer.EXECUTION, Layer.TRACK, Layer.MIND
_PLAIN = ("title", "summary", "description", "content")
_BUSINESS = (Property("narrative"), Property("horizon"), Property("deadline", Kind.DATE), Property("target"))
_CONTENT = Property("content")


def _type(label: str, layer: Layer, tier: Tier | None, *properties: Property, text: tuple[str, ...] = _PLAIN) -> NodeType:
    return NodeType(label, layer, tier, properties, text)


_ALL: tuple[NodeType, ...] = (
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

TYPES: Mapping[str, NodeType] = {one.name: one for one in _ALL}
"""Every node type by its value of `type`, in the order of the layers."""
LABELS: Mapping[str, NodeType] = {one.label: one for one in _ALL}
"""Every node type by its label."""


def of_layer(layer: Layer) -> tuple[NodeType, ...]:
    """The types of a layer, in the registry's order."""
    return tuple(one for one in _ALL if one.layer is layer)


def node_type(given: str) -> NodeType | None:
    """The type that a caller names, in whatever case (O-026)."""
    return _BY_FOLDED.get(given.casefold())


_BY_FOLDED = {one.name.casefold(): one for one in _ALL}
