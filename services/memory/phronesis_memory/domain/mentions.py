"""Which concepts a text names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_WORD = re.compile(r"[^\W_]+")
MOST = 50
"""Concepts of one item at most."""


class Titles:
    """The titles of an owner's concepts, to be looked for in texts word by word.

    Args:
        titles: title by the concept's id.
    """

    def __init__(self, titles: Mapping[str, str]) -> None:
        self._ids: dict[tuple[str, ...], list[str]] = {}
        for id, title in titles.items():
            if key := _words(title):
                self._ids.setdefault(key, []).append(id)
        self._lengths = sorted({len(key) for key in self._ids})

    def named_in(self, text: str) -> list[str]:
        """Ids of the concepts whose title stands in `text` as whole words, in order of appearance."""
        words = _words(text)
        found: dict[str, None] = {}
        for start in range(len(words)):
            for length in self._lengths:
                for id in self._ids.get(words[start : start + length], ()):
                    found.setdefault(id)
            if len(found) >= MOST:
                break
        return list(found)[:MOST]


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
