"""Ladders: the ways up from a goal through the goals and visions above it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.paths import DEPTH, ClimbLadder, Ladder, LadderClimbed

from .budgets import fitting, measured
from .meeting import must_meet
from .walkable import Edge, Follow, Met, Reader
from .walking import walk

Parents = Mapping[str, list[str]]
Rungs = tuple[str, ...]
"""Ids, from the goal upwards."""

_RUNGS = frozenset({"goal", "vision"})
MOST = 200
"""Ladders that are looked at where all are asked for."""


async def climb(reader: Reader, request: ClimbLadder) -> LadderClimbed:
    """The ladders of a goal (O-275 to O-280): up along SUPPORTED_BY, over active goals and visions alone (C-11).

    Raises:
        NotFound: there is no such goal.
        BadRequest: it is a node of another type.
    """
    [goal] = await must_meet(reader, request.id)
    if goal.type not in _RUNGS:
        raise BadRequest(f"a ladder begins at a goal, and this is a {goal.type}", field="id")
    if not goal.active:
        return LadderClimbed(ladder=(), depth=0)
    follow = Follow(("SUPPORTED_BY",), "out")
    walked = await walk(reader, (goal.id,), DEPTH, follow, keep=lambda edge: edge.node.type in _RUNGS)
    met = {goal.id: goal, **{way.node.id: way.node for way in walked.found}}
    above = parents(goal.id, walked.edges)
    best, truncated = longest(goal.id, above, met), walked.cut
    told, others = _told(best, met), list[Ladder]()
    if request.all_ladders:
        every, more = ladders(goal.id, above, met)
        rest = [_told(one, met) for one in every if one != best]
        others, _ = fitting(rest)
        truncated |= more or len(others) < len(rest)
    return LadderClimbed(
        ladder=told.rungs,
        depth=told.depth,
        others=tuple(others),
        token_estimate=measured((told, *others)),
        truncated=truncated,
    )


def parents(start: str, edges: Iterable[Edge]) -> Parents:
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


def longest(start: str, above: Parents, met: Mapping[str, Met]) -> Rungs:
    """The longest ladder; of equals the one whose top changed last (C-68)."""
    best: dict[tuple[str, int], Rungs] = {}

    def up(node: str, left: int) -> Rungs:
        if (node, left) not in best:
            higher = [up(parent, left - 1) for parent in above.get(node, ())] if left else []
            best[node, left] = (node, *max(higher, key=lambda one: _merit(one, met), default=()))
        return best[node, left]

    return up(start, DEPTH)


def ladders(start: str, above: Parents, met: Mapping[str, Met]) -> tuple[list[Rungs], bool]:
    """Every ladder up to a top, the longest first, and whether there are more than are looked at."""
    found = list(islice(_ladders((start,), above), MOST + 1))
    found.sort()
    found.sort(key=lambda one: _merit(one, met), reverse=True)
    return found[:MOST], len(found) > MOST


def _told(rungs: Rungs, met: Mapping[str, Met]) -> Ladder:
    return Ladder(rungs=tuple(met[id].mention() for id in rungs), depth=len(rungs) - 1)


def _merit(ladder: Rungs, met: Mapping[str, Met]) -> tuple[int, str]:
    return len(ladder), met[ladder[-1]].updated_at


def _ladders(ladder: Rungs, above: Parents) -> Iterator[Rungs]:
    higher = above.get(ladder[-1], []) if len(ladder) <= DEPTH else []
    if not higher:
        yield ladder
    for parent in higher:
        yield from _ladders((*ladder, parent), above)
