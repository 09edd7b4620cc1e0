"""One project: what became of it, single facts about it, and two of them side by side."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.analysis import GAPS_TITLE
from phronesis_contracts.twin import GroupBy, Survey, Where

from .calendar import Years, listed
from .findings import Findings
from .fitting import Named
from .frame import DEPARTMENT
from .lists import heading
from .measures import DATES, MEASURES, TEXTS
from .problems import Declined
from .saying import NOT_PUBLISHED, SCALES, amount, crosses_scales, joined, line, lines, reports_of, table
from .twin import Twin

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
