"""The budget of a prompt: what each part may take, what gives way first, and how a part is made smaller (D-035, D-044)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from phronesis_tokens import clean, count, cut

ANSWER = 4_000
"""Tokens that are kept free for the answer: the most that any call lets a model write."""
SHARES: dict[str, float] = {
    "history": 0.20,
    "summary": 0.10,
    "attachments": 0.20,
    "message": 0.20,
    "memory": 0.15,
    "draft": 0.05,
    "profile": 0.10,
}
"""The share of the room that each part is sure of, whatever the others hold, in the order in which parts give way.

What a part leaves unused goes to the others, to the last of this list first: so the history is the first to be cut down to
its share, and the profile the last (D-044).
"""
_NEWEST = frozenset({"history", "summary"})
"""Parts that lose their oldest lines; the others lose their last."""
_EVEN = frozenset({"attachments"})
"""Parts whose lines share alike: one long document does not hide the next."""
_MOST_OF_PART = 3
"""No line of a part that is over its budget takes more than one third of it."""
_LEAST = 24
"""Tokens that are worth showing of a line that is cut."""


@dataclass(frozen=True)
class Line:
    """One line of a part: a text, or the fields of an object that stands there as JSON."""

    text: str
    fields: Mapping[str, Any] | None = None

    @staticmethod
    def of(text: str) -> Line:
        """A line of text."""
        return Line(clean(text))

    @staticmethod
    def json(**fields: Any) -> Line:
        """A line of JSON."""
        return Line(clean(json.dumps(fields, ensure_ascii=False, default=str)), fields)

    def shortened(self, limit: int) -> Line | None:
        """The line in at most `limit` tokens, a text or the longest field cut with a mark; `None` where that is no use."""
        if count(self.text, limit) <= limit:
            return self
        if self.fields is None:
            text = cut(self.text, limit) if limit >= _LEAST else ""
            return Line(text) if text else None
        texts = {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            for name, value in self.fields.items()
        }
        longest = max(texts, key=lambda name: len(texts[name]))
        room = limit - count(Line.json(**{**self.fields, longest: ""}).text, limit)
        while room >= _LEAST:
            line = Line.json(**{**self.fields, longest: cut(clean(texts[longest]), room)})
            over = count(line.text, 8 * limit) - limit  # quotes and line ends grow when they are written as JSON
            if over <= 0:
                return line
            room -= over
        return None


Parts = Mapping[str, list[Line]]
"""The lines of each part of a prompt."""


def fit(parts: Parts, room: int) -> dict[str, list[str]]:
    """The lines of the parts, made smaller until all together have about `room` tokens.

    A line that is cut ends with a mark, and where lines are left out another says how many.
    """
    needed = {part: _size(lines, room) for part, lines in parts.items()}
    granted = {part: min(needed[part], int(SHARES[part] * room)) for part in parts}
    left = max(0, room - sum(granted.values()))
    for part in reversed(SHARES):
        if part in parts:
            more = min(needed[part] - granted[part], left)
            granted[part] += more
            left -= more
    return {
        part: [line.text for line in (lines if needed[part] <= granted[part] else _smaller(part, lines, granted[part]))]
        for part, lines in parts.items()
    }


def best(lines: list[Line], limit: int) -> list[str]:
    """As many of the lines as `limit` tokens hold, the first ones first; long ones are cut before any is left out."""
    return [line.text for line in (lines if _size(lines, limit) <= limit else _smaller("", lines, limit))]


def _size(lines: Iterable[Line], limit: int) -> int:
    """Tokens of lines; more than `limit` where they have more."""
    size = 0
    for line in lines:
        size += count(line.text, limit) + 1
        if size > limit:
            break
    return size


def _smaller(part: str, lines: list[Line], limit: int) -> list[Line]:
    """As many of the lines as `limit` tokens hold, and a line that says how many were left out."""
    note = 0 if len(lines) == 1 else _size([Line.json(left_out=len(lines))], limit)
    newest = part in _NEWEST
    left, kept = limit - note, list[Line]()
    for at, line in enumerate(reversed(lines) if newest else lines):
        most = left // (len(lines) - at) if part in _EVEN else left if len(lines) == 1 else limit // _MOST_OF_PART
        short = line.shortened(min(left, most) - 1)
        if short is None:
            break
        kept.append(short)
        left -= _size([short], limit)
    if newest:
        kept.reverse()
    if len(kept) == len(lines) or note > limit:
        return kept
    missing = Line.json(left_out=len(lines) - len(kept))
    return [missing, *kept] if newest else [*kept, missing]
