"""Truths about the sample portfolio, from its CSV: one row for each project and year, an empty field is unknown.

The functions are the vocabulary of the expressions in `sets/portfolio`: `number(n(of(2022, rating="Red")))`.
"""

from __future__ import annotations

import csv
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from . import Expect, either  # noqa: F401  # `either` is for the expressions, by `vocabulary`

DATA = Path(__file__).parents[2] / "samples" / "phronesis_samples" / "portfolio" / "portfolio_2020_2023.csv"
YEARS = (2020, 2021, 2022, 2023)
CATEGORIES = {
    "GOV": "Government Transformation and Service Delivery",
    "INF": "Infrastructure and Construction",
    "MIL": "Military Capability",
    "ICT": "ICT",
}
DEPARTMENTS = {
    "BEIS": "Department for Business, Energy and Industrial Strategy",
    "CO": "Cabinet Office",
    "DBT": "Department for Business and Trade",
    "DCMS": "Department for Digital, Culture, Media and Sport",
    "DEFRA": "Department for Environment, Food and Rural Affairs",
    "DESNZ": "Department for Energy Security and Net Zero",
    "DFE": "Department for Education",
    "DFID": "Department for International Development",
    "DFT": "Department for Transport",
    "DHSC": "Department of Health and Social Care",
    "DLUHC": "Department for Levelling Up, Housing and Communities",
    "DSIT": "Department for Science, Innovation and Technology",
    "DWP": "Department for Work and Pensions",
    "FCDO": "Foreign, Commonwealth and Development Office",
    "FCO": "Foreign and Commonwealth Office",
    "HMLR": "HM Land Registry",
    "HMRC": "HM Revenue and Customs",
    "HMT": "HM Treasury",
    "HO": "Home Office",
    "MHCLG": "Ministry of Housing, Communities and Local Government",
    "MOD": "Ministry of Defence",
    "MOJ": "Ministry of Justice",
    "NCA": "National Crime Agency",
    "ONS": "Office for National Statistics",
    "VOA": "Valuation Office Agency",
}
Row = dict[str, Any]


@cache
def rows() -> tuple[Row, ...]:
    """Every report of a project."""
    with DATA.open(encoding="utf-8", newline="") as file:
        found = [_row(raw) for raw in csv.DictReader(file)]
    numbers: dict[str, str] = {}
    for row in found:  # a project whose number was rewritten keeps its name, and is one project
        numbers.setdefault(row["name"].lower(), row["id"])
    return tuple(
        {**row, "id": numbers[row["name"].lower()] if _renumbered(row, numbers, found) else row["id"]} for row in found
    )


def _renumbered(row: Row, numbers: dict[str, str], found: list[Row]) -> bool:
    """Whether a project has another number in an earlier year, under which it is not reported in this one."""
    first = numbers[row["name"].lower()]
    return first != row["id"] and not any(other["id"] == first and other["year"] == row["year"] for other in found)


def _row(raw: dict[str, str]) -> Row:
    def money(column: str) -> float | None:
        return float(raw[column]) if raw[column].strip() else None

    def day(column: str) -> date | None:
        return date.fromisoformat(raw[column]) if raw[column].strip() else None

    return {
        "year": int(raw["year"]),
        "id": raw["project_number"].upper(),
        "name": raw["project_name"].strip(),
        "depts": tuple(one.strip().upper() for one in raw["department"].split("&")),
        "category": raw["category"],
        "rating": raw["rating"] or None,
        "start": day("start_date"),
        "end": day("end_date"),
        "cost": money("whole_life_cost_gbp_m"),
        "baseline": money("year_baseline_gbp_m"),
        "forecast": money("year_forecast_gbp_m"),
        "aims": raw["aims"],
    }


_COMPARED: dict[str, Callable[[Any, float], bool]] = {
    "over": lambda value, limit: bool(value > limit),
    "under": lambda value, limit: bool(value < limit),
    "year": lambda value, limit: bool(value.year == limit),
}


def of(
    year: int,
    *,
    dept: str | None = None,
    category: str | None = None,
    rating: str | tuple[str, ...] | None = None,
    known: str | None = None,
    unknown: str | None = None,
    named: str | None = None,
    where: Callable[[Row], bool] | None = None,
    **bounds: float,
) -> list[Row]:
    """The reports of a year that fit. `bounds` are `cost_over`, `cost_under`, `end_year`, for each field of that kind."""
    ratings = (rating,) if isinstance(rating, str) else rating

    def fits(row: Row) -> bool:
        for bound, limit in bounds.items():
            field, _, how = bound.rpartition("_")
            value = row[field]
            if value is None or not _COMPARED[how](value, limit):
                return False
        return (
            row["year"] == year
            and (dept is None or dept in row["depts"])
            and (category is None or row["category"] == CATEGORIES[category])
            and (ratings is None or row["rating"] in ratings)
            and (known is None or row[known] is not None)
            and (unknown is None or row[unknown] is None)
            and (named is None or named.lower() in row["name"].lower())
            and (where is None or where(row))
        )

    return [row for row in rows() if fits(row)]


def one(name: str, year: int) -> Row:
    """The report of one project in a year, by a name that it has in any year, or by a part of it that no other project has.

    Raises:
        LookupError: none, or several.
    """
    exact = {row["id"] for row in rows() if row["name"].lower() == name.lower()}
    ids = exact or {row["id"] for row in rows() if name.lower() in row["name"].lower()}
    found = [row for row in rows() if row["id"] in ids and row["year"] == year]
    if len(found) != 1:
        raise LookupError(f"{len(found)} reports of {name} in {year}")
    return found[0]


def history(name: str, field: str) -> dict[int, Any]:
    """A field of one project in each year that has it."""
    found = {}
    for year in YEARS:
        try:
            found[year] = one(name, year)[field]
        except LookupError:
            continue
    return found


def n(some: Iterable[Row]) -> int:
    """How many."""
    return len(list(some))


def values(some: Iterable[Row], field: str = "cost") -> list[float]:
    """What is published of a field."""
    return [row[field] for row in some if row[field] is not None]


def total(some: Iterable[Row], field: str = "cost") -> float:
    """The sum of what is published."""
    return sum(values(some, field))


def mean(some: Iterable[Row], field: str = "cost") -> float:
    """The mean of what is published."""
    return statistics.fmean(values(some, field))


def median(some: Iterable[Row], field: str = "cost") -> float:
    """The median of what is published."""
    return statistics.median(values(some, field))


def top(some: Iterable[Row], count: int = 1, field: str = "cost", least: bool = False) -> list[Row]:
    """The reports with the greatest values, or the least.

    Raises:
        ValueError: the last one that counts ties with the first that does not.
    """
    ordered = sorted((row for row in some if row[field] is not None), key=lambda row: row[field], reverse=not least)
    if len(ordered) > count and ordered[count - 1][field] == ordered[count][field]:
        raise ValueError("a tie at the end of a ranking")
    return ordered[:count]


def by(some: Iterable[Row], field: str) -> dict[str, int]:
    """How many by `rating`, `category` or `dept`; unknown ones are left out."""
    return dict(Counter(value for row in some for value in _values(row, field)))


def sums(some: Iterable[Row], field: str, what: str = "cost") -> dict[str, float]:
    """Sums of a field by `rating`, `category` or `dept`."""
    found: Counter[str] = Counter()
    for row in some:
        for value in _values(row, field):
            found[value] += row[what] or 0
    return {key: round(value, 4) for key, value in found.items()}


def most(counts: dict[str, Any]) -> str:
    """The group with the greatest value; a tie is an error."""
    first, second = sorted(counts, key=lambda key: counts[key], reverse=True)[:2]
    if counts[first] == counts[second]:
        raise ValueError(f"{first} and {second} tie")
    return first


def _values(row: Row, field: str) -> tuple[str, ...]:
    value = row["depts"] if field == "dept" else row[field]
    return value if isinstance(value, tuple) else () if value is None else (value,)


def new(before: int, after: int, **where: Any) -> list[Row]:
    """Reports of `after` whose project was not in `before`."""
    old = {row["id"] for row in of(before)}
    return [row for row in of(after, **where) if row["id"] not in old]


def gone(before: int, after: int, **where: Any) -> list[Row]:
    """Reports of `before` whose project is not in `after`."""
    kept = {row["id"] for row in of(after)}
    return [row for row in of(before, **where) if row["id"] not in kept]


def turned(before: int, after: int, old: str, fresh: str, **where: Any) -> list[Row]:
    """Reports of `after` whose project had the rating `old` before and has `fresh` now."""
    had = {row["id"] for row in of(before, rating=old)}
    return [row for row in of(after, rating=fresh, **where) if row["id"] in had]


def number(value: float, unit: str = "", **more: Any) -> Expect:
    """A figure is expected."""
    return {"number": round(value, 4), "unit": unit, **more}


def pounds(value: float | None, **more: Any) -> Expect:
    """Millions of pounds are expected, or that they are not published."""
    return {"unpublished": True} if value is None else {"number": round(value, 4), "unit": "£m", **more}


def share(part: float, whole: float) -> Expect:
    """A percentage is expected."""
    return {"number": round(100 * part / whole, 4), "unit": "%"}


def day(value: date | None) -> Expect:
    """A date is expected, or that it is not published."""
    return {"unpublished": True} if value is None else {"date": value.isoformat()}


def said(*groups: Any) -> Expect:
    """Phrases are expected: of each group one."""
    return {"text": [list(group) if isinstance(group, tuple | list) else [group] for group in groups]}


def rating(row: Row) -> Expect:
    """A rating is expected, and no other colour."""
    if row["rating"] is None:
        return {"unpublished": True}
    others = [f"Amber/{other}" for other in ("Red", "Green") if f"Amber/{other}" != row["rating"]]
    return {"text": [[row["rating"]]], "not": others}


def dept(row: Row | str) -> Expect:
    """A department is expected, short or in full."""
    codes = [row] if isinstance(row, str) else list(row["depts"])
    return {"text": [department(code) for code in codes], "not": [code for code in DEPARTMENTS if code not in codes]}


def department(code: str) -> list[str]:
    """The ways to write a department."""
    full = DEPARTMENTS[code]
    short = {
        "DFT": ["DfT"],
        "DFE": ["DfE"],
        "MOJ": ["MoJ"],
        "MOD": ["MoD"],
        "DEFRA": ["Defra"],
        "DCMS": ["Culture, Media and Sport"],
    }
    return [code, full, full.removeprefix("Department for "), *short.get(code, [])]


def listing(some: Iterable[Row], **more: Any) -> Expect:
    """Exactly these projects are expected, and no other of their year."""
    chosen = list(some)
    taken = {row["id"] for row in chosen}
    years = {row["year"] for row in chosen}
    others = [row["name"] for row in rows() if row["year"] in years and row["id"] not in taken]
    return {"names": [aliases(row) for row in chosen], "not": sorted(set(others)), **more}


def ranked(some: Iterable[Row]) -> Expect:
    """These projects are expected in this order; others may be spoken of."""
    return {"names": [aliases(row) for row in some], "ordered": True}


def which(row: Row, **more: Any) -> Expect:
    """One project is expected; others may follow it, and none may stand before it."""
    others = {other["name"] for other in rows() if other["year"] == row["year"] and other["id"] != row["id"]}
    return {"names": [aliases(row)], "lead": sorted(others), **more}


def about(row: Row) -> Expect:
    """One project is expected, among others that are near."""
    return {"names": [aliases(row)]}


def groups(counts: dict[str, Any], unit: str = "") -> Expect:
    """Every group is expected with its value."""
    alias = {key: department(key) if key in DEPARTMENTS else [key] for key in counts}
    return {"groups": {str(key): value for key, value in counts.items()}, "alias": alias, "unit": unit}


def yes(answer: bool, *facts: Any) -> Expect:
    """Yes or no is expected, or facts that say so."""
    return {"yes": bool(answer), **({"facts": said(*facts)["text"]} if facts else {})}


def both(first: Expect, *facts: Any) -> Expect:
    """An expectation with phrases that have to be there as well."""
    return {**first, "facts": [*first.get("facts", []), *said(*facts)["text"]]}


def aliases(row: Row) -> list[str]:
    """The names that a project has in any year, its name of this year first."""
    return list(dict.fromkeys([row["name"], *_names().get(row["id"], ())]))


@cache
def _names() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in rows():
        found[row["id"]] = (*found.get(row["id"], ()), row["name"])
    return found


def names() -> list[str]:
    """Every name in the data."""
    return sorted({row["name"] for row in rows()})


def vocabulary() -> dict[str, Any]:
    """What an expression may use."""
    hidden = {"vocabulary", "names", "cache", "Any", "Path", "Counter", "Iterable", "Callable"}
    return {key: value for key, value in globals().items() if not key.startswith("_") and key not in hidden}
