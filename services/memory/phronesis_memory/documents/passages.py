"""Cutting a document into passages: at the ends of sentences, inside one page, sheet or section, with some overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phronesis_contracts.media import TextPart

WORDS = 140
"""Words of a passage at most: with its heading they fit the local model's 256 tokens."""
OVERLAP = 30
"""Words of the passage before that a passage begins with at most."""
LONGEST = 1_200
"""Characters of a passage at most, for texts without spaces."""
_UNIT = re.compile(r"(?<=[.!?;:。！？])\s+|\n+")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Passage:
    """One passage of a document."""

    start: int
    """Where in the whole text it begins, in characters."""
    end: int
    text: str
    page: int | None = None
    sheet: str | None = None
    heading: str | None = None


def split_document(text: str, offset: int, parts: Sequence[TextPart]) -> list[Passage]:
    """The passages of a slice of a document, in order; every word of it is in one at least.

    Args:
        text: the slice.
        offset: where in the whole text it begins.
        parts: pages, sheets or sections of the whole text, in order.
    """
    found: list[Passage] = []
    for start, end, part in _regions(offset, offset + len(text), parts):
        for first, last in _cut(text, start - offset, end - offset):
            found.append(
                Passage(
                    first + offset,
                    last + offset,
                    _with_table_head(text, start - offset, first, last, part),
                    part.page if part else None,
                    part.sheet if part else None,
                    part.heading if part else None,
                )
            )
    return found


def _regions(start: int, end: int, parts: Sequence[TextPart]) -> Iterator[tuple[int, int, TextPart | None]]:
    """Stretches of the text from `start` to `end`, each with the part that it is of, if it is of one."""
    at = start
    for part in sorted(parts, key=lambda one: one.start):
        first, last = max(at, part.start), min(end, part.end)
        if last <= first:
            continue
        if first > at:
            yield at, first, None
        yield first, last, part
        at = last
    if at < end:
        yield at, end, None


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    units = [piece for unit in _units(text, start, end) for piece in _pieces(text, *unit)]
    first = 0
    while first < len(units):
        last, words, fresh = first, 0, False
        while last < len(units):
            more = len(_WORD.findall(text, *units[last]))
            if fresh and (words + more > WORDS or units[last][1] - units[first][0] > LONGEST):
                break
            words, last, fresh = words + more, last + 1, True
        yield units[first][0], units[last - 1][1]
        if last == len(units):
            return
        first = max(first + 1, _step_back(text, units, last))


def _step_back(text: str, units: Sequence[tuple[int, int]], last: int) -> int:
    """The unit that the next passage begins with: the last of this one, as far as they are short."""
    words, at = 0, last
    while at > 0:
        words += len(_WORD.findall(text, *units[at - 1]))
        if words > OVERLAP or units[last - 1][1] - units[at - 1][0] > LONGEST // 4:
            return at
        at -= 1
    return at


def _units(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentences and lines, without the space around them."""
    at = start
    for gap in _UNIT.finditer(text, start, end):
        yield from _stripped(text, at, gap.start())
        at = gap.end()
    yield from _stripped(text, at, end)


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    right = len(piece.rstrip())
    if right > left:
        yield start + left, start + right


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A unit in pieces that fit a passage: at words, or anywhere in a word that is longer than a passage."""
    at, words, first = start, 0, start
    for word in _WORD.finditer(text, start, end):
        if words == WORDS or (words and word.end() - first > LONGEST):
            yield first, at
            words, first = 0, word.start()
        at, words = word.end(), words + 1
        while at - first > LONGEST:
            yield first, first + LONGEST
            first += LONGEST
    if at > first:
        yield first, at


def _with_table_head(text: str, region: int, first: int, last: int, part: TextPart | None) -> str:
    """The words of a passage; those of a sheet after the row that names its columns."""
    own = text[first:last]
    if part is None or part.sheet is None or first <= region:
        return own
    head = next((line for line in text[region : region + 4_000].splitlines() if line.startswith("|")), "")
    return f"{head}\n{own}" if head and len(head) <= LONGEST // 2 and head not in own else own
