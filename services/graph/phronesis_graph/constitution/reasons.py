"""Why a node is there, and what would lose its support without it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from phronesis_bus import Call
from phronesis_contracts import NotFound
from phronesis_contracts.constitution.insight import AskWhy, Loss, LossesFound, Reason, WhyAnswered, WithoutNode
from phronesis_contracts.constitution.relationships import CONSTITUTIONAL

from .budgets import fitting
from .meeting import met_of, must_meet
from .projection import Projection
from .projections import Projections
from .routes import distances, routes, shortest
from .sentences import sentence
from .walkable import Met, WalkStore

TOPS = frozenset({"value", "vision"})
"""Types of the nodes that reasons end at."""
_LONGEST = 12
"""Steps of a chain of reasons; more of them nobody follows."""
_NAMES = tuple(sorted(CONSTITUTIONAL))
_LOST = 10
"""Values and visions that are told with a node that loses them."""


@dataclass(frozen=True)
class Lost:
    """What a removal would cost: nodes with the values and visions that they would lose, the nearest to it first."""

    orphaned: Sequence[tuple[int, Sequence[int]]]
    weakened: Sequence[tuple[int, Sequence[int]]]


class Reasons:
    """One method for each message.

    Args:
        projections: what reasons are found in.
        walks: where names of nodes are read.
    """

    def __init__(self, projections: Projections, walks: WalkStore) -> None:
        self._projections = projections
        self._walks = walks

    async def why(self, call: Call, request: AskWhy) -> WhyAnswered:
        """Chains of reasons from a node up to another, or to every value and vision that it comes to.

        Raises:
            NotFound: a node is not there.
            TooLarge: the graph is larger than is projected.
            Unavailable: the store is down.
        """
        tenant = call.who.tenant
        over = await self._over(tenant)
        asked = [request.from_id] if request.to_id is None else [request.from_id, request.to_id]
        await self._walks.read(tenant, lambda reader: must_meet(reader, *asked))
        chains = await asyncio.to_thread(_chains, over, request)
        met = await met_of(self._walks, tenant, over, {node for chain in chains for node in chain})
        told, _ = fitting(_reason(over, chain, met) for chain in chains if all(node in met for node in chain))
        return WhyAnswered(reasons=tuple(told))

    async def without(self, call: Call, request: WithoutNode) -> LossesFound:
        """What would lose its way to a value or a vision without a node; nothing is changed.

        Raises:
            NotFound: there is no such node, or it is not active, so that nothing rests on it.
            TooLarge: the graph is larger than is projected.
            Unavailable: the store is down.
        """
        tenant = call.who.tenant
        over = await self._over(tenant)
        node = over.number.get(request.id)
        if node is None:
            raise NotFound(f"there is no active node {request.id}")
        found = await asyncio.to_thread(losses, over, node)
        orphaned = found.orphaned[: request.limit]
        weakened = found.weakened[: request.limit - len(orphaned)]
        nodes = {one for node, lost in (*orphaned, *weakened) for one in (node, *lost[:_LOST])}
        met = await met_of(self._walks, tenant, over, nodes)
        told, _ = fitting([_loss(one, met) for one in (*orphaned, *weakened) if one[0] in met])
        ids = {over.ids[node] for node, _ in orphaned}
        return LossesFound(
            orphaned=tuple(one for one in told if one.node.id in ids),
            weakened=tuple(one for one in told if one.node.id not in ids),
            total=len(found.orphaned) + len(found.weakened),
        )

    async def _over(self, tenant: str) -> Projection:
        return (await self._projections.fresh(tenant, _NAMES)).projection


def losses(over: Projection, gone: int) -> Lost:
    """What would be lost without a node, in time that grows with the graph: no node is asked by itself.

    Every node below the one that goes came to all tops above it. Those that it still comes to are handed down from the
    tops, as bits, past the one that goes.
    """
    below = [node for node in distances(lambda node: over.down[node], (gone,)) if node != gone]
    above = [node for node in distances(lambda node: _up(over, node), (gone,)) if over.types[node] in TOPS]
    tops = [node for node, type in enumerate(over.types) if type in TOPS and node != gone]
    kept = _handed_down(over, gone, above)
    held = set(distances(lambda node: _down(over, node, gone), {one for top in tops for one in _down(over, top, gone)}))
    lost = {node: [top for place, top in enumerate(above) if not kept[node] >> place & 1 and top != node] for node in below}
    return Lost(
        [(node, lost[node]) for node in below if lost[node] and node not in held],
        [(node, lost[node]) for node in below if lost[node] and node in held],
    )


def _handed_down(over: Projection, gone: int, tops: Sequence[int]) -> Sequence[int]:
    """By node a bit for each of the tops that it comes to, by a step or more, without the node that goes."""
    kept = [0] * len(over.ids)
    own = {top: 1 << place for place, top in enumerate(tops) if top != gone}
    queue = deque(own)
    waiting = set(own)
    while queue:
        node = queue.popleft()
        waiting.discard(node)
        given = kept[node] | own.get(node, 0)
        for other in _down(over, node, gone):
            if kept[other] | given != kept[other]:
                kept[other] |= given
                if other not in waiting:
                    waiting.add(other)
                    queue.append(other)
    return kept


def _up(over: Projection, node: int) -> Sequence[int]:
    return sorted({other for other, _, _ in over.up[node]})


def _down(over: Projection, node: int, gone: int) -> Iterable[int]:
    return (other for other in over.down[node] if other != gone)


def _chains(over: Projection, request: AskWhy) -> list[tuple[int, ...]]:
    begin = over.number.get(request.from_id)
    if begin is None:
        return []

    def up(node: int) -> Sequence[int]:
        return _up(over, node)

    if request.to_id is not None:
        end = over.number.get(request.to_id)
        if end is None or end == begin:
            return []
        left = distances(lambda node: over.down[node], (end,), _LONGEST)
        return routes(up, begin, end, left, _LONGEST, request.limit)
    hops = distances(up, (begin,), _LONGEST)
    tops = [node for node in hops if over.types[node] in TOPS and node != begin][: request.limit]
    return [tuple(reversed(shortest(lambda node: over.down[node], top, hops))) for top in tops]


def _reason(over: Projection, chain: Sequence[int], met: Mapping[int, Met]) -> Reason:
    steps = [met[chain[0]].step()]
    for before, node in pairwise(chain):
        _, name, out = next(turn for turn in over.up[before] if turn[0] == node)
        steps.append(met[node].step(over.names[name], "out" if out else "in"))
    return Reason(path=tuple(steps), sentence=sentence(steps))


def _loss(lost: tuple[int, Sequence[int]], met: Mapping[int, Met]) -> Loss:
    node, tops = lost
    return Loss(node=met[node].mention(), lost=tuple(met[top].mention() for top in tops[:_LOST] if top in met))
