"""The handlers of walks: ladders up from a goal, bridges between two nodes, neighbourhoods, and what a search asks of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from phronesis_bus import Call
from phronesis_contracts import BadRequest
from phronesis_contracts.constitution import paths as contract
from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_contracts.constitution.values import ListStats

from .budgets import ANSWER_ROOM, count_tokens, take_fitting
from .routes import distances, find_routes
from .traversal import (
    Edge,
    EdgeFilter,
    ReachedNode,
    WalkNode,
    WalkReader,
    WalkResult,
    WalkStore,
    check_relationship_types,
    check_type_names,
    require_nodes,
    walk,
)

Parents = Mapping[str, list[str]]
Rungs = tuple[str, ...]
"""Ids, from the goal upwards."""

_RUNGS = frozenset({"goal", "vision"})
MOST_LADDERS = 200
"""Ladders that are looked at where all are asked for."""


async def climb_ladder(reader: WalkReader, request: contract.ClimbLadder) -> contract.LadderClimbed:
    """A goal's ladders: up along SUPPORTED_BY, active goals and visions alone. Raises `NotFound`, `BadRequest` (its type)."""
    [goal] = await require_nodes(reader, request.id)
    if goal.type not in _RUNGS:
        raise BadRequest(f"a ladder begins at a goal, and this is a {goal.type}", field="id")
    if not goal.active:
        return contract.LadderClimbed(ladder=(), depth=0)
    follow = EdgeFilter(("SUPPORTED_BY",), "out")
    walked = await walk(reader, (goal.id,), contract.DEPTH, follow, keep=lambda edge: edge.node.type in _RUNGS)
    met = {goal.id: goal, **{way.node.id: way.node for way in walked.found}}
    above = parents_above(goal.id, walked.edges)
    best, truncated = longest_ladder(goal.id, above, met), walked.cut
    fitting, others = _to_ladder(best, met), list[contract.Ladder]()
    if request.all_ladders:
        every, more = find_ladders(goal.id, above, met)
        rest = [_to_ladder(one, met) for one in every if one != best]
        others, _ = take_fitting(rest)
        truncated |= more or len(others) < len(rest)
    return contract.LadderClimbed(
        ladder=fitting.rungs,
        depth=fitting.depth,
        others=tuple(others),
        token_estimate=count_tokens((fitting, *others)),
        truncated=truncated,
    )


def parents_above(start: str, edges: Iterable[Edge]) -> Parents:
    """By rung the rungs above it, in the order of ids, without what would lead back to a rung below: no way up is a circle."""
    above: dict[str, list[str]] = defaultdict(list)
    for source, target in sorted({(edge.source, edge.node.id) for edge in edges}):
        above[source].append(target)
    kept: dict[str, list[str]] = defaultdict(list)
    way, done = [(start, iter(above[start]))], {start}
    below = {start}
    while way:
        rung, higher = way[-1]
        parent = next(higher, None)
        if parent is None:
            way.pop()
            below.discard(rung)
        elif parent not in below:
            kept[rung].append(parent)
            if parent not in done:
                done.add(parent)
                below.add(parent)
                way.append((parent, iter(above.get(parent, ()))))
    return kept


def longest_ladder(start: str, above: Parents, met: Mapping[str, WalkNode]) -> Rungs:
    """The longest ladder; of equals the one whose top changed last."""
    best: dict[tuple[str, int], Rungs] = {}

    def up(node: str, left: int) -> Rungs:
        if (node, left) not in best:
            higher = [up(parent, left - 1) for parent in above.get(node, ())] if left else []
            best[node, left] = (node, *max(higher, key=lambda one: _sort_key(one, met), default=()))
        return best[node, left]

    return up(start, contract.DEPTH)


def find_ladders(start: str, above: Parents, met: Mapping[str, WalkNode]) -> tuple[list[Rungs], bool]:
    """Every ladder up to a top, the longest first, and whether there are more than are looked at."""
    found = list(islice(_extend_ladder((start,), above), MOST_LADDERS + 1))
    found.sort()
    found.sort(key=lambda one: _sort_key(one, met), reverse=True)
    return found[:MOST_LADDERS], len(found) > MOST_LADDERS


def _to_ladder(rungs: Rungs, met: Mapping[str, WalkNode]) -> contract.Ladder:
    return contract.Ladder(rungs=tuple(met[id].mention() for id in rungs), depth=len(rungs) - 1)


def _sort_key(ladder: Rungs, met: Mapping[str, WalkNode]) -> tuple[int, str]:
    return len(ladder), met[ladder[-1]].updated_at


def _extend_ladder(ladder: Rungs, above: Parents) -> Iterator[Rungs]:
    higher = above.get(ladder[-1], []) if len(ladder) <= contract.DEPTH else []
    if not higher:
        yield ladder
    for parent in higher:
        yield from _extend_ladder((*ladder, parent), above)


async def find_bridge(reader: WalkReader, request: contract.BridgeConcepts) -> contract.BridgeFound:
    """The shortest paths between two nodes over active ones, met in the middle. Raises `NotFound`."""
    begin, end = await require_nodes(reader, request.from_id, request.to_id)
    half = request.max_depth // 2
    first = await walk(reader, (begin.id,), request.max_depth - half, EdgeFilter())
    second = await walk(reader, (end.id,), half, EdgeFilter())
    ways = _edges_by_node(begin, end, (*first.edges, *second.edges))
    beside = {id: sorted(of) for id, of in ways.items()}

    def step(id: str) -> Sequence[str]:
        return beside.get(id, ())

    left = distances(step, (end.id,), request.max_depth)
    found = find_routes(step, begin.id, end.id, left, request.max_depth, request.limit)
    paths = tuple((begin.step(), *(ways[a][b].step for a, b in pairwise(path))) for path in found)
    met = {id: edge.node for of in ways.values() for id, edge in of.items()}
    often = Counter(id for path in found for id in path[1:-1])
    between = tuple(met[id].mention() for id, _ in sorted(often.items(), key=lambda one: (-one[1], one[0])))
    used = count_tokens((*(one for path in paths for one in path), *between))
    return contract.BridgeFound(paths=paths, between=between, token_estimate=used)


def _edges_by_node(begin: WalkNode, end: WalkNode, edges: Iterable[Edge]) -> Mapping[str, dict[str, Edge]]:
    met = {begin.id: begin, end.id: end, **{edge.node.id: edge.node for edge in edges}}
    ways: dict[str, dict[str, Edge]] = defaultdict(dict)
    for edge in sorted(edges, key=lambda edge: (edge.relationship, not edge.out)):
        ways[edge.source].setdefault(edge.node.id, edge)
        back = Edge(edge.node.id, edge.relationship, not edge.out, met[edge.source])
        ways[edge.node.id].setdefault(edge.source, back)
    return ways


_NODES_ROOM = ANSWER_ROOM * 3 // 4
"""Of a subgraph's answer the part for nodes; relationships have what is left."""
_LINKS = 2_000


class WalkHandlers:
    def __init__(self, store: WalkStore) -> None:
        self._store = store

    async def ladder(self, call: Call, request: contract.ClimbLadder) -> contract.LadderClimbed:
        """The goals and visions above a goal. Raises `NotFound`, `BadRequest` (it is a node of another type)."""
        return await self._store.read(call.who.tenant, lambda reader: climb_ladder(reader, request))

    async def expand(self, call: Call, request: contract.ExpandPath) -> contract.PathExpanded:
        """Neighbours of a node along relationship types. Raises `NotFound`, `BadRequest` (a type that cannot be)."""
        types, names = check_type_names(request.types), check_relationship_types(request.relationship_types)
        follow = EdgeFilter(names, request.direction)
        return await self._store.read(call.who.tenant, lambda reader: _expand_path(reader, request, follow, types))

    async def subgraph(self, call: Call, request: contract.Subgraph) -> contract.SubgraphFound:
        """The nodes and relationships around given nodes. Raises `NotFound`: one of the nodes is not there."""
        return await self._store.read(call.who.tenant, lambda reader: _read_subgraph(reader, request))

    async def bridge(self, call: Call, request: contract.BridgeConcepts) -> contract.BridgeFound:
        """The shortest paths that join two nodes, and what is on them. Raises `NotFound`, `BadRequest` (one node twice)."""
        if request.from_id == request.to_id:
            raise BadRequest("a bridge needs two nodes", field="toId")
        return await self._store.read(call.who.tenant, lambda reader: find_bridge(reader, request))

    async def near(self, call: Call, request: contract.Near) -> contract.NearFound:
        """Nodes around an anchor, each with its shortest path. Raises `NotFound`: there is no such anchor."""
        types = check_type_names(request.types)
        return await self._store.read(call.who.tenant, lambda reader: _find_near(reader, request, types))


async def _expand_path(
    reader: WalkReader, request: contract.ExpandPath, follow: EdgeFilter, types: Collection[str]
) -> contract.PathExpanded:
    await require_nodes(reader, request.id)
    walked, fitting = await _walk_until(reader, request.id, request.depth, follow, types, request.layers, request.limit)
    nodes = {node.id: node for node in await reader.nodes([way.node.id for way in fitting[: request.limit]], full=False)}
    every = [
        contract.Reached(node=nodes[way.node.id], hops=way.hops, path=walked.path(way.node.id))
        for way in fitting
        if way.node.id in nodes
    ]
    reached, used = take_fitting(every)
    return contract.PathExpanded(
        reached=tuple(reached),
        stats=count_types((one.node for one in reached), used),
        truncated=walked.cut or len(reached) < len(fitting),
    )


async def _read_subgraph(reader: WalkReader, request: contract.Subgraph) -> contract.SubgraphFound:
    ids = tuple(dict.fromkeys(request.ids))
    await require_nodes(reader, *ids)
    walked = await walk(reader, ids, request.depth, EdgeFilter(), enough=lambda found: len(ids) + len(found) > request.limit)
    every = [*ids, *(way.node.id for way in walked.found)]
    nodes, used = take_fitting(await reader.nodes(every[: request.limit], full=False), _NODES_ROOM)
    links = await reader.links([node.id for node in nodes], _LINKS)
    fitting, more = take_fitting(links, ANSWER_ROOM - used)
    return contract.SubgraphFound(
        nodes=tuple(nodes),
        relationships=tuple(fitting),
        stats=count_types(nodes, used + more),
        truncated=walked.cut or len(nodes) < len(every) or len(fitting) < len(links) or len(links) == _LINKS,
    )


async def _find_near(reader: WalkReader, request: contract.Near, types: Collection[str]) -> contract.NearFound:
    await require_nodes(reader, request.id)
    follow = EdgeFilter(lifecycles=tuple({Lifecycle.ACTIVE, request.status}))
    walked, fitting = await _walk_until(
        reader, request.id, request.max_depth, follow, types, request.layers, request.limit, request.status
    )
    return contract.NearFound(
        reached=tuple(
            contract.Reached(node=way.node.node(), hops=way.hops, path=walked.path(way.node.id))
            for way in fitting[: request.limit]
        )
    )


async def _walk_until(
    reader: WalkReader,
    start: str,
    depth: int,
    follow: EdgeFilter,
    types: Collection[str],
    layers: Collection[Layer],
    limit: int,
    status: Lifecycle = Lifecycle.ACTIVE,
) -> tuple[WalkResult, list[ReachedNode]]:
    """Walk until one more node than `limit` is reached that is to be told, and those nodes."""

    def chosen(found: Sequence[ReachedNode]) -> list[ReachedNode]:
        return [
            way
            for way in found
            if way.node.lifecycle == status
            and (not types or way.node.type in types)
            and (not layers or way.node.layer in layers)
        ]

    walked = await walk(reader, (start,), depth, follow, enough=lambda found: len(chosen(found)) > limit)
    return walked, chosen(walked.found)


def count_types(nodes: Iterable[object], used: int) -> ListStats:
    """What a list came to."""
    types = Counter(str(getattr(node, "type", "")) for node in nodes)
    return ListStats(total_nodes=types.total(), by_type=dict(types), token_estimate=used)
