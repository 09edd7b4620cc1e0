"""One project: what became of it, single facts about it, what it touches, and what is missing of it or of a set."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.answers import GAPS_TITLE
from phronesis_contracts.twin import ChainPath, Gap, GapQuestion, GapType, GroupBy, Level, Survey, Where

from .counts import survey_of
from .frame import DEPARTMENT
from .lists import heading
from .names import Named, Twin, ref
from .ontology import CHAINS, DATES, JOINS, MEASURES, PUBLISHED, TEXTS, called, in_plain_words
from .presentation import (
    NOT_PUBLISHED,
    SCALES,
    Findings,
    amount,
    column,
    counted,
    crosses_scales,
    in_years,
    joined,
    line,
    lines,
    percent,
    reports_of,
    table,
)
from .reading import Declined, Years, listed
from .wanted import Wanted

PROJECT = ("category", "rating", "status", "start_date", "end_date", "year_baseline", "year_forecast", "whole_life_cost")
OTHERS: dict[str, tuple[str, ...]] = {
    "EntityRisk": ("risk_score", "risk_category", "risk_status"),
    "SectorObjective": ("budget_allocated", "priority_level", "status"),
    "SectorPerformance": ("target", "actual", "unit"),
    "EntityProcess": ("efficiency_score",),
    "EntityCapability": ("maturity_level", "description"),
    "EntityProject": (*PROJECT, "budget", "progress_percentage"),
}


async def rows_of(twin: Twin, named: Named, years: tuple[int, ...], show: tuple[str, ...]) -> list[dict[str, Any]]:
    """A thing year by year."""
    where = (Where(property="id", op="in", value=named.ids),)
    question = Survey(type=named.type, years=years, where=where, show=show, measure="list")
    rows = await twin.every(question)
    for row in rows:
        baseline, forecast = row.get("year_baseline"), row.get("year_forecast")
        row["variance"] = round(forecast - baseline, 6) if baseline is not None and forecast is not None else None
    return sorted(rows, key=lambda row: int(row["year"]))


async def departments_of(twin: Twin, named: Named) -> dict[int, list[str]]:
    """Which departments delivered it, by year."""
    found = await twin.survey(
        Survey(
            type=named.type,
            where=(Where(property="id", op="in", value=named.ids),),
            group_by=(GroupBy(property="year"), GroupBy(property="id", **DEPARTMENT)),
        )
    )
    by_year: dict[int, list[str]] = {}
    for row in found.rows:
        if row.get("group2") is not None:
            by_year.setdefault(int(row["group"]), []).append(str(row["group2"]))
    return {year: sorted(names) for year, names in by_year.items()}


async def history(twin: Twin, named: Named, known: tuple[int, ...], years: Years) -> Findings:
    """What became of it, year by year, and where the record of it ends."""
    wanted = tuple(year for year in known if not years.stated or year in years.asked)
    rows = await rows_of(twin, named, wanted, OTHERS.get(named.type, ()))
    if not rows:
        raise Declined(f"“{named.name}” is not in {reports_of(wanted)}.", mode="A")
    delivered = await departments_of(twin, named) if named.type == "EntityProject" else {}
    told = lines(f"**{row['year']}**: {_year(row, delivered)}" for row in rows)
    there = tuple(int(row["year"]) for row in rows)
    absent = tuple(year for year in wanted if year not in there)
    table_rows = tuple(_columns(row, delivered) for row in rows)
    costs = [row for row in table_rows if isinstance(row.get(heading("whole_life_cost")), int | float)]
    cost_line = (line("Whole-life cost", "year", heading("whole_life_cost"), costs),) if len(costs) > 1 else ()
    unknown = sum(1 for row in rows if named.type == "EntityProject" and row.get("rating") is None)
    return Findings(
        f"**{named.name}** is in {reports_of(there)}.\n\n{told}{_ending(there, absent, known)}",
        tuple(_turns(rows, delivered, there)),
        table_rows,
        {"years": list(there), "absent": list(absent)},
        (*((_gap_table(absent),) if absent else ()), table(named.name, table_rows), *cost_line),
        known=len(rows) - unknown,
        unknown=unknown,
        gaps=1 if absent else 0,
        several_steps=True,
    )


def _gap_table(absent: tuple[int, ...]) -> Any:
    return table(GAPS_TITLE, [{"year": year, "gap": "not in the report of this year"} for year in absent])


def _year(row: dict[str, Any], delivered: dict[int, list[str]]) -> str:
    said = [str(row["name"])]
    if names := delivered.get(int(row["year"])):
        said.append(f"delivered by {joined(names)}")
    for name in OTHERS["EntityProject"] if "rating" in row or names else ():
        if name in ("rating", "whole_life_cost", "end_date", "status"):
            said.append(f"{heading(name).removesuffix(' (£ million)')} {_value(name, row.get(name))}")
    if not names:
        said += [f"{heading(key)} {_value(key, value)}" for key, value in row.items() if key in MEASURES and value is not None]
    return ", ".join(dict.fromkeys(said))


def _value(name: str, value: Any) -> str:
    if value is None:
        return NOT_PUBLISHED
    return amount(float(value), MEASURES[name].unit) if name in MEASURES else str(value)


def _columns(row: dict[str, Any], delivered: dict[int, list[str]]) -> dict[str, Any]:
    skipped = ("id", "name", "year", "variance")
    values = {heading(key): NOT_PUBLISHED if value is None else value for key, value in row.items() if key not in skipped}
    names = delivered.get(int(row["year"]))
    return {"year": row["year"], "name": row["name"], **({"department": joined(names)} if names else {}), **values}


def _ending(there: tuple[int, ...], absent: tuple[int, ...], known: tuple[int, ...]) -> str:
    said = []
    if early := tuple(year for year in absent if year < there[0]):
        said.append(f"It first appears in {there[0]} and is not in {reports_of(early)}.")
    if late := tuple(year for year in absent if year > there[-1]):
        said.append(
            f"It is last in the report of {there[-1]} and not in {'those' if len(late) > 1 else 'that'} of {listed(late)};"
            " why is not published."
        )
    if inside := tuple(year for year in absent if there[0] < year < there[-1]):
        said.append(f"Between these, the report of {listed(inside)} lacks it.")
    if not absent and there[-1] == known[-1]:
        said.append(f"It is still in the newest report, that of {known[-1]}.")
    return "\n\n" + " ".join(said) if said else ""


def _turns(rows: list[dict[str, Any]], delivered: dict[int, list[str]], there: tuple[int, ...]) -> list[str]:
    first, last = rows[0], rows[-1]
    found = []
    names = list(dict.fromkeys(str(row["name"]) for row in rows))
    if len({name.casefold() for name in names}) > 1:
        found.append(f"It changed its name: {joined(names)}.")
    if len({tuple(delivered.get(year, ())) for year in there}) > 1:
        found.append(
            "Its department changed: " + "; ".join(f"{year} {joined(delivered.get(year, []))}" for year in there) + "."
        )
    if first.get("rating") and last.get("rating") and first["rating"] != last["rating"]:
        found.append(f"Its rating went from {first['rating']} in {there[0]} to {last['rating']} in {there[-1]}.")
    a, b = first.get("whole_life_cost"), last.get("whole_life_cost")
    if a is not None and b is not None and amount(a, "£m") != amount(b, "£m"):
        found.append(f"Its whole-life cost went from {amount(a, '£m')} to {amount(b, '£m')} ({amount(b - a, '£m')}).")
    if first.get("rating") and crosses_scales(there):
        found.append(SCALES)
    return found


async def facts(twin: Twin, named: Named, asked: tuple[str, ...], known: tuple[int, ...], years: Years) -> Findings:
    """Single facts about it, in the year asked about or the newest that has it."""
    wanted = years.asked if years.stated else known
    show = tuple(one for one in asked if one not in ("variance", "department"))
    both = ("year_baseline", "year_forecast") if "variance" in asked else ()
    rows = await rows_of(twin, named, wanted, tuple(dict.fromkeys((*show, *both))))
    rows = rows if years.stated else rows[-1:]
    if not rows:
        there = listed(tuple(int(row["year"]) for row in await rows_of(twin, named, (), ())))
        raise Declined(f"“{named.name}” is not in the report of {listed(wanted)}; it is in that of {there}.", mode="A")
    delivered = await departments_of(twin, named) if "department" in asked else {}
    said = [f"In {row['year']}, {_facts(row, asked, delivered)}." for row in rows]
    unknown = sum(1 for row in rows for name in show if row.get(name) is None)
    table_rows = tuple(_stated(row, asked, delivered) for row in rows)
    note = () if years.stated or len(known) < 2 else (f"{rows[0]['year']} is the newest report that has it.",)
    scales = (SCALES,) if "rating" in asked and crosses_scales([int(row["year"]) for row in rows]) else ()
    return Findings(
        f"**{named.name}**: {' '.join(said)}",
        (*note, *scales),
        table_rows,
        {},
        (table(named.name, table_rows),),
        known=max(0, len(rows) * len(asked) - unknown),
        unknown=unknown,
    )


def _stated(row: dict[str, Any], asked: tuple[str, ...], delivered: dict[int, list[str]]) -> dict[str, Any]:
    found = {"year": row["year"], "name": row["name"]}
    for one in asked:
        found[heading(one)] = joined(delivered.get(row["year"], [])) if one == "department" else _plain(row.get(one))
    return found


def _plain(value: Any) -> Any:
    return NOT_PUBLISHED if value is None else value


def _facts(row: dict[str, Any], asked: tuple[str, ...], delivered: dict[int, list[str]]) -> str:
    said = []
    for one in asked:
        if one == "department":
            said.append(f"it was delivered by **{joined(delivered.get(int(row['year']), [])) or NOT_PUBLISHED}**")
        elif one in TEXTS and row.get(one) is not None:
            said.append(f"{TEXTS[one]}: “{row[one]}”")
        else:
            name = {**DATES, **TEXTS}.get(one) or heading(one).removesuffix(" (£ million)")
            said.append(f"its {name} was **{_value(one, row.get(one))}**")
    return joined(said)


_SHOWN = 50
"""Linked things of one kind that are listed."""


async def impact(twin: Twin, named: Named, known: tuple[int, ...], years: Years) -> Findings:
    """Direct links, then chains, in one year."""
    there = tuple(int(row["year"]) for row in await rows_of(twin, named, known, ()))
    year = years.asked[-1] if years.stated else (there or known)[-1]
    if year not in there:
        raise Declined(f"“{named.name}” is not there in {year}; it is in {listed(there)}.", mode="B")
    links = [row for name in JOINS for row in await _links(twin, named, year, name)]
    walks = [
        row for chain, (types, _) in CHAINS.items() if named.type in types for row in await _walks(twin, named, year, chain)
    ]
    broken = sum(1 for row in walks if row["reaches its end"] == "no")
    if not links and not walks:
        return Findings(
            f"In {year}, no link of **{named.name}** to anything else is on record, so its impact cannot be told from data.",
            gaps=1,
            several_steps=True,
        )
    charts = [table(title, rows) for title, rows in (("Chains", walks), ("Direct links", links)) if rows]
    insights = (f"{counted(broken, 'walk stops', 'walks stop')} before the end of the chain.",) if broken else ()
    return Findings(
        _told(named, year, links, walks),
        insights,
        (*links, *walks),
        {"links": len(links), "walks": len(walks), "broken": broken},
        tuple(charts),
        gaps=1 if broken else 0,
        several_steps=True,
    )


def _told(named: Named, year: int, links: list[dict[str, Any]], walks: list[dict[str, Any]]) -> str:
    parts = [f"In {year}, **{named.name}** has {counted(len(links), 'direct link', 'direct links')}."]
    if links:
        parts.append(lines(f"{row['from']} {row['link']} {row['to']}" for row in links))
    if walks:
        ways = lines(f"{row['steps']}{'' if row['reaches its end'] == 'yes' else ' (stops here)'}" for row in walks)
        parts.append(f"Along the chains:\n\n{ways}")
    return "\n\n".join(parts)


async def _links(twin: Twin, named: Named, year: int, name: str) -> list[dict[str, Any]]:
    sources, targets, verb = JOINS[name]
    outward = named.type in sources
    if not outward and named.type not in targets:
        return []
    found: list[dict[str, Any]] = []
    for other in targets if outward else sources:
        where = (Where(property="id", op="in", value=named.ids, via=name, to=named.type),)
        page = await twin.survey(Survey(type=other, years=(year,), where=where, measure="list", limit=_SHOWN))
        for row in page.rows:
            ends = (named.name, row["name"]) if outward else (row["name"], named.name)
            found.append({"from": ends[0], "link": verb, "to": ends[1], "kind": called(other, many=False)})
    return found


async def _walks(twin: Twin, named: Named, year: int, chain: str) -> list[dict[str, Any]]:
    run = await twin.chain(chain, year, Level(named.level), named.type, named.ids[-1])
    return [
        {"chain": CHAINS[chain][1], "steps": _steps(path), "reaches its end": "yes" if path.whole else "no"}
        for path in run.paths
        if len(path.nodes) > 1
    ]


def _steps(path: ChainPath) -> str:
    said = path.nodes[0].name
    for name, node in zip(path.relationships, path.nodes[1:], strict=False):
        said += f" {JOINS[name][2]} {node.name}" if name in JOINS else f" → {node.name}"
    return said


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
