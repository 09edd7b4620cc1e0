"""The order in which found lines are read: columns of prose one after the other, rows of a table from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_PROSE = 9.0
"""Heights of a line that the lines of a column of prose are wide at least; what is narrower is a table."""
_GUTTER = 1.0
"""Heights of a line between two columns at least."""
_DEEPEST = 12


@dataclass(frozen=True)
class Line:
    """A line of text, and where it stands, in pixels."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def ordered(lines: Sequence[Line], depth: int = 0) -> str:
    """The lines as text, one row of the picture a line."""
    if not lines:
        return ""
    height = median(line.bottom - line.top for line in lines) or 1.0
    if depth < _DEEPEST and len(lines) > 3:
        columns = _cut(lines, "left", "right", _GUTTER * height)
        if columns and all(_is_prose(column) for column in columns):
            return "\n\n".join(ordered(column, depth + 1) for column in columns)
        parts = _cut(lines, "top", "bottom", 0.0)
        if parts:
            return "\n".join(ordered(part, depth + 1) for part in parts)
    return "\n".join("  ".join(line.text for line in row) for row in _rows(lines))


def _is_prose(lines: Sequence[Line]) -> bool:
    wide = median((line.right - line.left) / ((line.bottom - line.top) or 1.0) for line in lines)
    return len(lines) > 1 and wide >= _PROSE


def _cut(lines: Sequence[Line], start: str, end: str, least: float) -> tuple[list[Line], list[Line]] | None:
    """Two parts with the widest empty strip between them, where one is wider than `least`."""
    sides = sorted(lines, key=lambda line: getattr(line, start))
    reach = getattr(sides[0], end)
    widest, at = least, 0
    for place, line in enumerate(sides[1:], 1):
        gap = getattr(line, start) - reach
        if gap > widest:
            widest, at = gap, place
        reach = max(reach, getattr(line, end))
    return (sides[:at], sides[at:]) if at else None


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines side by side make one row: their middle is within the height of the row's first."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.top):
        middle = (line.top + line.bottom) / 2
        if rows and rows[-1][0].top <= middle <= rows[-1][0].bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]
