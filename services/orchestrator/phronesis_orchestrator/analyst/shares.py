"""What part of a set has something, and how a set is divided."""

from __future__ import annotations

from dataclasses import replace

from .calendar import Years
from .counts import count, survey_of
from .findings import Findings
from .frame import Frame
from .measures import MEASURES
from .problems import Declined
from .saying import in_years, lines, percent, pie, table
from .twin import Twin
from .wanted import Wanted


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
