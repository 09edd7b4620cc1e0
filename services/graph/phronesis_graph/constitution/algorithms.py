"""What the graph service answers to algorithms: what most rests on, what stands between, what belongs together."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from phronesis_bus import Call
from phronesis_contracts.constitution import paths

from .budgets import take_fitting
from .engine import Algorithm, AlgorithmOutput, Engine
from .projection import MAX_AGE, CachedProjection, Projection, ProjectionCache, SingleFlight
from .traversal import WalkStore, check_relationship_types, check_type_names, read_walk_nodes

_SHOWN = 25
"""Nodes of a community that are told."""
_SHOWN_IN_ALL = 1_000
"""Nodes of all communities that are told; an answer holds no more of them."""
Watch = Callable[[Algorithm, str, float, int, AlgorithmOutput], None]
"""Told of each computation: which, by what engine, its seconds, its nodes, and what came of it."""


@dataclass(frozen=True)
class CachedResult:
    over: Projection
    computed: AlgorithmOutput
    order: Sequence[Sequence[int]]
    """Nodes in the order in which they are told: one group of them all, or one for each community."""
    at: datetime
    milliseconds: float


class AlgorithmHandlers:
    def __init__(
        self, projections: ProjectionCache, engine: Engine, walks: WalkStore, now: Callable[[], datetime], watch: Watch
    ) -> None:
        self._projections, self._engine, self._walks = projections, engine, walks
        self._now, self._watch = now, watch
        self._turns = SingleFlight()

    async def pagerank(self, call: Call, request: paths.RankNodes) -> paths.NodesRanked:
        """The nodes that most of the graph rests on. Raises `BadRequest` (a type), `TooLarge`, `Unavailable`."""
        return await self._ranked(call.who.tenant, Algorithm.PAGERANK, request)

    async def betweenness(self, call: Call, request: paths.FindBridges) -> paths.NodesRanked:
        """The nodes that stand between others; raises what `pagerank` does."""
        return await self._ranked(call.who.tenant, Algorithm.BETWEENNESS, request)

    async def communities(self, call: Call, request: paths.FindCommunities) -> paths.CommunitiesFound:
        """Clusters of nodes that belong together; raises what `pagerank` does."""
        types = check_type_names(request.types)
        result, stats = await self._result(call.who.tenant, Algorithm.COMMUNITIES, request)
        over, left = result.over, _SHOWN_IN_ALL
        groups: list[tuple[int, int, list[int]]] = []
        for number, group in enumerate(result.order, start=1):
            shown = [node for node in group if not types or over.types[node] in types][: min(_SHOWN, left)]
            if shown and len(groups) < request.limit:
                groups.append((number, len(group), shown))
                left -= len(shown)
        met = await read_walk_nodes(self._walks, call.who.tenant, over, [node for _, _, shown in groups for node in shown])
        rows = [
            paths.Community(id=number, size=size, nodes=tuple(met[node].mention() for node in shown if node in met))
            for number, size, shown in groups
        ]
        fitting, _ = take_fitting(rows)
        return paths.CommunitiesFound(rows=tuple(fitting), modularity=result.computed.modularity, stats=stats)

    async def _ranked(self, tenant: str, algorithm: Algorithm, request: paths.Projected) -> paths.NodesRanked:
        types = check_type_names(request.types)
        result, stats = await self._result(tenant, algorithm, request)
        over, values = result.over, result.computed.values
        order = [node for group in result.order for node in group if not types or over.types[node] in types]
        met = await read_walk_nodes(self._walks, tenant, over, order[: request.limit])
        rows = [
            paths.Ranked(id=one.id, type=one.type, title=one.title, score=round(values[node], 6)) for node, one in met.items()
        ]
        fitting, _ = take_fitting(rows)
        return paths.NodesRanked(rows=tuple(fitting), stats=stats)

    async def _result(
        self, tenant: str, algorithm: Algorithm, request: paths.Projected
    ) -> tuple[CachedResult, paths.AlgorithmStats]:
        names, layers = check_relationship_types(request.relationship_types), tuple(sorted(set(request.layers)))
        async with self._turns.of(tenant, algorithm, *names):
            kept = self._projections.kept(tenant, names)
            found: CachedResult | None = kept.results.get((algorithm, layers)) if kept is not None else None
            cached = found is not None and not request.refresh and self._now() - found.at < MAX_AGE
            if found is None or not cached:
                kept = await self._projections.fresh(tenant, names, refresh=request.refresh)
                found = await self._computed(algorithm, kept, request)
                kept.keep((algorithm, layers), found)
        stats = paths.AlgorithmStats(
            node_count=len(found.over.ids),
            relationship_count=len(found.over.links),
            computed_at=found.at,
            projected_at=found.over.at,
            cached=cached,
            engine=self._engine.name,
            milliseconds=0.0 if cached else found.milliseconds,
            pivots=found.computed.pivots,
        )
        return found, stats

    async def _computed(self, algorithm: Algorithm, kept: CachedProjection, request: paths.Projected) -> CachedResult:
        at, began = self._now(), time.perf_counter()
        over = await asyncio.to_thread(kept.projection.of_layers, request.layers)
        computed = await self._engine.compute(algorithm, over) if over.ids else AlgorithmOutput(())
        seconds = time.perf_counter() - began
        self._watch(algorithm, self._engine.name, seconds, len(over.ids), computed)
        order = await asyncio.to_thread(_group_nodes if algorithm is Algorithm.COMMUNITIES else _rank_nodes, over, computed)
        return CachedResult(over, computed, order, at, round(seconds * 1_000, 1))


def _rank_nodes(over: Projection, computed: AlgorithmOutput) -> list[list[int]]:
    values = [round(value, 9) for value in computed.values]  # sums in another order differ in the last places
    return [sorted(range(len(values)), key=lambda node: (-values[node], node))]


def _group_nodes(over: Projection, computed: AlgorithmOutput) -> list[list[int]]:
    inside: Counter[int] = Counter()
    for a, b in {(min(a, b), max(a, b)) for a, b, _ in over.links}:
        if computed.values[a] == computed.values[b]:
            inside.update((a, b))
    groups: dict[float, list[int]] = defaultdict(list)
    for node, group in enumerate(computed.values):
        groups[group].append(node)
    ordered = [sorted(group, key=lambda node: (-inside[node], node)) for group in groups.values()]
    return sorted(ordered, key=lambda group: (-len(group), min(group)))
