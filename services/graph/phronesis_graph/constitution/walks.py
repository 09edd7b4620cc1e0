"""What the graph service answers to walks: ladders, neighbourhoods, bridges, and what a search asks of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from phronesis_bus import Call
from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.kinds import Layer, Lifecycle
from phronesis_contracts.constitution.paths import (
    BridgeConcepts,
    BridgeFound,
    ClimbLadder,
    ExpandPath,
    LadderClimbed,
    Near,
    NearFound,
    PathExpanded,
    Reached,
    Subgraph,
    SubgraphFound,
)
from phronesis_contracts.constitution.values import ListStats

from . import bridges, ladders
from .budgets import ROOM, fitting
from .meeting import must_meet
from .naming import relationship_names, type_names
from .walkable import Follow, Reader, WalkStore
from .walking import Walked, Way, walk

_NODES_ROOM = ROOM * 3 // 4
"""Of a subgraph's answer the part for nodes; relationships have what is left."""
_LINKS = 2_000


class Walks:
    """One method for each message."""

    def __init__(self, store: WalkStore) -> None:
        self._store = store

    async def ladder(self, call: Call, request: ClimbLadder) -> LadderClimbed:
        """The goals and visions above a goal.

        Raises:
            NotFound: there is no such goal.
            BadRequest: it is a node of another type.
        """
        return await self._store.read(call.who.tenant, lambda reader: ladders.climb(reader, request))

    async def expand(self, call: Call, request: ExpandPath) -> PathExpanded:
        """Neighbours of a node along relationship types.

        Raises:
            NotFound: there is no such node.
            BadRequest: a type or a relationship type that cannot be.
        """
        types, names = type_names(request.types), relationship_names(request.relationship_types)
        follow = Follow(names, request.direction)
        return await self._store.read(call.who.tenant, lambda reader: _expand(reader, request, follow, types))

    async def subgraph(self, call: Call, request: Subgraph) -> SubgraphFound:
        """The nodes and relationships around given nodes.

        Raises:
            NotFound: one of the nodes is not there.
        """
        return await self._store.read(call.who.tenant, lambda reader: _subgraph(reader, request))

    async def bridge(self, call: Call, request: BridgeConcepts) -> BridgeFound:
        """The shortest paths that join two nodes, and what stands on them.

        Raises:
            NotFound: one of the nodes is not there.
            BadRequest: it is one node twice.
        """
        if request.from_id == request.to_id:
            raise BadRequest("a bridge needs two nodes", field="toId")
        return await self._store.read(call.who.tenant, lambda reader: bridges.bridge(reader, request))

    async def near(self, call: Call, request: Near) -> NearFound:
        """Nodes around an anchor, each with its shortest path.

        Raises:
            NotFound: there is no such anchor.
        """
        types = type_names(request.types)
        return await self._store.read(call.who.tenant, lambda reader: _near(reader, request, types))


async def _expand(reader: Reader, request: ExpandPath, follow: Follow, types: Collection[str]) -> PathExpanded:
    await must_meet(reader, request.id)
    walked, told = await _reach(reader, request.id, request.depth, follow, types, request.layers, request.limit)
    nodes = {node.id: node for node in await reader.nodes([way.node.id for way in told[: request.limit]], full=False)}
    every = [
        Reached(node=nodes[way.node.id], hops=way.hops, path=walked.path(way.node.id)) for way in told if way.node.id in nodes
    ]
    reached, used = fitting(every)
    return PathExpanded(
        reached=tuple(reached),
        stats=stats((one.node for one in reached), used),
        truncated=walked.cut or len(reached) < len(told),
    )


async def _subgraph(reader: Reader, request: Subgraph) -> SubgraphFound:
    ids = tuple(dict.fromkeys(request.ids))
    await must_meet(reader, *ids)
    walked = await walk(reader, ids, request.depth, Follow(), enough=lambda found: len(ids) + len(found) > request.limit)
    every = [*ids, *(way.node.id for way in walked.found)]
    nodes, used = fitting(await reader.nodes(every[: request.limit], full=False), _NODES_ROOM)
    links = await reader.links([node.id for node in nodes], _LINKS)
    told, more = fitting(links, ROOM - used)
    return SubgraphFound(
        nodes=tuple(nodes),
        relationships=tuple(told),
        stats=stats(nodes, used + more),
        truncated=walked.cut or len(nodes) < len(every) or len(told) < len(links) or len(links) == _LINKS,
    )


async def _near(reader: Reader, request: Near, types: Collection[str]) -> NearFound:
    await must_meet(reader, request.id)
    follow = Follow(lifecycles=tuple({Lifecycle.ACTIVE, request.status}))
    walked, told = await _reach(
        reader, request.id, request.max_depth, follow, types, request.layers, request.limit, request.status
    )
    return NearFound(
        reached=tuple(
            Reached(node=way.node.node(), hops=way.hops, path=walked.path(way.node.id)) for way in told[: request.limit]
        )
    )


async def _reach(
    reader: Reader,
    start: str,
    depth: int,
    follow: Follow,
    types: Collection[str],
    layers: Collection[Layer],
    limit: int,
    status: Lifecycle = Lifecycle.ACTIVE,
) -> tuple[Walked, list[Way]]:
    """Walk until one more node than `limit` is reached that is to be told, and those nodes."""

    def chosen(found: Sequence[Way]) -> list[Way]:
        return [
            way
            for way in found
            if way.node.lifecycle == status
            and (not types or way.node.type in types)
            and (not layers or way.node.layer in layers)
        ]

    walked = await walk(reader, (start,), depth, follow, enough=lambda found: len(chosen(found)) > limit)
    return walked, chosen(walked.found)


def stats(nodes: Iterable[object], used: int) -> ListStats:
    """What a list came to."""
    types = Counter(str(getattr(node, "type", "")) for node in nodes)
    return ListStats(total_nodes=types.total(), by_type=dict(types), token_estimate=used)
