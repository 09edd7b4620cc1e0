"""Questions about a set: lists, figures, groups, rankings, comparisons, and what is missing in it."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from phronesis_contracts.twin import GroupBy, Level

from .composing import COMPARISONS, GUESSED, MEASURES, TOP, Composition, NotUnderstood, comparing_word, selection
from .plan import (
    MAX_SIDES,
    Aggregate,
    Change,
    Compare,
    Coverage,
    Filter,
    Gaps,
    Having,
    Plan,
    Rank,
    Select,
    Selection,
    Unknown,
)
from .questions_of_changes import MOVES, came_and_went, delayed, in_one_year_only, moved_between, turned_into
from .reading import Item

_Measure = Literal["count", "sum", "mean", "median", "min", "max"]


def of_a_set(made: Composition) -> Plan:
    type, level, head = _who(made) or _holders(made) or made.subject()
    if (grouped := _most_of_others(made, type, level)) is not None:
        return grouped
    if made.has("missing", "unknown", "without") and (gaps := _gaps_of_a_set(made, type, level)) is not None:
        return gaps
    groups = made.groups(type) if not _pairs_of_values(made) else ()
    linked = _linked_types(made, type)
    if (moved := in_one_year_only(made, type, level)) is not None:
        return moved
    if (turned := turned_into(made, type, level)) is not None:
        return turned
    if any(made.has(kind) for kind in ("joined", "left")) and (change := came_and_went(made, type, level)) is not None:
        return change
    if (late := delayed(made, type, level)) is not None:
        return late
    move = next((kind for kind in MOVES if made.has(kind)), None)
    if move is not None and made.has("count") and any(group.property == "year" for group in groups):
        made.take(*made.open(*MOVES))  # how did their number move year by year
        move = None
    if move is not None:
        return moved_between(made, type, level, groups, move)
    if not groups and (year := _top_year(made)) is not None:
        groups = (year,)
    over_years = any(group.property == "year" and group.via is None for group in groups)
    of = selection(made, type, level, every_year=over_years)
    of = of.model_copy(update={"filters": (*of.filters, *linked)[:8]})
    if (ratio := _for_each_value(made, of)) is not None:
        return ratio
    if (held := _held_against(made, of)) is not None:
        return held
    if made.has("share", "ratio", "difference", "compare") and (compared := _compared(made, of, groups)) is not None:
        return compared
    if (ranked := _ranked(made, of, groups, head)) is not None:
        return ranked
    return _figure_or_list(made, of, groups, head)


def _top_year(made: Composition) -> GroupBy | None:
    """Which year had the most: the years are what comes first."""
    if not made.has("most", "least", "largest", "smallest", "superlative"):
        return None
    asked = (one for one in made.open("year_word") if made.before(one, ("question_words",), ("small",)))
    subject = next(iter(made.open("superlative")), None)
    after = made.after(subject, ("year_word",), ()) if subject is not None else None
    if after is not None:
        made.take(after)
        return GroupBy(property="year")  # the priciest year
    item = next((one for one in made.open("coverage") if "years" in one.of("coverage")), next(asked, None))
    made.take(item)
    return GroupBy(property="year") if item is not None else None


def _who(made: Composition) -> tuple[str, Level | None, Item | None] | None:
    """Who runs the most projects: the type at the other end of the relationship."""
    if not made.asks("who") or len(made.open("type")) != 1 or not made.has("most", "least", *COMPARISONS):
        return None
    others = [t for t, _ in made.open("type")[0].of("type")]
    for item in made.open("relation"):
        for name, forward in item.of("relation"):
            relationship = made.view.relationships[name]
            near, far = (
                (relationship.targets, relationship.sources) if not forward else (relationship.sources, relationship.targets)
            )
            for end in (near, far):
                other = relationship.sources if end is relationship.targets else relationship.targets
                if any(t in other for t in others) and not set(end) & set(others):
                    made.take(item)
                    return end[0], made.view.usual_level(end[0]), None
    return None


def _holders(made: Composition) -> tuple[str, Level | None, Item | None] | None:
    """Who has the most projects, which department: the type that the most is asked of stands after it."""
    items = made.open("type")
    if len(items) != 2 or made.before(items[0], ("most", "least"), ("small", "value")) is None:
        return None
    if made.before(items[1], ("group", "each", "breakdown"), ("small",)) is not None:
        return None
    type, level = made.type_of(items[1])
    if any(made.view.between(type, other) for other, _ in items[0].of("type")):
        made.take(items[1])
        return type, level or made.view.usual_level(type), items[1]
    return None


def _linked_types(made: Composition, type: str) -> list[Filter]:
    """Conditions by another type alone: departments that have projects. A type whose own values are conditions adds none."""
    found: list[Filter] = []
    owners = {v[0] for item in made.open("value", "property") for kind in ("value", "property") for v in item.of(kind)}
    for item in made.open("type"):
        others = [t for t, _ in item.of("type") if t != type and made.view.between(type, t)]
        if not others:
            continue
        if any(item.names_type(ref.type) for ref in made.named):
            made.take(item)  # that department: the one that was named
            continue
        if made.before(item, tuple(COMPARISONS), ("number", "numbers", "small")) is not None:
            continue
        bare = made.before(item, ("without",), ("small",))
        if bare is None and made.before(item, ("without",), ("small", "value")) is not None:
            continue  # no red projects: a condition on what is linked
        no = made.before(item, ("not",), ("small", "relation"))
        via, to = made.link(type, others[0], item)
        if made.before(item, ("question_words",), ("small", "numbers", "number")) is not None and no is None:
            raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # … and which department runs it
        made.take(item, no, made.before(item, ("with",)))
        near = made.before(item, ("without",), ("small",))
        if near is not None or no is not None:
            made.take(near)
            found.append(Filter(property="id", op="unlinked", via=via, to=to))
        elif to not in owners and not made.has("entity"):
            found.append(Filter(property="id", op="linked", via=via, to=to))
    return found


def _most_of_others(made: Composition, type: str, level: Level | None) -> Plan | None:
    """Which department has the most projects; departments with more than ten projects; which spends most."""
    size = next((item for item in made.open("most", "least", "largest", "smallest")), None)
    for item in made.open("type", "value"):
        owners = [t for t, _ in item.of("type")] or [one[0] for one in item.of("value")]
        other = next((t for t in owners if t != type and made.view.between(type, t)), None)
        if other is None:
            continue
        cmp = made.before(item, (*COMPARISONS, "only"), ("number", "numbers", "small"))
        number = made.before(item, ("number", "numbers"), ("small",))
        lead = made.before(item, ("most", "least"), ("small", "count", "value", "superlative", "group"))
        if lead is None and (cmp is None or number is None):
            continue
        named = item.has("type")
        if not named and (made.open("type") or (lead is not None and made.after(lead, ("value",)) is not item)):
            continue  # the department with the most reds: a value stands for the things that have it
        other_level = made.type_of(item)[1] if named else None
        via, _ = made.link(type, other, item)
        made.take(item if named else None)
        having, order, limit = None, "group", None
        if lead is not None:
            order = "value" if lead.has("least") and not lead.has("most") else "-value"
            made.take(lead)
            limit = made.limit() or 1
        elif cmp is not None and number is not None:
            sign = next((sign for kind, sign in COMPARISONS.items() if cmp.has(kind)), "=")
            having = Having(op=sign, value=float((number.of("number") or number.of("numbers"))[0]))
            made.take(cmp, number)
        counted = made.has("count")
        made.take(*made.open("count", "list", "with", "rank"))
        of = selection(made, other, other_level or made.view.usual_level(other))
        group = GroupBy(property="name", via=via, to=type)
        return Aggregate(
            of=of, group_by=(group,), having=having, order=order, limit=limit, count_groups=counted and having is not None
        )
    if (of_them := _most_of_them(made, type, size)) is not None:
        return of_them
    if size is not None or made.has("superlative"):
        return _largest_group(made, type, size)
    return _ranked_groups(made, type) if made.has("rank") or _by_their_number(made) else None


def _most_of_them(made: Composition, type: str, size: Item | None) -> Plan | None:
    """Which department has the most of them? The group of the set last spoken of that comes first."""
    of, spoken = made.focus.selection, made.focus.plan
    if size is None or not size.has("most", "least") or made.has("superlative", "property", "value", "entity", "count"):
        return None
    if of is None or of.type == type or len(made.open("type")) or len(made.view.between(type, of.type)) != 1:
        return None
    figure = spoken if isinstance(spoken, Aggregate) and spoken.of == of else Aggregate(of=of)
    via, _ = made.link(type, of.type, None)
    made.take(size, *made.open("pronoun_many", "list", "with"))
    years = made.years(of.type)
    order: Literal["value", "-value"] = "value" if size.has("least") and not size.has("most") else "-value"
    return figure.model_copy(
        update={
            "of": of.model_copy(update={"years": years}) if years else of,
            "group_by": (GroupBy(property="name", via=via, to=type),),
            "order": order,
            "limit": made.limit() or 1,
        }
    )


def _by_their_number(made: Composition) -> bool:
    """Departments by number of projects: a type, and how many of another it has."""
    types, counts = made.open("type"), made.open("count")
    leads = made.before(counts[0], ("group",), ()) if counts else None
    return bool(types) and leads is not None and leads.at < types[0].at


def _ranked_groups(made: Composition, type: str) -> Plan | None:
    """Rank departments by average cost, by their number of reds: all of them, by a figure of what they are linked to."""
    valued = [one for item in made.open("value") for one in item.of("value")]
    owners = [
        v[0] for item in made.open("property", "superlative") for kind in ("property", "superlative") for v in item.of(kind)
    ]
    owners = (
        owners
        or [one[0] for one in valued]
        or [t for item in made.open("type") if made.has("count") for t, _ in item.of("type")]
    )
    other = next((one for one in owners if one != type and made.view.between(type, one)), None)
    if other is None or type in owners:
        return None
    measure, property = "count", None
    if not made.has("count"):
        numbers = [p for p in made.properties(other) if made.kind(other, p) == "number"]
        property = numbers[0] if numbers else None
        measure = next((MEASURES[name] for name in ("median", "mean", "sum") if made.has(name)), "sum") if property else "count"
    via, _ = made.link(type, other, None)
    order = "value" if made.has("least", "smallest") else "-value"
    made.take(*made.open("rank", "count", "list", "least", "smallest", "most", "largest", *MEASURES))
    made.take(*(item for item in made.open("type") if item.names_type(other)))
    limit = made.limit()
    of = selection(made, other, made.view.usual_level(other))
    group = GroupBy(property="name", via=via, to=type)
    return Aggregate(of=of, measure=measure, property=property, group_by=(group,), order=order, limit=limit)


def _largest_group(made: Composition, type: str, size: Item | None) -> Plan | None:
    """Which department has the highest total cost: a figure of another type, for each of this one."""
    owners = [
        (one[0], one[1], one[2] if len(one) > 2 else None)
        for item in made.open("property", "superlative")
        for kind in ("property", "superlative")
        for one in item.of(kind)
    ]
    if not owners and made.has("money") and made.main_money(type) is None:
        owners = [(other, money, None) for other, money in made.spent(type)]
    if not owners or any(owner == type for owner, _, _ in owners):
        return None
    joined = [one for one in owners if made.view.between(type, one[0]) and made.kind(one[0], one[1]) == "number"]
    if not joined:
        return None
    owner, property, descending = max(joined, key=lambda one: made.count_known(one[0], one[1]))
    measure = next((MEASURES[name] for name in ("median", "mean", "sum") if made.has(name)), "sum")
    via, _ = made.link(type, owner, None)
    down = descending if descending is not None else not (size is not None and size.has("least", "smallest"))
    made.take(size, *made.open("superlative", "money", *MEASURES))
    made.take(*[item for item in made.open("property") if any((t, p) == (owner, property) for t, p in item.of("property"))])
    limit = made.limit() or 1
    made.take(*made.open("list", "rank"))
    of = selection(made, owner, made.view.usual_level(owner))
    group = GroupBy(property="name", via=via, to=type)
    made.certainty = min(made.certainty, 0.9)
    return Aggregate(
        of=of, measure=measure, property=property, group_by=(group,), order="-value" if down else "value", limit=limit
    )


def _gaps_of_a_set(made: Composition, type: str, level: Level | None) -> Plan | None:
    """What is missing in a set: links, where no property is named; a property that is not published is a condition instead."""
    named = [p for item in made.open("property") for t, p in item.of("property") if t == type]
    word = next(iter(made.open("missing")), None)
    if named or word is None:
        return None
    others = [t for item in made.open("type") for t, _ in item.of("type") if made.view.between(type, t)]
    if others:
        return None  # projects that miss a vendor: a condition on a set
    counted = made.has("count")
    made.take(*made.open("missing", "count", "without", "unknown"))
    chain = next((name for item in made.open("chain") for name in item.of("chain")), None)
    relation = next((name for item in made.open("relation") for name, _ in item.of("relation") if made.joins(name, type)), None)
    made.take(*made.open("chain", "relation"))
    of = selection(made, type, level)
    return Gaps(of=of, years=of.years, chain=chain, relationship=relation, count=counted)


def _compared(made: Composition, of: Selection, groups: tuple[GroupBy, ...]) -> Plan | None:
    how = next(kind for kind in ("share", "ratio", "difference", "compare") if made.has(kind))
    if how != "share" and not groups and (two := _two_properties(made, of, how)) is not None:
        return two
    if how == "difference" and isinstance(made.focus.plan, Change) and made.base is not None and len(made.base.among) > 1:
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # by how much did all of them move
    made.take(*made.open("share", "ratio", "difference", "compare"))
    if groups and how == "share" and [one.property for one in groups] != ["year"]:
        if any(one.via is None for one in of.filters):
            raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # the share of reds in each
        made.take(*made.open("count", *MEASURES))
        return Aggregate(of=of, group_by=groups)
    measure = next((name for name in MEASURES if made.has(name)), None)
    made.take(*made.open(*MEASURES, "count", "list", "more", "less"))
    properties = [p for p in made.properties(of.type) if made.kind(of.type, p) == "number"]
    property = properties[0] if properties else None
    kind = MEASURES.get(measure or "", "sum") if property else "count"
    before = made.focus.plan
    if property is None and how == "share" and measure == "sum" and isinstance(before, Aggregate) and before.property:
        property, kind = before.property, "sum"  # what share of the total is that of one of them
    spoken = made.focus.plan
    if how == "share" and isinstance(spoken, Aggregate) and made.has("pronoun_one") and spoken.of.type == of.type:
        made.take(*made.open("pronoun_one"))
        figure = spoken.model_copy(update={"measure": "count" if spoken.property is None else "sum", "group_by": ()})
        whole = of if made.reading.has("year", "relative_years") else of.model_copy(update={"years": spoken.of.years})
        return Compare(sides=(figure, figure.model_copy(update={"of": whole})), how="share")
    it = made.named or (made.focus.entities if made.says("pronoun") else ())
    if how == "share" and len(it) == 1 and it[0].type == of.type and property is not None:
        part = Selection(type=of.type, years=of.years, among=it)  # what share of the total is it
        figures = (Aggregate(of=one, measure="sum", property=property) for one in (part, of.model_copy(update={"among": ()})))
        return Compare(sides=tuple(figures), how="share")
    if how == "share":
        conditions = (
            [one for one in of.filters if one.via is None and one.op in ("=", "in", "<>")]
            or [one for one in of.filters if one.via is not None]
            or list(of.filters)
        )
        if not conditions:
            return None
        conditions = _predicated(made, conditions)
        kept = tuple(one for one in of.filters if one not in conditions)
        whole = of.model_copy(update={"filters": kept})
        of_all = Aggregate(of=whole, measure=kind, property=property)
        return Compare(sides=(Aggregate(of=of, measure=kind, property=property), of_all), how="share")
    sets = _sides(of)
    if len(sets) < 2:
        if how == "compare" and groups:
            return Aggregate(of=of, measure=kind, property=property, group_by=groups)
        return None
    sides = tuple(Aggregate(of=one, measure=kind, property=property) for one in sets[:MAX_SIDES])
    return Compare(sides=sides, how={"ratio": "ratio", "difference": "difference", "compare": "side_by_side"}[how])


def _two_properties(made: Composition, of: Selection, how: str) -> Plan | None:
    """Forecast versus baseline: two figures of one set."""
    named = [
        p for item in made.open("property") for t, p in item.of("property")[:1] if t == of.type and made.kind(t, p) == "number"
    ]
    if len(dict.fromkeys(named)) != 2 or len(_sides(of)) > 1:
        return None
    made.take(*made.open("ratio", "difference", "compare", "money", "property", "between", *MEASURES))
    measure = next((MEASURES[name] for name in ("median", "mean") if made.reading.has(name)), "sum")
    sides = tuple(Aggregate(of=of, measure=measure, property=one) for one in dict.fromkeys(named))
    return Compare(sides=sides, how={"ratio": "ratio", "difference": "difference"}.get(how, "side_by_side"))


def _predicated(made: Composition, conditions: list[Filter]) -> list[Filter]:
    """What share of ICT projects is amber: of conditions before and after the noun, those after it are the part."""
    head = next(iter(made.reading.of("type")), None)
    behind = [
        one
        for one in conditions
        if head is not None
        and any(one.value in (v[2] for v in item.of("value")) for item in made.reading.of("value") if item.at >= head.end)
    ]
    return behind if 0 < len(behind) < len(conditions) else conditions


def _held_against(made: Composition, of: Selection) -> Plan | None:
    """Does X have more projects than Y? Which had more, X or Y? Two sets by their number, or by a figure of theirs."""
    word, begins = comparing_word(made) or _comparative(made, of), made.says("exists", made.reading.tokens[:1])
    sets = _sides(of)
    if word is None or len(sets) != 2 or not (begins or made.reading.has("question_words", "list") or made.says("or")):
        return None
    ordered = [
        p
        for item in made.open("property")
        for t, p in item.of("property")
        if t == of.type and made.kind(t, p) in ("number", "date")
    ]
    if len(of.among) == 2 and ordered and not begins:
        made.take(word, *made.open("property", "list"))  # which of the two ends later
        return Rank(of=of, by=ordered[0], descending=word.has("more", "compare_greater"), limit=2)
    if len(of.years) == 2:
        sets.sort(key=lambda one: of.years.index(one.years[0]))  # as they are stated
    property, measure = _figure_asked(made, of.type)
    made.take(word, *made.open("more", "less", "compare_greater", "compare_less", "count", "existence", "list"))
    more = word.has("more", "compare_greater")
    if word.has("superlative"):
        chosen = next(one for one in word.of("superlative") if one[0] == of.type)
        property, more = chosen[1], bool(chosen[2])
        made.take(word)
        measure = next((MEASURES[name] for name in ("median", "sum") if made.reading.has(name)), "mean")
    sides = tuple(Aggregate(of=one, measure=measure, property=property) for one in sets)
    if begins:
        return Compare(sides=sides, expect="more" if more else "less")
    return Compare(sides=sides, first="most" if more else "least")


def _comparative(made: Composition, of: Selection) -> Item | None:
    """Are these dearer than those on average? A superlative in its comparative form, with the figure of each that is meant."""
    stated = made.has("mean", "median", "sum") and made.says("than")
    return next((i for i in made.open("superlative") if stated and any(one[0] == of.type for one in i.of("superlative"))), None)


def _figure_asked(made: Composition, type: str) -> tuple[str | None, _Measure]:
    """The figure by which sets are held against each other, and how it is taken; their number where none is asked for."""
    measure: _Measure = next((MEASURES[name] for name in MEASURES if made.has(name)), "sum")
    numbers = [p for p in made.properties(type) if made.kind(type, p) == "number"]
    property = numbers[0] if numbers else made.main_money(type) if made.has("money") else None
    made.take(*made.open("money", *MEASURES))
    return property, measure if property else "count"


def _for_each_value(made: Composition, of: Selection) -> Plan | None:
    """How many red projects are there for each green one: the ratio of two values of a property."""
    pairs, sets = _pairs_of_values(made), _sides(of)
    if not pairs or len(sets) != 2 or not made.has("count"):
        return None
    made.take(pairs[0][0], *made.open("count", "existence"))
    second = {str(one[2]) for one in pairs[0][1].of("value")}
    sets.sort(key=lambda one: any(str(filter.value) in second for filter in one.filters))
    return Compare(sides=tuple(Aggregate(of=one) for one in sets), how="ratio")


def _pairs_of_values(made: Composition) -> list[tuple[Item, Item]]:
    """For each, with the value right after it."""
    told = [item for item in made.reading.items if not item.has("small")]
    return [(a, b) for a, b in pairwise(told) if a.has("group", "each") and b.has("value") and not b.has("property", "type")]


def _sides(of: Selection) -> list[Selection]:
    """The sets that a condition with several values, or several years, puts side by side."""
    for n, one in enumerate(of.filters):
        if one.op == "in" and isinstance(one.value, tuple) and len(one.value) >= 2:
            words = one.words.split(", ")
            return [
                of.model_copy(
                    update={
                        "filters": (
                            *of.filters[:n],
                            one.model_copy(
                                update={
                                    "op": "=",
                                    "value": value,
                                    "words": words[k] if len(words) == len(one.value) else str(value),
                                }
                            ),
                            *of.filters[n + 1 :],
                        )
                    }
                )
                for k, value in enumerate(one.value)
            ]
    if len(of.among) >= 2:
        return [of.model_copy(update={"among": (one,)}) for one in of.among]
    if len(of.years) >= 2:
        return [of.model_copy(update={"years": (year,)}) for year in sorted(of.years, reverse=True)]
    return []


def _ranked(made: Composition, of: Selection, groups: tuple[GroupBy, ...], head: Item | None) -> Plan | None:
    size = next(iter(made.open("most", "least", "largest", "smallest", "earliest", "latest", "rank", "max", "min")), None)
    superlative = next(
        (item for item in made.open("superlative") if any(one[0] == of.type for one in item.of("superlative"))), None
    )
    if size is None and superlative is None:
        return None
    if any(made.after(one, ("property",), ("small", "pronoun_one")) for one in made.open("compare_greater", "compare_less")):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # the most over its budget
    measured = made.has("sum", "mean", "median")
    by_property = bool(groups) and groups[0].via is None and groups[0].property != "year"
    if by_property and superlative is not None and size is None and (measured or head is None):
        return _dearest_group(made, of, groups, superlative)
    few = any(not one.has("year") for one in made.open("number", "numbers"))
    if superlative is not None and size is None and made.has("mean", "median") and not few:
        return None  # how expensive is one on average: a figure
    if not groups and (grouped := _most_common(made, of, size)) is not None:
        return grouped
    if groups and (measured or made.has("count") or not superlative):
        # Departments by their number of projects, the highest first.
        measure = next((name for name in ("median", "mean", "sum") if made.has(name)), None)
        property = made.number_of(measure or "sum", of.type) if measure or made.open("property") else None
        made.take(size, *made.open("count", "sum", "mean", "median", "list", "rank"))
        order = "value" if size is not None and size.has("least", "smallest") else "-value"
        return Aggregate(
            of=of,
            measure=MEASURES.get(measure or "", "sum") if property else "count",
            property=property,
            group_by=groups,
            order=order,
            limit=made.limit(),
        )
    if groups:
        return _extreme_of_groups(made, of, groups, superlative)
    if size is not None and size.has("max", "min") and superlative is None and head is None and not size.has("most", "least"):
        return None
    if superlative is not None:
        chosen = next(one for one in superlative.of("superlative") if one[0] == of.type)
        property, descending = chosen[1], bool(chosen[2])
        made.take(superlative)
        lead = made.before(superlative, ("most", "least", "more", "less"), ("small",))
        if lead is not None:
            descending = not descending if lead.has("least", "less") and not lead.has("most", "more") else descending
            made.take(lead)
        if size is not None:
            made.take(size)
    else:
        assert size is not None, "one of the two is there"
        made.take(size)
        ranked_by = _ranked_by(made, of.type, size)
        if ranked_by is None:
            raise NotUnderstood(Unknown(reason="property", words=size.text, detail={"type": of.type}))
        property = ranked_by
        descending = size.has("most", "largest", "latest", "max") or (size.has("rank") and not size.has("least", "smallest"))
        if size.has("least", "smallest", "earliest", "min") and not size.has("most", "largest", "latest", "max"):
            descending = False
        if size.has("rank") and made.has("least", "smallest"):
            descending = False  # rank the three smallest
    made.take(*[i for i in made.open("property") if any(one == (of.type, property) for one in i.of("property"))])
    made.take(*made.open("rank", "list", "most", "least", "largest", "smallest", "max", "min"))
    position, limit = made.place(), made.limit()
    together: Literal["sum", "mean"] | None = None
    if limit is not None and limit > 1 and made.kind(of.type, property) == "number" and made.has("sum", "mean"):
        together = "sum" if made.has("sum") else "mean"  # what the three most expensive cost in all
        made.take(*made.open("sum", "mean", "money", "count"))
    if made.has("mean", "median", "ratio", "share", "difference"):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # held against another figure
    if limit is None:
        plural = head is not None and (
            size is not None
            and size.has("rank", "most")
            and head.text.casefold().endswith(("s", "e", "n"))
            and not made.asks("what")
        )
        ranking = size is not None and size.has("rank")
        limit = TOP if ranking or (plural and made.says("top")) else 1
    it = made.named or (made.focus.entities if made.reading.has("pronoun_one") else ())
    asks = bool(made.reading.items) and made.reading.items[0].has("yes_or_no")
    supposed = it[0] if asks and limit == position == 1 and len(it) == 1 and it[0].type == of.type else None
    return Rank(of=of, by=property, descending=descending, limit=limit, position=position, together=together, expect=supposed)


def _dearest_group(made: Composition, of: Selection, groups: tuple[GroupBy, ...], superlative: Item) -> Plan:
    """Which category is the dearest on average, or in sum: the one group that comes first by the figure of a superlative."""
    _, property, more = next(one for one in superlative.of("superlative") if one[0] == of.type)
    measure = next((MEASURES[name] for name in ("median", "mean") if made.has(name)), MEASURES["sum"])
    made.take(superlative, *made.open("list", "count", *MEASURES))
    order: Literal["value", "-value"] = "-value" if more else "value"
    limit = made.limit() or 1
    return Aggregate(of=of, measure=measure, property=property, group_by=groups, order=order, limit=limit)


def _extreme_of_groups(made: Composition, of: Selection, groups: tuple[GroupBy, ...], superlative: Item | None) -> Plan:
    """The most expensive of each department, and the year that was the most expensive. Raises `NotUnderstood`."""
    chosen = [one for one in superlative.of("superlative") if one[0] == of.type] if superlative is not None else []
    if not chosen or made.kind(of.type, chosen[0][1]) != "number":
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))
    made.take(superlative, *made.open("most", "least", "list", "each"))
    of_years = groups[0].property == "year"
    measure: _Measure = "sum" if of_years else "max" if chosen[0][2] else "min"
    order: Literal["value", "-value"] = "-value" if chosen[0][2] else "value"
    return Aggregate(of=of, measure=measure, property=chosen[0][1], group_by=groups, order=order)


def _most_common(made: Composition, of: Selection, size: Item | None) -> Plan | None:
    """In which category are most of the projects? The group with the most members."""
    if size is None or not size.has("most", "least", "largest", "smallest") or made.has("superlative"):
        return None
    for item in made.open("property"):
        own = [p for t, p in item.of("property") if t == of.type and made.kind(t, p) == "string"]
        frequent = made.before(item, ("most", "least"), ()) is size and made.says("frequent")
        if own and (frequent or made.before(item, ("question_words", "list"), ("small", "number", "numbers")) is not None):
            made.take(*made.open("numbers"))
            made.take(size, item, *made.open("count", "list"))
            order = "value" if size.has("least", "smallest") and not size.has("most", "largest") else "-value"
            property, measure = _figure_asked(made, of.type)
            return Aggregate(
                of=of,
                measure=measure,
                property=property,
                group_by=(GroupBy(property=own[0]),),
                order=order,
                limit=made.limit() or 1,
            )
    return None


def _ranked_by(made: Composition, type: str, size: Item) -> str | None:
    spoken = any(t == type for item in made.open("property") for t, _ in item.of("property"))
    named = [
        p
        for p in made.properties(type)
        if made.kind(type, p) in ("number", "date") or ((one := made.view.property(type, p)) and one.choices)
    ]
    if named:
        return named[0]
    known = [one for one in made.view.properties(type) if made.count_known(type, one.name)]
    if size.has("earliest", "latest"):
        dates = [one.name for one in known if one.kind == "date"]
        return dates[0] if dates else None
    numbers = [one for one in known if one.kind == "number"]
    if len(numbers) == 1:
        return numbers[0].name
    by_size = made.asks("how_much") or made.has("money") or made.says("top") or size.has("largest", "smallest", "rank")
    if by_size and not spoken and (money := made.main_money(type)) is not None:
        made.certainty = min(made.certainty, GUESSED)
        return money
    return None


def _figure_or_list(made: Composition, of: Selection, groups: tuple[GroupBy, ...], head: Item | None) -> Plan:
    measure = next((name for name in MEASURES if made.has(name)), None)
    counted = made.has("count")
    property_items = [
        i for i in made.open("property") if any(t == of.type and made.kind(t, p) == "number" for t, p in i.of("property"))
    ]
    much = made.asks("how_much") or (made.has("money") and not made.has("list"))
    if counted and not property_items and (measure is None or measure == "sum"):
        made.take(*made.open("count", "sum", "list"))
        return Aggregate(of=of, group_by=groups, order="group")
    if measure is not None or much or (counted and property_items):
        made.take(*made.open("count", "list", *MEASURES))
        property = made.number_of(measure or "sum", of.type)
        if (
            property is None
            and head is None
            and not made.reading.has("property")
            and (property := made.main_money(of.type)) is not None
        ):
            made.certainty = min(made.certainty, GUESSED)  # the total of a department
        if property is None:
            if measure == "sum" and not much:
                return Aggregate(of=of, group_by=groups) if groups or counted else Select(of=of)
            raise NotUnderstood(Unknown(reason="property", detail={"type": of.type}))
        return Aggregate(of=of, measure=MEASURES.get(measure or "sum", "sum"), property=property, group_by=groups)
    if groups:
        property = next(iter(made.properties(of.type)), None)
        numeric = property is not None and made.kind(of.type, property) == "number"
        made.take(*made.open("list"))
        return Aggregate(of=of, measure="sum" if numeric else "count", property=property if numeric else None, group_by=groups)
    asked = [item for item in made.open("property")]
    shown = made.properties(of.type)
    if (
        head is None
        and len(asked) == 1
        and shown
        and not of.filters
        and made.base is None
        and made.kind(of.type, shown[0]) == "string"
    ):
        made.take(*made.open("list", "existence", "detail", "coverage"))
        return Coverage(about="values", type=of.type, property=shown[0])
    exists = made.has("existence") or made.says("exists", made.reading.tokens[:1])
    made.take(*made.open("list", "existence", "detail"))
    if made.asks("who") and head is None and not made.reading.has("property") and (made.base is not None or not of.filters):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # whose are they
    valued = [one for one in of.filters if one.via is None and one.op in ("=", "in")]
    if exists and valued and made.says("every"):
        whole = of.model_copy(update={"filters": tuple(one for one in of.filters if one not in valued)})
        return Compare(sides=(Aggregate(of=of), Aggregate(of=whole)), how="share", expect="all")
    if made.says("by") and len(shown) == 1 and made.kind(of.type, shown[0]) in ("number", "date"):
        return Rank(of=of, by=shown[0], descending=made.kind(of.type, shown[0]) == "number", limit=100)
    return Select(of=of, show=shown[:8], exists=exists)
