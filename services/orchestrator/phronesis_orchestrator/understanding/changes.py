"""What changed in a set from one year to another. A thing is the same by its id, or else by its name."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from phronesis_contracts.twin import GroupBy, Level, Survey

from .finding import Figure, Finding, Note, Row
from .plan import Change, Selection
from .reader import TwinReader
from .sets import keys_of, things_of

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
    """How far a value went, upwards if above 0: in its own unit, or in places of the declared order of a closed set.

    For dates and plain text it is the direction alone.
    """
    if isinstance(before, int | float) and isinstance(after, int | float):
        return round(float(after) - float(before), 9)
    if str(before) in places and str(after) in places:
        return float(places[str(after)] - places[str(before)])
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
