"""Conditions by size and by date: more than an amount, ending in a year, without a date."""

from __future__ import annotations

from phronesis_contracts.twin import Where

from .frame import Condition
from .measures import DATES, MEASURES, TEXTS
from .problems import Declined, unfit
from .reading import Item, Reading
from .saying import amount

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
        if order is None and len(words) > 1 and words[1].kind == "year" and _joined(reading, year, words[1]):
            raise Declined("I can look for one year of a start or an end, or for before and after one.", mode="E")
        kind = order.kind if order else "in"
        used |= {date.at, year.at} | ({order.at} if order else set())
        found.append(Condition(date.value, (), tuple(_dated(date.value, kind, year.value)), _dated_words(date, kind, year)))
    return found, used


def _joined(reading: Reading, one: Item, other: Item) -> bool:
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
    """The property that is said to be missing: after “without”, before or after “missing”."""
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
