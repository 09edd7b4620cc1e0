"""Which years a question is about: stated, relative to the newest year there is, a range, or all of them."""

from __future__ import annotations

from dataclasses import dataclass

from .problems import Declined
from .reading import Item, Reading

_RANGE = {"to", "-", "until", "till", "through", "up"}


@dataclass(frozen=True)
class Years:
    """The years asked about."""

    asked: tuple[int, ...]
    """Those of them for which there is data."""
    absent: tuple[int, ...] = ()
    """Those for which there is none."""
    stated: bool = False
    """Whether the question named them; the newest year is taken otherwise."""
    note: str = ""


def years_of(reading: Reading, known: tuple[int, ...], default_all: bool = False) -> Years:
    """The years that a question means.

    Args:
        reading: the question; years that belong to a start or end date are taken out before.
        known: the years for which there is data, oldest first.
        default_all: whether a question without a year is about all years.

    Raises:
        Declined: a year is needed and none is stated, or the words around one do not fit.
    """
    if not known:
        raise Declined("There is no data yet that I could answer from.", mode="A")
    found = _stated(reading, known)
    if found:
        note = _relative(reading, known)
        asked = tuple(year for year in found if year in known)
        return Years(asked, tuple(year for year in found if year not in known), True, note)
    if default_all or reading.has("trend", "annual") or _by_year(reading):
        return Years(known, stated=True)
    if reading.has("year_word"):
        raise Declined(f"Which year do you mean? There are reports of {listed(known)}.", mode="E")
    return Years((known[-1],), note=f"No year was named, so this is {known[-1]}, the newest there is.")


def listed(years: tuple[int, ...]) -> str:
    """Years in words: `2020 to 2023`, or one by one where some are missing between."""
    if len(years) > 2 and years[-1] - years[0] == len(years) - 1:
        return f"{years[0]} to {years[-1]}"
    return " and ".join(", ".join(map(str, years)).rsplit(", ", 1))


def _stated(reading: Reading, known: tuple[int, ...]) -> tuple[int, ...]:
    items = reading.of("year", "relative")
    values = [_value(item, known) for item in items]
    found: set[int] = set()
    at = 0
    while at < len(items):
        joined = at + 1 < len(items) and _is_range(reading, items[at], items[at + 1])
        if joined:
            low, high = sorted((values[at], values[at + 1]))
            found.update(range(low, high + 1))
            at += 2
            continue
        found.update(_opened(reading, items[at], values[at], known))
        at += 1
    return tuple(sorted(found))


def _value(item: Item, known: tuple[int, ...]) -> int:
    if item.kind == "year":
        return int(item.value)
    return known[0] if item.value == "first" else known[-1] + int(item.value)


def _is_range(reading: Reading, one: Item, other: Item) -> bool:
    between = {piece.folded for piece in reading.pieces[one.end : other.at]}
    if between & _RANGE:
        return True
    return "and" in between and len(between) <= 2 and any(item.end <= one.at for item in reading.of("between"))


def _opened(reading: Reading, item: Item, year: int, known: tuple[int, ...]) -> tuple[int, ...]:
    """A year with `since`, `after`, `before` or `until` next to it."""
    for word in reading.of("since", "after", "before", "until"):
        near = 0 <= item.at - word.end <= 1 or (word.kind == "since" and word.at == item.end)
        if near:
            low = {"since": year, "after": year + 1}.get(word.kind, min(known))
            high = {"before": year - 1, "until": year}.get(word.kind, max(known))
            chosen = tuple(one for one in known if low <= one <= high)
            return chosen or (year,)
    return (year,)


def _by_year(reading: Reading) -> bool:
    return any(
        by.end <= word.at and all(piece.folded in ("the", "and", "financial") for piece in reading.pieces[by.end : word.at])
        for by in reading.of("by", "dimension")
        for word in reading.of("year_word")
    )


def _relative(reading: Reading, known: tuple[int, ...]) -> str:
    said = [(reading.words(item.at, item.end), _value(item, known)) for item in reading.of("relative")]
    return " ".join(f"“{words}” is taken as {year}; the newest year on record is {known[-1]}." for words, year in said)
