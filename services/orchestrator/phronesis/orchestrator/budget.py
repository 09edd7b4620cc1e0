"""A budget of tokens for what a prompt holds, and what gives way when it is over (D-035, D-044)."""

from __future__ import annotations

from collections.abc import Mapping

CUT = "\n[cut]"
"""Stands where a text was cut."""
_KEPT = 200
"""Characters that a cut text keeps at least."""

Parts = dict[str, list[str]]
"""The lines of each part of a prompt."""
_ORDER = ("history", "attachments", "message", "memory", "draft", "profile")
"""What gives way first: the history, oldest message first; last of all the profile."""
_OLDEST_FIRST = frozenset({"history"})
_BY_LINE = frozenset({"history", "memory"})


def tokens(characters: int) -> int:
    """About how many tokens a text has: a quarter of its characters, rounded up. The one estimate of this service."""
    return -(-characters // 4)


def fit(parts: Mapping[str, list[str]], budget: int, fixed: int) -> Parts:
    """The parts, made smaller in a fixed order until they fit.

    The history loses its oldest messages, memory its lowest ranks; a text is cut, with a mark.

    Args:
        parts: the lines of each part.
        budget: tokens for the whole prompt.
        fixed: characters that the prompt has besides the parts.
    """
    result = {part: list(lines) for part, lines in parts.items()}
    for part in _ORDER:
        lines = result.get(part)
        over = _characters(result) + fixed - 4 * budget
        if over <= 0 or not lines:
            continue
        if part in _BY_LINE:
            _drop(lines, over, 0 if part in _OLDEST_FIRST else -1)
        else:
            keep = max(_KEPT, len(lines[0]) - over - len(CUT))
            result[part] = [lines[0] if keep >= len(lines[0]) else lines[0][:keep] + CUT]
    return result


def _characters(parts: Parts) -> int:
    return sum(len(line) + 1 for lines in parts.values() for line in lines)


def _drop(lines: list[str], over: int, place: int) -> None:
    while lines and over > 0:
        over -= len(lines.pop(place)) + 1
