"""Questions about a change between years: what came, what left, whose property moved, and from what to what."""

from __future__ import annotations

from typing import Literal

from phronesis_contracts.twin import GroupBy, Level

from .composing import MEASURES, Composition, NotUnderstood, selection
from .language import fold
from .plan import (
    Aggregate,
    Change,
    Compare,
    Plan,
    Unknown,
)

MOVES = ("rose", "fell", "changed", "improved", "worsened")
Move = Literal["rose", "fell", "changed"]


def in_one_year_only(made: Composition, type: str, level: Level | None) -> Plan | None:
    """In 2020 but not in 2021: what left, or what came."""
    years, not_in = made.open("year"), made.open("not")
    if len(years) != 2 or len(not_in) != 1 or not years[0].at < not_in[0].at < years[1].at or made.has("value", "property"):
        return None
    there, gone = (made.year(item, made.view.years_of(type)) for item in years)
    if there is None or gone is None or there == gone:
        return None
    counted = made.has("count")
    made.take(*years, *not_in, *made.open("count", "list", "existence", "also"))
    of = selection(made, type, level)
    since, until = min(there, gone), max(there, gone)
    return Change(of=of, since=since, until=until, what="left" if there == since else "joined", count=counted)


def came_and_went(made: Composition, type: str, level: Level | None) -> Plan | None:
    what: Literal["joined", "left"] = "joined" if made.has("joined") else "left"
    known = made.view.years_of(type)
    if len(known) < 2:
        return None
    made.take(*made.open("joined", "left", "compare", "not"))
    counted = made.has("count")
    made.take(*made.open("count", "list"))
    since, until = _span_of(made, known)
    of = selection(made, type, level)
    if of.among:
        # A few things are no set to join or leave.
        raise NotUnderstood(Unknown(reason="reference", words=made.reading.text[:80]))
    return Change(of=of, since=since, until=until, what=what, count=counted)


def _span_of(made: Composition, known: tuple[int, ...]) -> tuple[int, int]:
    """The two years of a change: as stated; after one, to the next; in one, from the year before; else the last two."""
    items = made.open("year", "relative_years")
    years = [year for item in items if (year := made.year(item, known)) is not None]
    made.take(*items)
    if len(years) >= 2:
        made.take(*made.open("between", "since", "until"))
        return min(years), max(years)
    if len(years) == 1:
        year, lead = years[0], made.before(items[0], ("since", "after", "until", "before"), ("small", "year_word"))
        made.take(lead)
        later = [one for one in known if one > year]
        earlier = [one for one in known if one < year]
        against = made.reading.has("compare") or made.says("than")
        if against and made.base is not None and year < made.base.years[-1]:
            return year, made.base.years[-1]  # which of these are new compared with 2022
        if lead is not None and lead.has("since"):
            return year, known[-1]
        if lead is not None and lead.has("after"):
            return year, later[0] if later else year + 1
        return (earlier[-1] if earlier else year - 1), year
    return known[-2], known[-1]


def moved_between(made: Composition, type: str, level: Level | None, groups: tuple[GroupBy, ...], move: str) -> Plan:
    known = made.view.years_of(type)
    made.take(*made.open(*MOVES))
    measure = next((name for name in MEASURES if made.has(name)), None)
    step = next(iter(made.open("difference")), None)
    counted = made.has("count") or (step is not None and any(item.at == step.end for item in made.reading.of("type")))
    if len(made.open("entity")) > 1 and made.says("from") and made.says("to"):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # links over the years
    if measure is not None or (counted and move not in ("improved", "worsened") and not made.open("property")):
        # The figure over the years, not the members that moved.
        property = made.number_of(measure, type) if measure is not None else None
        made.take(*made.open("count", *MEASURES))
        if len(made.open("year", "relative_years")) == 2 and move in ("rose", "fell"):
            begins = made.says("exists", made.reading.tokens[:1])
            made.take(*made.open("difference"))
            since, until = _span_of(made, known)
            of = selection(made, type, level)
            figure = Aggregate(of=of, measure=MEASURES[measure] if measure else "count", property=property)
            expected: Literal["more", "less"] = "more" if move == "rose" else "less"
            return _held_apart(figure, since, until, expected if begins else None)
        of = selection(made, type, level, every_year=True)
        group = GroupBy(property="year")
        return Aggregate(of=of, measure=MEASURES[measure] if measure else "count", property=property, group_by=(group,))
    if (up_or_down := _up_or_down(made, type, level, known)) is not None:
        return up_or_down
    properties = made.properties(type)
    if properties and made.asks("how_much") and made.kind(type, properties[0]) == "number" and len(known) > 1:
        since, until = _span_of(made, known)
        return _held_apart(Aggregate(of=selection(made, type, level), measure="sum", property=properties[0]), since, until)
    limit = None
    if sizes := made.open("most", "largest"):
        limit = made.limit() or 1  # which one rose most
        made.take(*sizes)
    made.take(*made.open("count", "list"))
    if len(known) < 2:
        raise NotUnderstood(Unknown(reason="years", detail={"type": type}))
    since, until = _span_of(made, known)
    others = [item for item in made.reading.items if item.has("type") and not item.names_type(type)]
    if not properties and others and not made.reading.has("group", "each", "entity"):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # another thing that it belongs to
    of = selection(made, type, level)
    if not properties:
        ordered = [one for one in made.view.properties(type) if one.kind == "string" and len(one.choices) > 2]
        ordered.sort(key=lambda one: not (one.most or one.least))
        properties = tuple(one.name for one in ordered[:1])
    if not properties:
        raise NotUnderstood(Unknown(reason="property", detail={"type": type}))
    way = direction_of(made, type, properties[0], move)
    return Change(of=of, since=since, until=until, what=way, property=properties[0], count=counted, limit=limit)


def _up_or_down(made: Composition, type: str, level: Level | None, known: tuple[int, ...]) -> Plan | None:
    """Did the reds go up or down? Their number in two years."""
    both = made.reading.has("rose") and made.reading.has("fell") and made.says("or")
    if not both or made.has("property", "entity") or len(made.open("year", "relative_years")) != 2 or len(known) < 2:
        return None
    since, until = _span_of(made, known)
    return _held_apart(Aggregate(of=selection(made, type, level)), since, until)


def _held_apart(figure: Aggregate, since: int, until: int, expect: Literal["more", "less"] | None = None) -> Compare:
    """A figure of one year, and that of an earlier one behind it."""
    sides = (figure.model_copy(update={"of": figure.of.model_copy(update={"years": (year,)})}) for year in (until, since))
    return Compare(sides=tuple(sides), how="change", expect=expect)


def delayed(made: Composition, type: str, level: Level | None) -> Plan | None:
    """Which were delayed? Those whose end has moved to a later date from one year to the next."""
    words, ends, known = made.open("delayed"), made.end_date(type), made.view.years_of(type)
    if not words or ends is None or len(known) < 2 or made.asks("why"):
        return None
    made.take(*words)
    limit = None
    if sizes := made.open("most", "largest"):
        limit = made.limit() or 1
        made.take(*sizes)
    counted = made.has("count")
    made.take(*made.open("count", "list", "existence"))
    since, until = _span_of(made, known)
    of = selection(made, type, level)
    return Change(of=of, since=since, until=until, what="rose", property=ends, count=counted, limit=limit)


def turned_into(made: Composition, type: str, level: Level | None) -> Plan | None:
    """Which went from amber in 2022 to red in 2023, which turned red: from one value of a property to another."""
    values = [(item, one) for item in made.open("value") for one in item.of("value")[:1] if one[0] == type]
    known = made.view.years_of(type)
    if len(values) == 1 and made.before(values[0][0], ("turned",), ("small",)) and len(known) > 1:
        item, (_, property, new) = values[0]
        made.take(item, *made.open("turned"))
        return _turned(made, type, level, property, None, new)
    if len(values) != 2 or values[0][1][1] != values[1][1][1] or values[0][1][2] == values[1][1][2]:
        return None
    dated = [made.after(item, ("year",), ("small",)) for item, _ in values]
    turns = [int(item.of("year")[0]) for item in dated if item is not None]
    if len(turns) == 2 and turns[0] > turns[1]:
        values.reverse()  # what turned green in 2023 that had been amber in 2022
    changing = made.has(*MOVES, "turned") or (made.says("from") and made.says("to")) or len(set(turns)) == 2
    if not changing or len(known) < 2 or made.says("or"):
        return None
    made.take(*(item for item, _ in values), *made.open(*MOVES, "turned", "left"))
    (_, old), (_, new) = values
    return _turned(made, type, level, old[1], old[2], new[2])


def _turned(made: Composition, type: str, level: Level | None, property: str, before: str | None, after: str) -> Change:
    counted = made.has("count")
    made.take(*made.open("count", "list", "existence"))
    since, until = _span_of(made, made.view.years_of(type))
    of = selection(made, type, level)
    return Change(of=of, since=since, until=until, what="changed", property=property, before=before, after=after, count=counted)


def direction_of(made: Composition, type: str, property: str, move: str) -> Move:
    """Which way a property went that got better or worse: by what its ontology calls the most of it, else more is better."""
    plain: dict[str, Move] = {"rose": "rose", "fell": "fell", "changed": "changed"}
    if move in plain:
        return plain[move]
    declared = made.view.property(type, property)
    language = made.reading.language
    bad = {language.stem(word) for word in language.words.get("worst", ())}
    most = {
        language.stem(fold(word))
        for listed in (declared.most.values() if declared else ())
        for phrase in listed
        for word in phrase.split()
    }
    worse_is_more = bool(bad & most)
    return "rose" if (move == "worsened") == worse_is_more else "fell"
