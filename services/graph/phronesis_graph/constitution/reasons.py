"""Why a node is there, in sentences, and what would lose its support without it."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from phronesis_bus import Call
from phronesis_contracts import NotFound
from phronesis_contracts.constitution.insight import AskWhy, Loss, LossesFound, Reason, WhyAnswered, WithoutNode
from phronesis_contracts.constitution.paths import Step
from phronesis_contracts.constitution.registry import CONSTITUTIONAL

from .budgets import take_fitting
from .projection import Projection, ProjectionCache
from .routes import distances, find_routes, shortest_route
from .traversal import WalkNode, WalkStore, read_walk_nodes, require_nodes

_VERBS = {
    ("SERVES", "out"): "serves",
    ("ALIGNS_WITH", "out"): "aligns with",
    ("SUPPORTED_BY", "out"): "rests on",
    ("SUPPORTED_BY", "in"): "carries out",
    ("ENFORCED_BY", "in"): "enforces",
}
"""What a step upwards says, by relationship and direction."""


def write_sentence(steps: Sequence[Step]) -> str:
    """A chain as one sentence: `The task "A" serves the goal "B", which rests on the value "C".`"""
    text = f"The {_name_step(steps[0])}"
    for place, step in enumerate(steps[1:]):
        said = _VERBS[step.relationship or "", step.direction or ""]
        text += f"{', which' if place else ''} {said} the {_name_step(step)}"
    return f"{text}."


def _name_step(step: Step) -> str:
    return f'{_type_words(step.type)} "{step.title}"'


def _type_words(type: str) -> str:
    return "AI" if type == "ai" else re.sub(r"([A-Z])", r" \1", type).lower()


TOPS = frozenset({"value", "vision"})
"""Types of the nodes that reasons end at."""
_LONGEST = 12
"""Steps of a chain of reasons; more of them nobody follows."""
_NAMES = tuple(sorted(CONSTITUTIONAL))
_LOST = 10
"""Values and visions that are told with a node that loses them."""


@dataclass(frozen=True)
class Losses:
    """What a removal would cost: nodes with the values and visions that they would lose, the nearest to it first."""

    orphaned: Sequence[tuple[int, Sequence[int]]]
    weakened: Sequence[tuple[int, Sequence[int]]]


class ReasonHandlers:
    def __init__(self, projections: ProjectionCache, walks: WalkStore) -> None:
        self._projections, self._walks = projections, walks

    async def why(self, call: Call, request: AskWhy) -> WhyAnswered:
        """Chains of reasons up to a node, or to every value and vision. Raises `NotFound`, `TooLarge`, `Unavailable`."""
        tenant = call.who.tenant
        over = await self._over(tenant)
        ids = [request.from_id] if request.to_id is None else [request.from_id, request.to_id]
        await self._walks.read(tenant, lambda reader: require_nodes(reader, *ids))
        chains = await asyncio.to_thread(_find_chains, over, request)
        met = await read_walk_nodes(self._walks, tenant, over, {node for chain in chains for node in chain})
        fitting, _ = take_fitting(_to_reason(over, chain, met) for chain in chains if all(node in met for node in chain))
        return WhyAnswered(reasons=tuple(fitting))

    async def without(self, call: Call, request: WithoutNode) -> LossesFound:
        """What would lose its way to a value or a vision without a node; nothing is changed.

        Raises `NotFound` (there is no such node, or it is not active, so that nothing rests on it), `TooLarge` (the graph is
        larger than is projected), `Unavailable` (the store is down).
        """
        tenant = call.who.tenant
        over = await self._over(tenant)
        node = over.number.get(request.id)
        if node is None:
            raise NotFound(f"there is no active node {request.id}")
        found = await asyncio.to_thread(find_losses, over, node)
        orphaned = found.orphaned[: request.limit]
        weakened = found.weakened[: request.limit - len(orphaned)]
        nodes = {one for node, lost in (*orphaned, *weakened) for one in (node, *lost[:_LOST])}
        met = await read_walk_nodes(self._walks, tenant, over, nodes)
        fitting, _ = take_fitting([_to_loss(one, met) for one in (*orphaned, *weakened) if one[0] in met])
        ids = {over.ids[node] for node, _ in orphaned}
        return LossesFound(
            orphaned=tuple(one for one in fitting if one.node.id in ids),
            weakened=tuple(one for one in fitting if one.node.id not in ids),
            total=len(found.orphaned) + len(found.weakened),
        )

    async def _over(self, tenant: str) -> Projection:
        return (await self._projections.fresh(tenant, _NAMES)).projection


def find_losses(over: Projection, gone: int) -> Losses:
    """What would be lost without a node, in time that grows with the graph: no node is asked by itself.

    Every node below the one that goes came to all tops above it. Those that it still comes to are handed down from the
    tops, as bits, past the one that goes.
    """
    below = [node for node in distances(lambda node: over.down[node], (gone,)) if node != gone]
    above = [node for node in distances(lambda node: _upward(over, node), (gone,)) if over.types[node] in TOPS]
    tops = [node for node, type in enumerate(over.types) if type in TOPS and node != gone]
    kept = _reachable_tops(over, gone, above)
    held = set(distances(lambda node: _downward(over, node, gone), {one for top in tops for one in _downward(over, top, gone)}))
    lost = {node: [top for place, top in enumerate(above) if not kept[node] >> place & 1 and top != node] for node in below}
    return Losses(
        [(node, lost[node]) for node in below if lost[node] and node not in held],
        [(node, lost[node]) for node in below if lost[node] and node in held],
    )


def _reachable_tops(over: Projection, gone: int, tops: Sequence[int]) -> Sequence[int]:
    """By node a bit for each of the tops that it comes to, by a step or more, without the node that goes."""
    kept = [0] * len(over.ids)
    own = {top: 1 << place for place, top in enumerate(tops) if top != gone}
    queue = deque(own)
    waiting = set(own)
    while queue:
        node = queue.popleft()
        waiting.discard(node)
        given = kept[node] | own.get(node, 0)
        for other in _downward(over, node, gone):
            if kept[other] | given != kept[other]:
                kept[other] |= given
                if other not in waiting:
                    waiting.add(other)
                    queue.append(other)
    return kept


def _upward(over: Projection, node: int) -> Sequence[int]:
    return sorted({other for other, _, _ in over.up[node]})


def _downward(over: Projection, node: int, gone: int) -> Iterable[int]:
    return (other for other in over.down[node] if other != gone)


def _find_chains(over: Projection, request: AskWhy) -> list[tuple[int, ...]]:
    begin = over.number.get(request.from_id)
    if begin is None:
        return []

    def up(node: int) -> Sequence[int]:
        return _upward(over, node)

    if request.to_id is not None:
        end = over.number.get(request.to_id)
        if end is None or end == begin:
            return []
        left = distances(lambda node: over.down[node], (end,), _LONGEST)
        return find_routes(up, begin, end, left, _LONGEST, request.limit)
    hops = distances(up, (begin,), _LONGEST)
    tops = [node for node in hops if over.types[node] in TOPS and node != begin][: request.limit]
    return [tuple(reversed(shortest_route(lambda node: over.down[node], top, hops))) for top in tops]


def _to_reason(over: Projection, chain: Sequence[int], met: Mapping[int, WalkNode]) -> Reason:
    steps = [met[chain[0]].step()]
    for before, node in pairwise(chain):
        _, name, out = next(turn for turn in over.up[before] if turn[0] == node)
        steps.append(met[node].step(over.names[name], "out" if out else "in"))
    return Reason(path=tuple(steps), sentence=write_sentence(steps))


def _to_loss(lost: tuple[int, Sequence[int]], met: Mapping[int, WalkNode]) -> Loss:
    node, tops = lost
    return Loss(node=met[node].mention(), lost=tuple(met[top].mention() for top in tops[:_LOST] if top in met))
