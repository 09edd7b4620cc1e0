"""Answers that fit: results are left out at the end until the rest is within its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from phronesis_contracts.constitution.search import Hit, HybridHit, Supported
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_tokens import count

Found = TypeVar("Found", Hit, HybridHit, Supported)
_FRAME = 100
"""Tokens of an answer without its results."""


def tokens(message: Hit | HybridHit | Supported, limit: int) -> int:
    """Tokens of one result as it is sent; `limit + 1` where there are more."""
    return count(message.model_dump_json(), limit)


def fitted(results: Sequence[Found], most: int) -> tuple[tuple[Found, ...], int, bool]:
    """The first results that fit, their tokens with the frame around them, and whether some were left out.

    A first one that is too large by itself is told without its texts, so that its id at least is known.

    Args:
        results: best first.
        most: tokens of the whole answer.
    """
    kept: list[Found] = []
    used = _FRAME
    for place, result in enumerate(results):
        size = tokens(result, most)
        if used + size > most:
            if place:
                return tuple(kept), used, True
            result = result.model_copy(update={"node": bare(result.node)})
            return (result,), used + tokens(result, most), True
        kept.append(result)
        used += size
    return tuple(kept), used if kept else 0, False


def bare(node: ConstitutionNode) -> ConstitutionNode:
    """A node by its name and place alone."""
    return ConstitutionNode(id=node.id, type=node.type, layer=node.layer, title=node.title, status=node.status)


def shown(node: ConstitutionNode) -> ConstitutionNode:
    """A node as a search tells it: without its provenance, which a full read has (O-348)."""
    return node.model_copy(update={"provenance": None})
