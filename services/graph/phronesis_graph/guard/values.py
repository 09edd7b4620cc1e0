"""What is known of a value before the statement runs: what it holds, where it came from, how large it may grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

LEVELS = frozenset({"L1", "L2", "L3"})
NOTHING: frozenset[str] = frozenset()
NOWHERE: frozenset[int] = frozenset()


class Shape(Enum):
    """What a value is."""

    NODE = "node"
    RELATIONSHIP = "relationship"
    PATH = "path"
    LIST = "list"
    MAP = "map"
    PLAIN = "plain"
    """A number, a string, a date, a truth value, or something of a parameter."""
    MIXED = "mixed"
    """One or the other."""


class Level(Enum):
    """Whether a value is a node's level."""

    NO = 0
    YES = 1
    MADE_OF = 2
    """Something was made of a level: it can be shown, and compared with nothing."""


ENTITIES = frozenset({Shape.NODE, Shape.RELATIONSHIP})
"""What has properties."""


@dataclass(frozen=True)
class Value:
    """A value. What it says of a list holds for the list's items too."""

    shape: Shape = Shape.PLAIN
    holds: bool = False
    """Whether a node, a relationship or a path is in it."""
    level: Level = Level.NO
    nodes: frozenset[int] = NOWHERE
    """The nodes it came from."""
    levels: frozenset[str] = NOTHING
    """The levels it names."""
    parameters: frozenset[str] = NOTHING
    """The parameters whose values it may have."""
    given: bool = False
    """Whether it is made of literals and parameters alone, unchanged."""
    collected: bool = False
    """Whether it is a list that rows were collected into."""
    brief: bool = False
    """Whether it is an id, a name, a literal, or made of rows by an aggregate."""
    units: int = 1
    """How many values as large as a property or a parameter it may be as large as."""
    item: Value | None = None
    """An item, of a list."""
    fields: Mapping[str, Value] | None = None
    """The values by key, of a map whose keys are known."""

    def items(self) -> Value:
        if self.item is not None:
            return self.item
        return replace(self, shape=Shape.MIXED, collected=False, fields=None)


LITERAL = Value(given=True, brief=True)
"""A number, a string that names no level, true, false or null."""

EMPTY = Value(Shape.LIST, given=True, brief=True)
"""A list of nothing, which takes part in no mixture."""


def merged(values: Iterable[Value], shape: Shape) -> Value:
    """A value that holds all of `values`, of a shape."""
    values = tuple(values)
    level = max((value.level for value in values), key=lambda level: level.value, default=Level.NO)
    return Value(
        shape=shape,
        holds=any(value.holds for value in values),
        level=level,
        nodes=NOWHERE.union(*(value.nodes for value in values)),
        levels=NOTHING.union(*(value.levels for value in values)),
        parameters=NOTHING.union(*(value.parameters for value in values)),
        given=all(value.given for value in values),
        collected=any(value.collected for value in values),
        brief=all(value.brief for value in values),
        units=max(1, sum(value.units for value in values)),
    )


def one_of(values: Iterable[Value]) -> Value:
    """A value that is one of `values`, whichever."""
    values = tuple(value for value in values if value is not EMPTY) or (EMPTY,)
    if len(values) == 1:
        return values[0]
    shapes = {value.shape for value in values}
    result = merged(values, shapes.pop() if len(shapes) == 1 else Shape.MIXED)
    if result.shape is Shape.LIST:
        result = replace(result, item=one_of(value.items() for value in values))
    return replace(result, units=max(value.units for value in values))


def list_of(item: Value, collected: bool = False) -> Value:
    """A list of such items."""
    return replace(item, shape=Shape.LIST, item=item, fields=None, collected=collected or item.collected)


def levels_in(value: object) -> frozenset[str]:
    """The levels that a parameter's value names."""
    match value:
        case str():
            found = value.strip().upper()
            return frozenset({found}) if found in LEVELS else NOTHING
        case Mapping():
            return NOTHING.union(*(levels_in(part) for part in value.values()))
        case list() | tuple():
            return NOTHING.union(*(levels_in(part) for part in value))
    return NOTHING
