"""Which plan a question about the twin is: about named things, about a set, about what is missing, about a change."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from phronesis_contracts.twin import GroupBy, Level

from .composing import (
    COMPARISONS,
    GUESSED,
    MEASURES,
    TOP,
    Composition,
    NotUnderstood,
    distinct,
    refuse_leftovers,
    selection,
)
from .language import fold
from .plan import (
    MAX_SIDES,
    Aggregate,
    Change,
    Compare,
    Coverage,
    Describe,
    EntityRef,
    Filter,
    Gaps,
    Having,
    Plan,
    Rank,
    Relate,
    Search,
    Select,
    Selection,
    Unknown,
)
from .reading import Item

_MOVES = ("rose", "fell", "changed", "improved", "worsened")
Move = Literal["rose", "fell", "changed"]


def compose(made: Composition) -> Plan:
    """The plan of a question about the twin. Raises `NotUnderstood`: with the `Unknown` that says why."""
    plan = _concept(made) or _coverage(made) or _of_things(made) or _of_a_set(made)
    refuse_leftovers(made)
    if isinstance(plan, Select | Aggregate) and _asks_for_more(made, plan):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))
    return plan


def _asks_for_more(made: Composition, plan: Select | Aggregate) -> bool:
    """Whether a message relates years or properties of the same thing to each other, which one set cannot say."""
    if made.says("never") and not made.reading.has("unknown", "without"):
        return True  # of all years together
    if made.says("both") and len(plan.of.years) > 1:
        return True  # in the one and in the other
    if made.says("advice") and any(one.op in ("=", "in") for one in plan.of.filters):
        return True  # what ought to be, not what is
    turns = "".join("y" if item.has("year") else "v" for item in made.reading.items if item.has("year", "value"))
    if "vyvy" in turns or "yvyv" in turns:
        return True  # one value in one year, another in the next
    compared = any(item.has("compare_greater", "compare_less") for item in made.reading.items)
    figures = any(item.has("amount") or (item.has("number") and not item.has("year")) for item in made.reading.items)
    return compared and not figures and made.reading.has("property", "money") and not made.reading.has("year_word", "entity")


# -- what there is at all -------------------------------------------------------------------------------------


def _coverage(made: Composition) -> Plan | None:
    found = made.open("coverage")
    if not found or made.named or (made.has("entity", "count", "value") and "years" not in found[0].of("coverage")):
        return None
    about = found[0].of("coverage")[0]
    types = made.open("type")
    if about == "years" and not made.has("entity", "value", "property", "count"):
        made.take(*found, *made.open("year_word", "count"))
        type = made.type_of(types[0])[0] if types else None
        made.take(*types[:1])
        return Coverage(about="years", type=type)
    if about == "types" and not types and not made.has("property"):
        made.take(*found)
        return Coverage(about="types")
    item = next(iter(made.open("property")), None)
    if (
        item is not None
        and about != "years"
        and len(made.open("property")) == 1
        and not made.has("superlative", "most", "least")
    ):
        type = made.type_of(types[0])[0] if types else made.supposed()
        own = [p for t, p in item.of("property") if t == type]
        if type is not None and own and made.kind(type, own[0]) == "string":
            made.take(*found, item, *types[:1])
            return Coverage(about="values", type=type, property=own[0])
    return None


def _concept(made: Composition) -> Plan | None:
    """What is a policy tool? What does delivery confidence mean? The whole message has to be that."""
    asked = made.open("concept")
    terms = [
        item for item in made.reading.items if item.senses and item.has("type", "property", "chain", "relation", "missing")
    ]
    rest = [
        item
        for item in made.reading.items
        if item not in terms and not item.has("concept", "small", "question_words", "detail")
    ]
    if not asked or len(terms) != 1 or rest or not _is_definition(made, terms[0]):
        return None
    term = terms[0]
    made.take(*made.reading.items)
    if term.has("type"):
        return Coverage(about="concept", type=made.type_of(term)[0])
    if term.has("property"):
        type, property = term.of("property")[0]
        return Coverage(about="concept", type=type, property=property)
    return Coverage(
        about="concept",
        term=(term.of("chain") or term.of("relation") or ("gap",))[0]
        if not term.has("relation")
        else term.of("relation")[0][0],
    )


def _is_definition(made: Composition, term: Item) -> bool:
    """Whether a term is asked about, and not the things of that name."""
    lead = made.reading.tokens[: term.at]
    return made.says("definition") or made.says("article", lead[-1:])


# -- named things ---------------------------------------------------------------------------------------------


def _things(made: Composition) -> tuple[EntityRef, ...]:
    """The things that a message is about, where it is about named things and not about a set that hangs together with them."""
    items = made.open("entity")
    heads = [one for one in made.open("type") if not _apposed(made, one, items)]
    refs: list[EntityRef] = []
    for item in items:
        type = None
        if item.has("type") and not item.whole:
            continue
        refs += made.refs(item, type)
    refs += made.named
    if not refs:
        return ()
    refs = list(distinct(refs))
    type = refs[0].type
    if any(ref.type != type for ref in refs):
        # Two sorts of things: the one is asked about, the other a condition.
        if heads or made.has("count", *MEASURES, "most", "least", "superlative"):
            return ()
        return tuple(ref for ref in refs)
    if made.has("money") and made.main_money(type) is None and _spent(made, type):
        return ()
    owners = {
        t
        for one in made.open("property", "value", "superlative")
        for kind in ("property", "value", "superlative")
        for t in {v[0] for v in one.of(kind)}
    }
    if heads and not all(_names(one, type) for one in heads):
        return tuple(refs) if made.has("missing", "connect") or (_is_yes_or_no(made) and len(refs) == 1) else ()
    sized = not heads and len(refs) == 2 and _orders_two(made)
    of_set = made.has("count", "superlative", "most", "least", "group", "joined", "left", "share", "ratio")
    if of_set and not sized and not _counts_property(made, type):
        return ()
    if owners and type not in owners and any(made.view.between(type, owner) for owner in owners):
        return ()
    return tuple(refs)


def _names(item: Item, type: str) -> bool:
    return any(one == type for one, _ in item.of("type"))


def _apposed(made: Composition, item: Item, entities: list[Item]) -> bool:
    """Whether a type's noun belongs to a name beside it: the vendor Acme."""
    for entity in entities:
        near = entity.at - item.end in (0, 1) or item.at == entity.end
        if near and any(_names(item, refs[0].type) for refs in entity.of("entity") if refs):
            words = made.reading.tokens[item.end : entity.at] if entity.at >= item.end else ()
            return all(made.says("called", (token,)) for token in words)
    return False


def _counts_property(made: Composition, type: str) -> bool:
    """How many beds does the hospital have: a count that is a property of the thing."""
    numbers = [p for item in made.open("property") for t, p in item.of("property") if t == type and made.kind(t, p) == "number"]
    return made.has("count") and bool(numbers) and not made.has("superlative", "most", "least", "group")


def _orders_two(made: Composition) -> bool:
    """Is X more expensive than Y? Which ends first, X or Y?"""
    asks = _begins_yes_or_no(made) or made.reading.has("or")
    return asks and made.has("superlative") and not made.has("count", "group", "joined", "left", "share", "ratio")


def _begins_yes_or_no(made: Composition) -> bool:
    first = made.reading.items[0].text.casefold() if made.reading.items else ""
    return first in made.reading.language.words.get("yes_or_no", ())


def _is_yes_or_no(made: Composition) -> bool:
    """Does X have a vendor?"""
    return _begins_yes_or_no(made) and not made.has("value", "superlative", "most", "least")


def _of_things(made: Composition) -> Plan | None:
    refs = _things(made)
    if not refs:
        return None
    types = list(dict.fromkeys(ref.type for ref in refs))
    type = types[0]
    stated = made.years(type)
    items = made.open("entity")
    made.take(*items, *(item for item in made.open("type") if _names(item, type)))
    year = _present_year(made, refs, stated)
    if len(refs) > 1 and (better := _which_of_them(made, type, refs, stated or (year,))) is not None:
        return better
    figures = any(made.kind(type, p) == "number" for item in made.open("property") for t, p in item.of("property") if t == type)
    apart = figures and ((len(stated) > 1 and made.reading.has("between")) or len(refs) > 1)
    if made.has("missing") and not made.open("value") and not apart:
        return _gaps_of_things(made, refs, stated or _years_of(made, refs))
    if made.has("unknown") and not made.open("value", "property", "type"):
        made.take(*made.open("unknown"))
        return Gaps(entities=refs, years=stated or (year,))
    if len(refs) >= 2 and (made.has("connect") or len(types) > 1):
        made.take(*made.open("connect", "relation"))
        return Relate(source=refs[0], target=refs[1], year=year, hops=4)
    if (linked := _links(made, refs, year)) is not None:
        if len(stated) > 1:
            raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:200]))  # a link has one year
        return linked
    return _description(made, type, refs, stated)


def _which_of_them(made: Composition, type: str, refs: tuple[EntityRef, ...], years: tuple[int, ...]) -> Plan | None:
    """Which cost more, X or Y? The most or least of several named things."""
    superlative = next((i for i in made.open("superlative") if any(one[0] == type for one in i.of("superlative"))), None)
    sized = made.has("more", "less", "superlative", "most", "least", "largest", "smallest", "earliest", "latest")
    sized = sized or (
        _begins_yes_or_no(made)
        and made.has("compare_greater", "compare_less", "before", "after")
        and not made.has("number", "amount")
    )
    if not sized or any(ref.type != type for ref in refs) or made.has("difference", "ratio"):
        return None
    descending = not made.has("less", "least", "smallest", "earliest", "compare_less", "before")
    made.take(*made.open("before", "after"))
    if superlative is not None:
        one = next(value for value in superlative.of("superlative") if value[0] == type)
        made.take(superlative)
        property, descending = one[1], bool(one[2]) == (not made.has("less", "least"))
    else:
        named = [p for p in made.properties(type) if made.kind(type, p) in ("number", "date")]
        money = made.main_money(type) if made.asks("how_much") or made.has("money") else None
        if not named and money is None:
            return None
        property = named[0] if named else str(money)
    made.take(*made.open("more", "less", "most", "least", "largest", "smallest", "earliest", "latest", "compare", "money"))
    made.take(*made.open("compare_greater", "compare_less"))
    if not all(years[-1] in ref.years for ref in refs) and len(refs) == 2:
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:200]))  # no year has both
    of = Selection(type=type, years=years[-1:], among=refs)
    expect = refs[0] if _begins_yes_or_no(made) else None
    return Rank(of=of, by=property, descending=descending, limit=len(refs), expect=expect)


def _present_year(made: Composition, refs: tuple[EntityRef, ...], stated: tuple[int, ...]) -> int:
    if stated:
        return stated[-1]
    common = set(refs[0].years).intersection(*(ref.years for ref in refs[1:])) or {y for ref in refs for y in ref.years}
    if made.focus.years and made.named and made.focus.years[-1] in common:
        return made.focus.years[-1]
    known = made.view.years_of(refs[0].type)
    return max(common, default=known[-1] if known else 2000)


def _years_of(made: Composition, refs: tuple[EntityRef, ...]) -> tuple[int, ...]:
    return made.view.years_of(refs[0].type) or tuple(sorted({year for ref in refs for year in ref.years}))


def _gaps_of_things(made: Composition, refs: tuple[EntityRef, ...], years: tuple[int, ...]) -> Plan:
    made.take(*made.open("missing", "without", "unknown"))
    properties = made.properties(refs[0].type)
    other = next((t for item in made.open("type") for t, _ in item.of("type") if made.view.between(refs[0].type, t)), None)
    relation = next((name for item in made.open("relation") for name, _ in item.of("relation")), None)
    chain = next((name for item in made.open("chain") for name in item.of("chain")), None)
    made.take(*made.open("type", "relation", "chain"))
    return Gaps(
        entities=refs, years=years, properties=properties, to=other, relationship=relation, chain=chain, count=made.has("count")
    )


def _links(made: Composition, refs: tuple[EntityRef, ...], year: int) -> Plan | None:
    """What a thing is linked to, where a relationship or another type is asked for."""
    ref = refs[0]
    if len(refs) > 1:
        return None
    heads = made.open("type")
    for item in made.open("relation"):
        if any(t == ref.type for t, _ in item.of("property")) and not heads:
            continue  # the word is a property of the thing as well
        for name, forward in _directed(made, item, ref):
            relationship = made.view.relationships[name]
            ends = relationship.targets if forward else relationship.sources
            other = next((t for one in heads for t, _ in one.of("type") if t in ends), None)
            if heads and other is None:
                continue
            counted = made.has("count")
            made.take(item, *heads, *made.open("count", "relation"))
            return Relate(source=ref, year=year, relationship=name, forward=forward, to=other, count=counted)
    for one in heads:
        for other, _ in one.of("type"):
            ways = made.view.between(ref.type, other)
            if ways:
                counted = made.has("count")
                made.take(one, *made.open("count", "with", "relation"))
                only = ways[0] if len(ways) == 1 else None
                return Relate(
                    source=ref,
                    year=year,
                    relationship=only[0].name if only else None,
                    forward=only[1] if only else None,
                    to=other,
                    count=counted,
                )
    if made.has("impact", "connect"):
        made.take(*made.open("impact", "connect"))
        return Relate(source=ref, year=year, hops=2 if made.has("impact") else 1)
    if made.asks("where") and (place := _place(made, ref)) is not None:
        return Relate(source=ref, year=year, relationship=place[0], forward=place[1])
    return None


def _directed(made: Composition, item: Item, ref: EntityRef) -> list[tuple[str, bool]]:
    """The relationships of a phrase, with whether the thing is their source: by its type, else by where it stands."""
    found = []
    for name, forward in item.of("relation"):
        relationship = made.view.relationships.get(name)
        if relationship is None:
            continue
        source, target = ref.type in relationship.sources, ref.type in relationship.targets
        if source and target:
            names = [one for one in made.reading.of("entity")]
            after = bool(names) and names[0].at > item.at
            # “who reports to X”: after a forward phrase stands its target.
            found.append((name, forward != after))
        elif source or target:
            found.append((name, source))
    return found


def _place(made: Composition, ref: EntityRef) -> tuple[str, bool] | None:
    """The relationship that says where a thing is: the one whose phrases hold a word of place."""
    words = set(made.reading.language.words.get("place", ()))
    for relationship in made.view.ontology.relationships:
        for side, phrases in ((True, relationship.forward), (False, relationship.backward)):
            ends = relationship.sources if side else relationship.targets
            said = {word for listed in phrases.values() for phrase in listed for word in phrase.split()}
            if ref.type in ends and said & words:
                return relationship.name, side
    return None


def _description(made: Composition, type: str, refs: tuple[EntityRef, ...], stated: tuple[int, ...]) -> Plan:
    year = _present_year(made, refs, stated)
    measure = next((name for name in MEASURES if made.has(name)), None)
    apart = made.has("difference", "ratio", "missing") or (
        made.has("compare_greater", "compare_less") and not made.has("number", "amount")
    )
    if len(refs) > 1 and (measure or apart):
        return _figure_of_things(made, type, refs, stated or (year,), measure)
    expect = _expected(made, type)
    properties = made.properties(type)
    if made.has("why", "purpose") or made.asks("why") or _ends_with_for(made):
        text = _telling_text(made, type, properties or ((expect.property,) if expect else ()))
        made.take(*made.open("purpose", "value"))
        if text is not None:
            return Describe(entities=refs, properties=(text,), years=stated or (year,))
        return Search(text=made.reading.text, entities=refs, sources=("twin",))
    if not properties and expect is None:
        properties = _by_question_word(made, type)
    move = next((kind for kind in _MOVES if made.has(kind)), None)
    if move is not None and not properties and made.named:
        properties = tuple(one for one in made.focus.properties if made.view.property(type, one) is not None)[:1]
    asks_years = any("years" in item.of("coverage") for item in made.open("coverage"))
    if len(refs) == 1 and len(stated) == 2 and properties and _apart(made, move) and made.kind(type, properties[0]) == "number":
        made.take(*made.open("difference", "ratio", "missing", "between", "compare", *_MOVES))
        sides = tuple(
            Aggregate(of=Selection(type=type, years=(one,), among=refs), measure="sum", property=properties[0])
            for one in sorted(stated, reverse=True)
        )
        return Compare(sides=sides, how="change")
    history = made.has("history", "each_year") or move is not None or len(stated) > 1 or asks_years
    if made.has("year_word") and not stated and made.reading.has("question_words") and not history:
        history = True
    when: Literal["first", "last"] | None = None
    if expect is not None and (history or made.asks("when")):
        when = "last" if any(-1 in item.of("ordinals") for item in made.reading.items) else "first"
        history = True
    exists = not properties and expect is None and move is None and (made.has("existence") or _is_yes_or_no(made))
    made.take(*made.open("history", "each_year", *_MOVES, "detail", "compare", "coverage", "difference", "missing", "between"))
    if made.has("count") and properties:
        made.take(*made.open("count"))
    years = stated or (_years_of(made, refs) if history else (year,))
    return Describe(
        entities=refs,
        properties=properties,
        years=years,
        history=history,
        expect=expect,
        direction=_direction(made, type, properties[0], move) if move and properties else None,
        when=when,
        exists=exists,
    )


def _apart(made: Composition, move: str | None) -> bool:
    """Whether the step between two years is asked for, and not whether there was one."""
    return made.has("difference", "missing") or (move == "changed" and not _is_yes_or_no(made))


def _figure_of_things(
    made: Composition, type: str, refs: tuple[EntityRef, ...], years: tuple[int, ...], measure: str | None
) -> Plan:
    property = made.number_of(measure or "sum", type)
    if property is None:
        raise NotUnderstood(Unknown(reason="property", detail={"type": type}))
    how: Literal["difference", "ratio"] = "ratio" if made.has("ratio") else "difference"
    made.take(*made.open("difference", "ratio", "compare", "missing", "compare_greater", "compare_less", *MEASURES))
    if measure is not None and measure in MEASURES:
        of = Selection(type=type, years=years[-1:], among=refs)
        return Aggregate(of=of, measure=MEASURES[measure], property=property)
    sides = tuple(
        Aggregate(of=Selection(type=type, years=years[-1:], among=(ref,)), measure="sum", property=property) for ref in refs
    )
    return Compare(sides=sides[:MAX_SIDES], how=how)


def _expected(made: Composition, type: str) -> Filter | None:
    """What a question supposes of a thing: is it rated Red, does it cost more than 5?"""
    sized = made.sizes(type)
    if sized:
        return sized[0]
    # “When does it end” asks for a date, though what has ended may have a value of that name.
    asked = not _is_yes_or_no(made) and not made.has("why")
    both = [item for item in made.open("value") if asked and any(t == type for t, _ in item.of("property"))]
    made.used.update(item.at for item in both)
    found = made.values(type)
    made.used.difference_update(item.at for item in both)
    return found[0] if found else None


def _by_question_word(made: Composition, type: str) -> tuple[str, ...]:
    """The property that a question word asks for, where only one fits: when, how much."""
    known = [one for one in made.view.properties(type) if made.count_known(type, one.name)]
    if made.asks("when"):
        return tuple(one.name for one in known if one.kind == "date")
    if (made.asks("how_much") or made.has("money")) and (money := made.main_money(type)) is not None:
        return (money,)
    return ()


def _ends_with_for(made: Composition) -> bool:
    """What is X for?"""
    tokens = made.reading.tokens
    return len(tokens) > 2 and made.says("what", tokens[:1]) and made.says("for", tokens[-1:])


def _telling_text(made: Composition, type: str, properties: tuple[str, ...]) -> str | None:
    """The text that answers why or what for: one that is called so, or that is about the property asked for."""
    texts = [one for one in made.view.properties(type) if one.kind == "text" and made.count_known(type, one.name)]
    language = made.reading.language
    for property in properties:
        declared = made.view.property(type, property)
        if declared is None:
            continue
        if declared.kind == "text":
            return property
        labels = {language.stem(word) for listed in declared.words.values() for phrase in listed for word in phrase.split()}
        for one in texts:
            said = {language.stem(word) for listed in one.words.values() for phrase in listed for word in phrase.split()}
            if labels & said - {language.stem(w) for w in language.words.get("small", ())}:
                return one.name
    if made.asks("why") and properties:
        return None
    purpose = {language.stem(word) for phrase in language.words.get("purpose", ()) for word in phrase.split()}
    for one in texts:
        said = {language.stem(word) for listed in one.words.values() for phrase in listed for word in phrase.split()}
        if said & purpose:
            return one.name
    return None


# -- sets -----------------------------------------------------------------------------------------------------


def _of_a_set(made: Composition) -> Plan:
    type, level, head = _who(made) or made.subject()
    if (grouped := _most_of_others(made, type, level)) is not None:
        return grouped
    if made.has("missing", "unknown", "without") and (gaps := _gaps_of_a_set(made, type, level)) is not None:
        return gaps
    groups = made.groups(type) if not _pairs_of_values(made) else ()
    linked = _linked_types(made, type)
    if (moved := _in_one_year_only(made, type, level)) is not None:
        return moved
    if any(made.has(kind) for kind in ("joined", "left")) and (change := _came_and_went(made, type, level)) is not None:
        return change
    if (turned := _turned(made, type, level)) is not None:
        return turned
    move = next((kind for kind in _MOVES if made.has(kind)), None)
    if move is not None:
        return _moved(made, type, level, groups, move)
    over_years = any(group.property == "year" and group.via is None for group in groups)
    of = selection(made, type, level, every_year=over_years)
    of = of.model_copy(update={"filters": (*of.filters, *linked)[:8]})
    if (ratio := _for_each_value(made, of)) is not None:
        return ratio
    if made.has("share", "ratio", "difference", "compare") and (compared := _compared(made, of, groups)) is not None:
        return compared
    if (ranked := _ranked(made, of, groups, head)) is not None:
        return ranked
    return _figure_or_list(made, of, groups, head)


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


def _linked_types(made: Composition, type: str) -> list[Filter]:
    """Conditions by another type alone: departments that have projects. A type whose own values are conditions adds none."""
    found = []
    owners = {v[0] for item in made.open("value", "property") for kind in ("value", "property") for v in item.of(kind)}
    for item in made.open("type"):
        others = [t for t, _ in item.of("type") if t != type and made.view.between(type, t)]
        if not others:
            continue
        if made.before(item, tuple(COMPARISONS), ("number", "numbers", "small")) is not None:
            continue
        bare = made.before(item, ("without",), ("small",))
        if bare is None and made.before(item, ("without",), ("small", "value")) is not None:
            continue  # no red projects: a condition on what is linked
        no = made.before(item, ("not",), ("small", "relation"))
        via, to = made.link(type, others[0], item)
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
    for item in made.open("type"):
        other = next((t for t, _ in item.of("type") if t != type and made.view.between(type, t)), None)
        if other is None:
            continue
        cmp = made.before(item, tuple(COMPARISONS), ("number", "numbers", "small"))
        number = made.before(item, ("number", "numbers"), ("small",))
        lead = made.before(item, ("most", "least"), ("small", "count", "value", "superlative", "group"))
        if lead is None and (cmp is None or number is None):
            continue
        _, other_level = made.type_of(item)
        via, _ = made.link(type, other, item)
        made.take(item)
        having, order, limit = None, "group", None
        if lead is not None:
            order = "value" if lead.has("least") and not lead.has("most") else "-value"
            made.take(lead)
            limit = made.limit() or 1
        elif cmp is not None and number is not None:
            sign = next(sign for kind, sign in COMPARISONS.items() if cmp.has(kind))
            having = Having(op=sign, value=float((number.of("number") or number.of("numbers"))[0]))
            made.take(cmp, number)
        counted = made.has("count")
        made.take(*made.open("count", "list", "with"))
        of = selection(made, other, other_level or made.view.usual_level(other))
        group = GroupBy(property="name", via=via, to=type)
        return Aggregate(
            of=of, group_by=(group,), having=having, order=order, limit=limit, count_groups=counted and having is not None
        )
    if size is not None or made.has("superlative"):
        return _largest_group(made, type, size)
    return None


def _spent(made: Composition, type: str) -> list[tuple[str, str, bool | None]]:
    """What a thing without money of its own spends: the main figure in money of what it is linked to."""
    linked = [one.name for one in made.view.ontology.types if one.name != type and made.view.between(type, one.name)]
    return [(other, money, None) for other in linked if (money := made.main_money(other)) is not None]


def _largest_group(made: Composition, type: str, size: Item | None) -> Plan | None:
    """Which department has the highest total cost: a figure of another type, for each of this one."""
    owners = [
        (one[0], one[1], one[2] if len(one) > 2 else None)
        for item in made.open("property", "superlative")
        for kind in ("property", "superlative")
        for one in item.of(kind)
    ]
    if not owners and made.has("money") and made.main_money(type) is None:
        owners = _spent(made, type)
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


def _in_one_year_only(made: Composition, type: str, level: Level | None) -> Plan | None:
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


def _came_and_went(made: Composition, type: str, level: Level | None) -> Plan | None:
    what: Literal["joined", "left"] = "joined" if made.has("joined") else "left"
    known = made.view.years_of(type)
    if len(known) < 2:
        return None
    made.take(*made.open("joined", "left"))
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
        if lead is not None and lead.has("since"):
            return year, known[-1]
        if lead is not None and lead.has("after"):
            return year, later[0] if later else year + 1
        return (earlier[-1] if earlier else year - 1), year
    return known[-2], known[-1]


def _moved(made: Composition, type: str, level: Level | None, groups: tuple[GroupBy, ...], move: str) -> Plan:
    known = made.view.years_of(type)
    made.take(*made.open(*_MOVES))
    measure = next((name for name in MEASURES if made.has(name)), None)
    counted = made.has("count")
    if len(made.open("entity")) > 1 and made.says("from") and made.says("to"):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # links over the years
    if measure is not None or (counted and move not in ("improved", "worsened") and not made.open("property")):
        # The figure over the years, not the members that moved.
        property = made.number_of(measure, type) if measure is not None else None
        made.take(*made.open("count", *MEASURES))
        of = selection(made, type, level, every_year=True)
        group = GroupBy(property="year")
        return Aggregate(of=of, measure=MEASURES[measure] if measure else "count", property=property, group_by=(group,))
    properties = made.properties(type)
    made.take(*made.open("count", "list"))
    if len(known) < 2:
        raise NotUnderstood(Unknown(reason="years", detail={"type": type}))
    since, until = _span_of(made, known)
    others = [item for item in made.reading.items if item.has("type") and not _names(item, type)]
    if not properties and others and not made.reading.has("group", "each", "entity"):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # another thing that it belongs to
    of = selection(made, type, level)
    if not properties:
        ordered = [one for one in made.view.properties(type) if one.kind == "string" and len(one.choices) > 2]
        ordered.sort(key=lambda one: not (one.most or one.least))
        properties = tuple(one.name for one in ordered[:1])
    if not properties:
        raise NotUnderstood(Unknown(reason="property", detail={"type": type}))
    way = _direction(made, type, properties[0], move)
    return Change(of=of, since=since, until=until, what=way, property=properties[0], count=counted)


def _turned(made: Composition, type: str, level: Level | None) -> Plan | None:
    """Which went from amber in 2022 to red in 2023: two values of one property, from the one to the other."""
    values = [(item, one) for item in made.open("value") for one in item.of("value")[:1] if one[0] == type]
    if len(values) != 2 or values[0][1][1] != values[1][1][1] or values[0][1][2] == values[1][1][2]:
        return None
    known = made.view.years_of(type)
    changing = made.has(*_MOVES, "turned") or (made.says("from") and made.says("to"))
    if not changing or len(known) < 2 or made.says("or"):
        return None
    made.take(*(item for item, _ in values), *made.open(*_MOVES, "turned"))
    counted = made.has("count")
    made.take(*made.open("count", "list", "existence"))
    since, until = _span_of(made, known)
    of = selection(made, type, level)
    (_, old), (_, new) = values
    return Change(of=of, since=since, until=until, what="changed", property=old[1], before=old[2], after=new[2], count=counted)


def _direction(made: Composition, type: str, property: str, move: str) -> Move:
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


def _compared(made: Composition, of: Selection, groups: tuple[GroupBy, ...]) -> Plan | None:
    how = next(kind for kind in ("share", "ratio", "difference", "compare") if made.has(kind))
    made.take(*made.open("share", "ratio", "difference", "compare"))
    if groups and how == "share":
        made.take(*made.open("count", *MEASURES))
        return Aggregate(of=of, group_by=groups)
    measure = next((name for name in MEASURES if made.has(name)), None)
    made.take(*made.open(*MEASURES, "count", "list"))
    properties = [p for p in made.properties(of.type) if made.kind(of.type, p) == "number"]
    property = properties[0] if properties else None
    kind = MEASURES.get(measure or "", "sum") if property else "count"
    spoken = made.focus.plan
    if how == "share" and isinstance(spoken, Aggregate) and made.has("pronoun_one") and spoken.of.type == of.type:
        made.take(*made.open("pronoun_one"))
        figure = spoken.model_copy(update={"measure": "count" if spoken.property is None else "sum", "group_by": ()})
        whole = of if made.reading.has("year", "relative_years") else of.model_copy(update={"years": spoken.of.years})
        return Compare(sides=(figure, figure.model_copy(update={"of": whole})), how="share")
    if how == "share":
        part = (
            [one for one in of.filters if one.via is None and one.op in ("=", "in", "<>")]
            or [one for one in of.filters if one.via is not None]
            or list(of.filters)
        )
        if not part:
            return None
        kept = tuple(one for one in of.filters if one not in part)
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
    measured = made.has("sum", "mean", "median")
    if superlative is not None and size is None and made.has("mean", "median"):
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
    if size is not None and size.has("max", "min") and superlative is None and head is None and not size.has("most", "least"):
        return None
    if superlative is not None:
        chosen = next(one for one in superlative.of("superlative") if one[0] == of.type)
        property, descending = chosen[1], bool(chosen[2])
        made.take(superlative)
        lead = made.before(superlative, ("most", "least"), ("small",))
        if lead is not None:
            descending = not descending if lead.has("least") and not lead.has("most") else descending
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
    made.take(*[i for i in made.open("property") if any(one == (of.type, property) for one in i.of("property"))])
    made.take(*made.open("rank", "list", "most", "least", "max", "min"))
    position = next((int(n) for item in made.open("ordinals") for n in item.of("ordinals") if int(n) > 1), 1)
    limit = made.limit()
    if limit is None:
        plural = head is not None and (
            size is not None
            and size.has("rank", "most")
            and head.text.casefold().endswith(("s", "e", "n"))
            and not made.asks("what")
        )
        ranking = size is not None and size.has("rank")
        limit = TOP if ranking or (plural and made.says("top")) else 1
    return Rank(of=of, by=property, descending=descending, limit=limit, position=position)


def _most_common(made: Composition, of: Selection, size: Item | None) -> Plan | None:
    """In which category are most of the projects? The group with the most members."""
    if size is None or not size.has("most", "least", "largest", "smallest") or made.has("superlative"):
        return None
    for item in made.open("property"):
        own = [p for t, p in item.of("property") if t == of.type and made.kind(t, p) == "string"]
        if own and made.before(item, ("question_words",), ("small",)) is not None:
            made.take(size, item, *made.open("count", "list"))
            order = "value" if size.has("least", "smallest") and not size.has("most", "largest") else "-value"
            return Aggregate(of=of, group_by=(GroupBy(property=own[0]),), order=order, limit=made.limit() or 1)
    return None


def _ranked_by(made: Composition, type: str, size: Item) -> str | None:
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
    if (made.asks("how_much") or made.has("money") or size.has("largest", "smallest")) and (
        money := made.main_money(type)
    ) is not None:
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
    if made.says("by") and len(shown) == 1 and made.kind(of.type, shown[0]) in ("number", "date"):
        return Rank(of=of, by=shown[0], descending=made.kind(of.type, shown[0]) == "number", limit=100)
    return Select(of=of, show=shown[:8], exists=exists)
