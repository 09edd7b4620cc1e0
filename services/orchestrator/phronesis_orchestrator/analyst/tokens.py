"""The pieces of a question: words, numbers, and the few signs that carry meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"[A-Za-z]{2,6}_\d{4}_\d{4}-Q\d"  # a project's number
    r"|amber\s*[/-]\s*(?:red|green)\b"
    r"|[^\W\d_]+n['’]t\b"
    r"|['’]s\b"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+"
    r"|[^\W_]+"
    r"|(?<=\d)\s*[-–—]\s*(?=\d{4}\b)"
    r"|[£$€%&+*=<>]",
    re.I,
)
MAX_CHARS = 600
"""Characters of a question that are read; a longer one is no question that rules could answer."""


@dataclass(frozen=True)
class Token:
    """One piece, as written and folded."""

    text: str
    folded: str
    start: int
    end: int


def tokens(text: str) -> tuple[Token, ...]:
    """The pieces of `text` in order."""
    return tuple(Token(m.group(), _fold(m.group()), m.start(), m.end()) for m in _TOKEN.finditer(text))


def folded(text: str) -> tuple[str, ...]:
    """The pieces of `text`, folded."""
    return tuple(token.folded for token in tokens(text))


def _fold(text: str) -> str:
    short = text.strip().casefold().replace("’", "'")
    if short in ("–", "—"):
        return "-"
    if short.startswith("amber") and len(short) > 5:
        return "amber/red" if short.endswith("red") else "amber/green"
    return "and" if short == "&" else short
