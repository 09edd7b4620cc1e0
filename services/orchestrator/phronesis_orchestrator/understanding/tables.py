"""Tables in a text, spelled out: each row as `column: value` pairs, which can be searched and quoted like a sentence."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby

_SEPARATORS = ("|", "\t", ";", ",")
_FEWEST = 2
"""Cells of the narrowest row, and rows with the head of the shortest table."""
_LONGEST = 4_000
"""Characters of a row at most."""
_PAIRS = "; "


def spell_tables(text: str) -> str:
    """A text in which the rows of its tables say for each value which column it stands in; the rest as it was."""
    lines = [line for line in text.splitlines() if not _is_rule(line)]
    return "\n".join(line for _, run in groupby(lines, _shape) for line in _spelled(list(run)))


def figures_of(row: str) -> Iterator[str]:
    """The names of those columns of a spelled row in which a figure stands."""
    for pair in row.rstrip(".").split(_PAIRS):
        column, found, value = pair.partition(": ")
        if found and any(c.isdigit() for c in value):
            yield column


def is_row(line: str) -> bool:
    """Whether a line is a spelled row."""
    pairs = line.rstrip(".").split(_PAIRS)
    return len(pairs) >= _FEWEST and all(": " in pair for pair in pairs)


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and not line.strip(" |-:=+")


def _shape(line: str) -> tuple[str, int]:
    """The separator of a line's cells, and how many there are; a line of text is of no shape."""
    if len(line) > _LONGEST:
        return "", 0
    for separator in _SEPARATORS:
        cells = _cells(line, separator)
        # A comma parts clauses, too: those of a table have no space behind it.
        if len(cells) >= _FEWEST and (separator != "," or (len(cells) > _FEWEST and not any(c[:1] == " " for c in cells))):
            return separator, len(cells)
    return "", 0


def _cells(line: str, separator: str) -> list[str]:
    bare = line.strip().strip("|") if separator == "|" else line.strip()
    return next(csv.reader([bare], delimiter=separator), [])


def _spelled(run: Sequence[str]) -> Iterator[str]:
    separator, _ = _shape(run[0])
    if not separator or len(run) < _FEWEST:
        yield from run
        return
    head, *rows = ([cell.strip() for cell in _cells(line, separator)] for line in run)
    for row in rows:
        yield _PAIRS.join(f"{name}: {value}" for name, value in zip(head, row, strict=False) if value) + "."
