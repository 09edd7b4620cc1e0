"""The risk report on a portfolio: what a goal asks for, and the steps to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from phronesis_contracts.memory import RECALL_TOOL
from phronesis_contracts.twin import FIND_ENTITIES_TOOL, MAX_ROWS, SURVEY_TOOL, Level

from ..plan import Plan, Step

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
