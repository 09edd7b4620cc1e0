"""Counting and shares; sums, averages and extremes of a figure. What is not published is never zero."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from phronesis_contracts.answers import Visualization
from phronesis_contracts.twin import GroupBy, Level, Survey, Surveyed, Where

from .frame import Condition, Frame, group_by, label_of
from .names import Twin
from .ontology import MEASURES, called, plural
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
    percent,
    pie,
    table,
)
from .reading import Declined, Years, listed
from .wanted import Wanted

_CMP: dict[str, Callable[[float, float], bool]] = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def survey_of(frame: Frame, years: tuple[int, ...], groups: tuple[GroupBy, ...] = (), **more: Any) -> Survey:
    """The set as the twin is asked about it."""
    return Survey(
        type=frame.type, years=years, level=frame.level, where=frame.where, group_by=groups, **({"limit": 500} | more)
    )


def dimensions(frame: Frame, years: Years) -> tuple[str, ...]:
    """What rows are told apart by: years where there are several, groups, and conditions that name several values.

    Raises:
        Declined: they are more than two.
    """
    several = (one.dimension for one in frame.conditions if len(one.values) > 1 and one.dimension not in ("entity", "value"))
    found = tuple(dict.fromkeys((*(("year",) if len(years.asked) > 1 else ()), *frame.groups, *several)))
    if len(found) > 2:
        raise Declined("That is too many groupings for one answer: ask for one year, or for one grouping.", mode="E")
    return found


def named(frame: Frame, dims: tuple[str, ...], row: dict[str, Any]) -> dict[str, Any]:
    """The groups of a row by their names."""
    values = (row.get("group"), row.get("group2"))
    return {label_of(dim): _in_words(frame, dim, value) for dim, value in zip(dims, values, strict=False)}


def _in_words(frame: Frame, dim: str, value: Any) -> Any:
    return called(frame.type, Level(value)) if dim == "level" and value is not None else value


def asked_for(frame: Frame, dims: tuple[str, ...], row: dict[str, Any]) -> bool:
    """Whether a row's groups are among the values that the question named: a project of two departments has both."""
    wanted = {one.dimension: one.values for one in frame.conditions if one.values}
    groups = dict(zip(dims, (row.get("group"), row.get("group2")), strict=False))
    return all(dim not in wanted or negated(frame, dim) or value in wanted[dim] for dim, value in groups.items())


def negated(frame: Frame, dimension: str) -> bool:
    """Whether the conditions of a dimension exclude."""
    return any(where.op == "<>" for one in frame.conditions if one.dimension == dimension for where in one.where)


def grouping(frame: Frame, dims: tuple[str, ...]) -> tuple[GroupBy, ...]:
    """The dimensions as the twin groups by them."""
    return tuple(group_by(frame.type, dim) for dim in dims)


async def count(twin: Twin, question: Wanted, years: Years) -> Findings:
    """How many there are, or how many in each group."""
    frame = question.frame
    dims = dimensions(frame, years)
    found = await twin.survey(survey_of(frame, years.asked, grouping(frame, dims)))
    if not dims:
        return await _one_number(twin, frame, years, found.total)
    rows = [
        named(frame, dims, row) | {frame.noun: int(row["value"])}
        for row in found.rows
        if asked_for(frame, dims, row) and (not frame.more_than or _CMP[frame.more_than[0]](row["value"], frame.more_than[1]))
    ]
    result = _grouped(frame, years, dims, _sorted(rows), found.total)
    if not question.groups_counted or len(dims) != 1:
        return result
    n = sum(1 for row in rows if next(iter(row.values())) is not None)
    noun = plural(label_of(dims[0])) if n != 1 else label_of(dims[0])
    return replace(result, answer=f"**{n:,}** {noun}. {result.answer}", stats={**result.stats, "groups": n})


async def _one_number(twin: Twin, frame: Frame, years: Years, n: int) -> Findings:
    said = frame.said()
    year = in_years(years.asked)
    if n:
        answer = f"{year}, there {'is' if n == 1 else 'are'} **{n:,}** {_noun(frame, n, said)}."
    else:
        answer = f"{year}, there are **no** {said}.{await _elsewhere(twin, frame)}"
    excluded = [one for one in frame.conditions if negated(frame, one.dimension)]
    left_out = await _without(twin, frame, years, excluded[0].dimension) if excluded else ()
    return Findings(answer, left_out, rows=({"year": years.asked[0], frame.noun: n},), stats={"count": n})


async def _without(twin: Twin, frame: Frame, years: Years, dimension: str) -> tuple[str, ...]:
    """What has no such property at all is neither counted as having another value nor forgotten."""
    bare = frame.leaving(dimension)
    unknown = (*bare.where, Where(property=dimension, op="unknown"))
    n = (await twin.survey(survey_of(bare, years.asked).model_copy(update={"where": unknown}))).total
    return (f"For {n:,} more the {label_of(dimension)} is not published; they are not counted.",) if n else ()


def _noun(frame: Frame, n: int, said: str) -> str:
    return called(frame.type, frame.level, many=False) + said.removeprefix(frame.noun) if n == 1 else said


async def _elsewhere(twin: Twin, frame: Frame) -> str:
    """In which years there is something, where the year asked about has nothing."""
    found = await twin.survey(survey_of(frame, (), (GroupBy(property="year"),)))
    years = sorted(int(row["group"]) for row in found.rows if row["group"] is not None)
    return f" There are some in {listed(tuple(years))}." if years else " Nor are there any in another year."


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in the order of their groups."""
    if not rows:
        return rows
    keys = list(rows[0])[:-1]
    places = [{value: n for n, value in enumerate(in_order({row[key] for row in rows}))} for key in keys]
    ordered = sorted(rows, key=lambda row: [place[row[key]] for key, place in zip(keys, places, strict=True)])
    return [{key: NOT_PUBLISHED if value is None else value for key, value in row.items()} for row in ordered]


def _grouped(frame: Frame, years: Years, dims: tuple[str, ...], rows: list[dict[str, Any]], total: int) -> Findings:
    year, said = in_years(years.asked), frame.said()
    if not rows:
        return Findings(f"{year}, there are no such {frame.noun}.", stats={"total": total})
    labels = list(rows[0])[:-1]
    unknown = sum(row[frame.noun] for row in rows if NOT_PUBLISHED in row.values())
    listing = lines(f"{', '.join(str(row[label]) for label in labels)}: {row[frame.noun]:,}" for row in rows)
    by = " and ".join(labels)
    # Each year counts anew what stands in its report, so that years do not add up.
    intro = f"{year}, {said} by {by}:" if "year" in dims else f"{year}, {said} by {by} ({total:,} in all):"
    insights = (*_largest(frame, rows, labels, total, len(dims)), *_caveats(frame, years, dims, rows, total, unknown))
    return Findings(
        f"{intro}\n\n{listing}",
        insights,
        tuple(rows),
        {"total": total, "groups": len(rows), "not_published": unknown},
        _charts(frame, dims, rows, f"{said} by {by}, {listed(years.asked)}", labels),
        known=max(total - unknown, 0),
        unknown=unknown,
    )


def _largest(frame: Frame, rows: list[dict[str, Any]], labels: list[str], total: int, dims: int) -> tuple[str, ...]:
    if dims != 1:
        return ()
    if labels == ["year"]:
        first, last = rows[0], rows[-1]
        change = last[frame.noun] - first[frame.noun]
        return (f"From {first['year']} to {last['year']} the number changed by {change:+,}.",) if len(rows) > 1 else ()
    top = max(rows, key=lambda row: row[frame.noun])
    return (f"{top[labels[0]]} has the most: {top[frame.noun]:,} of {total:,} ({percent(top[frame.noun], total)}).",)


def _caveats(
    frame: Frame, years: Years, dims: tuple[str, ...], rows: list[dict[str, Any]], total: int, unknown: int
) -> tuple[str, ...]:
    found: list[str] = []
    if unknown:
        found.append(f"For {unknown:,} of {total:,} this is not published; they are counted apart.")
    twice = sum(row[frame.noun] for row in rows) - total
    if "department" in dims and twice > 0 and not frame.more_than:
        found.append(f"{counted(twice, 'project is', 'projects are')} delivered by two departments and counted for both.")
    if "rating" in dims and crosses_scales(years.asked):
        found.append(SCALES)
    return tuple(found)


def _charts(
    frame: Frame, dims: tuple[str, ...], rows: list[dict[str, Any]], title: str, labels: list[str]
) -> tuple[Visualization, ...]:
    title = title[:1].upper() + title[1:]
    if dims == ("year",):
        return (line(title, "year", frame.noun, rows),)
    if len(dims) == 1:
        return (column(title, labels[0], frame.noun, rows), table(title, rows))
    return (table(title, rows),)


async def share(twin: Twin, question: Wanted, years: Years) -> Findings:
    """What part of a set has something, or how a set is divided."""
    frame = question.frame
    if len(years.asked) > 1:
        raise Declined("Please ask for the share in one year.", mode="E")
    if frame.groups:
        found = await count(twin, question, years)
        rows = tuple(row | {"share": percent(row[frame.noun], found.stats["total"])} for row in found.rows)
        shares = lines(f"{next(iter(row.values()))}: {row['share']} ({row[frame.noun]:,})" for row in rows)
        intro = found.answer.partition("\n\n")[0]
        label = next(iter(rows[0])) if rows else "group"
        charts = (pie("Shares", label, frame.noun, rows), table("Shares", rows))
        return replace(found, answer=f"{intro}\n\n{shares}", rows=rows, charts=charts)
    dimension = _predicate(frame)
    part = (await twin.survey(survey_of(frame, years.asked))).total
    base = frame.leaving(dimension)
    whole = (await twin.survey(survey_of(base, years.asked))).total
    what = next(one.said for one in frame.conditions if one.dimension == dimension)
    answer = f"{in_years(years.asked)}, **{percent(part, whole)}** of {base.said()} are {what}: {part:,} of {whole:,}."
    rows = ({"part": what, frame.noun: part}, {"part": "the others", frame.noun: whole - part})
    shown = (pie(f"{base.said()[:1].upper()}{base.said()[1:]}: {what}", "part", frame.noun, rows),)
    return Findings(answer, rows=rows, stats={"part": part, "whole": whole}, charts=shown)


def _predicate(frame: Frame) -> str:
    """Which condition the share is about: the narrower one where there are two."""
    found = [one.dimension for one in frame.conditions]
    for dimension in ("rating", "status", "value", *MEASURES, "start_date", "end_date"):
        if dimension in found:
            return dimension
    if len(found) == 1:
        return found[0]
    raise Declined("A share of what? Name the part, for instance the projects rated Red.", mode="E")


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
        _charts_of_totals(rows, label, dims, f"{label} of {frame.said()}, {listed(years.asked)}", question.aggregate),
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


def _charts_of_totals(rows: list[dict[str, Any]], label: str, dims: tuple[str, ...], title: str, how: str) -> tuple[Any, ...]:
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
