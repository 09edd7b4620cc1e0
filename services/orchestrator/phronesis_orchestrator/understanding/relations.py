"""What things are linked to, step by step, and the shortest way from one thing to another."""

from __future__ import annotations

from phronesis_contracts.twin import Level, Link

from .finding import Finding, Row
from .plan import EntityRef, Relate
from .reader import TooMany, TwinReader

MAX_STEPS = 4
"""Steps of a way between two things."""
MAX_SEEN = 4_000
"""Nodes that one answer walks over."""
MAX_LISTED = 60


async def relate(plan: Relate, twin: TwinReader) -> Finding:
    """The neighbours of a thing in one year, or the way from it to another."""
    wanted = (plan.source,) if plan.target is None else (plan.source, plan.target)
    keys = await standing_keys(wanted, plan.year, twin)
    absent = tuple({"name": one.name, "year": plan.year, "id": one.id, "type": one.type} for one in wanted if one not in keys)
    if absent:
        return Finding(outcome="empty", absent=absent, entities=wanted, known=1)
    if plan.target is not None:
        return await _way(plan, keys[plan.source], keys[plan.target], twin)
    rows = await _neighbours(plan, keys[plan.source], twin)
    found = tuple(_entity(row) for row in rows)
    return Finding(
        outcome="found" if rows else "empty",
        rows=tuple(rows),
        value=len(rows),
        total=len(rows),
        known=1,
        entities=tuple(dict.fromkeys(found)),
        sources=(keys[plan.source], *(str(row["key"]) for row in rows[:MAX_LISTED])),
    )


async def standing_keys(entities: tuple[EntityRef, ...], year: int, twin: TwinReader) -> dict[EntityRef, str]:
    """Key of each thing that is on record in a year."""
    ids = await twin.ids(entities)
    stands = await twin.standing(ids, (year,))
    return {one: f"{one.type}/{by_year[year]}/{year}" for one, by_year in stands.items() if year in by_year}


async def _neighbours(plan: Relate, start: str, twin: TwinReader) -> list[Row]:
    """Those of the type asked for within the steps asked for, each once, nearest first; with one step, once for each link."""
    only = (plan.relationship,) if plan.relationship else ()
    seen, names, frontier = {start}, {start: plan.source.name}, [start]
    found: list[Row] = []
    for hop in range(1, plan.hops + 1):
        types = (plan.to,) if plan.to and hop == plan.hops else ()
        links = await twin.links(frontier, only, types, plan.forward if plan.hops == 1 else None)
        frontier = []
        for link in links:
            key = _key(link, plan.year)
            if key in seen and plan.hops > 1:
                continue
            if plan.to is None or link.type == plan.to:
                found.append(_row(link, plan.year, hop, names[link.node]))
            if key not in seen:
                seen.add(key)
                names[key] = link.name
                frontier.append(key)
        if len(seen) > MAX_SEEN:
            raise TooMany(len(seen))
        if not frontier:
            break
    return found


def _key(link: Link, year: int) -> str:
    return f"{link.type}/{link.id}/{year}"


def _row(link: Link, year: int, hop: int, source: str) -> Row:
    return {
        **{"from": source, "relationship": link.relationship, "forward": link.forward},
        **{"type": link.type, "id": link.id, "name": link.name, "year": year, "level": link.level.value},
        **{"hop": hop, "key": _key(link, year)},
    }


def _entity(row: Row) -> EntityRef:
    return EntityRef(type=row["type"], id=row["id"], name=row["name"], level=Level(row["level"]), years=(row["year"],))


async def _way(plan: Relate, start: str, goal: str, twin: TwinReader) -> Finding:
    """From both ends towards the middle, a whole step of the end with fewer nodes at a time: the first meeting is shortest."""
    assert plan.target is not None
    only = (plan.relationship,) if plan.relationship else ()
    came: tuple[dict[str, Link | None], ...] = ({start: None}, {goal: None})
    frontiers = [[start], [goal]]
    names = {start: plan.source.name, goal: plan.target.name}
    meeting = start if start == goal else None
    for _ in range(MAX_STEPS):
        if meeting is not None or not all(frontiers):
            break
        side = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        reached: dict[str, Link] = {}
        for link in await twin.links(frontiers[side], only):
            key = _key(link, plan.year)
            if key not in came[side]:
                reached.setdefault(key, link)
                names.setdefault(key, link.name)
        came[side].update(reached)
        frontiers[side] = list(reached)
        meeting = min((key for key in reached if key in came[1 - side]), default=None)
        if len(came[0]) + len(came[1]) > MAX_SEEN and meeting is None:
            raise TooMany(len(came[0]) + len(came[1]))
    if meeting is None:
        return Finding(outcome="no_way", total=MAX_STEPS, entities=(plan.source, plan.target), known=1)
    steps = [*_steps_to(meeting, came[0], names, turned=False)[::-1], *_steps_to(meeting, came[1], names, turned=True)]
    keys = [start, *(str(step["key"]) for step in steps)]
    return Finding(
        links=tuple(steps),
        value=len(steps),
        total=len(steps),
        known=1,
        entities=(plan.source, plan.target),
        sources=tuple(keys),
    )


def _steps_to(meeting: str, came: dict[str, Link | None], names: dict[str, str], *, turned: bool) -> list[Row]:
    """The steps between an end and the meeting, as they are walked from the start to the goal."""
    steps: list[Row] = []
    key = meeting
    while (link := came[key]) is not None:
        nearer, farther = link.node, key
        begin, end = (farther, nearer) if turned else (nearer, farther)
        type, _, rest = end.partition("/")
        steps.append(
            {
                **{"from": names[begin], "relationship": link.relationship, "forward": link.forward is not turned},
                **{"type": type, "id": rest.rpartition("/")[0], "name": names[end], "key": end},
            }
        )
        key = nearer
    return steps
