"""Listing: the members of a set, those that came or went, and the first of a rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from phronesis_contracts.twin import Survey

from .calendar import Years
from .counts import count, dimensions, grouping, named, survey_of
from .findings import Findings
from .frame import Frame, label_of
from .measures import DATES, DIMENSIONS, MEASURES, TEXTS
from .ontology import called
from .problems import Declined
from .saying import NOT_PUBLISHED, amount, column, in_years, lines, table
from .totals import total
from .twin import Twin
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
