"""A made-up constitution from a number of nodes and a seed; its texts are made while they are read, and not kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Any

from phronesis_contracts.constitution.loading import LoadNode
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.writes import Relate

from .asking import Query, asked, duplicates, unrelated
from .bags import bags
from .figures import figures
from .joining import joined
from .plan import Spot, planned
from .restating import restated
from .themes import Theme
from .wording import Wording

FEWEST = 45
"""Nodes of the smallest graph, all of them of the foundation."""
AS_OF = date(2026, 1, 5)
"""The day that a graph's dates lie around, where nobody names one."""
_CLOSING = 0.6
"""Share of nodes with a sentence more."""
_LONG = ("description", "narrative", "content", "reasoning")


@dataclass(frozen=True)
class Made:
    """A graph: a plan, from which nodes, relationships and questions are read as often as one likes."""

    seed: int
    as_of: date
    spots: tuple[Spot, ...]
    themes: tuple[Theme, ...]

    def nodes(self) -> Iterator[LoadNode]:
        """Every node, in the order of the layers."""
        return (self.node(spot) for spot in self.spots)

    def node(self, spot: Spot) -> LoadNode:
        """One node, whatever was read before it."""
        kind, random = TYPES[spot.type], Random(f"node {self.seed} {spot.at}")
        fields = self._words(spot)
        other = random.choice(self.themes)
        wording = Wording(self.themes[spot.theme], other, random)
        more: dict[str, Any] = figures(spot.type, random, self.as_of)
        more |= bags(spot.type, kind.layer, self.themes[spot.theme], wording, random, self.as_of)
        return LoadNode.model_validate({"id": spot.id, "type": spot.type, "status": spot.status} | fields | more)

    def relationships(self) -> Iterator[Relate]:
        """Every relationship, once."""
        return joined(self.spots, self.seed)

    def queries(self) -> list[Query]:
        """Two questions for each theme in use, each with the nodes that were written for it: 100 from 2,500 nodes on."""
        return asked(self.spots, self.themes, self.seed)

    def duplicates(self) -> list[tuple[str, str]]:
        """Ids of pairs of nodes that say the same in nearly the same words."""
        return duplicates(self.spots)

    def unrelated(self, count: int) -> list[tuple[str, str]]:
        """Ids of pairs of nodes that speak of different topics."""
        return unrelated(self.spots, self.themes, count, self.seed)

    def _words(self, spot: Spot) -> dict[str, Any]:
        random = Random(f"words {self.seed} {spot.at}")
        if spot.restates is not None:
            return restated(self._words(self.spots[spot.restates]), random)
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


def generate(nodes: int, seed: int, as_of: date = AS_OF) -> Made:
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
    spots, themes = planned(nodes, seed)
    return Made(seed, as_of, tuple(spots), themes)
