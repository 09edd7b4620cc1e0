"""Figures over sets, whole or by group, and figures side by side. What is not published is left out, and counted apart."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Iterable, Mapping, Sequence

from phronesis_contracts.twin import GroupBy, Survey

from .changes import scale_notes
from .finding import Figure, Finding, Note, Row
from .plan import Aggregate, Compare, Having
from .reader import TwinReader
from .sets import first_rows, nothing, unknown_notes

_MEASURES = {"count": "count", "sum": "sum", "mean": "avg", "median": "median", "min": "min", "max": "max"}
_HOLDS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


async def aggregate(plan: Aggregate, twin: TwinReader) -> Finding:
    """One figure, or one for each group. Several years are groups of their own: each counts its things anew."""
    of, dimensions = plan.of, _dimensions(plan)
    asked = _survey(await twin.survey_of(of), plan, dimensions)
    found, notes = await asyncio.gather(twin.groups(asked), unknown_notes(of, twin))
    if found.total == 0:
        return await nothing(of, twin, notes)
    rows = _ordered(plan, dimensions, found.rows, twin)
    whole = rows[0] if not dimensions else await _whole(plan, twin, found.total)
    figure = _figure(whole, found.total)
    notes = (*notes, *_double_counts(plan, dimensions, rows, found.total), *await _scales(plan, dimensions, twin))
    if plan.having is not None:
        rows = [row for row in rows if _fits(plan.having, row["value"])]
    groups = [row for row in rows if not any(row[key] is None for key in _keys(dimensions))]
    unknown = figure.unknown if plan.property or not dimensions else sum(int(row["unknown"]) for row in rows)
    if plan.limit is not None:
        rows = groups if plan.order != "group" else rows
        rows = rows[: plan.limit] if plan.order == "group" else first_rows(rows, plan.limit)
    return Finding(
        outcome="found" if rows or plan.count_groups else "empty",
        rows=tuple(rows),
        dimensions=dimensions,
        figures=(figure,),
        value=len(groups) if plan.count_groups else _number(figure.value),
        total=found.total,
        known=figure.known if plan.property else max(found.total - unknown, 0),
        unknown=unknown,
        notes=notes,
    )


def _dimensions(plan: Aggregate) -> tuple[GroupBy, ...]:
    by = plan.group_by
    several = len(plan.of.years) > 1 and not any(one.property == "year" and one.via is None for one in by)
    return (GroupBy(property="year"), *by) if several and len(by) < 2 else by


def _survey(question: Survey, plan: Aggregate, dimensions: tuple[GroupBy, ...]) -> Survey:
    return question.model_copy(update={"measure": _MEASURES[plan.measure], "of": plan.property, "group_by": dimensions})


def _figure(row: Mapping[str, object], total: int) -> Figure:
    value = row["value"]
    assert isinstance(value, int | float | str | None)
    return Figure(value, int(str(row["known"])), int(str(row["unknown"])), total)


async def _whole(plan: Aggregate, twin: TwinReader, total: int) -> Row:
    """The figure over all groups together, each thing once in each year."""
    if plan.measure == "count" and plan.property is None:
        return {"value": total, "known": total, "unknown": 0}
    return dict((await twin.survey(_survey(await twin.survey_of(plan.of), plan, ()))).rows[0])


def _keys(dimensions: Sequence[GroupBy]) -> tuple[str, ...]:
    return ("group", "group2")[: len(dimensions)]


def _ordered(plan: Aggregate, dimensions: tuple[GroupBy, ...], rows: Iterable[Row], twin: TwinReader) -> list[Row]:
    ordered = [dict(row) for row in rows]
    for key, by in reversed(list(zip(_keys(dimensions), dimensions, strict=True))):
        type = by.to if by.via else plan.of.type
        groups = twin.schema.in_order(type, by.property, {row[key] for row in ordered})
        places = {value: n for n, value in enumerate(groups)}
        ordered.sort(key=lambda row: places[row[key]])
    if plan.order != "group":
        known = sorted(
            (row for row in ordered if row["value"] is not None),
            key=lambda row: row["value"],
            reverse=plan.order == "-value",
        )
        ordered = [*known, *(row for row in ordered if row["value"] is None)]
    return ordered


def _double_counts(plan: Aggregate, dimensions: Sequence[GroupBy], rows: Sequence[Row], total: int) -> tuple[Note, ...]:
    """What is linked to two groups counts in each of them, and once in the whole."""
    more = sum(int(row["known"]) + int(row["unknown"]) for row in rows) - total
    linked = any(one.via for one in dimensions)
    return (Note("in_two_groups", {"n": more, "type": plan.of.type, "level": plan.of.level}),) if linked and more > 0 else ()


async def _scales(plan: Aggregate, dimensions: Sequence[GroupBy], twin: TwinReader) -> tuple[Note, ...]:
    own = [one.property for one in dimensions if one.via is None]
    if "year" not in own:
        return ()
    found = [await scale_notes(twin, plan.of.type, plan.of.level, plan.of.years, name) for name in own if name != "year"]
    return tuple(note for notes in found for note in notes)


def _fits(having: Having, value: object) -> bool:
    return isinstance(value, int | float) and bool(_HOLDS[having.op](value, having.value))


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


async def compare(plan: Compare, twin: TwinReader) -> Finding:
    """Figures side by side, and what they make together."""
    figures = tuple(await asyncio.gather(*(_side(side, twin) for side in plan.sides)))
    first, second = (_number(one.value) for one in figures[:2])
    value, percent = _together(plan.how, first, second)
    counted = sum(one.total for side, one in zip(plan.sides, figures, strict=True) if side.property is None)
    return Finding(
        outcome="empty" if all(one.total == 0 for one in figures) else "found",
        figures=figures,
        value=value,
        percent=percent,
        known=max(counted + sum(one.known for one in figures), 1),
        unknown=sum(one.unknown for one in figures),
        notes=await _comparison_notes(plan, twin),
    )


def _together(how: str, first: float | None, second: float | None) -> tuple[float | None, float | None]:
    if first is None or second is None or how == "side_by_side":
        return None, None
    if how in ("share", "ratio"):
        return (first / second * (100 if how == "share" else 1) if second else None), None
    return first - second, (first - second) / abs(second) * 100 if second else None


async def _side(side: Aggregate, twin: TwinReader) -> Figure:
    found = await twin.survey(_survey(await twin.survey_of(side.of), side, ()))
    return _figure(found.rows[0], found.total)


async def _comparison_notes(plan: Compare, twin: TwinReader) -> tuple[Note, ...]:
    """What is not known of the conditions of a side, and closed sets whose choices changed between the years."""
    sets = [side.of for side in plan.sides]
    found = [note for notes in await asyncio.gather(*(unknown_notes(one, twin) for one in sets)) for note in notes]
    years = tuple(sorted({year for one in sets for year in one.years}))
    conditions = sorted({(one.type, each.property) for one in sets for each in one.filters if each.via is None})
    for type, name in conditions if len(years) > 1 else ():
        found += await scale_notes(twin, type, sets[0].level, years, name)
    return tuple({(note.key, str(note.values)): note for note in found}.values())
