"""A question as rules read it: what each of its words means, and which words nothing explains."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from .lexicon import Meaning, in_capitals_only, longest, phrases
from .tokens import MAX_CHARS, Token, tokens

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
