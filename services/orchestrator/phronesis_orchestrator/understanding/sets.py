"""Sets of the twin: their members, the first of them by a value, and what changed in them from one year to another."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from phronesis_contracts.twin import MAX_ROWS, GroupBy, Level, Survey, Where

from .finding import Figure, Finding, Note, Row
from .plan import Change, EntityRef, Filter, Rank, Select, Selection
from .reader import TwinReader

MAX_SOURCES = 60


async def select(plan: Select, twin: TwinReader) -> Finding:
    """The members of a set, by name."""
    of = plan.of
    show = tuple(dict.fromkeys((*plan.show, *_telling(of, twin))))
    rows, notes = await asyncio.gather(twin.every(await twin.survey_of(of), show), unknown_notes(of, twin))
    if not rows:
        return await nothing(of, twin, notes)
    rows.sort(key=lambda row: (str(row["name"]).casefold(), row["year"]))
    lacking = sum(any(row[name] is None for name in plan.show) for row in rows)
    return Finding(
        rows=tuple(rows),
        show=show,
        holds=True,
        total=len(rows),
        known=len(rows) - lacking,
        unknown=lacking,
        entities=things_of(of.type, rows, of.level),
        sources=keys_of(of.type, rows),
        notes=notes,
    )


def _telling(of: Selection, twin: TwinReader) -> tuple[str, ...]:
    """Properties that a condition leaves open, so that a reader wants to see them."""
    open_ended = (one for one in of.filters if one.via is None and one.op in ("<>", "<", "<=", ">", ">=", "in"))
    return tuple(one.property for one in open_ended if _is_declared(one.property, of.type, twin))


def _is_declared(name: str, type: str, twin: TwinReader) -> bool:
    return any(one.name == name for one in twin.schema.properties(type))


async def nothing(of: Selection, twin: TwinReader, notes: tuple[Note, ...] = ()) -> Finding:
    """A set without a member: the years in which it would have some, and those that the data does not cover."""
    question = await twin.survey_of(of, years=())
    by_year = question.model_copy(update={"group_by": (GroupBy(property="year"),)})
    elsewhere, covered = await asyncio.gather(twin.survey(by_year), twin.years(of.type, of.level))
    found = tuple(sorted(int(row["group"]) for row in elsewhere.rows))
    without_data = tuple(year for year in of.years if year not in covered)
    if without_data:
        notes = (*notes, Note("no_data", {"years": without_data, "covered": covered, "type": of.type}))
    return Finding(outcome="empty", holds=False, years=found, known=1, notes=notes)


async def unknown_notes(of: Selection, twin: TwinReader) -> tuple[Note, ...]:
    """How many more may belong to a set, because what its conditions are about is not published for them."""
    asked = [one for one in of.filters if _can_be_unknown(one, of.type, twin)]
    found = await asyncio.gather(*(_count_unknown(of, one, twin) for one in asked))
    return tuple(
        Note("unlinked", {"n": n})
        if one.via
        else Note("undecided", {"n": n, "type": of.type, "property": one.property, "years": of.years})
        for one, n in zip(asked, found, strict=True)
        if n
    )


def _can_be_unknown(one: Filter, type: str, twin: TwinReader) -> bool:
    if one.via is not None:
        return one.op == "<>"
    return _is_declared(one.property, type, twin) and one.op not in ("unknown", "known", "contains")


async def _count_unknown(of: Selection, one: Filter, twin: TwinReader) -> int:
    lacking = Where(property=one.property, op="unknown")
    if one.via is not None:
        lacking = Where(property="id", op="unlinked", via=one.via, to=one.to)
    question = await twin.survey_of(of, without=one)
    return await twin.count(question.model_copy(update={"where": (*question.where, lacking)}))


async def rank(plan: Rank, twin: TwinReader) -> Finding:
    """The first members by a value of theirs, or by how many nodes they are linked to; ties with the last are members too."""
    of = plan.of
    places = twin.schema.places(of.type, plan.by) if plan.by else {}
    if plan.by is None and plan.via is None:
        return Finding(outcome="unordered")
    if plan.by is not None and not places and twin.schema.property(of.type, plan.by).kind not in ("number", "date"):
        return Finding(outcome="unordered")
    show = tuple(name for name in _telling(of, twin) if name != plan.by)
    question = await twin.survey_of(of)
    rows = await _ordered_rows(plan, question, show, twin)
    total, lacking = await asyncio.gather(twin.count(question), _count_lacking(question, plan.by, twin))
    ranked = [{**row, "value": row[plan.by or "linked"]} for row in rows if row[plan.by or "linked"] is not None]
    if not ranked:
        notes = (Note("nothing_known", {"n": total, "property": plan.by, "type": of.type}),) if total else ()
        return replace(await nothing(of, twin, notes), total=total, unknown=lacking)
    if len(of.among) == 2 and len(ranked) < 2:
        return Finding(outcome="incomparable")
    kept = first_rows(ranked[plan.position - 1 :], plan.limit)
    level = (Note("level", {"n": len(kept) - plan.limit}),) if len(kept) > plan.limit else ()
    return Finding(
        outcome="found" if kept else "empty",
        rows=tuple(kept),
        show=show,
        total=total,
        known=total - lacking,
        unknown=lacking,
        entities=things_of(of.type, kept, of.level),
        sources=keys_of(of.type, kept),
        notes=level,
    )


async def _ordered_rows(plan: Rank, question: Survey, show: tuple[str, ...], twin: TwinReader) -> list[Row]:
    """Members by value; a closed set goes by its declared order, which the graph does not know."""
    if plan.by is not None and (places := twin.schema.places(plan.of.type, plan.by)):
        by = plan.by
        rows = await twin.every(question, (*show, by))
        return sorted(rows, key=lambda row: (places.get(str(row[by]), 0) * (-1 if plan.descending else 1), str(row["name"])))
    order = {"order": "-value" if plan.descending else "value", "show": show, "measure": "list", "limit": MAX_ROWS}
    counted = {"of": plan.by} if plan.by else {"via": plan.via, "to": plan.to}
    return [dict(row) for row in (await twin.survey(question.model_copy(update=order | counted))).rows]


def first_rows(rows: Sequence[Row], limit: int) -> list[Row]:
    """The first rows by `value`, and those that are level with the last of them."""
    kept = list(rows[:limit])
    last = kept[-1]["value"] if kept else None
    return [*kept, *(row for row in rows[limit:] if last is not None and row["value"] == last)]


async def _count_lacking(question: Survey, by: str | None, twin: TwinReader) -> int:
    if by is None:
        return 0
    return await twin.count(question.model_copy(update={"where": (*question.where, Where(property=by, op="unknown"))}))


def things_of(type: str, rows: Iterable[Row], level: Level | None = None) -> tuple[EntityRef, ...]:
    """The things that rows of members are about, in their order: one for all years of an id, or of a name."""
    by_id: dict[str, str] = {}
    by_name: dict[str, str] = {}
    names: dict[str, str] = {}
    years: dict[str, set[int]] = {}
    for row in rows:
        id, name, year = str(row["id"]), str(row["name"]), int(row["year"])
        thing = by_id.get(id) or by_name.get(name.casefold(), id)
        if id not in by_id and year in years.get(thing, ()):
            thing = id  # two nodes of one year are two things, whatever they are called
        by_id.setdefault(id, thing)
        by_name.setdefault(name.casefold(), thing)
        years.setdefault(thing, set()).add(year)
        names[thing] = name
    return tuple(
        EntityRef(type=type, id=id, name=names[id], level=level, years=tuple(sorted(its))) for id, its in years.items()
    )


def keys_of(type: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """Keys of the nodes that rows of members are about; none where they are many."""
    keys = tuple(dict.fromkeys(f"{type}/{row['id']}/{row['year']}" for row in rows))
    return keys if len(keys) <= MAX_SOURCES else ()


_EXPECTED = 5
"""Nodes that a choice would have in another year, were it as frequent there; with fewer, none may be chance."""


async def change(plan: Change, twin: TwinReader) -> Finding:
    """What came, what left, or whose property moved between two years."""
    if plan.what not in ("joined", "left") and plan.property is None:
        return Finding(outcome="unordered")
    bare = Selection(type=plan.of.type, years=(plan.since, plan.until), level=plan.of.level)
    covered = await twin.years(bare.type, bare.level)
    if lacking := tuple(year for year in bare.years if year not in covered):
        return Finding(outcome="empty", notes=(Note("no_data", {"years": lacking, "covered": covered, "type": bare.type}),))
    if plan.what in ("joined", "left"):
        return await _came_or_went(plan, bare, twin)
    return await _moved(plan, bare, twin)


async def _came_or_went(plan: Change, bare: Selection, twin: TwinReader) -> Finding:
    """A thing that merely no longer fits the conditions has not left, nor has one come that newly fits them."""
    of, came = plan.of, plan.what == "joined"
    mine, other = (plan.until, plan.since) if came else (plan.since, plan.until)
    sets = [await twin.survey_of(of, years=(year,)) for year in (mine, other)]
    members, there, at_other = await asyncio.gather(
        twin.every(sets[0]), twin.every(await twin.survey_of(bare, years=(other,))), twin.count(sets[1])
    )
    rows = [one for one, partner in pairs(members, there) if partner is None]
    rows.sort(key=lambda row: str(row["name"]).casefold())
    counts = {mine: len(members), other: at_other}
    return Finding(
        outcome="found" if rows else "empty",
        rows=tuple(rows),
        figures=tuple(Figure(counts[year], counts[year], 0, counts[year]) for year in (plan.since, plan.until)),
        value=len(rows),
        total=len(members),
        known=max(len(members), 1),
        entities=things_of(of.type, rows, of.level),
        sources=keys_of(of.type, rows),
    )


async def _moved(plan: Change, bare: Selection, twin: TwinReader) -> Finding:
    """Of the things of both years that are in the set in either of them."""
    assert plan.property is not None
    of, name = plan.of, plan.property
    places = twin.schema.places(of.type, name)
    ordered = bool(places) or twin.schema.property(of.type, name).kind in ("number", "date")
    if plan.what != "changed" and not ordered:
        return Finding(outcome="unordered")
    sides = [await twin.survey_of(bare, years=(year,)) for year in bare.years]
    old, new, inside, notes = await asyncio.gather(
        twin.every(sides[0], (name,)),
        twin.every(sides[1], (name,)),
        _inside(of, bare.years, twin),
        scale_notes(twin, of.type, of.level, bare.years, name),
    )
    both = [(a, b) for a, b in pairs(old, new) if b is not None and (inside is None or _keys(a, b) & inside)]
    known = [(a, b) for a, b in both if a[name] is not None and b[name] is not None]
    rows = []
    for a, b in known:
        step = step_between(a[name], b[name], places)
        if plan.before not in (None, str(a[name])) or plan.after not in (None, str(b[name])):
            continue
        if step and (plan.what == "changed" or (step > 0) is (plan.what == "rose")):
            rows.append(
                {"id": b["id"], "name": b["name"], "year": b["year"], "before": a[name], "after": b[name], "step": step}
            )
    rows.sort(key=lambda row: (-abs(float(row["step"])), str(row["name"]).casefold()))
    moved = len(rows)
    rows = rows[: plan.limit]
    unknown = len(both) - len(known)
    if unknown:
        notes = (*notes, Note("unknown_in_one_year", {"n": unknown, "type": of.type, "level": of.level}))
    return Finding(
        outcome="found" if rows else "empty",
        rows=tuple(rows),
        value=moved,
        total=len(both),
        known=len(known),
        unknown=unknown,
        entities=things_of(of.type, rows, of.level),
        sources=keys_of(of.type, rows),
        notes=notes,
    )


async def _inside(of: Selection, years: tuple[int, ...], twin: TwinReader) -> set[tuple[str, int]] | None:
    if not of.filters and not of.among:
        return None
    members = await twin.every(await twin.survey_of(of, years=years))
    return {(str(row["id"]), int(row["year"])) for row in members}


def _keys(*rows: Row) -> set[tuple[str, int]]:
    return {(str(row["id"]), int(row["year"])) for row in rows}


def step_between(before: object, after: object, places: Mapping[str, int]) -> float:
    """How far a value went, upwards if above 0: in its own unit, in days, or in places of the declared order of a closed set.

    For plain text it is the direction alone.
    """
    if isinstance(before, int | float) and isinstance(after, int | float):
        return round(float(after) - float(before), 9)
    if str(before) in places and str(after) in places:
        return float(places[str(after)] - places[str(before)])
    try:
        return float((date.fromisoformat(str(after)) - date.fromisoformat(str(before))).days)
    except ValueError:
        return float((str(after) > str(before)) - (str(after) < str(before)))


def pairs(one: Sequence[Row], other: Sequence[Row]) -> list[tuple[Row, Row | None]]:
    """The rows of one year, each with that of the same thing in another: alike in id, else in name, but for case."""
    by_id, by_name = defaultdict(list), defaultdict(list)
    for row in other:
        by_id[str(row["id"]).casefold()].append(row)
        by_name[str(row["name"]).casefold()].append(row)
    taken: set[str] = set()

    def take(among: list[Row], id: str) -> Row | None:
        free = [row for row in among if str(row["id"]) not in taken]
        found = next((row for row in free if row["id"] == id), free[0] if free else None)
        if found is not None:
            taken.add(str(found["id"]))
        return found

    matched = {str(row["id"]): take(by_id[str(row["id"]).casefold()], str(row["id"])) for row in one}
    for row in one:
        if matched[str(row["id"])] is None:
            matched[str(row["id"])] = take(by_name[str(row["name"]).casefold()], "")
    return [(row, matched[str(row["id"])]) for row in one]


async def scale_notes(twin: TwinReader, type: str, level: Level | None, years: Sequence[int], name: str) -> tuple[Note, ...]:
    """Choices of a closed set that are used in one year and, where they would be expected, not in the next.

    Then a value may have changed because the scale did, and not the thing.
    """
    if not twin.schema.places(type, name):
        return ()
    by = (GroupBy(property="year"), GroupBy(property=name))
    asked = await twin.years_of(type, tuple(years))
    found = await twin.survey(Survey(type=type, level=level, years=asked, group_by=by, limit=500))
    used: dict[int, Counter[str]] = defaultdict(Counter)
    for row in found.rows:
        if row["group2"] is not None:
            used[int(row["group"])][str(row["group2"])] += int(row["value"])
    notes = []
    for before, after in zip(sorted(used), sorted(used)[1:], strict=False):
        dropped, begun = _unused(used[before], used[after]), _unused(used[after], used[before])
        if dropped or begun:
            values = {"property": name, "type": type, "before": before, "after": after, "dropped": dropped, "begun": begun}
            notes.append(Note("scale", values))
    return tuple(notes)


def _unused(these: Counter[str], those: Counter[str]) -> tuple[str, ...]:
    whole, others = these.total(), those.total()
    return tuple(sorted(one for one, n in these.items() if one not in those and n / whole * others >= _EXPECTED))
