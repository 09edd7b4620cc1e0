"""Questions about one thing, or two: which facts are wanted, in which years, and whether every phrase has a part in it."""

from __future__ import annotations

from dataclasses import replace

from .calendar import Years, years_of
from .findings import Findings
from .fitting import Named
from .impact import impact
from .lists import heading
from .measures import MEASURES, has
from .missing import missing_of
from .problems import Declined, unfit
from .reading import Item, Reading
from .saying import joined
from .story import departments_of, facts, history
from .twin import Twin

_ANYWHERE = frozenset(
    """when future small followup list howmuch rated scope by year_word year relative since after before until
    between annual entity existence pronoun""".split()
)
_VALUES = ("rating", "status", "category", "department")
_SUMMARY = ("department", "category", "rating", "status", "start_date", "end_date", "whole_life_cost")
_COMPARED = ("rating", "whole_life_cost", "year_baseline", "year_forecast", "end_date")
_VERBS = frozenset("is was were are has did does".split())


def about_one(reading: Reading) -> bool:
    """Whether a question is about the things it names, and not about a set that hangs together with one of them."""
    named = [item.value for item in reading.of("entity")]
    if not named or reading.has("count", "top", "aggregate", "share", "joined", "left", "cmp"):
        return False
    return all(item.value[0] == named[0].type for item in reading.of("type")) or reading.has("missing", "impact", "history")


async def answer_one(twin: Twin, reading: Reading) -> Findings:
    """What is wanted of the one thing, or of several side by side."""
    things = [item.value for item in reading.of("entity")]
    known = await twin.years(things[0].type)
    if len(things) > 1:
        return await _side_by_side(twin, reading, things, known)
    named: Named = things[0]
    if reading.has("missing"):
        _check(reading, {"missing", "type", "date", "measure", "dimension", "text"} - _properties(reading), named)
        await _delivered(twin, reading, named)
        return await missing_of(twin, named, known, years_of(reading.without("year_word"), known, default_all=True))
    if reading.has("impact"):
        _check(reading, {"impact", "type"}, named)
        return await impact(twin, named, known, years_of(reading, known))
    asked = _asked(reading)
    if lacking := [one for one in asked if not has(named.type, one)]:
        raise Declined(f"Of “{named.name}” there is no {heading(lacking[0])} on record.", mode="E")
    if not asked and not reading.has("detail") and not reading.has(*_VALUES, "over_budget", "under_budget"):
        return await _story(twin, reading, named, known)
    return await _facts(twin, reading, named, known, asked)


async def _story(twin: Twin, reading: Reading, named: Named, known: tuple[int, ...]) -> Findings:
    _check(reading, {"history", "trend", "change", "type"}, named)
    years = years_of(reading.without("year_word"), known, default_all=True)
    if years.stated and not years.asked:
        raise Declined(f"There are no reports of {joined([str(year) for year in years.absent])}.", mode="A")
    return await history(twin, named, known, years)


async def _facts(twin: Twin, reading: Reading, named: Named, known: tuple[int, ...], asked: tuple[str, ...]) -> Findings:
    allowed = {"measure", "dimension", "date", "text", "why", "who", "detail", "type", "trend", "change", "history"}
    _check(reading, allowed | set(_VALUES) | {"over_budget", "under_budget"}, named)
    which_years = reading.has("year_word") and not reading.has("year", "relative")
    over_years = which_years or reading.has("trend", "change", "annual", "history")
    years = years_of(reading.without("year_word"), known, default_all=over_years)
    if years.stated and not years.asked:
        raise Declined(f"There are no reports of {joined([str(year) for year in years.absent])}.", mode="A")
    found = reading.of(*_VALUES)
    stated = tuple(item for item in found if not _apposition(reading, item))
    if len(stated) < len(found):
        await _delivered(twin, reading, named)
    if not asked and not stated and not reading.has("over_budget", "under_budget"):
        asked = (
            _SUMMARY if named.type == "EntityProject" else tuple(one for one in MEASURES if named.type in MEASURES[one].types)
        )
    if reading.has("over_budget", "under_budget"):
        asked = (*asked, "variance")
    wanted = tuple(dict.fromkeys((*(item.kind for item in stated), *asked)))
    result = await facts(twin, named, wanted, known, years)
    return _yes_or_no(reading, result, stated)


def _asked(reading: Reading) -> tuple[str, ...]:
    """The properties that the question names."""
    found: list[str] = []
    for item in reading.of("measure", "dimension", "date", "text", "who", "why"):
        if item.kind == "measure":
            found.append(item.value[-1])
        elif item.kind in ("who", "why"):
            found.append("department" if item.kind == "who" else "rating_comment")
        elif not (item.kind == "dimension" and any(value.kind == item.value for value in reading.of(*_VALUES))):
            found.append(item.value)
    if reading.has("why"):
        found = [one for one in found if one != "rating"]
    if not found and reading.has("rated") and not reading.has("rating"):
        found.append("rating")
    if not found and reading.has("howmuch"):
        found.append("whole_life_cost")
    return tuple(dict.fromkeys(found))


def _properties(reading: Reading) -> set[str]:
    """Kinds of properties that a question about gaps may not name: it is about everything."""
    return {"date", "measure", "dimension", "text"} if reading.has("date", "measure", "dimension", "text") else set()


def _check(reading: Reading, allowed: set[str], named: Named) -> None:
    for item in reading.items:
        if item.kind == "department" and _apposition(reading, item):
            continue
        if item.kind not in _ANYWHERE and item.kind not in allowed:
            raise unfit(reading.words(item.at, item.end))


def _apposition(reading: Reading, item: Item) -> bool:
    """“MOD's Dreadnought”: a department that comes with the name, and is no question of its own."""
    if item.kind != "department":
        return False
    asks = reading.pieces and reading.pieces[0].folded in _VERBS
    return not asks or any(0 <= name.at - item.end <= 1 for name in reading.of("entity"))


async def _delivered(twin: Twin, reading: Reading, named: Named) -> None:
    """A department that is named beside a project has to be its own."""
    own = {name for names in (await departments_of(twin, named)).values() for name in names}
    for item in reading.of("department"):
        if item.value not in own:
            raise Declined(f"“{named.name}” is not delivered by {item.value} but by {joined(sorted(own))}.", mode="E")


def _yes_or_no(reading: Reading, found: Findings, stated: tuple[Item, ...]) -> Findings:
    first = next((piece.folded for piece in reading.pieces), "")
    if len(found.rows) != 1 or not stated:
        return found
    row = found.rows[0]
    right = all(_holds(item, str(row.get(item.kind))) for item in stated)
    if first not in _VERBS:
        return found if right else replace(found, answer=f"That is not so. {found.answer}")
    published = all(row.get(item.kind) != "not published" for item in stated)
    word = "That is not published." if not published else "Yes." if right else "No."
    return replace(found, answer=f"{word} {found.answer}")


def _holds(stated: Item, found: str) -> bool:
    return str(stated.value) in found.replace(",", " ").split() if stated.kind == "department" else str(stated.value) == found


async def _side_by_side(twin: Twin, reading: Reading, things: list[Named], known: tuple[int, ...]) -> Findings:
    _check(reading, {"compare", "measure", "dimension", "date", "type"}, things[0])
    asked = _asked(reading) or _COMPARED
    years: Years = years_of(reading, known)
    parts = [await facts(twin, named, asked, known, years) for named in things[:5]]
    rows = tuple(row for part in parts for row in part.rows)
    return replace(
        parts[0],
        answer="\n\n".join(part.answer for part in parts),
        rows=rows,
        charts=tuple(chart for part in parts for chart in part.charts),
        known=sum(part.known for part in parts),
        unknown=sum(part.unknown for part in parts),
    )
