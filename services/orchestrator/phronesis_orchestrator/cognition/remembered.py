"""What memory tells a turn of earlier ones; values alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PastEpisode:
    """An earlier turn and what came of it."""

    text: str
    outcome: str
    when: str
    """The day, as it is shown."""


@dataclass(frozen=True)
class ToolRecord:
    """How often a tool was used for this person, and how often that went well."""

    name: str
    uses: int
    successes: int


@dataclass(frozen=True)
class KnownStrategy:
    """A way of working that went well before."""

    goal: str
    approach: str
    tools: tuple[str, ...]
    score: float
    avoid: str = ""


@dataclass(frozen=True)
class Remembered:
    """All that was recalled for one turn."""

    episodes: tuple[PastEpisode, ...] = ()
    style: tuple[str, ...] = ()
    strategies: tuple[KnownStrategy, ...] = ()
    records: tuple[ToolRecord, ...] = ()
    asked: bool = False
    """Whether memory was asked for texts at all."""

    @property
    def size(self) -> int:
        """Characters of recalled text; nothing of ours is counted (V-C12)."""
        told = [episode.text for episode in self.episodes] + [one.goal + one.approach for one in self.strategies]
        return sum(len(text) for text in (*told, *self.style))


NOTHING = Remembered()
