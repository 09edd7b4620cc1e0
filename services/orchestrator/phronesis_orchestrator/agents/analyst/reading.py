"""A question as rules read it: the meaning of its words, its years, its lead, and why one is declined."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from phronesis_contracts.answers import Mode

from .vocabulary import FOLLOWS_UP, MAX_CHARS, Meaning, Token, in_capitals_only, longest, phrases, tokens


class Declined(Exception):
    """The question is not answered.

    Args:
        said: what the user is told.
        mode: the mode of the answer: what is missing (E), no clear path (J), or a data mode that stays without an answer.
        rows: candidates to choose from.
    """

    def __init__(self, said: str, mode: Mode = "J", rows: tuple[dict[str, object], ...] = ()) -> None:
        super().__init__(said)
        self.said = said
        self.mode: Mode = mode
        self.rows = rows


def unfit(words: str) -> Declined:
    """A phrase is known, and has no place in this question."""
    return Declined(
        f"I do not see how “{words}” fits into this question, so I would rather not guess. Please put it differently."
    )


def unknown(words: str) -> Declined:
    """Words that nothing explains."""
    return Declined(f"I do not understand “{words}”, so I would rather not guess an answer. {HINT}")


HINT = (
    "I can count, list, group, rank and add up projects by year, department, category, rating and status, tell what became of a"
    " project, and say what is missing for it."
)

_NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twenty": 20,
}
_SCALE = {
    "m": 1.0,
    "mn": 1.0,
    "million": 1.0,
    "millions": 1.0,
    "bn": 1000.0,
    "b": 1000.0,
    "billion": 1000.0,
    "billions": 1000.0,
}
_WITH_UNIT = re.compile(r"(\d+)(m|mn|bn|b)")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Item:
    """A run of words with a meaning; `at` and `end` count tokens."""

    kind: str
    value: Any
    at: int
    end: int


@dataclass(frozen=True)
class Reading:
    """What was read. `left` are the places of words that nothing explains."""

    pieces: tuple[Token, ...]
    items: tuple[Item, ...]
    left: tuple[int, ...]

    def of(self, *kinds: str) -> tuple[Item, ...]:
        """The items of these kinds, in order."""
        return tuple(item for item in self.items if item.kind in kinds)

    def has(self, *kinds: str) -> bool:
        """Whether any item is of one of these kinds."""
        return any(item.kind in kinds for item in self.items)

    def words(self, at: int, end: int) -> str:
        """The words of a span, as written."""
        return " ".join(token.text for token in self.pieces[at:end])

    def unexplained(self) -> str:
        """The words that nothing explains, as written."""
        return " ".join(self.pieces[at].text for at in self.left)

    def with_name(self, at: int, end: int, entity: Any) -> Reading:
        """The reading with the span taken for the name of `entity`, whatever its words may mean elsewhere."""
        kept = [item for item in self.items if item.end <= at or item.at >= end]
        spare = {n for item in self.items if item not in kept for n in range(item.at, item.end)} - set(range(at, end))
        left = tuple(n for n in self.left if not at <= n < end)
        # What a claimed phrase loses to the name has to be read again on its own.
        again = [self._alone(n) for n in sorted(spare)]
        items = [*kept, Item("entity", entity, at, end), *(item for item in again if item is not None)]
        lost = tuple(n for n, item in zip(sorted(spare), again, strict=True) if item is None)
        return replace(self, items=tuple(sorted(items, key=lambda item: item.at)), left=tuple(sorted((*left, *lost))))

    def without(self, *kinds: str) -> Reading:
        """The reading without the items of these kinds."""
        return replace(self, items=tuple(item for item in self.items if item.kind not in kinds))

    def explaining(self, at: int, meaning: Meaning) -> Reading:
        """The reading with one unexplained word explained."""
        items = (*self.items, Item(meaning.kind, meaning.value, at, at + 1))
        left = tuple(n for n in self.left if n != at)
        return replace(self, items=tuple(sorted(items, key=lambda item: item.at)), left=left)

    def _alone(self, at: int) -> Item | None:
        found = phrases().get((self.pieces[at].folded,))
        return Item(found[0].kind, found[0].value, at, at + 1) if found else None


def read(text: str) -> Reading:
    """Read a question word by word, the longest phrase first."""
    pieces = tokens(text[:MAX_CHARS])
    items: list[Item] = []
    left: list[int] = []
    at = 0
    while at < len(pieces):
        item = _amount(pieces, at) or _phrase(pieces, at) or _number(pieces, at)
        if item is None:
            left.append(at)
            at += 1
        else:
            items.append(item)
            at = item.end
    return Reading(pieces, tuple(items), tuple(left))


def _phrase(pieces: tuple[Token, ...], at: int) -> Item | None:
    for length in range(min(longest(), len(pieces) - at), 0, -1):
        for meaning in phrases().get(tuple(piece.folded for piece in pieces[at : at + length]), ()):
            written = pieces[at].text if length == 1 else "in full"
            if meaning.kind != "department" or in_capitals_only(meaning.value, written):
                return Item(meaning.kind, meaning.value, at, at + length)
    return None


def _amount(pieces: tuple[Token, ...], at: int) -> Item | None:
    """An amount of money in £ million: `£2 billion`, `500m`, `£750`."""
    start, pound = at, pieces[at].folded == "£"
    if pound:
        at += 1
    if at >= len(pieces):
        return None
    word, end = pieces[at].folded, at + 1
    if joined := _WITH_UNIT.fullmatch(word):
        return Item("amount", float(joined[1]) * _SCALE[joined[2]], start, end)
    if not _NUMBER.fullmatch(word):
        return None
    if end < len(pieces) and (scale := _SCALE.get(pieces[end].folded)) is not None:
        return Item("amount", float(word.replace(",", "")) * scale, start, end + 1)
    return Item("amount", float(word.replace(",", "")) / 1_000_000, start, end) if pound else None


def _number(pieces: tuple[Token, ...], at: int) -> Item | None:
    word = pieces[at].folded
    if word in _NUMBERS:
        return Item("number", _NUMBERS[word], at, at + 1)
    if word == "-":
        return Item("small", None, at, at + 1)
    if not _NUMBER.fullmatch(word):
        return None
    if re.fullmatch(r"(?:19|20|21)\d\d", word):
        return Item("year", int(word), at, at + 1)
    return Item("number", float(word.replace(",", "")), at, at + 1)


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


_FAMILIES = (
    frozenset({"year", "relative", "since", "after", "before", "until", "between", "trend", "annual", "year_word"}),
    frozenset({"count", "list", "share", "top", "number", "aggregate", "howmuch", "joined", "left"}),
    frozenset({"dimension", "by"}),
)
_OF_ONE_THING = frozenset(
    {"history", "detail", "missing", "impact", "why", "measure", "dimension", "date", "text", "who", "change", "trend"}
)
"""What is asked about one thing: a new question about it replaces the old one whole."""
_STANDS_ALONE = frozenset({"type", "entity", "history", "detail", "impact"})


def leans(reading: Reading) -> bool:
    """Whether a question cannot be understood without the one before."""
    if reading.has("pronoun"):
        return not reading.has("entity")
    if not reading.pieces or reading.has("value", *_STANDS_ALONE - {"entity"}):
        return False
    opening = reading.pieces[0].folded in FOLLOWS_UP or any(item.at == 0 for item in reading.of("followup"))
    if reading.has("entity"):
        return opening and not reading.has(*_OF_ONE_THING)
    if reading.has("compare") and len(reading.of("department", "category", "year")) > 1:
        return opening
    return opening or not reading.has("dimension", "measure", "missing", "joined", "left", "change") or _bare(reading)


def _bare(reading: Reading) -> bool:
    """“By category?”, “the forecast?”: nothing but what replaces a part."""
    rest = [item for item in reading.items if item.kind not in ("small", "followup", "by", "dimension")]
    return not rest


def together(before: Reading, new: Reading) -> Reading:
    """The question before with what is new in place of its like."""
    gone: set[str] = set()
    kinds = {item.kind for item in new.items if item.kind not in ("small", "followup", "pronoun")}
    for kind in kinds:
        gone |= next((family for family in _FAMILIES if kind in family), frozenset({kind}))
    if before.has("entity") and kinds & _OF_ONE_THING:
        gone |= _OF_ONE_THING
    if "department" in kinds and before.has("entity") and not before.has("department"):
        gone |= {"entity"}
    kept = [item for item in before.items if item.kind not in gone]
    shift = len(before.pieces)
    moved = [Item(item.kind, item.value, item.at + shift, item.end + shift) for item in new.items if item.kind != "pronoun"]
    pieces = (*before.pieces, *new.pieces)
    return replace(new, pieces=pieces, items=tuple([*kept, *moved]), left=tuple(at + shift for at in new.left))
