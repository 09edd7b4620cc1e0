"""Nodes by id, for those who have ids: as callers name them, and as projections hold them."""

from __future__ import annotations

from collections.abc import Iterable

from phronesis_contracts import NotFound

from .projection import Projection
from .walkable import Met, Reader, WalkStore


async def must_meet(reader: Reader, *ids: str) -> list[Met]:
    """The nodes.

    Raises:
        NotFound: one of them is not there.
    """
    met = await reader.met(ids)
    missing = [id for id in ids if id not in met]
    if missing:
        raise NotFound(f"there is no node {missing[0]}")
    return [met[id] for id in ids]


async def met_of(walks: WalkStore, tenant: str, over: Projection, nodes: Iterable[int]) -> dict[int, Met]:
    """Nodes of a projection as they are now, in the order asked; one that went since is left out."""
    ids = {over.ids[node]: node for node in nodes}
    met = await walks.read(tenant, lambda reader: reader.met(list(ids))) if ids else {}
    return {node: met[id] for id, node in ids.items() if id in met}
