"""Adding up: sums, averages and extremes of a figure, by group and by year. What is not published is never zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from phronesis_contracts.twin import Surveyed, Where

from .calendar import Years, listed
from .counts import asked_for, dimensions, grouping, named, survey_of
from .findings import Findings
from .frame import Condition, Frame
from .measures import MEASURES
from .problems import Declined
from .saying import NOT_PUBLISHED, amount, column, in_order, in_years, line, lines, percent, pie, table
from .twin import Twin
from .wanted import Wanted

_WORDS = {"sum": "total", "avg": "average", "min": "lowest", "max": "highest"}
_LOWEST = -1e15
"""Below every figure: a property that is above it is published."""


async def total(twin: Twin, question: Wanted, years: Years) -> Findings:
    """A figure over a set, in all or by group."""
    frame = question.frame
    dims = dimensions(frame, years)
    measure, found = await _measured(twin, question, years, dims)
    label = f"{_WORDS[question.aggregate]} {MEASURES[measure].name}"
    unit = MEASURES[measure].unit
    rows = [named(frame, dims, row) | _figures(row, label) for row in found if asked_for(frame, dims, row)]
    rows = [{key: NOT_PUBLISHED if value is None else value for key, value in row.items()} for row in _ordered(rows, len(dims))]
    known, unknown = sum(row["known"] for row in rows), sum(row[NOT_PUBLISHED] for row in rows)
    if not dims:
        answer = _one(frame, years, label, rows, unit)
    else:
        answer = _by_group(frame, years, label, rows, unit, len(dims))
    return Findings(
        answer,
        tuple(_insights(rows, label, dims, unit, question.aggregate, unknown)),
        tuple(rows),
        {"known": known, "not_published": unknown, **_whole(rows, label, question.aggregate, dims)},
        _charts(rows, label, dims, f"{label} of {frame.said()}, {listed(years.asked)}", question.aggregate),
        known=known,
        unknown=unknown,
    )


async def _measured(twin: Twin, question: Wanted, years: Years, dims: tuple[str, ...]) -> tuple[str, list[dict[str, Any]]]:
    """The property that the measure stands for in this data, and its rows."""
    for name in question.measure:
        if name == "variance":
            return name, await _variance(twin, question, years, dims)
        found = await _summed(twin, question.frame, years, dims, name, question.aggregate)
        if any(row.get("known") for row in found.rows):
            return name, list(found.rows)
    names = " or ".join(MEASURES[name].name for name in question.measure)
    raise Declined(f"No {names} is published for {question.frame.said()} in {listed(years.asked)}.", mode="A")


async def _summed(twin: Twin, frame: Frame, years: Years, dims: tuple[str, ...], of: str, aggregate: str) -> Surveyed:
    return await twin.survey(survey_of(frame, years.asked, grouping(frame, dims), measure=aggregate, of=of))


async def _variance(twin: Twin, question: Wanted, years: Years, dims: tuple[str, ...]) -> list[dict[str, Any]]:
    """Forecast less baseline, over the things that have both."""
    if question.aggregate not in ("sum", "avg"):
        raise Declined("I can add up or average the variance, and rank single projects by it.", mode="E")
    frame = question.frame
    both = tuple(
        Condition(name, (), (Where(property=name, op=">", value=_LOWEST),), "") for name in ("year_baseline", "year_forecast")
    )
    having = replace(frame, conditions=(*frame.conditions, *both))
    parts = [await _summed(twin, having, years, dims, name, question.aggregate) for name in ("year_forecast", "year_baseline")]
    everything = await twin.survey(survey_of(frame, years.asked, grouping(frame, dims)))
    counts = {(row.get("group"), row.get("group2")): int(row["value"]) for row in everything.rows}
    less = {(row.get("group"), row.get("group2")): row for row in parts[1].rows}
    rows = []
    for row in parts[0].rows:
        at = (row.get("group"), row.get("group2"))
        known = int(row["known"])
        difference = round(row["value"] - less[at]["value"], 6) if known else None
        rows.append({**row, "value": difference, "known": known, "unknown": counts.get(at, known) - known})
    return rows


def _figures(row: dict[str, Any], label: str) -> dict[str, Any]:
    known = int(row.get("known") or 0)
    value = row["value"] if known else None
    return {label: round(value, 6) if value is not None else None, "known": known, NOT_PUBLISHED: int(row.get("unknown") or 0)}


def _ordered(rows: list[dict[str, Any]], dims: int) -> list[dict[str, Any]]:
    if not rows or not dims:
        return rows
    keys = list(rows[0])[:dims]
    places = [{value: n for n, value in enumerate(in_order({row[key] for row in rows}))} for key in keys]
    return sorted(rows, key=lambda row: [place[row[key]] for key, place in zip(keys, places, strict=True)])


def _shown(value: Any, unit: str) -> str:
    return NOT_PUBLISHED if value == NOT_PUBLISHED else amount(value, unit)


def _by_group(frame: Frame, years: Years, label: str, rows: list[dict[str, Any]], unit: str, dims: int) -> str:
    listing = lines(
        f"{', '.join(str(row[key]) for key in list(row)[:dims])}: **{_shown(row[label], unit)}**"
        f" ({row['known']:,} published{f', {row[NOT_PUBLISHED]:,} not' if row[NOT_PUBLISHED] else ''})"
        for row in rows
    )
    by = " and ".join(list(rows[0])[:dims]) if rows else "group"
    return f"{in_years(years.asked)}, {label} of {frame.said()} by {by}:\n\n{listing}"


def _one(frame: Frame, years: Years, label: str, rows: list[dict[str, Any]], unit: str) -> str:
    row = rows[0]
    rest = f"; for {row[NOT_PUBLISHED]:,} it is not published" if row[NOT_PUBLISHED] else ""
    figures = f"from {row['known']:,} published figures{rest}"
    return f"{in_years(years.asked)}, the {label} of {frame.said()} is **{_shown(row[label], unit)}** ({figures})."


def _insights(rows: list[dict[str, Any]], label: str, dims: tuple[str, ...], unit: str, how: str, unknown: int) -> list[str]:
    figures = [row for row in rows if isinstance(row[label], int | float)]
    found: list[str] = []
    if len(dims) == 1 and len(figures) > 1:
        key = next(iter(figures[0]))
        if dims[0] == "year":
            first, last = figures[0], figures[-1]
            found.append(f"From {first[key]} to {last[key]} it changed by {amount(last[label] - first[label], unit)}.")
        else:
            top = max(figures, key=lambda row: row[label])
            whole = sum(row[label] for row in figures)
            part = f" ({percent(top[label], whole)} of all)" if how == "sum" and whole > 0 and dims[0] != "department" else ""
            found.append(f"The highest is {top[key]} with {amount(top[label], unit)}{part}.")
    if unknown:
        found.append(f"Not published for {unknown:,}; they are left out of the figures, not taken for zero.")
    return found


def _whole(rows: list[dict[str, Any]], label: str, how: str, dims: tuple[str, ...]) -> dict[str, Any]:
    if "department" in dims:
        return {}  # a project of two departments stands in both
    figures = [row[label] for row in rows if isinstance(row[label], int | float)]
    return {"total": round(sum(figures), 6)} if how == "sum" else {}


def _charts(rows: list[dict[str, Any]], label: str, dims: tuple[str, ...], title: str, how: str) -> tuple[Any, ...]:
    title = title[:1].upper() + title[1:]
    if not dims or not rows:
        return ()
    if len(dims) > 1:
        return (table(title, rows),)
    key = next(iter(rows[0]))
    if key == "year":
        return (line(title, key, label, rows), table(title, rows))
    share = [row for row in rows if isinstance(row[label], int | float) and row[label] > 0]
    whole = how == "sum" and len(share) == sum(isinstance(row[label], int | float) for row in rows)
    pies = (pie(title, key, label, share),) if whole and 1 < len(share) <= 6 else ()
    return (column(title, key, label, rows), *pies, table(title, rows))
