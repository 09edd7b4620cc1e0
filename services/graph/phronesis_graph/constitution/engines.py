"""What computes an algorithm over a projection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from .projection import Projection

SEED = 7
"""Of every choice by chance, so that the same graph gives the same answer."""
DAMPING = 0.85
"""Of PageRank (Page et al. 1999)."""
EXACT = 5_000
"""Nodes up to which betweenness is exact; its time grows with nodes times relationships."""
PIVOTS = 1_000
"""Nodes beyond that, from which it is estimated (Brandes and Pich 2007)."""


class Algorithm(StrEnum):
    """What is computed."""

    PAGERANK = "pagerank"
    BETWEENNESS = "betweenness"
    COMMUNITIES = "communities"


@dataclass(frozen=True)
class Computed:
    """By node its score, or the number of its community."""

    values: Sequence[float]
    modularity: float = 0.0
    pivots: int | None = None
    kilobytes: int = 0
    """Memory that the computation took at most, where that is known."""


class Engine(Protocol):
    """An engine. Two nodes that are joined more than once are joined; PageRank alone minds the direction."""

    @property
    def name(self) -> Literal["gds", "igraph"]:
        """What it is called in answers."""

    async def compute(self, algorithm: Algorithm, over: Projection) -> Computed:
        """Compute an algorithm over a projection that has nodes.

        Raises:
            Unavailable: it cannot.
        """
