"""Small slips of models, put right where only one thing can be meant: prose around an object, a comma too many, a near word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

_CLOSE = 0.8
"""How like a value of a list another text is, from 0 to 1, to be taken for it."""
_WORD = re.compile(r"[^a-z0-9]+")
_LEAST = 4
"""Characters of a part of a value by which it is known."""


def find_object(text: str) -> str | None:
    """The first object in a text, up to where it is closed, without commas before closing brackets; `None` without one."""
    begin = text.find("{")
    if begin < 0:
        return None
    found: list[str] = []
    depth, quoted, escaped = 0, False, False
    for letter in text[begin:]:
        if quoted:
            quoted, escaped = escaped or letter != '"', letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter in "{[":
            depth += 1
        elif letter in "}]":
            _drop_comma(found)
            depth -= 1
        found.append(letter)
        if depth == 0:
            return "".join(found)
    return None


def _drop_comma(found: list[str]) -> None:
    at = len(found) - 1
    while at >= 0 and found[at].isspace():
        at -= 1
    if at >= 0 and found[at] == ",":
        del found[at]


def nearest(value: object, choices: Collection[str]) -> str | None:
    """The one of a list that a text stands for: itself in other letters, a part of it, or a slip of the pen.

    Returns:
        `None` where none is meant, or more than one may be.
    """
    if not isinstance(value, str):
        return None
    if value in choices:
        return value
    said = _plain(value)
    plain = {_plain(choice): choice for choice in choices}
    if said in plain:
        return plain[said]
    parts = [choice for name, choice in plain.items() if len(said) >= _LEAST and (said in name or name in said)]
    if parts:
        return parts[0] if len(parts) == 1 else None
    close = difflib.get_close_matches(said[:64], plain, n=2, cutoff=_CLOSE)
    return plain[close[0]] if len(close) == 1 else None


def _plain(text: str) -> str:
    return _WORD.sub("_", text[:200].casefold()).strip("_")
