"""The risk report on a portfolio, written by rules: every figure is counted from the rows that the steps read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from phronesis_contracts.answers import Visualization

from ..ports import GoalKnowledge, StepResult, WrittenReport
from .portfolio import GAPS, KIND, Asked, plan
from .presentation import (
    COLOURS,
    NOT_PUBLISHED,
    SCALES,
    amount,
    column,
    counted,
    crosses_scales,
    line,
    lines,
    percent,
    table,
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Read:
    """What the steps gave."""

    by_year: dict[int, list[Row]]
    gaps: dict[str, dict[int, int]]
    everyone: Counter[tuple[int, str | None]]
    missing: tuple[str, ...]
    """What could not be read."""


def read_of(asked: Asked, given: dict[str, StepResult], failed: tuple[StepResult, ...]) -> Read:
    """What the results of the steps hold."""

    def rows(id: str) -> list[Row]:
        result = given.get(id)
        return list((result.outcome.answer or {}).get("rows", ())) if result is not None else []

    return Read(
        {year: rows(f"projects.{year}") for year in asked.years if f"projects.{year}" in given},
        {
            name: {int(row["group"]): int(row["value"]) for row in rows(f"without.{name}")}
            for name in GAPS
            if f"without.{name}" in given
        },
        Counter({(int(row["group"]), row.get("group2")): int(row["value"]) for row in rows("all.ratings")}),
        tuple(one.step.description for one in failed if not one.step.optional),
    )


IN_DOUBT = ("Red", "Amber/Red")
"""Ratings that say that delivery is in doubt."""


def report(asked: Asked, known: GoalKnowledge) -> WrittenReport:
    """The report."""
    given = {result.step.id: result for result in known.worked}
    read = read_of(asked, given, known.failed)
    ratings, costs = _ratings(read), _costs(read)
    parts = (
        _summary(asked, read),
        f"## Ratings\n\n{_told(ratings)}",
        _compared(read),
        f"## Money\n\n{_money(costs)}",
        _doubtful(read),
        _changes(read),
        _gaps(read),
        _caveats(read),
    )
    charts = (*_drawn(ratings, costs), *_listed(read))
    used = tuple(id for id, one in given.items() if not one.step.optional or _added(asked, one))
    return WrittenReport(
        title=plan(asked, ()).title, text="\n\n".join(part for part in parts if part), charts=charts, used=used
    )


def _added(asked: Asked, looked: StepResult) -> bool:
    answer = looked.outcome.answer or {}
    others = [one for one in answer.get("entities", ()) if one.get("id") != asked.department]
    # A report of this kind holds nothing but figures of the records: what was noted earlier adds none.
    return bool(others and any(one.get("name") == asked.name for one in others))


def _ratings(read: Read) -> list[Row]:
    there = {row.get("rating") for rows in read.by_year.values() for row in rows}
    colours = [colour for colour in COLOURS if colour in there]
    found = []
    for year, rows in read.by_year.items():
        tally = Counter(row.get("rating") for row in rows)
        found.append(
            {"year": year, "projects": len(rows)}
            | {colour: tally.get(colour, 0) for colour in colours}
            | {NOT_PUBLISHED: tally.get(None, 0)}
        )
    return found


def _costs(read: Read) -> list[Row]:
    found = []
    for year, rows in read.by_year.items():
        costs = _published(rows, "whole_life_cost")
        both = [row for row in rows if row.get("year_baseline") is not None and row.get("year_forecast") is not None]
        variance = sum(row["year_forecast"] - row["year_baseline"] for row in both)
        found.append(
            {
                "year": year,
                "whole-life cost (£ million)": round(sum(costs), 2),
                "published by": len(costs),
                "forecast less baseline (£ million)": round(variance, 2),
                "both published by": len(both),
            }
        )
    return found


def _published(rows: Iterable[Row], name: str) -> list[float]:
    return [row[name] for row in rows if row.get(name) is not None]


def _summary(asked: Asked, read: Read) -> str:
    if not any(read.by_year.values()):
        return f"There is nothing on record for {asked.name} in these years."
    told = (
        f"{year}: **{len(rows):,}** projects, **{_doubt(rows):,}** of them rated {' or '.join(IN_DOUBT)}"
        for year, rows in read.by_year.items()
    )
    return f"The major projects of {asked.name}, by the reports of each year.\n\n{lines(told)}"


def _doubt(rows: Iterable[Row]) -> int:
    return sum(1 for row in rows if row.get("rating") in IN_DOUBT)


def _told(ratings: list[Row]) -> str:
    return lines(
        f"{row['year']}: {', '.join(f'{name} {n:,}' for name, n in row.items() if name not in ('year', 'projects'))}"
        for row in ratings
    )


def _compared(read: Read) -> str:
    if not read.everyone:
        return ""
    told = []
    for year, rows in read.by_year.items():
        rated = sum(1 for row in rows if row.get("rating") is not None)
        everyone = sum(n for (at, colour), n in read.everyone.items() if at == year and colour is not None)
        doubt = sum(n for (at, colour), n in read.everyone.items() if at == year and colour in IN_DOUBT)
        told.append(f"{year}: {percent(_doubt(rows), rated)} here, {percent(doubt, everyone)} in the whole portfolio")
    intro = f"Rated {' or '.join(IN_DOUBT)}, of the projects with a rating:"
    return f"## Compared with the whole portfolio\n\n{intro}\n\n{lines(told)}"


def _money(costs: list[Row]) -> str:
    return lines(
        f"{row['year']}: whole-life cost {amount(row['whole-life cost (£ million)'], '£m')}"
        f" (published by {counted(row['published by'], 'project', 'projects')}); forecast less baseline of the financial year"
        f" {amount(row['forecast less baseline (£ million)'], '£m')}"
        f" (of {counted(row['both published by'], 'project', 'projects')})"
        for row in costs
    )


def _doubtful(read: Read) -> str:
    if not read.by_year:
        return ""
    year = max(read.by_year)
    names = sorted(f"{row['name']}: {row['rating']}" for row in read.by_year[year] if row.get("rating") in IN_DOUBT)
    return f"## In doubt in {year}\n\n{lines(names)}" if names else f"## In doubt in {year}\n\nNo project is rated so."


def _changes(read: Read) -> str:
    years = sorted(read.by_year)
    told = []
    for old, new in pairwise(years):
        before, after = ({str(row["id"]) for row in read.by_year[year]} for year in (old, new))
        told.append(f"{old} to {new}: {len(after - before):,} new, {len(before - after):,} no longer reported")
    return f"## What came and went\n\n{lines(told)}" if told else ""


def _gaps(read: Read) -> str:
    told = (
        f"{year}: {', '.join(f'{found.get(year, 0):,} without {GAPS[name]}' for name, found in read.gaps.items())}"
        for year in read.by_year
    )
    return f"## What is not published\n\n{lines(told)}" if read.gaps else ""


def _caveats(read: Read) -> str:
    told = [SCALES] if crosses_scales(sorted(read.by_year)) else []
    told += [f"Could not be read: {one}." for one in read.missing]
    return "## To bear in mind\n\n" + lines((*told, f"Made by rules from the records ({KIND}); no language model was used."))


def _drawn(ratings: list[Row], costs: list[Row]) -> tuple[Visualization, ...]:
    if not ratings:
        return ()
    charts = [table("Projects by rating", ratings)]
    charts += [column(f"Projects rated {colour}", "year", colour, ratings) for colour in IN_DOUBT if colour in ratings[0]]
    charts.append(line("Whole-life cost by year (£ million)", "year", "whole-life cost (£ million)", costs))
    charts.append(table("Money by year", costs))
    return tuple(charts)


def _listed(read: Read) -> tuple[Visualization, ...]:
    rows = [
        {"year": year, "name": row["name"], "rating": row["rating"], "whole-life cost (£ million)": row.get("whole_life_cost")}
        for year, found in read.by_year.items()
        for row in found
        if row.get("rating") in IN_DOUBT
    ]
    shown = [{name: NOT_PUBLISHED if value is None else value for name, value in row.items()} for row in rows]
    return (table("Projects in doubt", sorted(shown, key=lambda row: (row["year"], row["name"]))),) if shown else ()
