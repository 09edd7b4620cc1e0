"""What is missing: for one thing, year by year and link by link; for a set, what is not published of it."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.analysis import GAPS_TITLE
from phronesis_contracts.twin import Gap, GapQuestion, GapType, Where

from .calendar import Years, listed
from .counts import survey_of
from .findings import Findings
from .fitting import Named
from .measures import PUBLISHED
from .ontology import CHAINS, called, in_plain_words
from .problems import Declined
from .saying import column, counted, in_years, joined, lines, percent, reports_of, table
from .story import rows_of
from .twin import Twin, ref
from .wanted import Wanted

KINDS = {
    GapType.TEMPORAL: "missing in the year",
    GapType.LEVEL: "at another level",
    GapType.CHAIN: "the chain stops early",
    GapType.DIRECT: "direct link missing",
}
_UNPUBLISHED = "not published"


async def missing_of(twin: Twin, named: Named, known: tuple[int, ...], years: Years) -> Findings:
    """Everything that is missing for one thing, as a table (N-160)."""
    wanted = years.asked if years.stated else known
    show = tuple(PUBLISHED) if named.type == "EntityProject" else ()
    rows = await rows_of(twin, named, wanted, show)
    there = tuple(int(row["year"]) for row in rows)
    absent = tuple(year for year in wanted if year not in there)
    published = _published(rows)
    questions = _questions(named, there, absent, published)
    gaps = await twin.gaps(questions) if questions else ()
    found = [_row(gap) for gap in gaps]
    for row in rows if published else ():
        found += [_gap(row["year"], _UNPUBLISHED, PUBLISHED[name]) for name in show if row.get(name) is None]
    found.sort(key=lambda row: (row["year"], row["kind of gap"], row["what is missing"]))
    if not found:
        return _nothing(named, there)
    told = lines(f"{year}: {joined(items)}" for year, items in _by_year(found).items())
    n = len(found)
    return Findings(
        f"For **{named.name}**, {counted(n, 'thing is', 'things are')} missing:\n\n{told}",
        tuple(_insights(named, found, there, absent)),
        tuple(found),
        {"missing": n, "years without it": list(absent)},
        (table(GAPS_TITLE, found),),
        known=max(1, len(there) * max(1, len(show)) - n),
        unknown=n,
        gaps=len({row["kind of gap"] for row in found}),
        several_steps=True,
    )


def _published(rows: list[dict[str, Any]]) -> bool:
    """Whether this is a project of the portfolio: those of a made twin have other properties."""
    return any(row.get(name) is not None for row in rows for name in PUBLISHED if name not in ("start_date", "end_date"))


def _questions(named: Named, there: tuple[int, ...], absent: tuple[int, ...], published: bool) -> tuple[GapQuestion, ...]:
    """Is it there in each year; and, but for the portfolio's projects, of which no links are published, do its chains go on."""
    asked = [
        GapQuestion(id=f"{year}", node=ref(named.type, named.ids[-1], year), level=named.level)
        for year in (*there, *absent)[:20]
    ]
    for chain, (types, _) in CHAINS.items():
        if named.type in types and not published:
            asked += [
                GapQuestion(id=f"{year} {chain}", node=ref(named.type, named.ids[-1], year), level=named.level, chain=chain)
                for year in there[-5:]
            ]
    # An id that another year spells differently is no gap of this year.
    return tuple(one for one in asked if one.chain or one.node.year in absent)


def _row(gap: Gap) -> dict[str, Any]:
    if gap.type is GapType.TEMPORAL and gap.chain is None and gap.pair is None:
        return _gap(gap.year, KINDS[gap.type], "the report of this year")
    step = in_plain_words(gap.missing_step)
    after = f" after {_key_in_words(gap.last_node)}" if gap.last_node else ""
    return _gap(gap.year, KINDS[gap.type], f"{step}{after}")


def _key_in_words(key: str) -> str:
    type, _, rest = key.partition("/")
    return f"the {called(type, many=False)} “{rest.rpartition('/')[0]}”"


def _gap(year: int, kind: str, what: str) -> dict[str, Any]:
    return {"year": year, "kind of gap": kind, "what is missing": what}


def _by_year(rows: list[dict[str, Any]]) -> dict[int, list[str]]:
    years: dict[int, list[str]] = {}
    for row in rows:
        years.setdefault(int(row["year"]), []).append(f"{row['what is missing']} ({row['kind of gap']})")
    return years


def _nothing(named: Named, there: tuple[int, ...]) -> Findings:
    return Findings(
        f"Nothing is missing for **{named.name}**: it is in {reports_of(there)}, and all of it is published.",
        several_steps=True,
    )


def _insights(named: Named, rows: list[dict[str, Any]], there: tuple[int, ...], absent: tuple[int, ...]) -> list[str]:
    found = []
    if absent and there:
        found.append(f"It is in {reports_of(there)} and not in those of {listed(absent)}.")
    if any(row["kind of gap"] == _UNPUBLISHED for row in rows):
        found.append("What is not published is unknown; it is never taken for zero.")
    return found


async def missing_in(twin: Twin, question: Wanted, years: Years) -> Findings:
    """What is not published of a set of projects: how many lack what."""
    frame = question.frame
    if frame.type != "EntityProject" or len(years.asked) > 1:
        raise Declined("I can say what is not published of the projects of one year.", mode="E")
    total = (await twin.survey(survey_of(frame, years.asked))).total
    rows = []
    for name, said in PUBLISHED.items():
        where = (*frame.where, Where(property=name, op="unknown"))
        lacking = (await twin.survey(survey_of(frame, years.asked).model_copy(update={"where": where}))).total
        rows.append({"what": said, _UNPUBLISHED: lacking, "of": total, "share": percent(lacking, total)})
    rows.sort(key=lambda row: (-int(str(row[_UNPUBLISHED])), str(row["what"])))
    told = lines(f"{row['what']}: {row[_UNPUBLISHED]:,}" for row in rows if row[_UNPUBLISHED])
    whole = not told
    intro = f"{in_years(years.asked)}, of {total:,} {frame.said()}, this is not published:"
    title = f"What is not published, {listed(years.asked)}"
    return Findings(
        f"{in_years(years.asked)}, everything is published of the {total:,} {frame.said()}." if whole else f"{intro}\n\n{told}",
        (),
        tuple(rows),
        {"total": total},
        (table(title, rows), column(title, "what", _UNPUBLISHED, rows)),
        gaps=0 if whole else 1,
        several_steps=True,
    )
