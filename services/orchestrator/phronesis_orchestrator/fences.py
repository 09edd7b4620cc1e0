"""The boundaries of a prompt's blocks: drawn after the content is known, so that no content can end its own block (D-153)."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from phronesis_tokens import clean


def fresh(content: str, draw: Callable[[], str] = lambda: secrets.token_hex(8)) -> str:
    """A boundary that does not stand in the content."""
    while (mark := draw()) in content:
        continue
    return mark


def block(mark: str, name: str, lines: list[str], empty: str) -> str:
    """A block of lines; of what it says where there are none."""
    return "\n".join((f"<<{mark} {name}>>", *(lines or [empty]), f"<<end {mark} {name}>>"))


def fenced(mark: str, name: str, text: str) -> str:
    """A text of others as a block; it cannot hold the boundary."""
    return block(mark, name, [clean(text.replace(mark, ""))], "")
