"""Plans run on the twin: named things, figures over sets, what things are linked to step by step, and what there is at all."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from phronesis_contracts.twin import GroupBy, Level, Link, Survey, Where

from .finding import Figure, Finding, Note, Row
from .gaps import gaps
from .plan import Aggregate, Change, Compare, Coverage, Describe, EntityRef, Filter, Gaps, Having, Plan, Rank, Relate, Select
from .reader import TooMany, TwinReader, condition
from .sets import MAX_SOURCES, change, first_rows, nothing, rank, scale_notes, select, step_between, unknown_notes

MAX_RELATIONS = 12
"""Kinds of link of a described thing that are shown."""
_NAMES = 5
"""Linked things of one kind that are named."""


async def describe(plan: Describe, twin: TwinReader) -> Finding:
    """Properties of things by year, or all that is on record of them; and whether what is supposed of them holds."""
    ids = await twin.ids(plan.entities)
    show = {type: _shown(plan, type, twin) for type in {one.type for one in plan.entities}}
    lists = await asyncio.gather(*(_rows_of_type(type, plan, ids, show[type], twin) for type in show))
    by_node = {(row["type"], row["id"], row["year"]): row for rows in lists for row in rows}
    rows = [
        {**by_node[one.type, id, year], "thing": n}
        for n, one in enumerate(plan.entities)
        for year in sorted(plan.years)
        for id in ids[one]
        if (one.type, id, year) in by_node
    ]
    there = {(row["thing"], row["year"]) for row in rows}
    absent = tuple(
        {"type": one.type, "id": one.id, "name": one.name, "year": year}
        for n, one in enumerate(plan.entities)
        for year in sorted(plan.years)
        if (n, year) not in there
    )
    if not rows:
        years = tuple(sorted({year for one in plan.entities for year in one.years}))
        return Finding(outcome="empty", absent=absent, entities=plan.entities, years=years, known=1)
    everything = not plan.properties and plan.expect is None and plan.direction is None
    known = _known(rows, show)
    unknown = 0 if everything else len(rows) * max(len(names) for names in show.values()) - known
    found = Finding(
        rows=tuple(rows),
        show=_columns(rows, show, everything),
        total=len(rows),
        known=known if unknown else max(known, 1),
        unknown=unknown,
        absent=absent,
        entities=plan.entities,
        sources=tuple(f"{row['type']}/{row['id']}/{row['year']}" for row in rows[:MAX_SOURCES]),
        notes=await _notes(plan, rows, show, twin),
    )
    if plan.expect is not None:
        return await _expected(found, plan, plan.expect, twin)
    if plan.direction is not None and plan.properties:
        return replace(found, holds=_went(plan, rows, plan.properties[0], twin))
    return replace(found, links=await _linked(rows, twin)) if everything else found


def _shown(plan: Describe, type: str, twin: TwinReader) -> tuple[str, ...]:
    declared = [one.name for one in twin.schema.properties(type)]
    asked = plan.properties
    if plan.expect is not None and plan.expect.via is None:
        asked = tuple(dict.fromkeys((*asked, plan.expect.property)))
    if not asked and plan.expect is None:
        return tuple(declared)
    return tuple(name for name in asked if name in declared or name == "level")


async def _rows_of_type(
    type: str, plan: Describe, ids: dict[EntityRef, tuple[str, ...]], show: tuple[str, ...], twin: TwinReader
) -> list[Row]:
    every = tuple(dict.fromkeys(id for one, its in ids.items() if one.type == type for id in its))
    years = await twin.years_of(type, plan.years)
    question = Survey(type=type, years=years, where=(Where(property="id", op="in", value=every),))
    return [{"type": type, **row} for row in await twin.every(question, show)]


def _known(rows: Sequence[Row], show: dict[str, tuple[str, ...]]) -> int:
    return sum(row.get(name) is not None for row in rows for name in show[row["type"]])


def _columns(rows: Sequence[Row], show: dict[str, tuple[str, ...]], everything: bool) -> tuple[str, ...]:
    """The properties that were asked for; of everything, those that any of the things has."""
    names = dict.fromkeys(name for of_type in show.values() for name in of_type)
    return tuple(name for name in names if not everything or any(row.get(name) is not None for row in rows))


async def _notes(plan: Describe, rows: Sequence[Row], show: dict[str, tuple[str, ...]], twin: TwinReader) -> tuple[Note, ...]:
    notes = []
    for n, _ in enumerate(plan.entities):
        names = list(dict.fromkeys(str(row["name"]) for row in rows if row["thing"] == n))
        if len({name.casefold() for name in names}) > 1:
            notes.append(Note("renamed", {"names": tuple(names)}))
    if len(plan.years) > 1:
        for type, of_type in show.items():
            scales = [
                await scale_notes(twin, type, None, plan.years, name) for name in of_type if twin.schema.places(type, name)
            ]
            # The scale of a type says little of a thing whose value stayed the same.
            notes += [note for of_one in scales for note in of_one if _moves(rows, note.values["property"])]
    return tuple(notes)


def _moves(rows: Sequence[Row], name: str) -> bool:
    return len({row.get(name) for row in rows if row.get(name) is not None}) > 1


async def _expected(found: Finding, plan: Describe, expect: Filter, twin: TwinReader) -> Finding:
    """Whether a condition holds of each thing in each year: the graph decides as it does for sets."""
    rows = found.rows
    links = await _linked(rows, twin, expect.via, expect.to) if expect.via else ()
    types = {row["type"] for row in rows}
    holding, known = await asyncio.gather(
        asyncio.gather(*(_fitting(type, rows, expect, twin) for type in types)),
        asyncio.gather(*(_fitting(type, rows, _on_record(expect), twin) for type in types)),
    )
    fits, stated = (set().union(*one) for one in (holding, known))
    decided = expect.op in ("unknown", "known", "linked", "unlinked")
    told = []
    for row in rows:
        key = (row["type"], row["id"], row["year"])
        told.append({**row, "holds": key in fits if decided or key in stated or key in fits else None})
    years = sorted({int(row["year"]) for row in told if row["holds"]})
    by_thing: dict[int, list[bool | None]] = defaultdict(list)
    for row in told:
        by_thing[row["thing"]].append(row["holds"])
    first, other = (False, True) if plan.when == "always" else (True, False)
    each = [first if first in its else None if None in its else other for its in by_thing.values()]
    when = (years[0] if plan.when == "first" else years[-1]) if plan.when in ("first", "last") and years else None
    unknown = sum(row["holds"] is None for row in told)
    return replace(
        found,
        rows=tuple(told),
        links=links,
        holds=False if False in each else None if None in each else True,
        when=when,
        years=tuple(years),
        known=len(told) - unknown,
        unknown=unknown,
    )


def _on_record(expect: Filter) -> Filter:
    if expect.via is not None:
        return Filter(property="id", op="linked", via=expect.via, to=expect.to)
    return Filter(property=expect.property, op="known")


async def _fitting(type: str, rows: Sequence[Row], one: Filter, twin: TwinReader) -> set[tuple[str, str, int]]:
    of_type = [row for row in rows if row["type"] == type]
    among = Where(property="id", op="in", value=tuple({str(row["id"]) for row in of_type}))
    years = tuple(sorted({int(row["year"]) for row in of_type}))
    found = await twin.every(Survey(type=type, years=years, where=(among, condition(one))))
    return {(type, row["id"], row["year"]) for row in found}


def _went(plan: Describe, rows: Sequence[Row], name: str, twin: TwinReader) -> bool | None:
    """Whether a property went the way that was asked about, from the first to the last year in which it is known."""
    found: list[bool | None] = []
    for n, one in enumerate(plan.entities):
        values = [row[name] for row in rows if row["thing"] == n and row.get(name) is not None]
        if len(values) < 2:
            found.append(None)
            continue
        step = step_between(values[0], values[-1], twin.schema.places(one.type, name))
        found.append({"rose": step > 0, "fell": step < 0, "changed": len(set(values)) > 1}[plan.direction or "changed"])
    return False if False in found else None if None in found else True


async def _linked(
    rows: Sequence[Row], twin: TwinReader, relationship: str | None = None, to: str | None = None
) -> tuple[Row, ...]:
    """What the things are linked to in their latest year, by kind of link; nothing where that is too much to read."""
    latest = {row["thing"]: row for row in rows}
    keys = {f"{row['type']}/{row['id']}/{row['year']}": thing for thing, row in latest.items()}
    try:
        links = await twin.links(list(keys), (relationship,) if relationship else (), (to,) if to else ())
    except TooMany:
        return ()
    levels: dict[str, Counter[Level]] = defaultdict(Counter)
    for link in links:
        levels[link.type][link.level] += 1
    # What things of a type are grouped into has its type too, on another level.
    own = {type: max(counted, key=lambda level: (counted[level], level.value)) for type, counted in levels.items()}
    kinds: dict[tuple[int, str, bool, str], list[str]] = defaultdict(list)
    for link in (one for one in links if one.level is own[one.type]):
        kinds[keys[link.node], link.relationship, link.forward, link.type].append(link.name)
    found = [
        {
            **{"thing": thing, "relationship": kind, "forward": forward, "type": type},
            **{"n": len(names), "names": tuple(names[:_NAMES]), "year": latest[thing]["year"]},
        }
        for (thing, kind, forward, type), names in kinds.items()
    ]
    return tuple(sorted(found, key=lambda row: (row["thing"], row["n"]))[:MAX_RELATIONS])


async def coverage(plan: Coverage, twin: TwinReader) -> Finding:
    """The types that have nodes, the years that have any, or the values that a property has; a concept needs no data."""
    if plan.about == "concept":
        return Finding(known=1)
    if plan.about == "values" and plan.type is not None and plan.property is not None:
        return await _values(plan.type, plan.property, twin)
    types = (plan.type,) if plan.type else tuple(one.name for one in twin.schema.view.types)
    by_year = (GroupBy(property="year"), GroupBy(property="level"))
    found = await asyncio.gather(*(twin.survey(Survey(type=type, group_by=by_year, limit=500)) for type in types))
    rows: list[Row] = []
    years: Counter[int] = Counter()
    for type, surveyed in zip(types, found, strict=True):
        levels: dict[str, dict[int, int]] = defaultdict(dict)
        for row in surveyed.rows:
            levels[str(row["group2"])][int(row["group"])] = int(row["value"])
            years[int(row["group"])] += int(row["value"])
        rows += [
            {"type": type, "level": Level(level), "value": its[max(its)], "years": tuple(sorted(its))}
            for level, its in sorted(levels.items())
        ]
    if plan.about == "years":
        rows = [{"group": year, "value": n, "known": n, "unknown": 0} for year, n in sorted(years.items())]
    return Finding(
        outcome="found" if rows else "empty", rows=tuple(rows), years=tuple(sorted(years)), total=years.total(), known=1
    )


async def _values(type: str, name: str, twin: TwinReader) -> Finding:
    kind = twin.schema.property(type, name).kind
    if kind == "string":
        found = await twin.groups(Survey(type=type, group_by=(GroupBy(property=name),)))
        groups = {row["group"]: row for row in found.rows}
        rows = tuple(groups[value] for value in twin.schema.in_order(type, name, groups))
        unknown = sum(int(row["unknown"]) for row in rows)
        known = found.total - unknown
        return Finding(outcome="found" if rows else "empty", rows=rows, total=found.total, known=known, unknown=unknown)
    measures = ("min", "max") if kind in ("number", "date") else ()
    ends = [Survey(type=type, measure=measure, of=name) for measure in measures]
    found, *extremes = await asyncio.gather(twin.survey(Survey(type=type, of=name)), *map(twin.survey, ends))
    row = found.rows[0] if found.rows else {"known": 0, "unknown": 0}
    rows = tuple({"measure": one.measure, "value": it.rows[0]["value"]} for one, it in zip(ends, extremes, strict=True))
    return Finding(
        outcome="found" if row["known"] else "empty", rows=rows, total=found.total, known=row["known"], unknown=row["unknown"]
    )


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


_MEASURES = {"count": "count", "sum": "sum", "mean": "avg", "median": "median", "min": "min", "max": "max"}
_HOLDS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


async def aggregate(plan: Aggregate, twin: TwinReader) -> Finding:
    """One figure, or one for each group. Several years are groups of their own: each counts its things anew."""
    of, dimensions = plan.of, _dimensions(plan)
    asked = _survey(await twin.survey_of(of), plan, dimensions)
    found, notes = await asyncio.gather(twin.groups(asked), unknown_notes(of, twin))
    if found.total == 0:
        return await nothing(of, twin, notes)
    rows = _ordered(plan, dimensions, found.rows, twin)
    whole = rows[0] if not dimensions else await _whole(plan, twin, found.total)
    figure = _figure(whole, found.total)
    notes = (*notes, *_double_counts(plan, dimensions, rows, found.total), *await _scales(plan, dimensions, twin))
    if plan.having is not None:
        rows = [row for row in rows if _fits(plan.having, row["value"])]
    groups = [row for row in rows if not any(row[key] is None for key in _keys(dimensions))]
    unknown = figure.unknown if plan.property or not dimensions else sum(int(row["unknown"]) for row in rows)
    if plan.limit is not None:
        rows = groups if plan.order != "group" else rows
        rows = rows[: plan.limit] if plan.order == "group" else first_rows(rows, plan.limit)
    return Finding(
        outcome="found" if rows or plan.count_groups else "empty",
        rows=tuple(rows),
        dimensions=dimensions,
        figures=(figure,),
        value=len(groups) if plan.count_groups else _number(figure.value),
        total=found.total,
        known=figure.known if plan.property else max(found.total - unknown, 0),
        unknown=unknown,
        notes=notes,
    )


def _dimensions(plan: Aggregate) -> tuple[GroupBy, ...]:
    by = plan.group_by
    several = len(plan.of.years) > 1 and not any(one.property == "year" and one.via is None for one in by)
    return (GroupBy(property="year"), *by) if several and len(by) < 2 else by


def _survey(question: Survey, plan: Aggregate, dimensions: tuple[GroupBy, ...]) -> Survey:
    return question.model_copy(update={"measure": _MEASURES[plan.measure], "of": plan.property, "group_by": dimensions})


def _figure(row: Mapping[str, object], total: int) -> Figure:
    value = row["value"]
    assert isinstance(value, int | float | str | None)
    return Figure(value, int(str(row["known"])), int(str(row["unknown"])), total)


async def _whole(plan: Aggregate, twin: TwinReader, total: int) -> Row:
    """The figure over all groups together, each thing once in each year."""
    if plan.measure == "count" and plan.property is None:
        return {"value": total, "known": total, "unknown": 0}
    return dict((await twin.survey(_survey(await twin.survey_of(plan.of), plan, ()))).rows[0])


def _keys(dimensions: Sequence[GroupBy]) -> tuple[str, ...]:
    return ("group", "group2")[: len(dimensions)]


def _ordered(plan: Aggregate, dimensions: tuple[GroupBy, ...], rows: Iterable[Row], twin: TwinReader) -> list[Row]:
    ordered = [dict(row) for row in rows]
    for key, by in reversed(list(zip(_keys(dimensions), dimensions, strict=True))):
        type = by.to if by.via else plan.of.type
        groups = twin.schema.in_order(type, by.property, {row[key] for row in ordered})
        places = {value: n for n, value in enumerate(groups)}
        ordered.sort(key=lambda row: places[row[key]])
    if plan.order != "group":
        known = sorted(
            (row for row in ordered if row["value"] is not None),
            key=lambda row: row["value"],
            reverse=plan.order == "-value",
        )
        ordered = [*known, *(row for row in ordered if row["value"] is None)]
    return ordered


def _double_counts(plan: Aggregate, dimensions: Sequence[GroupBy], rows: Sequence[Row], total: int) -> tuple[Note, ...]:
    """What is linked to two groups counts in each of them, and once in the whole."""
    more = sum(int(row["known"]) + int(row["unknown"]) for row in rows) - total
    linked = any(one.via for one in dimensions)
    return (Note("in_two_groups", {"n": more, "type": plan.of.type, "level": plan.of.level}),) if linked and more > 0 else ()


async def _scales(plan: Aggregate, dimensions: Sequence[GroupBy], twin: TwinReader) -> tuple[Note, ...]:
    own = [one.property for one in dimensions if one.via is None]
    if "year" not in own:
        return ()
    found = [await scale_notes(twin, plan.of.type, plan.of.level, plan.of.years, name) for name in own if name != "year"]
    return tuple(note for notes in found for note in notes)


def _fits(having: Having, value: object) -> bool:
    return isinstance(value, int | float) and bool(_HOLDS[having.op](value, having.value))


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


async def compare(plan: Compare, twin: TwinReader) -> Finding:
    """Figures side by side, and what they make together."""
    figures = tuple(await asyncio.gather(*(_side(side, twin) for side in plan.sides)))
    if all(one.total == 0 for one in figures):
        none = await nothing(plan.sides[0].of.model_copy(update={"years": plan.years}), twin)
        if any(note.key == "no_data" for note in none.notes):
            return none
    first, second = (_number(one.value) for one in figures[:2])
    value, percent = _together(plan.how, first, second)
    counted = sum(one.total for side, one in zip(plan.sides, figures, strict=True) if side.property is None)
    return Finding(
        outcome="empty" if all(one.total == 0 for one in figures) else "found",
        figures=figures,
        value=value,
        percent=percent,
        known=max(counted + sum(one.known for one in figures), 1),
        unknown=sum(one.unknown for one in figures),
        notes=await _comparison_notes(plan, twin),
    )


def _together(how: str, first: float | None, second: float | None) -> tuple[float | None, float | None]:
    if first is None or second is None or how == "side_by_side":
        return None, None
    if how in ("share", "ratio"):
        return (first / second * (100 if how == "share" else 1) if second else None), None
    return first - second, (first - second) / abs(second) * 100 if second else None


async def _side(side: Aggregate, twin: TwinReader) -> Figure:
    found = await twin.survey(_survey(await twin.survey_of(side.of), side, ()))
    return _figure(found.rows[0], found.total)


async def _comparison_notes(plan: Compare, twin: TwinReader) -> tuple[Note, ...]:
    """What is not known of the conditions of a side, and closed sets whose choices changed between the years."""
    sets = [side.of for side in plan.sides]
    found = [note for notes in await asyncio.gather(*(unknown_notes(one, twin) for one in sets)) for note in notes]
    years = plan.years
    conditions = sorted({(one.type, each.property) for one in sets for each in one.filters if each.via is None})
    for type, name in conditions if len(years) > 1 else ():
        found += await scale_notes(twin, type, sets[0].level, years, name)
    return tuple({(note.key, str(note.values)): note for note in found}.values())


async def execute(plan: Plan, twin: TwinReader) -> Finding:
    """Answer a plan of `DATA_PLANS`.

    Raises `ServiceError` (the graph cannot be asked, or the plan does not fit its ontology), `TypeError` (the twin answers no
    such plan).
    """
    try:
        found = await _run(plan, twin)
    except TooMany as more:
        found = Finding(outcome="too_many", total=more.args[0] if more.args else 0)
    return replace(found, statements=twin.statements)


async def _run(plan: Plan, twin: TwinReader) -> Finding:
    match plan:
        case Select():
            return await select(plan, twin)
        case Aggregate():
            return await aggregate(plan, twin)
        case Rank():
            return await rank(plan, twin)
        case Compare():
            return await compare(plan, twin)
        case Change():
            return await change(plan, twin)
        case Relate():
            return await relate(plan, twin)
        case Gaps():
            return await gaps(plan, twin)
        case Describe():
            return await describe(plan, twin)
        case Coverage():
            return await coverage(plan, twin)
    raise TypeError(f"the twin answers no plan of kind {plan.kind}")
