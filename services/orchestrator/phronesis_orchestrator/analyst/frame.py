"""The set that a question is about: its type and level, its conditions, what it is grouped by, and how one says all that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from phronesis_contracts.graph import Level
from phronesis_contracts.twin import GroupBy, Where

from .fitting import Named
from .measures import DIMENSIONS
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
                found += _condition(reading, type, kind, same, sort)
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


def _condition(reading: Reading, type: str, kind: str, items: list[Item], negated: bool) -> list[Condition]:
    if kind == "value":
        return [_value(type, item) for item in items]
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


def _value(type: str, item: Item) -> Condition:
    """What is said of risks: of the risk itself, or of the one that a thing hangs together with."""
    name, value = item.value
    linked: dict[str, str] = {}
    if type != "EntityRisk":
        ways = between(type, "EntityRisk")
        if len(ways) != 1:
            raise Declined(f"I do not see how {called(type)} and risks hang together in this question.")
        linked = {"via": ways[0], "to": "EntityRisk"}
    if value == "high":
        return Condition("value", (value,), (Where(property=name, op=">", value=7, **linked),), "with a risk score above 7")
    said = f"that are {str(value).lower()}" if not linked else f"whose risk is {str(value).lower()}"
    return Condition("value", (value,), (Where(property=name, value=value, **linked),), said)


def _joined(type: str, named: Named) -> Condition:
    ways = between(type, named.type)
    if len(ways) != 1:
        raise Declined(f"I do not see how “{named.name}” and {called(type)} hang together in this question.")
    where = Where(property="id", op="in", value=named.ids, via=ways[0], to=named.type)
    return Condition("entity", named.ids, (where,), f"of {named.name}")
