"""Changes to a statement, gathered by place, and the statement written out anew from its tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from .tree import Token


@dataclass
class Changes:
    """What is put before, behind and in the place of tokens; the tokens are named by their number."""

    _before: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    _behind: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    _instead: dict[int, str] = field(default_factory=dict)

    def before(self, place: int, text: str) -> None:
        """Put `text` before a token, behind what was put there already."""
        self._before[place].append(text)

    def behind(self, place: int, text: str) -> None:
        """Put `text` behind a token, behind what was put there already."""
        self._behind[place].append(text)

    def instead(self, place: int, text: str) -> None:
        """Put `text` in the place of a token."""
        self._instead[place] = text

    def applied(self, tokens: Sequence[Token]) -> str:
        """The statement with the changes. Comments are gone, and between two words stands one space or none as before."""
        parts: list[str] = []
        end = 0
        for place, token in enumerate(tokens):
            if token.start > end:
                parts.append(" ")
            parts += [f" {text} " for text in self._before.get(place, ())]
            parts.append(self._instead.get(place, token.text))
            parts += [f" {text}" for text in self._behind.get(place, ())]
            end = token.stop + 1
        return "".join(parts).strip()
