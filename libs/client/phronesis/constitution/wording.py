"""The words of made-up nodes: patterns whose slots are filled from a theme, each sentence by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from .themes import Theme, patterns


class Wording:
    """Writes about one theme.

    Args:
        theme: what is written about.
        other: a theme that is mentioned in passing.
        random: what chooses.
    """

    def __init__(self, theme: Theme, other: Theme, random: Random) -> None:
        self._theme, self._other, self._random = theme, other, random

    def fields(self, type: str) -> dict[str, str]:
        """Title, summary and the other texts of a node of a type; a text may be left out."""
        made = {name: self.text(of) for name, of in patterns().types[type].items()}
        return {name: text for name, text in made.items() if text}

    def oblique(self) -> dict[str, str]:
        """Title and summary that never name the theme."""
        return {name: self.text(of) for name, of in patterns().oblique.items()}

    def closing(self) -> str:
        """A sentence more."""
        return self.text(patterns().closing)

    def review(self) -> str:
        """What was said when a node was looked at again."""
        return self.text(patterns().review)

    def text(self, of: Sequence[str], said: Mapping[str, str] | None = None) -> str:
        """One of some patterns, filled, with capitals where sentences begin. A pattern without slots is a word of a list.

        Args:
            of: the patterns.
            said: what stands in some of the slots.
        """
        pattern = self._random.choice(of)
        slots = _Slots(self._theme, self._other, self._random)
        slots.update(said or {})
        filled = pattern.format_map(slots)
        return _capitals(filled) if filled != pattern else filled


class _Slots(dict[str, str]):
    """Fills each slot when it is first asked for, so that a slot that stands twice says the same twice."""

    def __init__(self, theme: Theme, other: Theme, random: Random) -> None:
        super().__init__()
        self._theme, self._other, self._random = theme, other, random

    def __missing__(self, slot: str) -> str:
        name = slot.removesuffix("2")
        self[slot] = found = self._drawn(name, avoiding=self.get(name))
        return found

    def _drawn(self, name: str, avoiding: str | None) -> str:
        if name in ("n", "m"):
            return str(self._number(name))
        if name == "elsewhere":
            return self._random.choice(self._other.words["thing"])
        choices = self._theme.words.get(name) or patterns().slots[name]
        found = self._random.choice(choices)
        while found == avoiding:
            found = self._random.choice(choices)
        return found

    def _number(self, name: str) -> int:
        """`m` is the more of the two."""
        return self._random.randint(3, 47) if name == "n" else int(self.get("n", "10")) + self._random.randint(2, 52)


def _capitals(text: str) -> str:
    parts = text.split(". ")
    return ". ".join(part[:1].upper() + part[1:] for part in parts)
