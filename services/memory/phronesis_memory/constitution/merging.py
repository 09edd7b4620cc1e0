"""The two halves of a hybrid search as one list: weights, floor, and a final score for each node (C-42, C-43, C-45)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution import similarity
from phronesis_contracts.constitution.paths import Reached

from .meaning import share
from .ports import NodeHit

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Weighing:
    """What a hybrid search goes by."""

    structural: float
    semantic: float
    floor: float
    """Cosine that a node needs which no path joins to the anchor (O-180)."""
    max_depth: int = 2
    top_k: int = 10
    rerank: bool = False


@dataclass(frozen=True)
class Candidate:
    """A node that one of the halves found."""

    id: str
    structural: float
    semantic: float
    final: float
    updated_at: datetime
    reached: Reached | None = None


def weighing(structural: float, semantic: float, floor: float, max_depth: int, top_k: int, rerank: bool) -> Weighing:
    """The weights divided by their sum where that is not 1 (C-45).

    Raises:
        BadRequest: both are 0.
    """
    total = structural + semantic
    if total <= 0:
        raise BadRequest("one of the weights has to be above 0", field="semanticWeight")
    if abs(total - 1) > similarity.ROUNDING:
        structural, semantic = structural / total, semantic / total
    return Weighing(structural, semantic, floor, max_depth, top_k, rerank)


def merged(reached: Sequence[Reached], near: dict[str, NodeHit], cosines: dict[str, float], by: Weighing) -> list[Candidate]:
    """One candidate for each node that a half found, best first; equals as in a semantic search (O-185).

    Args:
        reached: nodes with a path from the anchor; the floor is not for them (O-180).
        near: hits of the index by id.
        cosines: of the reached ones that are no hits.
        by: weights and floor.
    """
    found: list[Candidate] = []
    for one in reached:
        hit = near.get(one.node.id)
        semantic = share(hit.cosine if hit else cosines.get(one.node.id, 0.0))
        found.append(_candidate(one.node.id, 1 / one.hops, semantic, by, one.node.updated_at or _LONG_AGO, one))
    linked = {one.node.id for one in reached}
    for id, hit in near.items():
        if id not in linked and (by.floor <= 0 or hit.cosine >= by.floor - similarity.ROUNDING):
            found.append(_candidate(id, 0.0, share(hit.cosine), by, hit.updated_at))
    return sorted(found, key=lambda one: (-one.final, -one.updated_at.timestamp(), one.id))


def _candidate(
    id: str, structural: float, semantic: float, by: Weighing, updated_at: datetime, reached: Reached | None = None
) -> Candidate:
    final = min(1.0, round(by.structural * structural + by.semantic * semantic, 6))
    return Candidate(id, structural, semantic, final, updated_at, reached)
