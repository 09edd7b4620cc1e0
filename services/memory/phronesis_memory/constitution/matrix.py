"""The vectors of many nodes as one matrix, bounded by what a process has room for."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from .clusters import Matrix, unit
from .ports import Chosen, NodeVector, NodeVectors

log = logging.getLogger(__name__)

MOST = 20_000
"""Nodes that are looked at together."""
_NUMBERS = 30_000_000
"""Numbers of all their vectors: 120 MB."""
_ROWS = 1_000
"""Rows that are compared with all others at once."""


@dataclass(frozen=True)
class Gathered:
    """Nodes in the order of ids, and their vectors with a length of 1."""

    ids: tuple[str, ...]
    types: tuple[str, ...]
    layers: tuple[str, ...]
    points: Matrix
    whole: bool
    """Whether these are all that were chosen."""


async def gathered(vectors: NodeVectors, tenant: str, chosen: Chosen, most: int = MOST) -> Gathered:
    """The chosen nodes with their vectors, the first `most` of them by id.

    Raises:
        Unavailable: the index does not answer.
    """
    found: list[NodeVector] = []
    whole = True
    async for one in vectors.scan(tenant, chosen):
        if len(found) >= min(most, _NUMBERS // max(1, len(one.vector))):
            log.warning("of the tenant's nodes the first %d are looked at together", len(found))
            whole = False
            break
        found.append(one)
    points = unit(np.stack([one.vector for one in found]).astype(np.float32)) if found else np.zeros((0, 1), np.float32)
    return Gathered(
        tuple(one.id for one in found), tuple(one.type for one in found), tuple(one.layer for one in found), points, whole
    )


def pairs_above(points: Matrix, floor: float, most: int) -> list[tuple[int, int, float]]:
    """The pairs of rows whose cosine is `floor` or more, the most alike first.

    Args:
        points: one a row, of length 1.
        floor: the cosine.
        most: pairs at most.
    """
    found: list[tuple[int, int, float]] = []
    for begin in range(0, len(points), _ROWS):
        cosines = points[begin : begin + _ROWS] @ points[begin:].T
        rows, columns = np.nonzero(np.triu(cosines >= floor, k=1))
        values = cosines[rows, columns]
        best = np.argsort(-values, kind="stable")[:most]
        found += [(begin + int(rows[i]), begin + int(columns[i]), min(1.0, float(values[i]))) for i in best]
        found = sorted(found, key=lambda one: (-one[2], one[0], one[1]))[:most]
    return found
