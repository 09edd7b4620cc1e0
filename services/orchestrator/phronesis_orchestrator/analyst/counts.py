"""Counting: all, by group, by year, and as a share of the whole."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from phronesis_contracts.analysis import Visualization
from phronesis_contracts.graph import Level
from phronesis_contracts.twin import GroupBy, Survey, Where

from .calendar import Years, listed
from .findings import Findings
from .frame import Frame, group_by, label_of
from .ontology import called, plural
from .problems import Declined
from .saying import NOT_PUBLISHED, SCALES, column, counted, crosses_scales, in_order, in_years, line, lines, percent, table
from .twin import Twin
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
