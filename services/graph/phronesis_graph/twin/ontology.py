"""The ontology as frozen values: `content/transformation_twin.yaml`, checked when it is loaded, and values held against it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import yaml

from phronesis_contracts import BadRequest
from phronesis_contracts.twin import Level

RESERVED = frozenset({"tenant", "id", "name", "year", "quarter", "level", "key", "type", "version", "hash"})
"""What every node has; no type may declare a property of such a name."""


class Kind(StrEnum):
    """The type of a property."""

    NUMBER = "number"
    STRING = "string"
    TEXT = "text"
    """Long, and found by meaning: the memory service embeds it."""
    DATE = "date"


class LevelRule(StrEnum):
    """Which levels a relationship may join."""

    SAME = "same"
    DOWN = "down"
    """From L1 to L2 or L2 to L3, inside one node type."""
    ANY = "any"


@dataclass(frozen=True)
class Property:
    """A declared property of a node type."""

    name: str
    kind: Kind
    lowest: float | None = None
    highest: float | None = None
    choices: tuple[str, ...] = ()
    high_above: float | None = None
    """The value above which it counts as high, where the ontology says so."""
    unit: str | None = None


@dataclass(frozen=True)
class NodeType:
    """A node type: what its levels mean, and what it may carry."""

    name: str
    levels: Mapping[Level, str]
    properties: Mapping[str, Property]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.properties.values() if p.kind is Kind.TEXT)


@dataclass(frozen=True)
class RelationshipType:
    """A relationship type and its ends; the hierarchy's ends are any two nodes of one type."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    rule: LevelRule

    def joins(self, source: str, target: str) -> bool:
        """Whether it may go from a node of type `source` to one of type `target`."""
        if self.rule is LevelRule.DOWN:
            return source == target and source in self.sources
        return source in self.sources and target in self.targets


@dataclass(frozen=True)
class Chain:
    """An indirect path: node types and relationship types in turn, each with its alternatives."""

    name: str
    steps: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Ontology:
    """Everything the twin may hold."""

    nodes: Mapping[str, NodeType]
    relationships: Mapping[str, RelationshipType]
    chains: Mapping[str, Chain]
    gap_types: Mapping[str, str]
    """The closed set of gaps with their meaning; where several fit, the first one counts."""

    def check(self) -> None:
        """Hold the ontology against itself.

        Raises `ValueError`: a name that is used and not declared, a name used twice, or a chain whose step cannot be walked.
        """
        for node in self.nodes.values():
            if taken := RESERVED & node.properties.keys():
                raise ValueError(f"{node.name} declares {sorted(taken)}, which every node has")
        # A store of one namespace for both takes no relationship with the name of a label.
        if both := self.nodes.keys() & self.relationships.keys():
            raise ValueError(f"{sorted(both)} name a node and a relationship")
        for relationship in self.relationships.values():
            if unknown := {*relationship.sources, *relationship.targets} - self.nodes.keys():
                raise ValueError(f"{relationship.name} joins {sorted(unknown)}, which are not declared")
        for chain in self.chains.values():
            self._check_chain(chain)

    def _check_chain(self, chain: Chain) -> None:
        if len(chain.steps) % 2 == 0:
            raise ValueError(f"{chain.name} does not end at a node")
        for sources, names, targets in zip(chain.steps[::2], chain.steps[1::2], chain.steps[2::2], strict=False):
            for name in names:
                if name not in self.relationships:
                    raise ValueError(f"{chain.name} walks {name}, which is not declared")
            for target in targets:
                if not any(self.relationships[name].joins(source, target) for name in names for source in sources):
                    raise ValueError(f"{chain.name} cannot reach {target}")


def load() -> Ontology:
    """The packaged ontology. Raises `ValueError`: the file does not fit together."""
    text = files("phronesis_graph").joinpath("content", "transformation_twin.yaml").read_text(encoding="utf-8")
    return parse(yaml.safe_load(text))


def parse(data: Mapping[str, Any]) -> Ontology:
    """The ontology in `data`, laid out as the packaged file is."""
    extra = data.get("portfolio", {})
    nodes = {
        name: _node(name, body, extra.get("nodes", {}).get(name, {}).get("properties", {}))
        for name, body in data["nodes"].items()
    }
    relationships = {name: _relationship(name, body, LevelRule.SAME) for name, body in data["relationships"].items()}
    for name, body in extra.get("relationships", {}).items():
        relationships[name] = _relationship(name, body, LevelRule.ANY)
    everything = tuple(nodes)
    relationships[data["hierarchy"]] = RelationshipType(data["hierarchy"], everything, everything, LevelRule.DOWN)
    chains = {name: _chain(name, steps) for name, steps in data["chains"].items()}
    result = Ontology(
        MappingProxyType(nodes),
        MappingProxyType(relationships),
        MappingProxyType(chains),
        MappingProxyType(dict(data["gap_types"])),
    )
    result.check()
    return result


def _node(name: str, body: Mapping[str, Any], more: Mapping[str, Any]) -> NodeType:
    levels = {Level(level): str(meaning) for level, meaning in body["levels"].items()}
    properties = {key: _property(key, value) for key, value in {**body.get("properties", {}), **more}.items()}
    return NodeType(name, MappingProxyType(levels), MappingProxyType(properties))


def _property(name: str, body: Mapping[str, Any]) -> Property:
    lowest, highest = body.get("range", (None, None))
    choices = tuple(str(choice) for choice in body.get("enum", ()))
    return Property(name, Kind(body["type"]), lowest, highest, choices, body.get("high_above"), body.get("unit"))


def _relationship(name: str, body: Mapping[str, Any], rule: LevelRule) -> RelationshipType:
    return RelationshipType(name, tuple(body["from"]), tuple(body["to"]), rule)


def _chain(name: str, steps: list[str]) -> Chain:
    return Chain(name, tuple(tuple(part.strip() for part in step.split("|")) for step in steps))


LONGEST_STRING = 1_000
LONGEST_TEXT = 20_000
"""Characters; the most that the memory service takes as one item."""


def suggest_nearest(given: str, choices: Iterable[str]) -> str:
    """The end of a sentence that names the choice most like `given`, or all of them where they are few."""
    known = list(choices)
    by_folded = {choice.casefold(): choice for choice in known}
    close = difflib.get_close_matches(given[:100].casefold(), by_folded, n=1, cutoff=0.5)
    if close:
        return f"; the nearest is {by_folded[close[0]]}"
    return f"; there are {', '.join(known)}" if 0 < len(known) <= 10 else ""


def check_value(declared: Property, given: object, path: str) -> str | float:
    """The value as stored: numbers as floats, dates as ISO text. Raises `BadRequest`: its type, its range or its set."""
    match declared.kind:
        case Kind.NUMBER:
            return _check_number(declared, given, path)
        case Kind.DATE:
            return _check_date(given, path)
        case Kind.STRING:
            return _check_string(declared, given, path, LONGEST_STRING)
        case Kind.TEXT:
            return _check_string(declared, given, path, LONGEST_TEXT)


def _check_number(declared: Property, given: object, path: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise BadRequest("a number is needed", field=path)
    try:
        number = float(given)
    except OverflowError as error:
        raise BadRequest("the number is too great", field=path) from error
    if not math.isfinite(number):
        raise BadRequest("a finite number is needed", field=path)
    low, high = declared.lowest, declared.highest
    if low is not None and number < low:
        raise BadRequest(f"the range is {low:g} to {high:g}; the nearest is {low:g}", field=path)
    if high is not None and number > high:
        raise BadRequest(f"the range is {low:g} to {high:g}; the nearest is {high:g}", field=path)
    return number


def _check_date(given: object, path: str) -> str:
    if isinstance(given, date):
        return given.isoformat()[:10]
    if isinstance(given, str) and len(given) == 10:
        try:
            return date.fromisoformat(given).isoformat()
        except ValueError as error:
            raise BadRequest("there is no such day", field=path) from error
    raise BadRequest("a date is needed, as YYYY-MM-DD", field=path)


def _check_string(declared: Property, given: object, path: str, longest: int) -> str:
    if not isinstance(given, str):
        raise BadRequest("text is needed", field=path)
    if len(given) > longest:
        raise BadRequest(f"the text is over {longest} characters", field=path)
    if declared.choices and given not in declared.choices:
        raise BadRequest(f"no such choice{suggest_nearest(given, declared.choices)}", field=path)
    return given
