"""What is true of the portfolio, computed from its published rows with nothing but the standard library."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "samples/phronesis_samples/portfolio/portfolio_2020_2023.csv"
_ORDER = ["Red", "Amber/Red", "Amber", "Amber/Green", "Green"]
_FIGURES = {
    "rating": "rating",
    "start date": "start_date",
    "end date": "end_date",
    "baseline of the financial year": "year_baseline_gbp_m",
    "forecast of the financial year": "year_forecast_gbp_m",
    "whole-life cost": "whole_life_cost_gbp_m",
    "aims": "aims",
    "comment on the rating": "rating_comment",
    "comment on the schedule": "schedule_comment",
    "comment on the budget": "budget_comment",
}
YEARS = (2020, 2021, 2022, 2023)
Row = dict[str, str]


def _readable(text: str) -> str:
    return "".join(bytes([ord(c)]).decode("cp1252", "ignore") if 0x80 <= ord(c) < 0xA0 else c for c in text).strip()


with FILE.open(encoding="utf-8", newline="") as _file:
    ROWS: list[Row] = [{name: _readable(value) for name, value in row.items()} for row in csv.DictReader(_file)]


def delivered_by(row: Row) -> set[str]:
    """Departments of a row, in capitals."""
    return {part.strip().upper() for part in row["department"].split("&")}


def of(
    year: int | None = None, department: str | None = None, rating: str | None = None, category: str | None = None
) -> list[Row]:
    """The rows that fit; an empty rating is that of the projects without one."""
    return [
        row
        for row in ROWS
        if (year is None or row["year"] == str(year))
        and (department is None or department in delivered_by(row))
        and (rating is None or row["rating"] == rating)
        and (category is None or row["category"] == category)
    ]


def by_department(rows: list[Row]) -> dict[str, int]:
    """How many rows each department has."""
    return dict(Counter(name for row in rows for name in delivered_by(row)))


def by(field: str, rows: list[Row]) -> dict[str, int]:
    """How many rows have each value; what is empty is not on record."""
    return dict(Counter(row[field] or "none on record" for row in rows))


def names(rows: list[Row]) -> set[str]:
    """The names of the projects."""
    return {row["project_name"] for row in rows}


def cost(row: Row, field: str = "whole_life_cost_gbp_m") -> float | None:
    """A figure in £ million; `None` where it is not published."""
    return float(row[field]) if row[field] else None


def total(rows: list[Row], field: str = "whole_life_cost_gbp_m") -> float:
    """The sum of what is published."""
    return sum(value for row in rows if (value := cost(row, field)) is not None)


def mean(rows: list[Row], field: str = "whole_life_cost_gbp_m") -> float:
    """The average of what is published."""
    values = [value for row in rows if (value := cost(row, field)) is not None]
    return sum(values) / len(values)


def sums(field: str, rows: list[Row], figure: str = "whole_life_cost_gbp_m") -> dict[str, float]:
    """Sums by the value of a field; for departments, a row counts for each of its own."""
    found: dict[str, float] = defaultdict(float)
    for row in rows:
        for group in delivered_by(row) if field == "department" else {row[field]}:
            found[group] += cost(row, figure) or 0.0
    return dict(found)


def costliest(rows: list[Row], n: int, down: bool = True) -> list[Row]:
    """The rows with the highest or lowest cost."""
    priced = [row for row in rows if cost(row) is not None]
    return sorted(priced, key=lambda row: cost(row) or 0.0, reverse=down)[:n]


def story(name: str) -> dict[int, Row]:
    """A project year by year: rows of one number, or of one name, whatever their case."""
    numbers = {row["project_number"].upper() for row in ROWS if row["project_name"].upper() == name.upper()}
    alike = {row["project_name"].upper() for row in ROWS if row["project_number"].upper() in numbers}
    return {
        int(row["year"]): row
        for row in ROWS
        if row["project_number"].upper() in numbers or row["project_name"].upper() in alike
    }


def missing(name: str, years: tuple[int, ...] = YEARS) -> set[tuple[int, str]]:
    """What is not there of a project, by year. What has no rating is linked to no risk either."""
    found: set[tuple[int, str]] = set()
    rows = story(name)
    for year in years:
        if year not in rows:
            found.add((year, "not on record in this year"))
        else:
            found |= {(year, said) for said, field in _FIGURES.items() if not rows[year][field]}
            found |= {(year, "no link “rated by” to risk")} if not rows[year]["rating"] else set()
    return found


def pairs(before: int, after: int, **only: str) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    """Projects of both years, those of the first alone, and those of the second alone."""
    old, new = of(before, **only), of(after, **only)
    both, gone, used = [], [], set()
    for row in old:
        match = next((one for one in new if one["project_number"].upper() == row["project_number"].upper()), None)
        match = match or next(
            (one for one in new if one["project_name"].upper() == row["project_name"].upper() and id(one) not in used), None
        )
        if match is None:
            gone.append(row)
        else:
            used.add(id(match))
            both.append((row, match))
    return both, gone, [row for row in new if id(row) not in used]


def changed(before: int, after: int) -> int:
    """How many projects of one number have another rating than before, where both are published."""
    old = {row["project_number"].upper(): row["rating"] for row in of(before)}
    new = {row["project_number"].upper(): row["rating"] for row in of(after)}
    return sum(1 for number in old.keys() & new.keys() if old[number] and new[number] and old[number] != new[number])


def moved(before: int, after: int, better: bool, **only: str) -> set[str]:
    """Names of the projects whose rating got better, or worse."""
    both, _, _ = pairs(before, after, **only)
    rated = [(a, b) for a, b in both if a["rating"] and b["rating"]]
    steps = [(_ORDER.index(b["rating"]) - _ORDER.index(a["rating"]), b) for a, b in rated]
    return {row["project_name"] for step, row in steps if (step > 0 if better else step < 0)}
