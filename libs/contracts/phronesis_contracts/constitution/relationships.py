"""The relationship types of the registry, with the ends that each may have.

The six of the seed keep its directions, which point up for goals and down for strategies and insights (O-069). Others that
the graph needs have their names here. Any other name in capitals is taken between any two nodes (O-074).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .kinds import Layer, NodeType
from .registry import of_layer

NAME = r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$"
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


def _of(*layers: Layer) -> frozenset[str]:
    return frozenset(one.name for layer in layers for one in of_layer(layer))


_F, _V, _S, _T, _E, _K, _M = Layer
_UPWARDS = (
    Ends(_of(_V), _of(_F, _V), "a vision, business, goal or season, and what it rests on"),
    Ends(_of(_S), _of(_F, _V, _S), "a strategy or what belongs to it, and what it is for"),
    Ends(_of(_T), _of(_F, _V, _S, _T), "a project, area, system or process, and what it is for"),
    Ends(_of(_E), _of(_F, _V, _S, _T), "a decision, task or action, and what it is for"),
)
_ALL: tuple[RelationshipType, ...] = (
    RelationshipType(
        "SUPPORTED_BY",
        (
            Ends(_of(_V), _of(_F, _V), "the parent that a goal or vision rests on"),
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
            Ends(frozenset({"metric"}), _of(_V, _S, _T), "what a metric is kept for"),
        ),
        acyclic=True,
    ),
    RelationshipType(
        "LEADS_TO",
        (
            Ends(frozenset({"decision"}), _of(_E, _T) | {"metric"}, "what came of a decision"),
            Ends(_of(_M), frozenset({"decision"}), "what an insight led to"),
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
    RelationshipType("THREATENS", (Ends(frozenset({"risk"}), _of(_V, _S, _T), "what a risk endangers"),)),
    RelationshipType(
        "DRAWN_FROM",
        (Ends(frozenset({"evidence", "note", "insight"}), frozenset({"source", "event", "signal"}), "where it was found"),),
    ),
    RelationshipType("CONTRADICTS", (Ends(_of(_F, _V), _of(_F, _V), "two that cannot both be followed"),)),
)

RELATIONSHIPS: Mapping[str, RelationshipType] = {one.name: one for one in _ALL}
"""Every declared relationship type by name."""
CONSTITUTIONAL = ("SUPPORTED_BY", "ENFORCED_BY", "ALIGNS_WITH", "SERVES")
"""The relationship types that algorithms walk (O-211)."""
PARENTS = ("SUPPORTED_BY", "SERVES", "ALIGNS_WITH")
"""The relationship types that lead from a node of the vision layer to a parent (O-142)."""


def choices(source: NodeType, target: NodeType) -> Iterator[str]:
    """The declared relationship types that may lead from one type to the other."""
    return (name for name, kind in RELATIONSHIPS.items() if kind.joins(source, target))
