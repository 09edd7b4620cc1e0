"""Which type of things a question is about, and on which level."""

from __future__ import annotations

from phronesis_contracts.graph import Level

from .measures import MEASURES
from .problems import unfit
from .reading import Item, Reading


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
