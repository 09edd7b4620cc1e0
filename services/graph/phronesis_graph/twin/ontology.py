"""An ontology as frozen values, and values of nodes held against it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from phronesis_contracts import BadRequest
from phronesis_contracts.twin import Level

RESERVED = frozenset({"tenant", "id", "name", "aliases", "year", "quarter", "level", "key", "type", "version", "hash"})
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


Words = Mapping[str, tuple[str, ...]]
"""What people say, by language; the first of a language is its label."""
LEVEL_OF_ALL = Level.L3
"""Where the nodes of a type without levels stand."""


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
    words: Words = field(default_factory=dict)
    most: Words = field(default_factory=dict)
    least: Words = field(default_factory=dict)
    value_words: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeType:
    """A node type: what its levels mean, and what it may carry."""

    name: str
    levels: Mapping[Level, Words]
    """Empty where it has none: all its nodes stand at L3."""
    properties: Mapping[str, Property]
    words: Words = field(default_factory=dict)

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
    forward: Words = field(default_factory=dict)
    backward: Words = field(default_factory=dict)

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
    words: Words = field(default_factory=dict)


@dataclass(frozen=True)
class Ontology:
    """Everything a twin may hold."""

    nodes: Mapping[str, NodeType]
    relationships: Mapping[str, RelationshipType]
    chains: Mapping[str, Chain]
    name: str = ""
    hierarchy: str | None = None


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
