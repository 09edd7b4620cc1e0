"""A made-up constitution from a number of nodes and a seed, with questions whose answers are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Any

from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.writes import LoadNode, Relate

from .plan import PlannedNode, make_figures, plan_nodes
from .relationships import make_relationships, triples
from .texts import Theme, Wording, make_bags, restate

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


def make_queries(spots: Sequence[PlannedNode], themes: Sequence[Theme], seed: int) -> list[Query]:
    """A question without an anchor for each theme, then one with an anchor for each."""
    relevant: list[set[str]] = [set() for _ in themes]
    for spot in spots:
        if spot.active and spot.type not in ("human", "ai"):
            relevant[spot.theme].add(spot.id)
    anchors = _find_anchors(spots, seed)
    plain = [Query(one.asked[0], one.key, frozenset(relevant[at])) for at, one in enumerate(themes)]
    around = [Query(one.asked[1], one.key, frozenset(relevant[at]), anchors.get(at)) for at, one in enumerate(themes)]
    return [*plain, *around]


def _find_anchors(spots: Sequence[PlannedNode], seed: int) -> dict[int, str]:
    """By theme, the node of a type that plans which most nodes of the theme are joined to."""
    count: Counter[int] = Counter()
    for source, _, target in triples(spots, seed):
        if spots[source].theme == spots[target].theme and spots[source].active and spots[target].active:
            count[source] += 1
            count[target] += 1
    best: dict[int, PlannedNode] = {}
    for spot in spots:
        if spot.type in _ANCHORS and spot.active and count[spot.at] > count[best[spot.theme].at if spot.theme in best else -1]:
            best[spot.theme] = spot
    return {theme: spot.id for theme, spot in best.items()}


def duplicates(spots: Sequence[PlannedNode]) -> list[tuple[str, str]]:
    """Ids of what is said again, and of what it says again; both active."""
    pairs = ((spots[spot.restates], spot) for spot in spots if spot.restates is not None)
    return [(one.id, other.id) for one, other in pairs if one.active and other.active]


def unrelated(spots: Sequence[PlannedNode], themes: Sequence[Theme], count: int, seed: int) -> list[tuple[str, str]]:
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


FEWEST = 45
"""Nodes of the smallest graph, all of them of the foundation."""
AS_OF = date(2026, 1, 5)
"""The day that a graph's dates lie around, where nobody names one."""
_CLOSING = 0.6
"""Share of nodes with a sentence more."""
_LONG = ("description", "narrative", "content", "reasoning")


@dataclass(frozen=True)
class GeneratedConstitution:
    """A graph: a plan, from which nodes, relationships and questions are read as often as one likes."""

    seed: int
    as_of: date
    spots: tuple[PlannedNode, ...]
    themes: tuple[Theme, ...]

    def nodes(self) -> Iterator[LoadNode]:
        """Every node, in the order of the layers."""
        return (self.node(spot) for spot in self.spots)

    def node(self, spot: PlannedNode) -> LoadNode:
        """One node, whatever was read before it."""
        kind, random = TYPES[spot.type], Random(f"node {self.seed} {spot.at}")
        fields = self._words(spot)
        other = random.choice(self.themes)
        wording = Wording(self.themes[spot.theme], other, random)
        more: dict[str, Any] = make_figures(spot.type, random, self.as_of)
        more |= make_bags(spot.type, kind.layer, self.themes[spot.theme], wording, random, self.as_of)
        return LoadNode.model_validate({"id": spot.id, "type": spot.type, "status": spot.status} | fields | more)

    def relationships(self) -> Iterator[Relate]:
        """Every relationship, once."""
        return make_relationships(self.spots, self.seed)

    def queries(self) -> list[Query]:
        """Two questions for each theme in use, each with the nodes that were written for it: 100 from 2,500 nodes on."""
        return make_queries(self.spots, self.themes, self.seed)

    def duplicates(self) -> list[tuple[str, str]]:
        """Ids of pairs of nodes that say the same in nearly the same words."""
        return duplicates(self.spots)

    def unrelated(self, count: int) -> list[tuple[str, str]]:
        """Ids of pairs of nodes that speak of different topics."""
        return unrelated(self.spots, self.themes, count, self.seed)

    def _words(self, spot: PlannedNode) -> dict[str, Any]:
        random = Random(f"words {self.seed} {spot.at}")
        if spot.restates is not None:
            return restate(self._words(self.spots[spot.restates]), random)
        wording = Wording(self.themes[spot.theme], random.choice(self.themes), random)
        if spot.oblique:
            return dict(wording.oblique())
        fields: dict[str, Any] = dict(wording.fields(spot.type))
        long = next((name for name in _LONG if name in fields), None)
        if long and random.random() < _CLOSING:
            fields[long] = f"{fields[long]} {wording.closing()}"
        if "successCriteria" in fields:
            fields["successCriteria"] = [fields["successCriteria"]]
        return fields


def generate(nodes: int, seed: int, as_of: date = AS_OF) -> GeneratedConstitution:
    """A constitution with the layers of the list's growth table, varied texts, and a known answer to each of its questions.

    Args:
        nodes: how many; 45 are foundation alone.
        seed: the same number gives the same graph, on every machine.
        as_of: the day that its dates lie around.

    Raises:
        ValueError: there are too few nodes.
    """
    if nodes < FEWEST:
        raise ValueError(f"{FEWEST} nodes are the least")
    spots, themes = plan_nodes(nodes, seed)
    return GeneratedConstitution(seed, as_of, tuple(spots), themes)
