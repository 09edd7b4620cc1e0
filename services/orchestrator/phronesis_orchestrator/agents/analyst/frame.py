"""The set that a question is about: its type and level, its conditions, and what it is grouped by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from phronesis_contracts.twin import GroupBy, Level, Where

from .names import Named
from .ontology import DATES, DIMENSIONS, MEASURES, TEXTS, between, called
from .presentation import amount
from .reading import Declined, Item, Reading, unfit

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


_OF_COST = "whole_life_cost"
_WORDS = {">": "above", ">=": "of at least", "<": "below", "<=": "of at most"}


def sizes(reading: Reading) -> tuple[list[Condition], tuple[str, float] | None, set[int]]:
    """Conditions such as “more than £1 billion”; how many a group has to have; and the places used up.

    Raises:
        Declined: the amount belongs to nothing that was named.
    """
    found: list[Condition] = []
    having: tuple[str, float] | None = None
    used: set[int] = set()
    for cmp in reading.of("cmp"):
        number = next((item for item in reading.of("amount", "number") if item.at in (cmp.end, cmp.end + 1)), None)
        if number is None:
            continue
        used |= {cmp.at, number.at}
        after = next((item for item in reading.of("type") if item.at == number.end), None)
        if number.kind == "number" and after is not None:
            having = (cmp.value, float(number.value))
        else:
            condition, place = _size(reading, cmp, number)
            found.append(condition)
            used |= place
    return found, having, used


def _size(reading: Reading, cmp: Item, number: Item) -> tuple[Condition, set[int]]:
    measures = [item for item in reading.of("measure") if item.value != ("variance",)]
    nearest = min(measures, key=lambda item: abs(item.at - cmp.at), default=None)
    if nearest is None and number.kind == "number":
        raise unfit(reading.words(cmp.at, number.end))
    name = nearest.value[0] if nearest else _OF_COST
    if number.kind == "number" and MEASURES[name].unit == "£m":
        raise Declined(f"{number.value:,.0f} of what? Say for instance “£{number.value:,.0f} million”.", mode="E")
    where = Where(property=name, op=cmp.value, value=float(number.value))
    said = f"with a {MEASURES[name].name} {_WORDS[cmp.value]} {amount(float(number.value), MEASURES[name].unit)}"
    return Condition(name, (), (where,), said), ({nearest.at} if nearest else set())


def dates(reading: Reading) -> tuple[list[Condition], set[int]]:
    """Conditions such as “ending in 2025”, and the places used up. A date's year is a calendar year."""
    found: list[Condition] = []
    used: set[int] = set()
    for date in reading.of("date"):
        between = [item for item in reading.items if date.end <= item.at]
        words = [item for item in between if item.kind not in ("small", "followup")][:2]
        order = words[0] if words and words[0].kind in ("before", "after", "since", "until", "by") else None
        if words and words[0].kind == "between":
            raise Declined("I can look for one year of a start or an end, or for before and after one.", mode="E")
        year = next(iter(words[1:] if order else words), None)
        if year is None or year.kind != "year":
            continue
        noun = reading.words(date.at, date.end).casefold()
        if order is None and noun.endswith("dates"):
            continue
        if order is None and noun.endswith("date"):
            said = f"Do you mean projects that end or start in {year.value}, or what the report of {year.value} says?"
            raise Declined(said, mode="E")
        if order is None and len(words) > 1 and words[1].kind == "year" and _joined_by_words(reading, year, words[1]):
            raise Declined("I can look for one year of a start or an end, or for before and after one.", mode="E")
        kind = order.kind if order else "in"
        used |= {date.at, year.at} | ({order.at} if order else set())
        found.append(Condition(date.value, (), tuple(_dated(date.value, kind, year.value)), _dated_words(date, kind, year)))
    return found, used


def _joined_by_words(reading: Reading, one: Item, other: Item) -> bool:
    return bool({piece.folded for piece in reading.pieces[one.end : other.at]} & {"and", "to", "-", "or"})


def _dated(name: str, kind: str, year: int) -> list[Where]:
    first, last = f"{year}-01-01", f"{year}-12-31"
    bounds = {
        "in": [(">=", first), ("<=", last)],
        "before": [("<", first)],
        "after": [(">", last)],
        "since": [(">=", first)],
        "until": [("<=", last)],
        "by": [("<=", last)],
    }
    return [Where(property=name, op=op, value=value) for op, value in bounds[kind]]


def _dated_words(date: Item, kind: str, year: Item) -> str:
    verb = "starting" if date.value == "start_date" else "ending"
    return f"{verb} {'by the end of' if kind in ('by', 'until') else kind} {year.value}"


def absences(reading: Reading) -> tuple[list[Condition], set[int]]:
    """Conditions such as “without an end date”, and the places used up."""
    found: list[Condition] = []
    used: set[int] = set()
    for no in reading.of("not", "missing"):
        item = _property_near(reading, no)
        if item is None:
            continue
        name = item.value[0] if item.kind == "measure" else item.value
        said = {**DATES, **TEXTS, "rating": "rating"}.get(name) or MEASURES[name].name
        used |= {no.at, item.at}
        found.append(Condition(name, (), (Where(property=name, op="unknown"),), f"without a published {said}"))
    return found, used


def _property_near(reading: Reading, no: Item) -> Item | None:
    free = {n for one in reading.of("small", "followup") for n in range(one.at, one.end)}
    for item in reading.of("measure", "date", "text", "dimension"):
        if item.kind == "dimension" and item.value != "rating":
            continue
        if item.kind == "measure" and len(item.value) == 1 and item.value[0] == "variance":
            continue
        after = no.end <= item.at and set(range(no.end, item.at)) <= free
        before = no.kind == "missing" and item.end <= no.at and set(range(item.end, no.at)) <= free
        if after or before:
            return item
    if no.kind == "not" and (rated := next(iter(reading.of("rated")), None)) is not None and no.end == rated.at:
        follows = [item for item in reading.of("rating") if 0 <= item.at - rated.end <= 1]
        return None if follows else Item("dimension", "rating", rated.at, rated.end)
    return None


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
    measures = any("whole_life_cost" in item.value or "year_forecast" in item.value for item in reading.of("measure"))
    return measures or reading.has("rating", "department", "category")


def _after_by(reading: Reading, item: Item) -> bool:
    return any(by.end == item.at or (by.end < item.at and _only_small(reading, by.end, item.at)) for by in reading.of("by"))


def _only_small(reading: Reading, at: int, end: int) -> bool:
    return {n for small in reading.of("small", "followup") for n in range(small.at, small.end)} >= set(range(at, end))
