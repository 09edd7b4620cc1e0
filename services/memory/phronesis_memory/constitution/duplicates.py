"""Nodes of one type that say nearly the same."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from phronesis_contracts import Principal
from phronesis_contracts.constitution import similarity
from phronesis_contracts.constitution.insight import Duplicate
from phronesis_contracts.constitution.kinds import Layer

from .matrix import Gathered, gathered, pairs_above
from .mentions import mention
from .ports import Chosen, History, NodeVectors
from .structure import Structure

_Pair = tuple[str, str, float]


class Duplicates:
    """Finds near-duplicates, and merges none.

    Args:
        vectors: the index.
        history: the pairs that are noted whenever a node is embedded.
        structure: the graph.
    """

    def __init__(self, vectors: NodeVectors, history: History, structure: Structure) -> None:
        self._vectors = vectors
        self._history = history
        self._structure = structure

    async def find(self, who: Principal, threshold: float, layers: frozenset[Layer], limit: int) -> list[Duplicate]:
        """Pairs of active nodes of one type with a cosine of `threshold` or more, the most alike first."""
        if threshold >= similarity.DUPLICATE:
            noted = await self._history.pairs(who.tenant, threshold, layers, limit)
            pairs = [(pair.one, pair.other, pair.cosine) for pair in noted]
        else:
            found = await gathered(self._vectors, who.tenant, Chosen(layers=layers))
            pairs = await asyncio.to_thread(within_types, found, threshold, limit)
        nodes = await self._structure.nodes(who, sorted({id for *both, _ in pairs for id in both})) if pairs else {}
        return [
            Duplicate(one=mention(nodes[one]), other=mention(nodes[other]), score=round(cosine, 6))
            for one, other, cosine in pairs
            if one in nodes and other in nodes
        ]


def within_types(found: Gathered, threshold: float, limit: int) -> list[_Pair]:
    """Pairs of one type above a cosine, the most alike first."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, type in enumerate(found.types):
        rows[type].append(row)
    pairs = [
        (found.ids[of_type[a]], found.ids[of_type[b]], cosine)
        for of_type in rows.values()
        for a, b, cosine in pairs_above(found.points[of_type], threshold, limit)
    ]
    return sorted(pairs, key=lambda pair: (-pair[2], pair[:2]))[:limit]
