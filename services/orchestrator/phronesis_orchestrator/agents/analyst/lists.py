"""Listing: the members of a set, the first of a rank, and changes from one year to another."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from phronesis_contracts.twin import Survey

from .counts import count, dimensions, grouping, named, survey_of, total
from .frame import Frame, group_by, label_of
from .names import Twin
from .ontology import COLOURS, DATES, DIMENSIONS, MEASURES, TEXTS, called
from .presentation import (
    NOT_PUBLISHED,
    SCALES,
    Findings,
    amount,
    column,
    counted,
    crosses_scales,
    in_order,
    in_years,
    line,
    lines,
    table,
)
from .reading import Declined, Years
from .wanted import Wanted

_BOTH = ("year_baseline", "year_forecast")


def heading(name: str) -> str:
    """What a property is called above a column."""
    if name in MEASURES:
        unit = MEASURES[name].unit
        return f"{MEASURES[name].name} (£ million)" if unit == "£m" else MEASURES[name].name
    return {**DATES, **TEXTS}.get(name) or DIMENSIONS.get(name, name.replace("_", " "))


async def members(twin: Twin, frame: Frame, years: tuple[int, ...], show: tuple[str, ...]) -> list[dict[str, Any]]:
    """The members of a set with some of their properties; the variance is worked out.

    Raises:
        Declined: they are too many to read for one answer.
    """
    asked = tuple(dict.fromkeys((*(one for one in show if one != "variance"), *(_BOTH if _worked_out(frame, show) else ()))))
    question: Survey = survey_of(frame, years, measure="list", show=asked)
    rows = await twin.every(question)
    for row in rows:
        baseline, forecast = row.get("year_baseline"), row.get("year_forecast")
        row["variance"] = round(forecast - baseline, 6) if baseline is not None and forecast is not None else None
    if frame.beyond:
        sign = 1 if frame.beyond == "over" else -1
        rows = [row for row in rows if row["variance"] is not None and row["variance"] * sign > 0]
    return rows


def _worked_out(frame: Frame, show: tuple[str, ...]) -> bool:
    return frame.beyond is not None or "variance" in show


async def listing(twin: Twin, question: Wanted, years: Years) -> Findings:
    """The members of a set, by name."""
    frame = question.frame
    show = question.show or (("variance",) if frame.beyond else ())
    rows = await members(twin, frame, years.asked, show)
    said = f"{frame.said()}{_beyond_words(frame)}"
    if not rows:
        found = await count(twin, replace(question, frame=replace(frame, beyond=None)), years) if not frame.beyond else None
        return found or Findings(f"{in_years(years.asked)}, there are **no** {said}.", stats={"count": 0})
    rows.sort(key=lambda row: (row["year"], str(row["name"]).casefold()))
    several = len(years.asked) > 1
    table_rows = tuple(_row(row, show, several) for row in rows)
    noun = said if len(rows) != 1 else called(frame.type, frame.level, many=False) + said.removeprefix(frame.noun)
    answer = f"{in_years(years.asked)}, {_there_are(len(rows))} {noun}:\n\n{lines(_said(row, show) for row in table_rows)}"
    unknown = sum(1 for row in rows if any(row.get(name) is None for name in show))
    title = f"{said[:1].upper()}{said[1:]}"
    insights = (f"For {unknown:,} of {len(rows):,} not everything is published.",) if unknown else ()
    return Findings(
        answer,
        insights,
        table_rows,
        {"count": len(rows)},
        (table(title, table_rows),),
        known=len(rows) - unknown,
        unknown=unknown,
    )


def _there_are(n: int) -> str:
    return f"there {'is' if n == 1 else 'are'} **{n:,}**"


def _beyond_words(frame: Frame) -> str:
    return {None: "", "over": " with a forecast above the baseline", "under": " with a forecast below the baseline"}[
        frame.beyond
    ]


def _row(row: dict[str, Any], show: tuple[str, ...], several: bool) -> dict[str, Any]:
    values = {heading(name): NOT_PUBLISHED if row.get(name) is None else row[name] for name in show}
    return {"name": row["name"], **({"year": row["year"]} if several else {}), **values}


def _said(row: dict[str, Any], show: tuple[str, ...]) -> str:
    units = {heading(name): MEASURES[name].unit for name in show if name in MEASURES}
    values = ((key, value) for key, value in row.items() if key != "name")
    rest = ", ".join(amount(value, units.get(key, "")) if isinstance(value, float) else str(value) for key, value in values)
    return f"{row['name']}{f' ({rest})' if rest else ''}"


async def ranked(twin: Twin, question: Wanted, years: Years) -> Findings:
    """The first of a rank: things by a figure, or groups by their number or by a sum."""
    if question.frame.groups:
        return await _ranked_groups(twin, question, years)
    if len(years.asked) > 1:
        raise Declined("Please ask for the ranking in one year.", mode="E")
    measure = await _present(twin, question, years)
    rows = await members(twin, question.frame, years.asked, (measure,))
    known = [row for row in rows if row[measure] is not None]
    first, down = abs(question.first), question.first > 0
    ordered = sorted(known, key=lambda row: (-row[measure] if down else row[measure], str(row["name"])))
    kept = [row for row in ordered if row[measure] in {one[measure] for one in ordered[:first]}]
    if not kept:
        raise Declined(f"No {MEASURES[measure].name} is published for {question.frame.said()}.", mode="A")
    unit = MEASURES[measure].unit
    shown = tuple({"name": row["name"], heading(measure): row[measure]} for row in kept)
    rank = "highest" if down else "lowest"
    intro = f"{in_years(years.asked)}, of {question.frame.said()}, the {rank} {MEASURES[measure].name}:"
    told = lines(f"{row['name']}: **{amount(row[measure], unit)}**" for row in kept)
    answer = f"{intro}\n\n{told}"
    unknown = len(rows) - len(known)
    insights = (f"For {unknown:,} of {len(rows):,} the figure is not published; they are not ranked.",) if unknown else ()
    title = f"{rank.capitalize()} {MEASURES[measure].name}"
    charts = (column(title, "name", heading(measure), shown), table(title, shown))
    return Findings(answer, insights, shown, {"of": len(rows)}, charts, known=len(known), unknown=unknown)


async def _present(twin: Twin, question: Wanted, years: Years) -> str:
    """The property that the measure stands for in this data."""
    for name in question.measure:
        if name == "variance" or name == question.measure[-1]:
            return name
        found = await twin.survey(survey_of(question.frame, years.asked, measure="sum", of=name))
        if any(row.get("known") for row in found.rows):
            return name
    return question.measure[0]


async def _ranked_groups(twin: Twin, question: Wanted, years: Years) -> Findings:
    frame = question.frame
    dims = dimensions(frame, years)
    if len(dims) > 1:
        raise Declined("Please ask for the ranking in one year, by one grouping.", mode="E")
    if question.measure:
        found = await total(twin, replace(question, kind="total"), years)
        key = next(key for key in list(found.rows[0]) if key != label_of(dims[0]))
    else:
        found, key = await count(twin, replace(question, kind="count"), years), frame.noun
    label = label_of(dims[0])
    rows = [row for row in found.rows if isinstance(row.get(key), int | float) and row[label] != NOT_PUBLISHED]
    down, first = question.first > 0, abs(question.first)
    ordered = sorted(rows, key=lambda row: (-row[key] if down else row[key], str(row[label])))
    kept = tuple(row for row in ordered if row[key] in {one[key] for one in ordered[:first]})
    unit = MEASURES[question.measure[-1]].unit if question.measure else ""
    intro = f"{in_years(years.asked)}, the {label} with the {'most' if down else 'fewest'} {frame.said()}:"
    if question.measure:
        intro = f"{in_years(years.asked)}, the {label} with the {'highest' if down else 'lowest'} {key} of {frame.said()}:"
    listing = lines(f"{row[label]}: **{amount(row[key], unit)}**" for row in kept)
    charts = (column("Ranking", label, key, ordered), table("Ranking", ordered))
    return replace(found, answer=f"{intro}\n\n{listing}", insights=found.insights[1:], rows=kept, charts=charts)


async def grouped_names(twin: Twin, frame: Frame, years: Years, dimension: str) -> list[str]:
    """The groups that there are, by name."""
    found = await twin.survey(survey_of(frame, years.asked, grouping(frame, (dimension,))))
    groups = (named(frame, (dimension,), row)[label_of(dimension)] for row in found.rows)
    return sorted(str(group) for group in groups if group is not None)


_BETTER = {colour: n for n, colour in enumerate(COLOURS)}
"""The higher, the better."""


def pairs(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """Things of two years put together: alike in id, else in name, but for case; `None` where a year has no such thing."""
    by_id = {str(row["id"]).casefold(): row for row in other}
    by_name = {str(row["name"]).casefold(): row for row in other}
    taken: set[str] = set()
    found: list[tuple[dict[str, Any] | None, dict[str, Any] | None]] = []
    waiting: list[dict[str, Any]] = []
    for row in one:
        match = by_id.get(str(row["id"]).casefold())
        if match is None:
            waiting.append(row)
            continue
        taken.add(str(match["id"]))
        found.append((row, match))
    for row in waiting:
        match = by_name.get(str(row["name"]).casefold())
        if match is not None and str(match["id"]) in taken:
            match = None
        if match is not None:
            taken.add(str(match["id"]))
        found.append((row, match))
    return [*found, *((None, row) for row in other if str(row["id"]) not in taken)]


async def came_and_went(twin: Twin, question: Wanted, years: Years, known: tuple[int, ...]) -> Findings:
    """What is in the report of one year and not in that of another."""
    joined = question.kind == "joined"
    before, after = _two_years(question, years, known)
    frame = question.frame
    old, new = [await members(twin, frame, (year,), ()) for year in (before, after)]
    # A thing that merely no longer fits the conditions has not left, nor one that newly fits them come.
    bare = Frame(type=frame.type, level=frame.level)
    there = await members(twin, bare, (before if joined else after,), ())
    moved = pairs(there, new) if joined else pairs(old, there)
    rows = [(b if joined else a) for a, b in moved if (a is None if joined else b is None)]
    names = sorted({str(row["name"]) for row in rows if row is not None}, key=str.casefold)
    verb = f"newly in the report of {after}" if joined else f"in the report of {before} and not in that of {after}"
    n = sum(1 for row in rows if row is not None)
    compared = f", compared with {before}" if joined else ""
    answer = f"**{n:,}** {frame.said()} {'is' if n == 1 else 'are'} {verb}{compared}."
    listed_rows = tuple({"name": name} for name in names)
    closing = f"The report of {before} has {len(old):,}, that of {after} {len(new):,}."
    return Findings(
        f"{answer}\n\n{lines(names)}" if names else answer,
        (closing, "Why a project came or went is not published as data."),
        listed_rows,
        {"count": n, "before": len(old), "after": len(new)},
        (table(f"{frame.said()[:1].upper()}{frame.said()[1:]}: {verb}", listed_rows),) if names else (),
        several_steps=True,
    )


def _two_years(question: Wanted, years: Years, known: tuple[int, ...]) -> tuple[int, int]:
    asked, joined = years.asked, question.kind == "joined"
    opened = next(iter(question.reading.of("after", "since", "before", "until")), None)
    if opened is not None:
        first = known[known.index(asked[0]) - 1] if opened.kind == "after" and asked[0] > known[0] else asked[0]
        if opened.kind in ("before", "until") or first == known[-1]:
            raise Declined("Between which two years? Name them, please.", mode="E")
        return first, known[known.index(first) + 1] if opened.kind == "after" else known[-1]
    if len(asked) > 1:
        return asked[0], asked[-1]
    if len(asked) != 1 or len(known) < 2:
        raise Declined("Between which two years? Name them, please.", mode="E")
    at = known.index(asked[0])
    if joined:
        if at == 0:
            raise Declined(f"{asked[0]} is the first year on record, so nothing can be said to be new in it.", mode="A")
        return known[at - 1], asked[0]
    # "left in 2022" is what the report of 2022 lacks; without a year, what the newest lacks.
    if at == 0:
        raise Declined(f"{asked[0]} is the first year on record, so nothing can be said to have left by then.", mode="A")
    return known[at - 1], asked[0]


async def ratings(twin: Twin, question: Wanted, years: Years) -> Findings:
    """How ratings changed: how many there were of each, and what became of each project's own."""
    frame = question.frame
    if frame.groups not in ((), ("rating",)) or frame.type != "EntityProject":
        raise Declined("I can compare ratings over the years for all projects or for one department or category.", mode="E")
    if len(years.asked) < 2:
        raise Declined("Between which years? Name two, please.", mode="E")
    found = await twin.survey(survey_of(frame, years.asked, (group_by(frame.type, "year"), group_by(frame.type, "rating"))))
    tally = {(int(row["group"]), row.get("group2")): int(row["value"]) for row in found.rows}
    colours = in_order({colour for _, colour in tally})
    rows = tuple(
        {"year": year} | {colour or NOT_PUBLISHED: tally.get((year, colour), 0) for colour in colours} for year in years.asked
    )
    first, last = years.asked[0], years.asked[-1]
    steps, moves = await _moves(twin, frame, first, last)
    kept = {"better": [m for m in moves if m["change"] == "better"], "worse": [m for m in moves if m["change"] == "worse"]}
    told = moves if question.better == "changed" else kept.get(question.better or "")
    unknown = sum(n for (_, colour), n in tally.items() if colour is None)
    return Findings(
        _told(frame, years, rows, steps, question.better, told),
        _insights(frame, years, tally, steps),
        tuple(told) if told is not None else rows,
        {f"{first} to {last}": dict(steps)},
        (table(f"Ratings, {in_years(years.asked).lower()}", rows), *_drawn(rows, colours), *_moved_table(told or moves)),
        known=sum(tally.values()) - unknown,
        unknown=unknown,
        several_steps=True,
    )


async def _moves(twin: Twin, frame: Frame, first: int, last: int) -> tuple[Counter[str], list[dict[str, Any]]]:
    old, new = [await members(twin, frame, (year,), ("rating",)) for year in (first, last)]
    steps: Counter[str] = Counter({"better": 0, "worse": 0, "the same": 0, "new": 0, "gone": 0, NOT_PUBLISHED: 0})
    moves = []
    for a, b in pairs(old, new):
        step = _step(a, b)
        steps[step] += 1
        if step in ("better", "worse") and a is not None and b is not None:
            moves.append({"name": b["name"], str(first): a["rating"], str(last): b["rating"], "change": step})
    return steps, sorted(moves, key=lambda move: (move["change"], str(move["name"]).casefold()))


def _step(one: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    if one is None or other is None:
        return "new" if one is None else "gone"
    before, after = one.get("rating"), other.get("rating")
    if before is None or after is None:
        return NOT_PUBLISHED
    change = _BETTER[after] - _BETTER[before]
    return "the same" if change == 0 else "better" if change > 0 else "worse"


def _told(
    frame: Frame,
    years: Years,
    rows: tuple[dict[str, Any], ...],
    steps: Counter[str],
    better: str | None,
    told: list[dict[str, Any]] | None,
) -> str:
    first, last = years.asked[0], years.asked[-1]
    if told is not None:
        names = lines(f"{move['name']}: {move[str(first)]} to {move[str(last)]}" for move in told)
        how = better if better == "changed" else f"got {better}"
        intro = f"From {first} to {last}, the rating of **{len(told):,}** {frame.said()} {how}."
        return f"{intro}\n\n{names}" if told else intro
    by_year = lines(
        f"{row['year']}: {', '.join(f'{colour} {n:,}' for colour, n in row.items() if colour != 'year')}" for row in rows
    )
    moved = (
        f"Of the projects in both reports, {steps['better']:,} were rated better in {last} than in {first},"
        f" {steps['worse']:,} worse and {steps['the same']:,} the same;"
        f" for {steps[NOT_PUBLISHED]:,} a rating is not published in one of the years."
    )
    return f"Ratings of {frame.said()} by year:\n\n{by_year}\n\n{moved}"


def _insights(frame: Frame, years: Years, tally: dict[tuple[int, Any], int], steps: Counter[str]) -> tuple[str, ...]:
    first, last = years.asked[0], years.asked[-1]
    red = f"Red went from {tally.get((first, 'Red'), 0):,} in {first} to {tally.get((last, 'Red'), 0):,} in {last}."
    moved = (
        f"{counted(steps['gone'], 'project', 'projects')} of {first} {'is' if steps['gone'] == 1 else 'are'} not in this set in"
        f" {last}; {steps['new']:,} {'is' if steps['new'] == 1 else 'are'} new in it."
    )
    return (red, moved, SCALES) if crosses_scales(years.asked) else (red, moved)


def _drawn(rows: tuple[dict[str, Any], ...], colours: list[Any]) -> tuple[Any, ...]:
    return tuple(
        line(f"Projects rated {colour}", "year", colour, rows) for colour in colours if colour == "Red" and len(rows) > 1
    )


def _moved_table(moves: list[dict[str, Any]]) -> tuple[Any, ...]:
    return (table("Projects whose rating changed", moves),) if moves else ()
