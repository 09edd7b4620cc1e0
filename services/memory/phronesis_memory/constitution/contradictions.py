"""Nodes that cannot both be followed: those that are said to contradict each other, and those whose words do (O-398)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from phronesis_contracts import Principal
from phronesis_contracts.constitution import similarity
from phronesis_contracts.constitution.insight import Contradiction
from phronesis_contracts.constitution.values import ConstitutionNode

from .matrix import gathered, pairs_above
from .mentions import mention
from .polarity import opposed
from .ports import Chosen, NodeVectors
from .structure import Structure

STATED = "CONTRADICTS"
FLOOR = similarity.SEMANTIC
"""Cosine from which two nodes speak of the same; opposites do, since they share nearly all of their words."""
_NODES = 3_000
_PAIRS = 5_000
"""Nodes that are compared, and pairs of them whose words are read."""
_SAYS = ("title", "summary", "description", "statement", "response", "target")
"""Fields that ask for something; a story or a trigger tells when."""


class Contradictions:
    """Finds contradictions, and changes nothing.

    Args:
        vectors: the index.
        structure: the graph.
    """

    def __init__(self, vectors: NodeVectors, structure: Structure) -> None:
        self._vectors = vectors
        self._structure = structure

    async def find(self, who: Principal, types: frozenset[str], limit: int) -> tuple[list[Contradiction], int]:
        """Contradictions among active nodes of some types, the stated ones first; and how many nodes were compared."""
        found = await gathered(self._vectors, who.tenant, Chosen(types=types), _NODES)
        if not found.ids:
            return [], 0
        near = await asyncio.to_thread(pairs_above, found.points, FLOOR, _PAIRS)
        stated = await self._structure.ends(who, found.ids, STATED)
        alike = {(found.ids[a], found.ids[b]): cosine for a, b, cosine in near}
        said = sorted({tuple(sorted((id, end.id))) for id, ends in stated.items() for end in ends if end.id != id})
        wanted = list(dict.fromkeys([*(id for pair in said for id in pair), *(id for pair in alike for id in pair)]))
        nodes = await self._structure.nodes(who, wanted) if wanted else {}
        pairs = [_stated(nodes[a], nodes[b], alike.get((a, b), 0.0)) for a, b in said if a in nodes and b in nodes]
        told = await asyncio.to_thread(by_words, nodes, {pair: c for pair, c in alike.items() if pair not in set(said)})
        return [*pairs, *told][:limit], len(found.ids)


def by_words(nodes: Mapping[str, ConstitutionNode], alike: Mapping[tuple[str, str], float]) -> list[Contradiction]:
    """The pairs whose words oppose each other, the most alike first.

    Args:
        nodes: by id.
        alike: the cosine of each pair that is looked at.
    """
    found = []
    for (one, other), cosine in sorted(alike.items(), key=lambda item: (-item[1], item[0])):
        if one in nodes and other in nodes and (why := opposed(said_by(nodes[one]), said_by(nodes[other]))) is not None:
            found.append(_pair(nodes[one], nodes[other], cosine, why))
    return found


def said_by(node: ConstitutionNode) -> str:
    """What a node asks for, one field a line."""
    told = {"title": node.title, "summary": node.summary, "description": node.description} | dict(node.model_extra or {})
    return "\n".join(str(told[name]) for name in _SAYS if told.get(name))


def _stated(one: ConstitutionNode, other: ConstitutionNode, cosine: float) -> Contradiction:
    why = opposed(said_by(one), said_by(other))
    return _pair(one, other, cosine, f"stated ({STATED})" + (f": {why}" if why else ""))


def _pair(one: ConstitutionNode, other: ConstitutionNode, cosine: float, why: str) -> Contradiction:
    return Contradiction(one=mention(one), other=mention(other), score=round(max(0.0, cosine), 6), because=why)
