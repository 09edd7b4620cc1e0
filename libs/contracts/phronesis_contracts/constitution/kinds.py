"""The words of the registry: layers, tiers, statuses, and the kinds of value that a property may have."""

from __future__ import annotations

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


def lifecycle(status: str) -> Lifecycle:
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
