"""Nodes and relationships as the graph takes them: in parts that are neither too many nor too large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from phronesis_contracts import Message
from phronesis_contracts.constitution.loading import NODES, RELATIONSHIPS, LoadConstitution, LoadNode
from phronesis_contracts.constitution.writes import Relate

M = TypeVar("M", bound=Message)

_BYTES = 400_000
"""Of one part as JSON; the contract takes 1 MB, and smaller parts show progress."""


def parts(nodes: Iterable[LoadNode], relationships: Iterable[Relate]) -> Iterator[LoadConstitution]:
    """All nodes, then all relationships; each part is small enough for one message."""
    for some in _packed(nodes, NODES):
        yield LoadConstitution(nodes=tuple(some))
    for joined in _packed(relationships, RELATIONSHIPS):
        yield LoadConstitution(relationships=tuple(joined))


def _packed(items: Iterable[M], most: int) -> Iterator[list[M]]:
    found: list[M] = []
    size = 0
    for item in items:
        wide = len(item.model_dump_json(exclude_none=True).encode()) + 1
        if found and (len(found) == most or size + wide > _BYTES):
            yield found
            found, size = [], 0
        found.append(item)
        size += wide
    if found:
        yield found
