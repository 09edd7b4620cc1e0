"""What can be stored, and how much of it goes into one answer."""

from __future__ import annotations

import math
from typing import Any

_ANSWER = 450_000
"""Bytes of texts in one answer; the broker's limit leaves room for the rest."""


def is_storable(value: Any) -> bool:
    """Whether a JSON value holds nothing that the store refuses: NUL, lone surrogates, infinite numbers."""
    match value:
        case str():
            return "\x00" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
        case float():
            return math.isfinite(value)
        case dict():
            return all(is_storable(k) and is_storable(v) for k, v in value.items())
        case list() | tuple():
            return all(is_storable(v) for v in value)
        case _:
            return True


def cut(text: str, items: int) -> str:
    """`text`, or as much of it as one of `items` texts of an answer may have."""
    limit = _ANSWER // max(1, items)
    data = text.encode()
    return text if len(data) <= limit else data[:limit].decode(errors="ignore") + "…"
