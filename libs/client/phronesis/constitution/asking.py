"""Questions to a made-up graph, with the nodes that answer them, and pairs of nodes that are alike or not.

What is relevant is known because it was written for the question's theme. Nobody looked at how anything is searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from .joining import triples
from .plan import Spot
from .themes import Theme

_ANCHORS = ("project", "strategy", "objective", "initiative", "goal")
"""Types that a question may be asked around."""
_COMPARED = ("task", "decision", "insight", "principle", "goal")
"""Types whose nodes are compared as unrelated."""
_TRIES = 50
"""Draws for each pair, after which there are too few topics."""


@dataclass(frozen=True)
class Query:
    """A question that names its subject and repeats no phrase of the nodes."""

    text: str
    theme: str
    relevant: frozenset[str]
    """Ids of all active nodes of its theme, whatever their type and words."""
    anchor: str | None = None
    """The node that it is asked around: of its theme, with many neighbours."""


def asked(spots: Sequence[Spot], themes: Sequence[Theme], seed: int) -> list[Query]:
    """A question without an anchor for each theme, then one with an anchor for each."""
    relevant: list[set[str]] = [set() for _ in themes]
    for spot in spots:
        if spot.active and spot.type not in ("human", "ai"):
            relevant[spot.theme].add(spot.id)
    anchors = _anchors(spots, seed)
    plain = [Query(one.asked[0], one.key, frozenset(relevant[at])) for at, one in enumerate(themes)]
    around = [Query(one.asked[1], one.key, frozenset(relevant[at]), anchors.get(at)) for at, one in enumerate(themes)]
    return [*plain, *around]


def _anchors(spots: Sequence[Spot], seed: int) -> dict[int, str]:
    """By theme, the node of a type that plans which most nodes of the theme are joined to."""
    count: Counter[int] = Counter()
    for source, _, target in triples(spots, seed):
        if spots[source].theme == spots[target].theme and spots[source].active and spots[target].active:
            count[source] += 1
            count[target] += 1
    best: dict[int, Spot] = {}
    for spot in spots:
        if spot.type in _ANCHORS and spot.active and count[spot.at] > count[best[spot.theme].at if spot.theme in best else -1]:
            best[spot.theme] = spot
    return {theme: spot.id for theme, spot in best.items()}


def duplicates(spots: Sequence[Spot]) -> list[tuple[str, str]]:
    """Ids of what is said again, and of what it says again; both active."""
    pairs = ((spots[spot.restates], spot) for spot in spots if spot.restates is not None)
    return [(one.id, other.id) for one, other in pairs if one.active and other.active]


def unrelated(spots: Sequence[Spot], themes: Sequence[Theme], count: int, seed: int) -> list[tuple[str, str]]:
    """Ids of active pairs of one type whose themes belong to different topics."""
    random = Random(f"unrelated {seed}")
    there = [
        spot for spot in spots if spot.active and not spot.oblique and spot.type in ("task", "decision", "insight", "principle")
    ]
    found: list[tuple[str, str]] = []
    for _ in range(_TRIES * count):
        if len(found) == count or len(there) < 2:
            break
        one, other = random.sample(there, 2)
        if themes[one.theme].topic != themes[other.theme].topic:
            found.append((one.id, other.id))
    return found
