"""Named things and what is on record of them; and what the twin holds at all."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from phronesis_contracts.twin import GroupBy, Level, Survey, Where

from .finding import Finding, Note, Row
from .plan import Coverage, Describe, EntityRef, Filter
from .reader import TooMany, TwinReader, condition
from .sets import MAX_SOURCES, scale_notes, step_between

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
