"""Questions about named things: their properties, their links, what is missing of them, which of them comes first."""

from __future__ import annotations

from typing import Literal

from .composing import GUESSED, MEASURES, Composition, NotUnderstood, distinct, drop_owner, family_of
from .language import fold
from .plan import (
    MAX_SIDES,
    Aggregate,
    Compare,
    Describe,
    EntityRef,
    Filter,
    Gaps,
    Plan,
    Rank,
    Relate,
    Search,
    Select,
    Selection,
    Unknown,
)
from .questions_of_changes import MOVES, direction_of
from .reading import Item


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
    pronoun = next((one.at for one in made.reading.of("pronoun_one")), 1_000)
    leads = bool(items) and pronoun < items[0].at
    refs = [*made.named, *refs] if leads else [*refs, *made.named]
    if not refs:
        return ()
    refs = list(distinct(refs))
    type = refs[0].type
    if any(family_of(made, ref.type) is not None for ref in refs):
        return ()  # all the projects of that name
    if any(ref.type != type for ref in refs) and not heads and (owner := _apart_from_owner(made, refs, items)) is not None:
        refs, type = [owner], owner.type
    if any(ref.type != type for ref in refs):
        # Two sorts of things: the one is asked about, the other a condition.
        if heads or made.has("count", *MEASURES, "most", "least", "superlative"):
            return ()
        return tuple(ref for ref in refs)
    if made.has("money") and made.main_money(type) is None and made.spent(type):
        return ()
    owners = {
        t
        for one in made.open("property", "value", "superlative")
        for kind in ("property", "value", "superlative")
        for t in {v[0] for v in one.of(kind)}
    }
    if heads and not all(one.names_type(type) for one in heads):
        if any(one.names_type(owner) for one in heads for item in made.open("property") for owner, _ in item.of("property")):
            return ()  # for which of its projects is the end date missing?
        has_some = _is_yes_or_no(made) and len(refs) == 1 and not made.has("more", "less")
        return tuple(refs) if made.has("missing", "connect") or has_some else ()
    last = made.focus.entities
    beside_last = len(refs) == len(last) == 1 and last[0].type == refs[0].type and last[0].id != refs[0].id
    definite = any(made.says("called", made.reading.tokens[: one.at][-1:]) for one in made.open("superlative"))
    sized = not heads and (len(refs) == 2 or (beside_last and not definite)) and _orders_two(made)
    of_set = made.has("superlative", "most", "least", "joined", "left", "share", "ratio")
    of_set = of_set or (made.has("count") and not _counts_years(made))
    of_set = of_set or any(made.after(one, ("type", "property"), ("small",)) is not None for one in made.open("group"))
    of_set = of_set or (type not in owners and _figures_of_others(made, type))
    year_before = bool(made.named) and len(made.open("year", "relative_years")) == 1 and _begins_yes_or_no(made)
    year_before = year_before and not definite  # is it the dearest of 2023
    why = made.asks("why") and len(refs) == 1
    if of_set and not why and not sized and not _counts_property(made, type) and not _moves_one(made, refs) and not year_before:
        return ()
    if owners and type not in owners and any(made.view.between(type, owner) for owner in owners):
        return ()
    return tuple(refs)


def _apart_from_owner(made: Composition, refs: list[EntityRef], items: list[Item]) -> EntityRef | None:
    """The rating of the programme at the ministry: the thing itself, where the other name only says whose it is."""
    if len(refs) != 2 or len(items) != 2 or made.has("connect", "count", *MEASURES):
        return None
    if any(item.has("relation") and not item.has("property") for item in made.reading.items):
        return None
    lead = made.reading.tokens[items[1].at - 1].folded
    article = lead in made.reading.language.cues("called")
    lead = made.reading.tokens[items[1].at - 2].folded if article else lead
    bracket = made.reading.text[: made.reading.tokens[items[1].at].start].endswith("(")
    if not (bracket or lead in made.reading.language.cues("whose_it_is")) or not made.view.between(refs[0].type, refs[1].type):
        return None
    asked = {one[0] for kind in ("property", "value", "superlative") for item in made.open(kind) for one in item.of(kind)}
    of_itself = made.has("why", "purpose", "detail", "money") or made.asks("why") or made.asks("when") or _ends_with_for(made)
    if refs[0].type not in asked and not of_itself and not (refs[1].type not in asked and made.asks("what")):
        return None
    made.take(items[1])
    return refs[0]


def _figures_of_others(made: Composition, type: str) -> bool:
    """Whether a figure or an order is asked for that things of a type have not themselves: the total of a department."""
    asked = made.has("largest", "smallest", "rank", *MEASURES)
    return asked and not any(made.kind(type, one.name) == "number" for one in made.view.properties(type))


def _apposed(made: Composition, item: Item, entities: list[Item]) -> bool:
    """Whether a type's noun belongs to a name beside it: the vendor Acme."""
    for entity in entities:
        near = entity.at - item.end in (0, 1) or item.at == entity.end
        if near and any(item.names_type(refs[0].type) for refs in entity.of("entity") if refs):
            words = made.reading.tokens[item.end : entity.at] if entity.at >= item.end else ()
            return all(made.says("called", (token,)) for token in words)
    return False


def _counts_property(made: Composition, type: str) -> bool:
    """How many beds does the hospital have: a count that is a property of the thing."""
    numbers = [p for item in made.open("property") for t, p in item.of("property") if t == type and made.kind(t, p) == "number"]
    return made.has("count") and bool(numbers) and not made.has("superlative", "most", "least", "group")


def _counts_years(made: Composition) -> bool:
    """In how many years was it red? How often?"""
    return (
        made.reading.has("count")
        and made.reading.has("year_word")
        and made.reading.has("value")
        and not made.reading.has("type", "year")
    )


def _orders_two(made: Composition) -> bool:
    """Is X more expensive than Y? Which ends first, X or Y?"""
    asks = _begins_yes_or_no(made) or made.reading.has("or")
    return asks and made.has("superlative") and not made.has("count", "group", "joined", "left", "share", "ratio")


def _moves_one(made: Composition, refs: list[EntityRef]) -> bool:
    """Did X get more expensive from one year to another?"""
    two_years = len(made.open("year", "relative_years")) > 1 or made.has("since")
    kinds = ("count", "most", "least", "group", "joined", "left", "share", "ratio")
    return len(refs) == 1 and two_years and _begins_yes_or_no(made) and made.has("superlative") and not made.has(*kinds)


def _begins_yes_or_no(made: Composition) -> bool:
    first = made.reading.items[0].text.casefold() if made.reading.items else ""
    return first in made.reading.language.words.get("yes_or_no", ())


def _is_yes_or_no(made: Composition) -> bool:
    """Does X have a vendor?"""
    return _begins_yes_or_no(made) and not made.has("value", "superlative", "most", "least")


def of_things(made: Composition) -> Plan | None:
    refs = _things(made)
    if not refs:
        return None
    refs = _with_the_last(made, refs)
    types = list(dict.fromkeys(ref.type for ref in refs))
    type = types[0]
    if made.base is not None and made.base.type not in types and made.has("pronoun_many"):
        return None  # which of those belong to X: some of the set, and nothing about X
    stated = made.years(type)
    items = made.open("entity")
    for item in items:
        number = made.after(item, ("number",), ())
        if number is not None and number.at == item.end and not number.has("year") and not made.after(number, ("year_word",)):
            words = f"{item.text} {number.text}"  # a name with a number behind it is another name
            raise NotUnderstood(Unknown(reason="words", words=words))
    made.take(*items, *(item for item in made.open("type") if item.names_type(type)))
    drop_owner(made, type)
    if len(refs) == 1 and len(items) == 1 and not made.named:
        _or_its_namesakes(made, items[0], refs[0], stated)
    year = _present_year(made, refs, stated)
    if (before := _than_before(made, type, refs, stated)) is not None:
        return before
    if len(refs) > 1 and (better := _which_of_them(made, type, refs, stated or (year,))) is not None:
        return better
    figures = any(made.kind(type, p) == "number" for item in made.open("property") for t, p in item.of("property") if t == type)
    apart = figures and ((len(stated) > 1 and made.reading.has("between")) or len(refs) > 1)
    if made.has("missing") and not made.open("value") and not apart:
        return _gaps_of_things(made, refs, stated or _years_of(made, refs))
    if made.has("unknown") and not made.open("value", "property", "type"):
        made.take(*made.open("unknown"))
        return Gaps(entities=refs, years=stated or (year,))
    if (sides := _by_what_they_have(made, type, refs, stated or (year,))) is not None:
        return sides
    if len(refs) >= 2 and (made.has("connect") or len(types) > 1):
        made.take(*made.open("connect", "relation"))
        return Relate(source=refs[0], target=refs[1], year=year, hops=4)
    if (linked := _links(made, refs, year)) is not None:
        if len(stated) > 1:
            raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:200]))  # a link has one year
        return linked
    return _description(made, type, refs, stated)


def _or_its_namesakes(made: Composition, item: Item, ref: EntityRef, stated: tuple[int, ...]) -> None:
    """Ask back where a part of a name stands for a thing that is not there in the year asked about, and for others that are.

    Raises `NotUnderstood`.
    """
    known = made.view.years_of(ref.type)
    wanted = {stated[-1]} if stated else set(known[-1:])
    if not wanted or wanted & set(ref.years) or fold(item.text) == fold(ref.name):
        return
    stems = [token.stem for token in made.reading.tokens[item.at : item.end]]
    held = [{(one.type, one.id): one for one in made.lexicon.holding(stem)} for stem in stems]
    alike = [one for key, one in held[0].items() if all(key in each for each in held)]
    there = distinct(one for one in alike if one.type == ref.type and wanted & set(one.years) and one.level is ref.level)
    if there:
        raise NotUnderstood(Unknown(reason="ambiguous", words=item.text, choices=(ref, *there)[:12]))


def _by_what_they_have(made: Composition, type: str, refs: tuple[EntityRef, ...], years: tuple[int, ...]) -> Plan | None:
    """Compare two ministries: by what is mostly asked of what they have, where they have no figures themselves."""
    if len(refs) < 2 or not made.has("compare") or made.has("property", "value", "relation", "type", "count"):
        return None
    if any(ref.type != type for ref in refs) or made.main_money(type) is not None:
        return None
    spent = made.spent(type)
    if len(spent) != 1 or len(made.view.between(spent[0][0], type)) != 1:
        return None
    made.take(*made.open("compare"))
    return Compare(sides=tuple(_what_it_spends(made, spent[0], ref, years) for ref in refs[:MAX_SIDES]))


def _what_it_spends(made: Composition, spent: tuple[str, str], ref: EntityRef, years: tuple[int, ...]) -> Aggregate:
    other, money = spent
    via, to = made.link(other, ref.type, None)
    condition = Filter(property="id", value=ref.id, via=via, to=to, words=ref.name)
    of = Selection(type=other, years=years[-1:], level=made.view.usual_level(other), filters=(condition,))
    return Aggregate(of=of, measure="sum", property=money)


def _than_before(made: Composition, type: str, refs: tuple[EntityRef, ...], stated: tuple[int, ...]) -> Plan | None:
    """Was it cheaper in 2020? The figure of one year, held against that of the year last spoken of."""
    item = next((i for i in made.open("superlative") if any(one[0] == type for one in i.of("superlative"))), None)
    spoken = made.focus.years[-1:]
    if item is None or len(refs) != 1 or not made.named or len(stated) != 1 or not spoken or spoken == stated:
        return None
    _, property, more = next(one for one in item.of("superlative") if one[0] == type)
    if not _begins_yes_or_no(made) or made.kind(type, property) != "number":
        return None
    made.take(item, *made.open("more", "less"))
    than = made.says("than")  # is it cheaper than in 2020: the year that is said is held against
    figures = (Selection(type=type, years=(year,), among=refs) for year in ((*spoken, *stated) if than else (*stated, *spoken)))
    sides = tuple(Aggregate(of=of, measure="sum", property=property) for of in figures)
    return Compare(sides=sides, expect="more" if more else "less")


def _with_the_last(made: Composition, refs: tuple[EntityRef, ...]) -> tuple[EntityRef, ...]:
    """More than X? Is X cheaper? The other one is the thing last spoken of."""
    last = made.focus.entities
    word = next(iter(made.open("more", "less", "compare_greater", "compare_less")), None)
    compares = word is not None or (made.has("superlative") and _begins_yes_or_no(made))
    if len(refs) != 1 or len(last) != 1 or last[0].type != refs[0].type or last[0].id == refs[0].id:
        return refs
    if not compares or made.states_figure() or made.has("year", "since", "most", "least"):
        return refs
    named = next(iter(made.open("entity")), None)
    behind = word is not None and named is not None and word.at < named.at
    return (last[0], refs[0]) if behind else (refs[0], last[0])


def _which_of_them(made: Composition, type: str, refs: tuple[EntityRef, ...], years: tuple[int, ...]) -> Plan | None:
    """Which cost more, X or Y? The most or least of several named things."""
    superlative = next((i for i in made.open("superlative") if any(one[0] == type for one in i.of("superlative"))), None)
    sized = made.has("more", "less", "superlative", "most", "least", "largest", "smallest", "earliest", "latest")
    sized = sized or (
        (_begins_yes_or_no(made) or made.reading.text.endswith("?"))
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
        spoken = [p for p in made.focus.properties if made.kind(type, p) in ("number", "date")]
        if not named and not made.has("money"):
            named = spoken  # more than that one: of what was last asked for
        larger = made.has("compare_greater", "compare_less", "largest", "smallest")
        money = made.main_money(type) if made.asks("how_much") or made.has("money") or larger else None
        if larger and not named and not made.has("money"):
            made.certainty = min(made.certainty, GUESSED)  # larger by what it costs
        if not named and money is None:
            return None
        property = named[0] if named else str(money)
    made.take(*made.open("more", "less", "most", "least", "largest", "smallest", "earliest", "latest", "compare", "money"))
    made.take(*made.open("compare_greater", "compare_less"))
    if not all(years[-1] in ref.years for ref in refs) and len(refs) == 2:
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:200]))  # no year has both
    of = Selection(type=type, years=years[-1:], among=refs)
    asks = _begins_yes_or_no(made) or (made.reading.text.endswith("?") and not made.reading.has("question_words", "or"))
    expect = refs[0] if asks else None
    return Rank(of=of, by=property, descending=descending, limit=len(refs), expect=expect)


def _present_year(made: Composition, refs: tuple[EntityRef, ...], stated: tuple[int, ...]) -> int:
    if stated:
        return stated[-1]
    common = set(refs[0].years).intersection(*(ref.years for ref in refs[1:])) or {y for ref in refs for y in ref.years}
    known = made.view.years_of(refs[0].type)
    if made.named and made.says("now", made.reading.tokens[-1:]) and known:
        return known[-1]  # when will it be finished now
    spoken = {ref.id for ref in (*made.focus.entities, *made.focus.listed)}
    among = bool(made.named) or (len(refs) == 1 and refs[0].id in spoken and made.says("stand_in"))
    if made.focus.years and among and made.focus.years[-1] in common:
        return made.focus.years[-1]
    return max(common, default=known[-1] if known else 2000)


def _years_of(made: Composition, refs: tuple[EntityRef, ...]) -> tuple[int, ...]:
    return made.view.years_of(refs[0].type) or tuple(sorted({year for ref in refs for year in ref.years}))


def _gaps_of_things(made: Composition, refs: tuple[EntityRef, ...], years: tuple[int, ...]) -> Plan:
    made.take(*made.open("missing", "without", "unknown"))
    properties = made.properties(refs[0].type)
    other = next((t for item in made.open("type") for t, _ in item.of("type") if made.view.between(refs[0].type, t)), None)
    named = (item for item in made.open("relation") if not item.has("small"))  # “information” is no link
    relation = next((name for item in named for name, _ in item.of("relation")), None)
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
    dated = (
        (made.asks("when") or made.asks("how_long"))
        and not heads
        and any(made.kind(ref.type, one.name) == "date" for one in made.view.properties(ref.type))
    )
    if dated:
        made.take(*made.open("relation", "until", "since"))  # until when does it run
    asked = [item for item in made.open("property") if made.before(item, ("question_words",), ("small",)) is not None]
    if not heads and any(t == ref.type for item in asked for t, _ in item.of("property")):
        made.take(*(item for item in made.open("relation") if item not in asked))  # which category does it belong to
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
            made.take(item, *heads, *made.open("count"))
            made.take(*(one for one in made.open("relation") if not any(t == ref.type for t, _ in one.of("property"))))
            return Relate(source=ref, year=year, relationship=name, forward=forward, to=other, count=counted)
    if heads and not made.has("number", "amount"):
        made.take(*(item for item in made.open("compare_less") if item is made.reading.items[-1]))  # which one is it under
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
    if made.asks("where") and not made.has("property") and (place := _place(made, ref)) is not None:
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


_AGAIN = 8
"""Words of a message that asks for the same of another year."""


def _what_it_has(made: Composition, refs: tuple[EntityRef, ...], years: tuple[int, ...]) -> Plan | None:
    """What does the ministry have? The things of the type that is mostly asked about, which are linked to it."""
    own = refs[0].type
    if len(refs) != 1 or not made.says("holds") or made.named or made.has("type", "relation") or _begins_yes_or_no(made):
        return None
    near = [one.name for one in made.view.ontology.types if one.name != own and made.view.between(one.name, own)]
    other = max(near, key=lambda one: (made.main_money(one) is not None, len(made.view.things(one))), default=own)
    if other == own or made.main_money(own) is not None or not made.view.things(other):
        return None
    via, to = made.link(other, refs[0].type, None)
    condition = Filter(property="id", value=refs[0].id, via=via, to=to, words=refs[0].name)
    made.take(*made.open("list", "concept", "existence"))
    return Select(of=Selection(type=other, years=years[-1:], level=made.view.usual_level(other), filters=(condition,)))


def _description(made: Composition, type: str, refs: tuple[EntityRef, ...], stated: tuple[int, ...]) -> Plan:
    year = _present_year(made, refs, stated)
    measure = next((name for name in MEASURES if made.has(name)), None)
    apart = made.has("difference", "ratio", "missing") or (
        made.has("compare_greater", "compare_less") and not made.has("number", "amount")
    )
    if len(refs) > 1 and (measure or apart):
        return _figure_of_things(made, type, refs, stated or (year,), measure)
    expect = _expected(made, type)
    if expect is not None and not stated and made.named and made.says("still"):
        year = _years_of(made, refs)[-1]  # is it still red
    if any(made.after(one, ("property",), ("small", "pronoun_one")) for one in made.open("compare_greater", "compare_less")):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # is it over its budget
    properties = made.properties(type)
    if not properties and expect is None and (held := _what_it_has(made, refs, stated or (year,))) is not None:
        return held
    asked_again = made.named and len(stated) == 1 and made.asks("what") and not made.has("type", "relation", "why", "purpose")
    if asked_again and not properties and expect is None and len(made.reading.tokens) <= _AGAIN:
        properties = tuple(
            one for one in made.focus.properties if made.view.property(type, one) is not None
        )  # what was it then
    again = made.has("history") or (bool(stated) and made.says("pointing") and not made.has("existence", "coverage"))
    if again and made.named and not properties and expect is None and _is_yes_or_no(made):
        properties = tuple(one for one in made.focus.properties if made.view.property(type, one) is not None)
    if measure == "sum" and any(made.kind(type, one) == "number" for one in properties):
        made.take(*made.open("sum"))  # what does it cost in total
    explains = made.says("explain") and len(refs) == 1 and bool(properties)
    if made.has("why", "purpose") or made.asks("why") or explains or _ends_with_for(made):
        spoken = made.focus.properties if made.named and made.asks("why") else ()
        if made.asks("why") or explains:  # why did it get dearer
            ends = [one[1] for item in made.open("superlative") for one in item.of("superlative") if one[0] == type]
            moved = made.has(*MOVES, "difference")
            money = made.main_money(type) if moved and expect is None else None
            properties = properties or tuple(ends[:1]) or tuple(one for one in (money,) if one is not None)
            made.take(*made.open(*MOVES, "difference", "more", "less", "superlative"))
            if not properties and made.says("trouble") and expect is None:  # what went wrong
                properties = tuple(one.name for one in made.view.properties(type) if one.choices and one.most)
        text = telling_text(made, type, properties or ((expect.property,) if expect else spoken))
        made.take(*made.open("purpose", "value"))
        if text is not None:
            return Describe(entities=refs, properties=(text,), years=stated or (year,))
        return Search(text=made.reading.text, entities=refs, sources=("twin",))
    if not properties and expect is None:
        properties = _by_question_word(made, type)
    if not properties and expect is None and made.has("difference") and (money := made.main_money(type)) is not None:
        properties = (money,)  # how much dearer did it get
    move = next((kind for kind in MOVES if made.has(kind)), None)
    end = made.end_date(type)
    if made.has("delayed") and end is not None and expect is None and set(properties) <= {end}:
        made.take(*made.open("delayed"))
        properties, move = (end,), "rose"  # was it pushed back
    ends = [one for item in made.reading.of("superlative") for one in item.of("superlative") if one[0] == type]
    if ends and move is None and expect is None and len(refs) == 1 and len(stated) > 1 and _begins_yes_or_no(made):
        properties, move = (ends[0][1],), "rose" if bool(ends[0][2]) != made.has("less") else "fell"
        made.take(*made.open("more", "less"))
    if move is not None and properties and not _has_order(made, type, properties[0]):
        made.take(*made.open(*MOVES))
        move = None  # under which category does it fall?
    unnamed = move in ("rose", "fell") and not properties and expect is None and not made.named
    if unnamed and (money := made.main_money(type)) is not None:
        properties = (money,)  # has it become more expensive
    if move is not None and not properties and made.named:
        properties = tuple(one for one in made.focus.properties if made.view.property(type, one) is not None)[:1]
    if move is not None and made.named and not stated and made.has("since") and made.focus.years:
        made.take(*made.open("since"))  # how much has it risen since
        stated = tuple(dict.fromkeys((made.focus.years[-1], _years_of(made, refs)[-1])))
    if len(stated) > 2 and (made.has("difference", "between") or (move is not None and made.asks("how_much"))):
        stated = (min(stated), max(stated))
    if len(properties) == 2 and len(refs) == 1 and made.has("difference") and len(stated) < 2:
        two = [one for one in properties if made.kind(type, one) == "number"]
        if len(two) == 2:  # how far apart are baseline and forecast
            made.take(*made.open("difference", "between"))
            of = Selection(type=type, years=stated or (year,), among=refs)
            return Compare(sides=tuple(Aggregate(of=of, measure="sum", property=one) for one in two), how="difference")
    asks_years = any("years" in item.of("coverage") for item in made.open("coverage"))
    if len(refs) == 1 and len(stated) == 2 and properties and _apart(made, move) and made.kind(type, properties[0]) == "number":
        made.take(*made.open("difference", "ratio", "missing", "between", "compare", *MOVES))
        sides = tuple(
            Aggregate(of=Selection(type=type, years=(one,), among=refs), measure="sum", property=properties[0])
            for one in sorted(stated, reverse=True)
        )
        return Compare(sides=sides, how="change")
    ever = expect is not None and not stated and made.says("never")
    if expect is not None and made.asks("how_long") and expect.via is None:
        properties, expect, ever = (expect.property,), None, True  # how long has it been red
    counts_years = expect is not None and _counts_years(made)
    made.take(*(made.open("count") if counts_years else ()))
    history = made.has("history", "each_year") or counts_years or move is not None or len(stated) > 1 or asks_years or ever
    if made.has("year_word") and not stated and made.reading.has("question_words") and not history:
        history = True
    when: Literal["first", "last", "always"] | None = None
    if expect is not None and not counts_years and (history or made.asks("when")):
        when = (
            "always"
            if made.says("always")
            else "last"
            if any(-1 in item.of("ordinals") for item in made.reading.items)
            else "first"
        )
        history = True
    exists = (
        not properties and expect is None and move is None and not history and (made.has("existence") or _is_yes_or_no(made))
    )
    made.take(*made.open("history", "each_year", *MOVES, "detail", "compare", "coverage", "difference", "missing", "between"))
    if made.has("count") and properties:
        made.take(*made.open("count"))
    years = stated or (_years_of(made, refs) if history else (year,))
    how = move == "changed" and made.reading.has("history") and not _begins_yes_or_no(made)  # how did it develop
    return Describe(
        entities=refs,
        properties=properties,
        years=years,
        history=history,
        expect=expect,
        direction=direction_of(made, type, properties[0], move) if move and properties and not how else None,
        when=when,
        exists=exists,
    )


def _has_order(made: Composition, type: str, property: str) -> bool:
    """Whether a property can rise, fall or get better; what is a name or a text only changes."""
    declared = made.view.property(type, property)
    return declared is None or declared.kind in ("number", "date") or bool(declared.most or declared.least)


def _apart(made: Composition, move: str | None) -> bool:
    """Whether the step between two years is asked for, and not whether there was one."""
    return made.has("difference", "missing") or (move is not None and not _begins_yes_or_no(made) and not made.asks("when"))


def _figure_of_things(
    made: Composition, type: str, refs: tuple[EntityRef, ...], years: tuple[int, ...], measure: str | None
) -> Plan:
    property = made.number_of(measure or "sum", type)
    property = property or (made.main_money(type) if made.has("difference") else None)  # how much cheaper is it
    if property is None:
        raise NotUnderstood(Unknown(reason="property", detail={"type": type}))
    how: Literal["difference", "ratio"] = "ratio" if made.has("ratio") else "difference"
    made.take(*made.open("more", "less"))
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
    """The property that a question word asks for, where only one fits: when, how long, how much."""
    known = [one for one in made.view.properties(type) if made.count_known(type, one.name)]
    if made.asks("when") or made.asks("how_long"):
        return tuple(one.name for one in known if one.kind == "date")
    if (made.asks("how_much") or made.has("money")) and (money := made.main_money(type)) is not None:
        return (money,)
    return ()


def _ends_with_for(made: Composition) -> bool:
    """What is X for?"""
    tokens = made.reading.tokens
    return len(tokens) > 2 and made.says("what") and made.says("for", tokens[-1:])


def telling_text(made: Composition, type: str, properties: tuple[str, ...]) -> str | None:
    """The text that answers why or what for: one that is called so, or that is about the property asked for."""
    texts = [one for one in made.view.properties(type) if one.kind == "text" and made.count_known(type, one.name)]
    language = made.reading.language
    for property in properties:
        declared = made.view.property(type, property)
        if declared is None:
            continue
        if declared.kind == "text":
            return property
        labels = {
            language.stem(fold(word)) for listed in declared.words.values() for phrase in listed for word in phrase.split()
        }
        for one in texts:
            said = {language.stem(fold(word)) for listed in one.words.values() for phrase in listed for word in phrase.split()}
            if labels & said - {language.stem(w) for w in language.words.get("small", ())}:
                return one.name
    if properties:
        return None  # it is asked about something of it, and not what it is for
    purpose = {language.stem(word) for phrase in language.words.get("purpose", ()) for word in phrase.split()}
    purpose -= {word for word in purpose if any(one.kind == "small" for one in language.phrases.get((word,), ()))}
    for one in texts:
        said = {language.stem(fold(word)) for listed in one.words.values() for phrase in listed for word in phrase.split()}
        if said & purpose:
            return one.name
    return None
