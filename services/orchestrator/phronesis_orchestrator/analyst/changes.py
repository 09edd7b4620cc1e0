"""Changes from one year to another: of ratings, and of what is in the portfolio at all."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .calendar import Years
from .counts import survey_of
from .findings import Findings
from .frame import Frame, group_by
from .lists import members
from .measures import COLOURS
from .problems import Declined
from .saying import NOT_PUBLISHED, SCALES, counted, crosses_scales, in_order, in_years, line, lines, table
from .twin import Twin
from .wanted import Wanted

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
