"""The risk report on a portfolio: what a goal asks for, the steps to it, and the report, counted from the rows read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from phronesis_contracts.answers import Visualization
from phronesis_contracts.memory import RECALL_TOOL
from phronesis_contracts.twin import FIND_ENTITIES_TOOL, MAX_ROWS, SURVEY_TOOL, Level

from ..ports import GoalKnowledge, Plan, Step, StepResult, WrittenReport
from ..report import (
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

KIND = "portfolio risk report"
PROJECT = "EntityProject"
DEPARTMENT = {"via": "DELIVERED_BY", "to": "SectorGovEntity"}
"""How a project is linked to its department."""
DEPARTMENTS: dict[str, tuple[str, ...]] = {
    "BEIS": ("Department for Business, Energy and Industrial Strategy", "Business, Energy and Industrial Strategy"),
    "CO": ("Cabinet Office",),
    "DBT": ("Department for Business and Trade", "Business and Trade"),
    "DCMS": (
        "Department for Digital, Culture, Media and Sport",
        "Department for Culture, Media and Sport",
        "Culture, Media and Sport",
        "culture department",
    ),
    "DEFRA": (
        "Department for Environment, Food and Rural Affairs",
        "Department for the Environment, Food and Rural Affairs",
        "Environment, Food and Rural Affairs",
    ),
    "DESNZ": ("Department for Energy Security and Net Zero", "Energy Security and Net Zero"),
    "DFE": ("Department for Education", "Department of Education", "education department"),
    "DFID": ("Department for International Development", "International Development"),
    "DFT": ("Department for Transport", "Department of Transport", "transport department"),
    "DHSC": (
        "Department of Health and Social Care",
        "Department for Health and Social Care",
        "Department of Health",
        "Department for Health",
        "health department",
    ),
    "DLUHC": ("Department for Levelling Up, Housing and Communities", "Levelling Up, Housing and Communities"),
    "DSIT": ("Department for Science, Innovation and Technology", "Science, Innovation and Technology"),
    "DWP": ("Department for Work and Pensions", "Department of Work and Pensions", "Work and Pensions"),
    "FCDO": ("Foreign, Commonwealth and Development Office",),
    "FCO": ("Foreign and Commonwealth Office", "Foreign Office"),
    "HMLR": ("HM Land Registry", "Land Registry"),
    "HMRC": ("HM Revenue and Customs", "Her Majesty's Revenue and Customs", "His Majesty's Revenue and Customs"),
    "HMT": ("HM Treasury", "Treasury", "Her Majesty's Treasury", "His Majesty's Treasury"),
    "HO": ("Home Office",),
    "MHCLG": ("Ministry of Housing, Communities and Local Government", "housing ministry"),
    "MOD": ("Ministry of Defence", "Ministry of Defense", "defence ministry", "Department of Defence"),
    "MOJ": ("Ministry of Justice", "justice ministry", "Department of Justice"),
    "NCA": ("National Crime Agency",),
    "ONS": ("Office for National Statistics", "Office of National Statistics"),
    "VOA": ("Valuation Office Agency", "Valuation Office"),
}
"""Short name, and names in full. The short name is the one that the portfolio's rows have, in capitals."""

ONLY_IN_CAPITALS = frozenset({"CO", "HO"})
"""Short names that are ordinary words in small letters."""
SHOWN = ("rating", "category", "status", "end_date", "whole_life_cost", "year_baseline", "year_forecast")
"""What is read of each project."""
GAPS = {"rating": "a rating", "end_date": "an end date", "whole_life_cost": "a whole-life cost"}
"""What may be missing of a project, and how that is said."""
ALL_YEARS = (2020, 2021, 2022, 2023)
"""The years of a report whose goal names none: those that the sample portfolio has."""
_MOST_YEARS = 10
_RISK = re.compile(r"\b(?:risk\w*|ratings?|rated|delivery confidence|in doubt|trouble|red)\b", re.I)
_PROJECTS = re.compile(r"\b(?:portfolio|projects?|programmes?|programs?)\b", re.I)
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
_RANGE = re.compile(r"\b((?:19|20)\d{2})\s*(?:to|-|–|—|until|till|through|up to|and)\s*((?:19|20)\d{2})\b", re.I)


@dataclass(frozen=True)
class Asked:
    """What a report is to cover."""

    department: str | None
    """Its short name; all of them where absent."""
    years: tuple[int, ...]

    @property
    def name(self) -> str:
        """The department's name in full."""
        return DEPARTMENTS[self.department][0] if self.department else "all departments"


def understood(goal: str) -> Asked | None:
    """What a goal asks for; `None` where it is no risk report on projects."""
    department = _department(goal)
    if not _RISK.search(goal) or not (_PROJECTS.search(goal) or department):
        return None
    return Asked(department, _years(goal))


def _department(goal: str) -> str | None:
    folded, found = goal.casefold(), list[tuple[int, int, str]]()
    for short, names in DEPARTMENTS.items():
        for name in names:
            if match := re.search(rf"\b{re.escape(name.casefold())}\b", folded):
                found.append((match.start(), -len(name), short))
        text = goal if short in ONLY_IN_CAPITALS else goal.upper()
        if match := re.search(rf"\b{short}\b", text):
            found.append((match.start(), -len(short), short))
    return min(found)[2] if found else None


def _years(goal: str) -> tuple[int, ...]:
    found = {int(year) for year in _YEAR.findall(goal)}
    for first, last in _RANGE.findall(goal):
        found |= set(range(int(first), int(last) + 1))
    return tuple(sorted(found))[:_MOST_YEARS] or ALL_YEARS


def plan(asked: Asked, tools: tuple[str, ...]) -> Plan:
    """The steps: the projects of each year, then what is not published of them, then the portfolio that they are held against.

    Looking for an earlier report and for other spellings of the department are optional: a strategy that worked without
    them leaves them out.
    """
    steps = [_projects(asked, year) for year in asked.years]
    if RECALL_TOOL.name in tools:
        steps.append(_looked("earlier", "Earlier notes on this", RECALL_TOOL.name, {"query": f"risk {asked.name}", "limit": 5}))
    if asked.department and FIND_ENTITIES_TOOL.name in tools:
        steps.append(_looked("spelling", "Other spellings of the department", FIND_ENTITIES_TOOL.name, _entities(asked)))
    steps += [_gap(asked, name, said) for name, said in GAPS.items()]
    steps.append(_all_ratings(asked))
    title = f"Portfolio risk report: {asked.name}, {_span(asked.years)}"
    return Plan(title=title, kind=KIND, steps=tuple(steps))


def _span(years: tuple[int, ...]) -> str:
    return str(years[0]) if len(years) == 1 else f"{years[0]} to {years[-1]}"


def _entities(asked: Asked) -> dict[str, Any]:
    return {"text": asked.name, "types": ["SectorGovEntity"], "limit": 5}


def _looked(id: str, description: str, tool: str, arguments: dict[str, Any]) -> Step:
    return Step(id=id, description=description, tool=tool, arguments=arguments, wave=1, optional=True)


def _projects(asked: Asked, year: int) -> Step:
    arguments = _survey(asked, (year,)) | {"measure": "list", "show": list(SHOWN), "limit": MAX_ROWS}
    return Step(
        id=f"projects.{year}", description=f"The projects of {year}", tool=SURVEY_TOOL.name, arguments=arguments, wave=1
    )


def _gap(asked: Asked, name: str, said: str) -> Step:
    arguments = _survey(asked, asked.years) | {"group_by": [{"property": "year"}]}
    arguments["where"] = [*arguments["where"], {"property": name, "op": "unknown"}]
    return Step(
        id=f"without.{name}",
        description=f"How many projects have not published {said}",
        tool=SURVEY_TOOL.name,
        arguments=arguments,
        wave=2,
    )


def _all_ratings(asked: Asked) -> Step:
    arguments = _survey(Asked(None, asked.years), asked.years)
    arguments |= {"group_by": [{"property": "year"}, {"property": "rating"}], "limit": MAX_ROWS}
    description = "The ratings of all departments, for comparison"
    return Step(id="all.ratings", description=description, tool=SURVEY_TOOL.name, arguments=arguments, wave=3)


def _survey(asked: Asked, years: tuple[int, ...]) -> dict[str, Any]:
    where = [{"property": "id", "op": "=", "value": asked.department, **DEPARTMENT}] if asked.department else []
    return {"type": PROJECT, "level": Level.L3.value, "years": list(years), "where": where}


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
