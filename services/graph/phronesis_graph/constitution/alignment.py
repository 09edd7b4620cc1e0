"""How one node is joined to another: the shortest chain through a projection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise

from phronesis_bus import Call
from phronesis_contracts.constitution.algorithms import AlgorithmStats, FindShortestPath, ShortestPathFound

from .meeting import met_of, must_meet
from .naming import relationship_names
from .projection import Projection
from .projections import Projections
from .routes import distances, shortest
from .walkable import WalkStore


class Alignment:
    """One method for the one message.

    Args:
        projections: what is walked; a chain in it costs less than the store would take for it.
        walks: where names of nodes are read.
        now: the time.
    """

    def __init__(self, projections: Projections, walks: WalkStore, now: Callable[[], datetime]) -> None:
        self._projections = projections
        self._walks = walks
        self._now = now

    async def shortest_path(self, call: Call, request: FindShortestPath) -> ShortestPathFound:
        """How a node is joined to another.

        Raises:
            NotFound: one of the nodes is not there.
            BadRequest: a relationship type that cannot be.
            TooLarge: the graph is larger than is projected.
            Unavailable: the store is down.
        """
        tenant, names = call.who.tenant, relationship_names(request.relationship_types)
        held = self._projections.kept(tenant, names)
        kept = await self._projections.fresh(tenant, names, refresh=request.refresh)
        over, began = kept.projection, time.perf_counter()
        path = await asyncio.to_thread(_path, over, request)
        milliseconds = (time.perf_counter() - began) * 1_000
        await self._walks.read(tenant, lambda reader: must_meet(reader, request.from_id, request.to_id))
        met = await met_of(self._walks, tenant, over, path)
        steps = [met[path[0]].step()] if path and len(met) == len(path) else []
        for before, node in pairwise(path) if steps else ():
            name, out = next((name, out) for other, name, out in over.around[before] if other == node)
            steps.append(met[node].step(over.names[name], "out" if out else "in"))
        stats = AlgorithmStats(
            node_count=len(over.ids),
            relationship_count=len(over.links),
            computed_at=self._now(),
            projected_at=over.at,
            cached=kept is held,
            engine="service",
            milliseconds=round(milliseconds, 1),
        )
        return ShortestPathFound(path=tuple(steps), hops=max(0, len(steps) - 1), stats=stats)


def _path(over: Projection, request: FindShortestPath) -> tuple[int, ...]:
    begin, end = over.number.get(request.from_id), over.number.get(request.to_id)
    if begin is None or end is None:
        return ()

    def ways(node: int) -> list[int]:
        return [other for other, _, _ in over.around[node]]

    return shortest(ways, begin, distances(ways, (end,), request.max_depth, (begin,)))
