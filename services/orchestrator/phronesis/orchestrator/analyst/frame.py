"""The set that a question is about: its type and level, its conditions, what it is grouped by, and how one says all that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from phronesis.contracts.graph import Level
from phronesis.contracts.twin import GroupBy, Where

from .measures import DIMENSIONS, MEASURES
from .naming import Named
from .ontology import between, called
from .problems import Declined, unfit
from .reading import Item, Reading

DEPARTMENT = {"via": "DELIVERED_BY", "to": "SectorGovEntity"}
_FILTERS = ("rating", "status", "category", "department", "value")


@dataclass(frozen=True)
class Condition:
    """One condition: for the twin, and in words."""

    dimension: str
    values: tuple[str, ...]
    where: tuple[Where, ...]
    said: str


@dataclass(frozen=True)
class Frame:
    """A set of things, and what is wanted of it."""

    type: str = "EntityProject"
    level: Level | None = Level.L3
    conditions: tuple[Condition, ...] = ()
    groups: tuple[str, ...] = ()
    """Dimensions, or node types; the year stands apart."""
    more_than: tuple[str, float] | None = None
    """How many a group has to have."""
    beyond: str | None = None
    """`over` or `under` the baseline: worked out from two figures of each project."""
    used: frozenset[int] = field(default=frozenset())
    """Places of the items that were taken up."""

    @property
    def where(self) -> tuple[Where, ...]:
        """All conditions for the twin."""
        return tuple(one for condition in self.conditions for one in condition.where)

    @property
    def noun(self) -> str:
        """What the things are called."""
        return called(self.type, self.level)

    def said(self, leaving: str | None = None) -> str:
        """The set in words, without the conditions of one dimension."""
        kept = [condition.said for condition in self.conditions if condition.dimension != leaving]
        return " ".join((self.noun, *kept))

    def leaving(self, dimension: str) -> Frame:
        """The set without the conditions of one dimension."""
        return replace(self, conditions=tuple(one for one in self.conditions if one.dimension != dimension))

    def grouping(self) -> tuple[GroupBy, ...]:
        """How the twin is told what to group by."""
        return tuple(group_by(self.type, one) for one in self.groups)


def group_by(type: str, dimension: str) -> GroupBy:
    """A dimension, or another type, as the twin groups by it."""
    if dimension == "department":
        return GroupBy(property="id", **DEPARTMENT)
    if dimension.startswith(("Sector", "Entity")):
        ways = between(type, dimension)
        if len(ways) != 1:
            raise Declined(f"{called(type).capitalize()} and {called(dimension)} do not hang together in one single way.")
        return GroupBy(property="name", via=ways[0], to=dimension)
    return GroupBy(property=dimension)


def label_of(dimension: str) -> str:
    """What a dimension is called."""
    return DIMENSIONS.get(dimension) or called(dimension, many=False)


def subject(reading: Reading) -> tuple[str, Level | None, frozenset[int], tuple[str, ...]]:
    """The type that is asked about, its level, what that used up, and the types that it is grouped by."""
    types = reading.of("type")
    by = {item.at for item in types if _after_by(reading, item)}
    plain = [item for item in types if item.at not in by]
    # "the budget of projects" and "programmes and projects" name one type twice.
    kinds = dict.fromkeys(item.value[0] for item in plain)
    if len(kinds) > 1:
        raise unfit(reading.words(plain[1].at, plain[1].end))
    grouped = tuple(dict.fromkeys(item.value[0] for item in types if item.at in by))
    used = frozenset(item.at for item in types)
    if not plain:
        if grouped and _portfolio(reading) is False:
            return grouped[0], _level(reading, types[0]), used, ()
        type = _by_measure(reading)
        level = Level.L3 if type == "EntityProject" else None
        return type, level, used, tuple(one for one in grouped if one != type)
    return plain[0].value[0], _level(reading, plain[0]), used, grouped


def _by_measure(reading: Reading) -> str:
    """The type that has the figure that was named, where the question names no type."""
    if reading.has("value"):
        return "EntityRisk"
    figures = [MEASURES[item.value[0]].types[0] for item in reading.of("measure")]
    return figures[0] if figures else "EntityProject"


def _level(reading: Reading, item: Item) -> Level | None:
    type, level = item.value
    if type == "EntityProject" and level is Level.L2 and _portfolio(reading):
        return Level.L3
    return level if level is None else Level(level)


def _portfolio(reading: Reading) -> bool:
    """Whether the question speaks of what only the portfolio's projects have."""
    measures = any("whole_life_cost" in item.value or "year_forecast" in item.value for item in reading.of("measure"))
    return measures or reading.has("rating", "department", "category")


def _after_by(reading: Reading, item: Item) -> bool:
    return any(by.end == item.at or (by.end < item.at and _only_small(reading, by.end, item.at)) for by in reading.of("by"))


def _only_small(reading: Reading, at: int, end: int) -> bool:
    return {n for small in reading.of("small", "followup") for n in range(small.at, small.end)} >= set(range(at, end))


def conditions(reading: Reading, type: str) -> tuple[tuple[Condition, ...], frozenset[int]]:
    """The conditions of a question, and the places of the items that state them."""
    used: set[int] = set()
    found: list[Condition] = []
    negations = {item.at: no.at for item in reading.of(*_FILTERS) if (no := _negation(reading, item))}
    negated = set(negations)
    used.update(negations.values())
    for kind in _FILTERS:
        items = [item for item in reading.of(kind)]
        for sort in (True, False):
            same = [item for item in items if (item.at in negated) is sort]
            if same:
                found += _condition(reading, kind, same, sort)
        used.update(item.at for item in items)
    for item in reading.of("entity"):
        found.append(_joined(type, item.value))
        used.add(item.at)
    return tuple(found), frozenset(used)


def _negation(reading: Reading, item: Item) -> Item | None:
    for no in reading.of("not"):
        small = {n for one in reading.of("small", "rated", "dimension") for n in range(one.at, one.end)}
        if no.end <= item.at and set(range(no.end, item.at)) <= small:
            return no
    return None


def _condition(reading: Reading, kind: str, items: list[Item], negated: bool) -> list[Condition]:
    if kind == "value":
        return [_value(item) for item in items]
    values = tuple(dict.fromkeys(item.value for item in items))
    if negated and (kind == "department" or None in values or len(values) > 1):
        raise unfit(reading.words(items[0].at - 1, items[-1].end))
    if None in values:
        if len(values) > 1:
            raise unfit(reading.words(items[-1].at, items[-1].end))
        return [Condition(kind, (), (Where(property=kind, op="unknown"),), "without a published rating")]
    said = " or ".join(f"{value}" for value in values)
    said = {"rating": "rated {}", "status": "with the status {}", "category": "in the category {}", "department": "of {}"}[
        kind
    ].format(said if not negated else f"otherwise than {said}" if kind == "rating" else f"other than {said}")
    return [Condition(kind, values, (_where(kind, values, negated),), said)]


def _where(kind: str, values: tuple[str, ...], negated: bool) -> Where:
    if kind == "department":
        only = {"op": "=", "value": values[0]} if len(values) == 1 else {"op": "in", "value": values}
        return Where(property="id", **DEPARTMENT, **only)
    if len(values) == 1:
        return Where(property=kind, op="<>" if negated else "=", value=values[0])
    return Where(property=kind, op="in", value=values)


def _value(item: Item) -> Condition:
    name, value = item.value
    if value == "high":
        return Condition(name, (value,), (Where(property=name, op=">", value=7),), "with a score above 7")
    return Condition(name, (value,), (Where(property=name, value=value),), f"that are {str(value).lower()}")


def _joined(type: str, named: Named) -> Condition:
    ways = between(type, named.type)
    if len(ways) != 1:
        raise Declined(f"I do not see how “{named.name}” and {called(type)} hang together in this question.")
    where = Where(property="id", op="in", value=named.ids, via=ways[0], to=named.type)
    return Condition("entity", named.ids, (where,), f"of {named.name}")
