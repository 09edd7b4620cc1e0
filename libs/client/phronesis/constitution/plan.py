"""The plan of a made-up graph: which node is of which type and theme, and what joins them. Texts come later, from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from phronesis_contracts.constitution.registry import TYPES

from .figures import status
from .sizes import types_of
from .themes import Theme, themes

_EMBEDDED_EACH = 25
"""Nodes that are found by meaning for each theme, so that a question has enough that answers it."""
_FEWEST_THEMES = 8
_OBLIQUE = {"task": 0.14, "action": 0.2, "decision": 0.06}
"""Share of nodes whose words say nothing of their theme; what they belong to, their relationships say."""
_RESTATED = {"task": 0.006, "insight": 0.02, "decision": 0.01}
"""Share of nodes that say what another says, in nearly its words."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One node of the plan."""

    at: int
    id: str
    type: str
    theme: int
    status: str
    oblique: bool = False
    restates: int | None = None
    """The spot whose words it takes."""

    @property
    def active(self) -> bool:
        """Whether lists and searches tell it by default."""
        return self.status not in ("archived", "deprecated")


def planned(nodes: int, seed: int) -> tuple[list[Spot], tuple[Theme, ...]]:
    """The spots in the order of the layers, and the themes in use: fewer of them in a small graph."""
    random = Random(f"plan {seed}")
    counts = types_of(nodes)
    found = sum(count for type, count in counts.items() if TYPES[type].tier is not None)
    used = themes()[: max(_FEWEST_THEMES, min(len(themes()), found // _EMBEDDED_EACH))]
    spots: list[Spot] = []
    for type, count in counts.items():
        spots.extend(_of_type(type, count, len(used), len(spots), random))
    return spots, used


def _of_type(type: str, count: int, used: int, first: int, random: Random) -> Iterator[Spot]:
    order = [number % used for number in range(count)]
    random.shuffle(order)
    plain: dict[int, int] = {}
    for number, theme in enumerate(order):
        at, oblique = first + number, random.random() < _OBLIQUE.get(type, 0.0)
        like = plain.get(theme) if random.random() < _RESTATED.get(type, 0.0) else None
        drawn = status(type, random)
        # Each theme keeps a project that is alive, so that there is something to ask around.
        stands = "active" if type == "project" and theme not in plain else drawn
        if not oblique and like is None:
            plain[theme] = at
        yield Spot(at, f"{type}-{number + 1:05d}", type, theme, stands, oblique and like is None, like)


def of_kind(spots: Sequence[Spot]) -> dict[str, dict[int, list[int]]]:
    """Where the spots of each type and theme stand."""
    found: dict[str, dict[int, list[int]]] = {}
    for spot in spots:
        found.setdefault(spot.type, {}).setdefault(spot.theme, []).append(spot.at)
    return found
