"""What “it”, “their”, “the second one”, “the year before” and “and in 2021?” refer to."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Literal

from phronesis_contracts.twin import GroupBy

from .composing import MEASURES, Composition, NotUnderstood, by_a_word
from .language import Sense
from .lexicon import Lexicon
from .plan import (
    Aggregate,
    Change,
    Clarification,
    Compare,
    Coverage,
    Describe,
    EntityRef,
    Filter,
    Focus,
    Gaps,
    Plan,
    Rank,
    Relate,
    Select,
    Selection,
    Unknown,
)
from .questions_of_changes import MOVES
from .questions_of_things import telling_text
from .reading import Item, Reading, read
from .search import telling

_FRAGMENT_WORDS = 9
"""Words of a message that may be nothing but a change to the question before it."""
_MOST_ORDERED = 30
"""Things at most that are put in order where no number was asked for."""
_FEW_WORDS = 4
"""Words of a message that may ask for nothing but the members of a set."""


def point_back(reading: Reading, focus: Focus, lexicon: Lexicon) -> Reading:
    """A message in which “that brewer” stands as “it”, where one was last spoken of; “the brewer’s beers” as its name."""
    reading = _of_listed_type(_with_condition(_of_planned_date(reading, lexicon), focus, lexicon), focus)
    if len(focus.entities) != 1:
        return reading
    type, items = focus.entities[0].type, list(reading.items)
    pointing = reading.language.cues("pointing")
    for n in range(len(items) - 1, 0, -1):
        before, item = items[n - 1], items[n]
        if before.text.casefold() in pointing and before.end == item.at and any(one == type for one, _ in item.of("type")):
            it = reading.language.words["pronoun_one"][0]
            items[n - 1 : n + 1] = [Item(before.at, item.end, (Sense("pronoun_one"),), it)]
    return replace(reading, items=tuple(items))


def _of_planned_date(reading: Reading, lexicon: Lexicon) -> Reading:
    """The planned end: a value that nothing has says what sort of date is asked for, and is no condition."""
    items = list(reading.items)
    for n, (item, behind) in enumerate(pairwise(items)):
        properties = [lexicon.view.property(*one) for one in behind.of("property")]
        dated = item.end == behind.at and any(one is not None and one.kind == "date" for one in properties)
        if dated and item.has("value") and not any(_is_on_record(value, lexicon) for value in item.of("value")):
            items[n] = Item(item.at, item.end, (Sense("small"),), item.text)
    return replace(reading, items=tuple(items))


def _is_on_record(value: tuple[str, str, str], lexicon: Lexicon) -> bool:
    """Whether anything has a value, given as its type, property and the value."""
    known = lexicon.view.known.get(value[:2])
    return known is not None and any(one.value == value[2] for one in known.values)


def _of_listed_type(reading: Reading, focus: Focus) -> Reading:
    """Which one has the most schemes? A message in which the type that was last listed stands as itself."""
    of, items = focus.selection, list(reading.items)
    types = {type for item in reading.of("type") for type, _ in item.of("type")}
    if of is None or of.filters or of.among or not types or of.type in types or reading.has("entity", "value"):
        return reading
    for n, (item, after) in enumerate(pairwise(items)):
        if item.has("pronoun_many", "pronoun_one") and n <= 1 and after.has("small", "yes_or_no", "relation"):
            items[n] = replace(item, senses=(Sense("type", (of.type, of.level)),))
            return replace(reading, items=tuple(items)) if reading.has("most", "least") else reading
    return reading


def _with_condition(reading: Reading, focus: Focus, lexicon: Lexicon) -> Reading:
    """A message in which “the department's projects” names the one whose projects were last spoken of."""
    conditions = focus.selection.filters if focus.selection is not None else ()
    linked = [one for one in conditions if one.to is not None and one.property == "id" and one.op == "="]
    items = list(reading.items)
    pointing = reading.language.cues("pointing") | reading.language.cues("called")
    if len(linked) != 1 or len(reading.of("type")) < 2 or reading.has("entity"):
        return reading
    ref = next((one for one in lexicon.view.things(linked[0].to or "") if one.id == linked[0].value), None)
    for n, item in enumerate(items):
        lead = reading.tokens[item.at - 1].folded if item.at else ""
        if ref is not None and lead in pointing and item.names_type(ref.type):
            told = EntityRef(type=ref.type, id=ref.id, name=ref.name, level=ref.level, years=ref.years)
            items[n] = replace(item, senses=(Sense("entity", (told,)),))
            return replace(reading, items=tuple(items))
    return reading


class NeedsMore(Exception):
    """A message does not continue the question before it."""


def refer(reading: Reading, focus: Focus) -> tuple[Selection | Unknown | None, tuple[EntityRef, ...], bool]:
    """The set and the things that a message's pronouns and ordinals refer to, and whether it has any.

    A pronoun after a name or a type of the message itself refers to that. One that cannot be resolved is asked back.
    """
    first = next(
        (item.at for item in reading.items if item.has("entity", "type") and not item.has("pronoun_many", "pronoun_one")),
        10_000,
    )
    if isinstance(focus.plan, Compare) and _of_each(reading) and not reading.has("entity"):
        return None, (), True  # and the cost of each of the two
    if (asked := _type_before_pronoun(reading, focus)) is not None:
        return None, asked, True
    if (meant := _the_one_of_its_type(reading, focus)) is not None:
        return None, meant, True
    if _points_at_type(reading, focus):
        return Unknown(reason="reference", words=reading.text[:200]), (), True
    ordinal, listed = _ordinal(reading), focus.entities if len(focus.entities) > 1 else focus.listed
    if ordinal is not None and (one_of := _at(listed, ordinal)) is not None:
        return None, (one_of,), True
    if _next_in_rank(reading, focus) is not None or _members(reading, focus) is not None:
        return None, (), True
    if (things := _so_many(reading, focus)) is not None:
        type = things[0].type
        return Selection(type=type, years=focus.years[-1:] or things[0].years[-1:] or (2000,), among=things), (), True
    if (asked_of := _thing_behind_link(reading, focus)) is not None:
        return None, asked_of, True
    if focus.selection is not None and _counts_the_same(reading, focus.selection.type):
        return focus.selection, (), True
    many = next((item for item in reading.of("pronoun_many") if item.at < first and is_pronoun(reading, item)), None)
    if (
        focus.selection is not None
        and reading.has("superlative")
        and reading.has("pronoun_one", "pronoun_many")
        and first == 10_000
    ):
        if reading.has("scope") and len(focus.entities) == 1:
            return None, focus.entities, True  # is it the most expensive of all
        return focus.selection, (), True  # and the most expensive one: of those that the last one was the cheapest of
    if many is not None and isinstance(focus.plan, Rank) and 1 < len(focus.entities) == focus.plan.limit:
        type = focus.entities[0].type  # which of those are red: of the five that were ranked
        return Selection(type=type, years=focus.plan.of.years, among=focus.entities), (), True
    if many is not None and len(focus.entities) == 1 and _of_another_type(reading, focus.entities[0].type):
        return None, focus.entities, True  # and their greens: of what that one has
    if many is not None and focus.selection is not None:
        return focus.selection, (), True
    if many is not None and len(focus.entities) > 1:
        type = focus.entities[0].type
        same = tuple(one for one in focus.entities if one.type == type)
        return Selection(type=type, years=focus.years or same[0].years[-1:] or (2000,), among=same), (), True
    one = next((item for item in reading.of("pronoun_one") if item.at < first and is_pronoun(reading, item)), None)
    if one is None and many is None:
        return _implied(reading, focus)
    if many is not None and len(focus.entities) == 1:
        two = len(focus.listed) == 2 and focus.entities[0] in focus.listed and isinstance(focus.plan, Describe)
        return None, focus.listed if two else focus.entities, True  # both red, why
    moved = isinstance(focus.plan, Aggregate) and reading.has("rose", "fell", "changed", "difference", "compare")
    if one is not None and (moved or reading.has("count")) and focus.selection is not None:
        return focus.selection, (), True  # how much has it grown since 2021
    if one is not None and len(focus.entities) == 1:
        return None, focus.entities, True
    if one is not None and focus.selection is not None and _on_set(reading):
        return focus.selection, (), True
    if one is not None and not _is_certain(reading, one):
        return None, (), False
    if many is not None and focus.plan is None and not focus.entities and _is_of_all(reading, many):
        return None, (), False
    if first < 10_000:
        return None, (), False
    return Unknown(reason="reference", words=(many or one).text, choices=focus.entities[:8]), (), True  # type: ignore[union-attr]


def _of_another_type(reading: Reading, type: str) -> bool:
    """Whether the values that are asked for are all of another type than the thing that was spoken of."""
    owners = {one[0] for item in reading.of("value") for one in item.of("value")}
    return bool(owners) and type not in owners and not reading.has("entity")


def _so_many(reading: Reading, focus: Focus) -> tuple[EntityRef, ...] | None:
    """Which of the two is dearer? The sum of the five? The things last listed, where they are as many as is said."""
    if reading.has("type", "entity", "year"):
        return None
    for item in reading.of("number", "numbers"):
        lead = next((one for one in reversed(reading.items) if one.end == item.at), None)
        behind = next((one for one in reading.items if one.at == item.end), None)
        definite = reading.tokens[max(0, item.at - 1)].folded in reading.language.cues("called")
        other = ("year_word",) if definite else ("property", "year_word")
        if (lead is not None and lead.has("most", "least")) or (behind is not None and behind.has(*other)):
            continue  # the top five; two years
        for things in (focus.entities, focus.listed):
            same = len({one.type for one in things}) == 1
            if same and len(things) > 1 and len(things) in (*item.of("number"), *item.of("numbers")):
                return things
    return None


def _thing_behind_link(reading: Reading, focus: Focus) -> tuple[EntityRef, ...] | None:
    """How much does it cost there? “It” after a link was named is the thing that has the property asked for."""
    owners = {owner for item in reading.of("property") for owner, _ in item.of("property")}
    if reading.has("money") and not owners and isinstance(focus.plan, Relate):
        owners = {focus.plan.source.type}
    if not isinstance(focus.plan, Relate) or len(focus.entities) != 1 or reading.has("entity", "type", "value"):
        return None
    source, other = focus.plan.source, focus.entities[0]
    pronoun = any(_is_certain(reading, item) for item in reading.of("pronoun_one"))
    return (source,) if pronoun and source.type in owners and other.type not in owners else None


def _counts_the_same(reading: Reading, type: str) -> bool:
    """How many projects is that? The average per project? A figure of the set last spoken of, which names its type again."""
    items = reading.of("type")
    if len(items) != 1 or not items[0].names_type(type) or not reading.has("count", *MEASURES):
        return False
    others = ("entity", "value", "year", "relative_years", "superlative", "relation", "missing", "joined", "left")
    behind = any(item.at >= items[0].end for item in reading.of("pronoun_one"))
    each = any(item.end == items[0].at for item in reading.of("group"))
    return not reading.has(*(kind for kind in others if kind != "relative_years")) and (behind or each)


def _type_before_pronoun(reading: Reading, focus: Focus) -> tuple[EntityRef, ...] | None:
    """Which department runs it? A pronoun after the type that is asked for stands for a thing of another type."""
    types = {name for item in reading.of("type") for name, _ in item.of("type")}
    verbs = ("small", "relation", "filler")
    pronouns = [
        item
        for item in reading.of("pronoun_one")
        if (_is_certain(reading, item) or all(one.has(*verbs) for one in reading.items if one.at > item.at))
        and is_pronoun(reading, item)
    ]
    if reading.has("entity") or not types or not pronouns or len(focus.entities) != 1 or focus.entities[0].type in types:
        return None
    return focus.entities


def _the_one_of_its_type(reading: Reading, focus: Focus) -> tuple[EntityRef, ...] | None:
    """What is the scheme for? A type in the singular, behind an article, is the thing last spoken of."""
    definite = reading.language.cues("the_one")
    of_others = len(reading.of("type")) > 1  # how many projects has that department
    for item in reading.of("type"):
        known = len(focus.entities) == 1 and item.names_type(focus.entities[0].type)
        linked = len(focus.linked) == 1 and item.names_type(focus.linked[0].type) and not known
        behind = item.at > 0 and reading.tokens[item.at - 1].folded in definite
        if linked and behind and of_others and not reading.has("entity"):
            return focus.linked
    of_set = ("entity", "value", "count", "superlative", "most", "least", "ordinals", "group")
    if len(focus.entities) != 1 or (not of_others and reading.has(*of_set)):
        return None
    whose = reading.language.cues("whose") & {token.folded for token in reading.tokens[:1]}
    if whose and all(item.names_type(focus.entities[0].type) for item in reading.of("type")) and reading.has("pronoun_one"):
        return focus.entities
    for item in reading.of("type"):
        behind = item.at > 0 and reading.tokens[item.at - 1].folded in definite
        plural = item.text.casefold().endswith(reading.language.words.get("plural_endings", ()))
        if behind and not plural and item.names_type(focus.entities[0].type):
            return focus.entities
    return None


def _points_at_type(reading: Reading, focus: Focus) -> bool:
    """What else does that department have? A type behind such a word, where nothing named before it is of the type."""
    plural, points = reading.language.words.get("plural_endings", ()), reading.language.cues("points_at")
    return not reading.has("entity") and any(
        item.at > 0
        and not (len(focus.entities) == 1 and item.names_type(focus.entities[0].type))
        and reading.tokens[item.at - 1].folded in points
        and not item.text.casefold().endswith(plural)
        for item in reading.of("type")
    )


def _is_of_all(reading: Reading, item: Item) -> bool:
    """Which ones end in 2035? Where nothing was spoken of, those are all that have the property."""
    told = reading.has("property", "value", "superlative") and reading.has("year", "relative_years")
    return told and reading.tokens[item.end - 1].folded in reading.language.cues("stand_in")


def _is_complete(reading: Reading) -> bool:
    """And how many worn ones had that yard in 2023? All that it asks is said, whatever it begins with."""
    return reading.has("count", *MEASURES) and reading.has("year") and reading.has("entity") and reading.has("value")


def _implied(reading: Reading, focus: Focus) -> tuple[Selection | None, tuple[EntityRef, ...], bool]:
    """What a message without a subject of its own is about: “how many are red?” of the set, “who's in charge?” of the thing."""
    if (
        focus.plan is None
        or _is_complete(reading)
        or (reading.has("type", "entity", "coverage", "concept") and not _starts_on(reading))
    ):
        return None, (), False
    told = reading.has(
        *("value", "property", "superlative", "relation", "count", "without", "unknown", "joined", "left"),
        *("sum", "mean", "median"),
    )
    if not told or reading.has("type"):
        return None, (), False
    if len(focus.entities) == 1 and not reading.has("value", "count", "superlative", *MEASURES):
        return None, focus.entities, True
    if focus.selection is None and isinstance(focus.plan, Change) and len(focus.entities) > 1:
        return Selection(type=focus.plan.of.type, years=focus.years, among=focus.entities), (), True  # the dearest of what left
    plan = focus.plan
    if isinstance(plan, Rank) and 1 < len(focus.entities) == plan.limit and reading.has(*MEASURES):
        type = focus.entities[0].type  # add them up: the five that were ranked
        return Selection(type=type, years=plan.of.years, among=focus.entities), (), True
    return (focus.selection, (), True) if focus.selection is not None else (None, (), False)


def _starts_on(reading: Reading) -> bool:
    return bool(reading.items) and reading.items[0].has("follow_up")


def _ordinal(reading: Reading) -> int | None:
    """The second one, the last of them: an ordinal that stands for a thing by itself."""
    for item in reading.of("ordinals"):
        after = [one for one in reading.items if one.at >= item.end][:1]
        itself = reading.tokens[item.end - 1].folded in reading.language.cues("stand_in")
        nouns = after and after[0].has("type", "superlative", "year_word", "most", "least", "largest", "number", "numbers")
        nouns = nouns or (after and after[0].has("property") and not itself)
        if not nouns and not item.has("relative_years") and not reading.has("most", "least", "largest", "superlative", "rank"):
            return int(item.of("ordinals")[0])
    return None


def _at(things: tuple[EntityRef, ...], ordinal: int) -> EntityRef | None:
    """The thing in a place, 1 for the first and -1 for the last; `None` where there are not so many."""
    place = ordinal if ordinal < 0 else ordinal - 1
    return things[place] if -len(things) <= place < len(things) else None


def chosen_of(clarification: Clarification, text: str, lexicon: Lexicon) -> EntityRef | None:
    """Which of several things a message chooses, asking no more: the second one; 2; the harbour one. `None` for none."""
    options, language, reading = clarification.options, lexicon.language, read(text, lexicon)
    names = [{token.stem for token in language.tokens(one.name)} for one in options]
    items = tuple(item for item in reading.items if not any(item.names_type(one.type) for one in options))
    told = [(item, reading.tokens[item.at : item.end]) for item in items if not item.has("ordinals")]
    beside = [item for item, tokens in told if not any({token.stem for token in tokens} <= name for name in names)]
    asks = {kind for item in beside for kind in _ASKS if item.has(kind)}
    figures = [int(token.folded) for token in reading.tokens if token.folded.isdecimal()]
    if len(figures) == 1 and len(reading.tokens) <= _FIGURE_WORDS and asks <= {"count"}:  # number 2
        return _at(options, figures[0]) if figures[0] > 0 else None
    if asks:
        return None  # who runs the first one
    said = {token.stem for _, tokens in told for token in telling(tokens, language)}
    ordinal = _ordinal(replace(reading, items=items))
    if ordinal is not None and not said:
        return _at(options, ordinal)
    held = [one for one, name in zip(options, names, strict=True) if said and said <= name]
    return held[0] if len(held) == 1 else None


_FIGURE_WORDS = 2
"""Words of a message at most that gives the place of what it chooses: number 2."""
_ASKS = frozenset(
    """question_words relation count detail concept purpose list about property value existence yes_or_no scope group
    most least rank superlative""".split()
)
"""Kinds of words beside a name with which a message asks a question of its own."""


def is_pronoun(reading: Reading, item: Item) -> bool:
    """Whether a word that may be a pronoun is one: “that” before a noun, and “it” in “is it true”, are none."""
    noun = next((one for one in reading.items if one.at == item.end and one.has("type", "property", "value")), None)
    if noun is not None and item.text.casefold() in reading.language.cues("called"):
        return False  # an article that has the form of a pronoun
    return not item.has("entity", "type", "value", "property")


def _is_certain(reading: Reading, item: Item) -> bool:
    return item.text.casefold() in reading.language.cues("pronoun")


def _on_set(reading: Reading) -> bool:
    return reading.has("superlative", "most", "least", "largest", "smallest", "earliest", "latest", "count", *MEASURES)


def continue_plan(reading: Reading, lexicon: Lexicon, focus: Focus) -> Plan | None:
    """The question before it, changed by a fragment: “and in 2021?”, “only the red ones”, “by department”, “the cost?”.

    Raises:
        NotUnderstood: a word of the fragment is not explained.
        NeedsMore: it is no fragment.
    """
    if focus.plan is None:
        return None
    for of_reading in (_members, _number_of_them, _as_share):
        if (told := of_reading(reading, focus)) is not None:
            return told
    for of_words in (
        _of_each_side,
        _between_two,
        _narrowed,
        _of_values,
        _in_order,
        _against_another,
        _else_of,
        _asks_why,
        _since_when,
    ):
        if (told := of_words(Composition(reading, lexicon, focus))) is not None:
            return told
    for of_reading in (_next_in_rank, _top_of_groups):
        if (told := of_reading(reading, focus)) is not None:
            return told
    made = Composition(reading, lexicon, focus)
    if (told := _in_all_years(made)) is not None:
        return told
    plan = _stepped(made, focus)
    if not _is_fragment(reading):
        compares = reading.has("more", "less", "compare_greater", "compare_less", "compare", "difference", "rose", "fell")
        fits = (
            compares
            and reading.has("pronoun_one", "detail")
            and len(reading.tokens) <= _FRAGMENT_WORDS
            and not made.left_over()
        )
        return plan if fits else None
    if plan is None:
        made = Composition(reading, lexicon, focus)  # what the step between two years took up is open again
        plan = _linked_type(made, focus) or _changed(made, focus.plan)
    if plan is None or made.left_over():
        raise NeedsMore
    if plan == focus.plan and reading.has("difference"):
        raise NotUnderstood(Unknown(reason="unsupported", words=reading.text[:200]))  # of two figures that are not kept
    stated = ("year", "relative_years", "type", "entity", "property", "value")
    if plan == focus.plan and reading.has("question_words") and not reading.has(*stated):
        raise NeedsMore  # “and why?” asks something else, which the same answer does not tell
    return plan


def _of_values(made: Composition) -> Plan | None:
    """How many are in each? Which has the most? The members of each value that was told."""
    plan = made.focus.plan
    if not isinstance(plan, Coverage) or plan.about != "values" or plan.type is None or plan.property is None:
        return None
    silent = {"count", "each", "group", "most", "least", "largest", "smallest", "small", "question_words", "type", "with"}
    silent |= {"pronoun_many", "yes_or_no", "follow_up", "also", "range", "year", "relative_years", "number", "existence"}
    types = {type for item in made.reading.of("type") for type, _ in item.of("type")}
    ends = made.has("most", "least", "largest", "smallest")
    if not _only_has(made.reading, silent) or (types and plan.type not in types) or not (ends or made.has("each", "group")):
        return None
    years = made.years(plan.type) or made.default_years(plan.type, [])
    of = Selection(type=plan.type, years=years, level=made.view.usual_level(plan.type))
    least = made.has("least", "smallest")
    order: Literal["group", "value", "-value"] = ("value" if least else "-value") if ends else "group"
    return Aggregate(of=of, group_by=(GroupBy(property=plan.property),), order=order, limit=1 if ends else None)


def _in_order(made: Composition) -> Plan | None:
    """Sort by cost. The top two? What was listed, in the order of a figure."""
    plan, reading = made.focus.plan, made.reading
    if not isinstance(plan, Select | Rank) or reading.has("type", "entity", "value", "year", "count", *MEASURES):
        return None
    sorts = made.says("sorting")
    top = reading.has("most") and reading.has("number", "numbers") and not reading.has("property")
    named = [one for one in made.properties(plan.of.type) if made.kind(plan.of.type, one) in ("number", "date")]
    shown = (plan.by,) if isinstance(plan, Rank) else plan.show
    by = next(iter(named), None) or next((one for one in shown if one and made.kind(plan.of.type, one) == "number"), None)
    if not (sorts or top) or by is None:
        return None
    limit = made.limit() or (_MOST_ORDERED if sorts else None)
    made.take(*made.open("group", "rank", "most", "property", "pronoun_many", "list", "follow_up"))
    less = reading.has("least", "smallest")
    return Rank(of=plan.of, by=by, descending=not less, limit=limit) if limit and not made.left_over() else None


def _against_another(made: Composition) -> Plan | None:
    """Is that higher than the other ministry's? How does it compare to another? The figure last told beside another's."""
    plan, reading = made.focus.plan, made.reading
    kinds = ("compare_greater", "compare_less", "more", "less", "compare")
    if not reading.has("pronoun_one") or not reading.has(*kinds) or len(reading.of("entity")) != 1:
        return None
    if reading.has("value", "property", "year", "number", "amount", "count"):
        return None
    greater, less = reading.has("compare_greater", "more"), reading.has("compare_less", "less")
    expect: Literal["more", "less"] | None = "more" if greater else "less" if less else None
    if isinstance(plan, Describe) and len(plan.entities) == 1 and len(plan.properties) == 1:
        property, type, years = plan.properties[0], plan.entities[0].type, plan.years[-1:]
        others = [ref for item in made.open("entity") for refs in item.of("entity") for ref in refs if ref.type == type]
        if made.kind(type, property) != "number" or len(others) != 1:
            return None
        pair = (plan.entities, tuple(others))
        sides = [Aggregate(of=Selection(type=type, years=years, among=one), measure="sum", property=property) for one in pair]
    elif isinstance(plan, Aggregate) and not plan.group_by:
        added = made.filters(plan.of.type)
        places = [n for n, one in enumerate(plan.of.filters) for new in added if (one.via, one.to) == (new.via, new.to)]
        if len(added) != 1 or len(places) != 1:
            return None
        filters = (*plan.of.filters[: places[0]], *added, *plan.of.filters[places[0] + 1 :])
        sides = [plan, plan.model_copy(update={"of": plan.of.model_copy(update={"filters": filters})})]
    else:
        return None
    made.take(*made.open(*kinds, "entity", "pronoun_one", "question_words", "yes_or_no"))
    return Compare(sides=tuple(sides), how="difference", expect=expect) if not made.left_over() else None


def _in_all_years(made: Composition) -> Plan | None:
    """All years? What was told of a thing or a set, year by year."""
    plan, reading = made.focus.plan, made.reading
    if not reading.has("each_year", "history") or not _only_has(
        reading, {"each_year", "history", "small", "follow_up", "also"}
    ):
        return None
    if isinstance(plan, Describe) and plan.properties:
        years = made.view.years_of(plan.entities[0].type)
        return plan.model_copy(update={"years": years, "history": True, "expect": None, "when": None})
    if isinstance(plan, Aggregate) and not plan.group_by:
        of = plan.of.model_copy(update={"years": made.view.years_of(plan.of.type)})
        return plan.model_copy(update={"of": of, "group_by": (GroupBy(property="year"),)})
    return None


def _else_of(made: Composition) -> Plan | None:
    """What else do they run? How many projects do they have? What is linked to that which was told of the thing spoken of."""
    focus, reading = made.focus, made.reading
    plan = focus.plan
    if not isinstance(plan, Relate) or len(focus.linked) != 1 or reading.has("entity", "property", "superlative"):
        return None
    source, owner = plan.source.type, focus.linked[0]
    relations = {name for item in reading.of("relation") for name, _ in item.of("relation")}
    types = {type for item in reading.of("type") for type, _ in item.of("type")}
    theirs = reading.has("pronoun_many") and source in types and owner.type not in types
    if not (made.says("else") or theirs) or (relations and plan.relationship not in relations):
        return None
    if types and source not in types:
        return None
    via, to = made.link(source, owner.type, next(iter(reading.of("relation")), None))
    condition = Filter(property="id", value=owner.id, via=via, to=to, words=owner.name)
    years = made.years(source) or (plan.year,)
    of = Selection(type=source, years=years, level=made.view.usual_level(source), filters=(condition, *made.filters(source)))
    counted = made.has("count")
    made.take(*made.open("relation", "type", "count", "list", "other"))
    if made.left_over():
        return None
    return Aggregate(of=of) if counted else Select(of=of)


def of_another(reading: Reading, focus: Focus, named: tuple[EntityRef, ...]) -> Plan | None:
    """And the third? What was last asked of one of a list, of another of it."""
    plan = focus.plan
    silent = {"ordinals", "small", "follow_up", "also", "range", "pronoun_one", "pronoun_many", "number", "question_words"}
    if len(named) != 1 or not _only_has(reading, silent | {"relative_years", "detail"}):
        return None
    if isinstance(plan, Relate) and plan.target is None and plan.source in focus.listed and plan.source.type == named[0].type:
        return plan.model_copy(update={"source": named[0]})
    told = isinstance(plan, Describe) and len(plan.entities) == 1 and (plan.properties or plan.expect is not None)
    if isinstance(plan, Describe) and told and plan.entities[0] in focus.listed and plan.entities[0].type == named[0].type:
        return plan.model_copy(update={"entities": named})
    return None


def _turned_back(made: Composition, plan: Change) -> Change | None:
    """And from green to red? And which turned amber? The same change with other values."""
    values = [one for item in made.open("value") for one in item.of("value")[:1] if one[:2] == (plan.of.type, plan.property)]
    to_one = len(values) == 1 and plan.before is None and not made.has("pronoun_many")
    if plan.after is None or not (to_one or (len(values) == 2 and plan.before is not None)):
        return None
    made.take(*made.open("value", "turned", "follow_up", *MOVES))
    return plan.model_copy(update={"before": None if to_one else values[0][2], "after": values[-1][2]})


def _narrowed(made: Composition) -> Plan | None:
    """Which of the new ones are red? What came, left or moved, of those alone."""
    plan, reading = made.focus.plan, made.reading
    if not isinstance(plan, Change) or not reading.has("entity", "value") or reading.has("type", "year"):
        return None
    if (back := _turned_back(made, plan)) is not None:
        return back if not made.left_over() else None
    if len(reading.tokens) > _FEW_WORDS + 1 and not reading.has("pronoun_many", "count", plan.what):
        return None
    made.take(*made.open("joined", "left", "pronoun_many", "count", "list"))
    narrowed = _changed(made, plan.model_copy(update={"count": reading.has("count")}))
    return narrowed if not made.left_over() else None


def _of_each_side(made: Composition) -> Plan | None:
    """And by number? How many red ones has each? The comparison before it, by another figure or with more conditions."""
    plan = made.focus.plan
    if not isinstance(plan, Compare) or plan.how in ("share", "difference", "ratio") or made.has("entity"):
        return None
    counts = made.has("count")
    first: Literal["most", "least"] | None = None
    if made.has("more", "most", "less", "least") and made.has("value") and not made.has("year", "entity"):
        counts, first = True, "least" if made.has("less", "least") and not made.has("more", "most") else "most"
        made.take(*made.open("more", "most", "less", "least", "existence", "pronoun_many"))
    elif not (_of_each(made.reading) or (made.has("group") and (counts or made.has("property")))):
        return None
    made.take(
        *made.open("each", "group", "pronoun_many", "pronoun_one", "count", "follow_up", "only", "yes_or_no", "question_words")
    )
    changed = _changed(made, plan)
    type = plan.sides[0].of.type
    made.take(*(item for item in made.open("type") if item.names_type(type)))
    figures = [one for one in made.properties(type) if made.kind(type, one) == "number"]
    if changed is None and figures:  # by cost
        measure = next((name for name in MEASURES if made.has(name)), "sum")
        made.take(*made.open(*MEASURES, "number", "numbers"))
        update = {"measure": MEASURES[measure], "property": figures[0]}
        changed = plan.model_copy(update={"sides": tuple(side.model_copy(update=update) for side in plan.sides)})
    if counts and changed is None:
        changed = plan
    if not isinstance(changed, Compare) or made.left_over():
        return None
    if not counts:
        return changed
    sides = tuple(side.model_copy(update={"measure": "count", "property": None}) for side in changed.sides)
    return changed.model_copy(update={"sides": sides, "first": first})


def _between_two(made: Composition) -> Plan | None:
    """What's the difference? Of the one figure that was told of two things."""
    plan, reading = made.focus.plan, made.reading
    if not isinstance(plan, Describe) or len(plan.entities) != 2 or len(plan.properties) != 1 or len(plan.years) != 1:
        return None
    type, property = plan.entities[0].type, plan.properties[0]
    silent = set("difference small question_words detail follow_up pronoun_many pronoun_one yes_or_no numbers number".split())
    if made.kind(type, property) != "number" or not reading.has("difference") or not _only_has(reading, silent):
        return None
    sets = (Selection(type=type, years=plan.years, among=(one,)) for one in plan.entities)
    return Compare(sides=tuple(Aggregate(of=of, measure="sum", property=property) for of in sets), how="difference")


def _of_each(reading: Reading) -> bool:
    """Whether a message asks for a figure of each: how many red ones has each of them?"""
    return bool(reading.language.cues("each") & {token.folded for token in reading.tokens})


def _asks_why(made: Composition) -> Plan | None:
    """Why? The comment on what was last told of a thing."""
    plan, reading = made.focus.plan, made.reading
    silent = {"question_words", "small", "why", "follow_up", "also", "range", "pronoun_one", "pronoun_many", "yes_or_no"}
    silent |= {"purpose", "filler", "worst", "best", "difference", "each", "year", "number", *MOVES}
    asked = {word for item in reading.items for word in item.of("question_words")}
    if not isinstance(plan, Describe) or len(plan.entities) != 1 or asked != {"why"} or not _only_has(reading, silent):
        return None
    told = plan.properties or ((plan.expect.property,) if plan.expect is not None else ())
    text = telling_text(made, plan.entities[0].type, told) if told else None
    years = made.years(plan.entities[0].type)[-1:] or plan.years[-1:]
    return Describe(entities=plan.entities, properties=(text,), years=years) if text is not None else None


def _since_when(made: Composition) -> Plan | None:
    """Since when? What was last told of a thing, year by year."""
    plan, reading = made.focus.plan, made.reading
    if not isinstance(plan, Describe) or len(plan.entities) != 1 or not made.asks("when"):
        return None
    since = reading.language.cues("since_when") & {token.folded for token in reading.tokens}
    told = plan.properties[:1] or ((plan.expect.property,) if plan.expect is not None and plan.expect.via is None else ())
    silent = {"question_words", "small", "since", "follow_up", "also", "pronoun_one", "yes_or_no", "range"}
    if not since or not told or not _only_has(reading, silent):
        return None
    years = made.view.years_of(plan.entities[0].type)
    return Describe(entities=plan.entities, properties=told, years=years, history=True)


def _next_in_rank(reading: Reading, focus: Focus) -> Plan | None:
    """And the second? What comes after the one that was first."""
    silent = {"ordinals", "small", "follow_up", "also", "range", "pronoun_one", "pronoun_many", "numbers"}
    places = [int(n) for item in reading.of("ordinals") for n in item.of("ordinals")]
    plan = focus.plan
    if not places or places[0] < 1 or not _only_has(reading, silent | {"question_words", "detail", "yes_or_no"}):
        return None
    if isinstance(plan, Aggregate) and plan.group_by and plan.limit is not None:
        return plan.model_copy(update={"limit": places[0]})  # who's second: the first two of them
    if not isinstance(plan, Rank) or plan.limit != 1:
        return None
    return plan.model_copy(update={"position": places[0], "expect": None})


def _top_of_groups(reading: Reading, focus: Focus) -> Plan | None:
    """Who has the most? Which year had the fewest? Which moved the most? What comes first of what was last shown."""
    plan = focus.plan
    moved = {"most", "largest", "delayed", "question_words", "small", "list", "pronoun_many", "follow_up", "also", *MOVES}
    if isinstance(plan, Change) and plan.property and reading.has("most", "largest") and _only_has(reading, moved | {"range"}):
        return plan.model_copy(update={"limit": 1, "count": False})
    silent = {"most", "least", "largest", "smallest", "question_words", "small", "follow_up", "also", "year_word", "type"}
    silent |= {"pronoun_many", "property", "relation", "coverage", "yes_or_no", "list", "superlative", "range"}
    silent |= {"table_most", "table_least", "with"}
    if not isinstance(plan, Aggregate) or len(plan.group_by) != 1 or plan.limit not in (None, 1):
        return None
    if not _only_has(reading, silent):
        return None
    ends = {bool(one[2]) for item in reading.of("superlative") for one in item.of("superlative") if one[1] == plan.property}
    if len(ends) == 1 and plan.limit == 1 and not reading.has("type", "property", "most", "least"):
        return plan.model_copy(update={"order": "-value" if ends.pop() else "value"})  # and the cheapest
    group, named = plan.group_by[0], {name for item in reading.of("type") for name, _ in item.of("type")}
    if (named and group.to not in named) or not reading.has("most", "least", "largest", "smallest"):
        return None
    least = reading.has("least", "smallest") and not reading.has("most", "largest")
    return plan.model_copy(update={"order": "value" if least else "-value", "limit": 1})


def _members(reading: Reading, focus: Focus) -> Plan | None:
    """Which ones? The members of the set that was counted."""
    plan = focus.plan
    silent = {"question_words", "small", "pronoun_many", "list", "numbers", "follow_up", "also", "named", "yes_or_no"}
    asks = reading.has("question_words", "list", "named") and len(reading.tokens) <= _FEW_WORDS
    asked = {word for item in reading.items for word in item.of("question_words")}
    if not asks or not _only_has(reading, silent | {"pronoun_one"}) or not asked <= {"what", "who"}:
        return None
    if isinstance(plan, Change) and plan.count:
        return plan.model_copy(update={"count": False})
    counted = isinstance(plan, Aggregate) and plan.measure == "count" and not plan.group_by
    return Select(of=plan.of) if isinstance(plan, Aggregate) and counted else None


def _number_of_them(reading: Reading, focus: Focus) -> Plan | None:
    """How many is that? The number of those that were listed."""
    silent = {"count", "small", "pronoun_one", "pronoun_many", "follow_up", "yes_or_no", "also", "filler", "question_words"}
    if not reading.has("count") or not _only_has(reading, silent):
        return None
    if isinstance(focus.plan, Change):
        return focus.plan.model_copy(update={"count": True})
    if isinstance(focus.plan, Compare) and focus.plan.how == "share":
        return focus.plan.sides[0]
    return Aggregate(of=focus.plan.of) if isinstance(focus.plan, Select) else None


def _only_has(reading: Reading, kinds: set[str]) -> bool:
    return all(item.senses and {sense.kind for sense in item.senses} <= kinds for item in reading.items)


def _as_share(reading: Reading, focus: Focus) -> Plan | None:
    """What is that in per cent? The figure last told, as a share of the set without its last condition."""
    plan = Aggregate(of=focus.plan.of) if isinstance(focus.plan, Select) else focus.plan
    if isinstance(plan, Compare) and plan.how == "change" and reading.has("share") and _only_has(reading, {"share", "small"}):
        return plan.model_copy(update={"expect": None})  # a change is told in per cent as well
    if not isinstance(plan, Aggregate) or plan.group_by or not plan.of.filters or not reading.has("share"):
        return None
    silent = {"small", "share", "pronoun_one", "detail", "question_words", "follow_up", "also", "place", "yes_or_no"}
    if not _only_has(reading, silent):
        return None
    own = [one for one in plan.of.filters if one.via is None] or list(plan.of.filters)
    rest = tuple(one for one in plan.of.filters if one is not own[-1])
    return Compare(sides=(plan, plan.model_copy(update={"of": plan.of.model_copy(update={"filters": rest})})), how="share")


def _stepped(made: Composition, focus: Focus) -> Plan | None:
    """By how much? Is that more than in 2020? The figure of the thing last spoken of, held against another year's."""
    plan = focus.plan
    if isinstance(plan, Compare) and len(plan.sides) == 2 and made.has("difference"):
        made.take(*made.open("difference", "pronoun_one"))
        return plan.model_copy(update={"how": "difference", "first": None, "expect": None})
    if isinstance(plan, Rank) and plan.by and len(plan.of.among) == 2 and made.has("difference"):
        made.take(*made.open("difference", "pronoun_one"))
        two = (plan.of.model_copy(update={"among": (one,)}) for one in plan.of.among)
        return Compare(sides=tuple(Aggregate(of=one, measure="sum", property=plan.by) for one in two), how="difference")
    if isinstance(plan, Select | Aggregate) and (other := _with_other_year(made, plan)) is not None:
        return other
    if isinstance(plan, Aggregate) and not plan.group_by and focus.earlier and _asks_step(made):
        made.take(*made.open("difference", "rose", "fell", "changed", "pronoun_one", "more", "less"))
        before = plan.model_copy(update={"of": plan.of.model_copy(update={"years": focus.earlier})})
        newer = focus.earlier[-1] < plan.of.years[-1]
        return Compare(sides=(plan, before) if newer else (before, plan), how="change")
    if isinstance(plan, Aggregate) and focus.figure is not None and made.has("difference", "ratio", "more", "less", "share"):
        return _held_against_last(made, plan, focus.figure)
    if not isinstance(plan, Describe) or len(plan.entities) != 1 or not plan.properties:
        return None
    type, property = plan.entities[0].type, plan.properties[0]
    if made.kind(type, property) != "number" or made.has("property", "value", "entity", "type"):
        return None
    stated = made.years(type, apart=True)
    known = plan.years if len(plan.years) > 1 else (*focus.earlier, *plan.years)
    years = tuple(sorted({*stated, *(plan.years[-1:] if len(stated) == 1 else () if stated else known)}))
    if len(years) < 2:
        return None
    if _asks_step(made):
        made.take(*made.open("difference", "rose", "fell", "changed", "pronoun_one", "share", "count", "more", "less"))
        return _step_between(plan, type, property, years)
    way = (
        "rose" if made.has("more", "compare_greater", "rose") else "fell" if made.has("less", "compare_less", "fell") else None
    )
    if way is not None:
        made.take(*made.open("more", "less", "compare_greater", "compare_less", "rose", "fell", "pronoun_one"))
        return plan.model_copy(update={"years": years, "history": True, "direction": way, "expect": None, "when": None})
    return None


def _held_against_last(made: Composition, plan: Aggregate, before: Aggregate) -> Compare | None:
    """The difference between the two? Which is more? The last two figures beside each other."""
    silent = {"difference", "ratio", "more", "less", "small", "number", "numbers", "pronoun_one", "pronoun_many", "detail"}
    silent |= {"question_words", "follow_up", "also", "range", "yes_or_no", "filler", "between", "compare", "share", "count"}
    if not _only_has(made.reading, silent) or (made.has("share", "count") and not made.has("difference", "more", "less")):
        return None
    how: Literal["difference", "ratio"] = "ratio" if made.has("ratio") else "difference"
    first: Literal["most", "least"] | None = None
    if made.asks("what") and made.has("more", "less"):
        first = "most" if made.has("more") else "least"
    made.take(*made.reading.items)
    return Compare(sides=(plan, before), how=how, first=first)


def _with_other_year(made: Composition, plan: Select | Aggregate) -> Compare | None:
    """How does that compare with 2022? Was that more than in 2022? A figure, or a number, held against another year's."""
    figure = plan if isinstance(plan, Aggregate) else Aggregate(of=plan.of)
    asked = ("compare", "difference", "more", "less", "compare_greater", "compare_less", "rose", "fell", "changed")
    if figure.group_by or len(figure.of.years) != 1 or not made.has(*asked) or len(made.open("year", "relative_years")) != 1:
        return None
    if made.has("entity", "value", "type", "property", "amount") or (made.has("number") and not made.has("year")):
        return None
    item = made.open("year", "relative_years")[0]
    year = made.year(item, made.view.years_of(figure.of.type))
    made.take(item, *made.open("since"))
    if year is None or (years := (year,)) == figure.of.years:
        return None
    expect: Literal["more", "less"] | None = None
    if made.says("exists", made.reading.tokens[:2]) and made.has("more", "less", "compare_greater", "compare_less"):
        expect = "more" if made.has("more", "compare_greater") else "less"
    made.take(*made.open(*asked, "pronoun_one", "pronoun_many", "question_words", "compare", "history"))
    then = figure.model_copy(update={"of": figure.of.model_copy(update={"years": years})})
    newer = figure.of.years[-1] > year or expect is not None
    return Compare(sides=(figure, then) if newer else (then, figure), how="change", expect=expect)


def _asks_step(made: Composition) -> bool:
    """Whether the step between two figures is asked for: by how much, how much did it rise."""
    if made.has("share") and made.has("more", "less"):
        return True  # how many percent more is that
    return made.has("difference") or ((made.asks("how_much") or made.has("detail")) and made.has("rose", "fell", "changed"))


def _step_between(plan: Describe, type: str, property: str, years: tuple[int, ...]) -> Compare:
    sides = tuple(
        Aggregate(of=Selection(type=type, years=(year,), among=plan.entities), measure="sum", property=property)
        for year in (years[-1], years[0])
    )
    return Compare(sides=sides, how="change")


def _linked_type(made: Composition, focus: Focus) -> Plan | None:
    """Which department? What the thing last spoken of, or all that were listed, are linked to, by a type alone."""
    items = made.open("type")
    if not focus.entities or len(items) != 1 or made.has("property", "value", "entity", "count", "year"):
        return None
    ref = focus.entities[0]
    for other, _ in items[0].of("type"):
        ways = made.view.between(ref.type, other)
        if len(focus.entities) > 1:
            alike = {one.type for one in focus.entities} == {ref.type} != {other}
            if not alike or len(ways) != 1:
                continue
            made.take(items[0], *made.open("follow_up"))
            ids = tuple(one.id for one in focus.entities)
            of_them = Filter(property="id", op="in", value=ids, via=ways[0][0].name, to=ref.type, words="")
            years = focus.years[-1:] or ref.years[-1:]
            return Select(of=Selection(type=other, years=years, level=made.view.usual_level(other), filters=(of_them,)))
        if ways:
            made.take(items[0], *made.open("follow_up"))
            year = focus.years[-1] if focus.years and focus.years[-1] in ref.years else (ref.years[-1] if ref.years else 2000)
            only = ways[0] if len(ways) == 1 else None
            name, forward = (only[0].name, only[1]) if only is not None else (None, None)
            return Relate(source=ref, year=year, relationship=name, forward=forward, to=other)
    return None


def _is_fragment(reading: Reading) -> bool:
    if len(reading.tokens) > _FRAGMENT_WORDS or not reading.items:
        return False
    lead = next((item for item in reading.items if any(sense.kind != "small" for sense in item.senses)), reading.items[0])
    opened = lead.has("follow_up", "only") or (lead.has("also") and len(reading.items) > 1)
    asked = [item for item in reading.of("question_words") if not item.has("follow_up")]
    operations = reading.has(
        "count",
        "list",
        "share",
        "ratio",
        "difference",
        "compare",
        "missing",
        "joined",
        "left",
        "detail",
        "history",
        "existence",
        "connect",
    )
    if reading.has("whole"):
        return True
    if _ordinal(reading) is not None:
        return False
    stands_in = reading.language.cues("stand_in")
    pronouns = [one for one in reading.of("pronoun_one", "pronoun_many") if one.text.casefold() not in stands_in]
    if pronouns and not opened:
        return False
    verbs = reading.language.cues("verb") & {token.folded for token in reading.tokens[:1]}
    if reading.items[0].has("compare") and reading.has("year", "relative_years") and len(content_of(reading)) <= 2:
        return True  # versus 2021?
    if reading.items[0].has("compare") and reading.has("value", "entity") and len(content_of(reading)) <= 2:
        return True  # versus the red ones?
    if opened and _is_complete(reading):
        return False
    if opened and reading.has("group") and reading.has("property") and not reading.has("entity", "value", "type"):
        return True  # now by cost instead of number
    if opened:
        lists = lead.has("only") and not reading.has("missing", "share", "compare", "difference")
        return not operations or len(reading.tokens) <= 4 or lists
    if reading.has("difference", "more", "less", "compare_greater", "compare_less") and not reading.has(
        "type", "entity", "property"
    ):
        return True
    if len(reading.of("type")) == 1 and all(item.has("type", "detail") for item in content_of(reading)):
        return True  # who's the brewer
    stands = reading.tokens[-1].folded in stands_in
    if stands and reading.has("list") and reading.has("entity") and not reading.has("type", "year", "property", "value"):
        return True  # list the brewer's ones
    if reading.has("count") and reading.has("entity", "value") and not reading.has("type", "year", "property", "pronoun_many"):
        return True  # how many at the second yard
    if reading.has("joined", "left") and reading.items[0].has("follow_up"):
        return True
    if reading.has("count") and len(reading.tokens) <= 3 and not reading.has("type", "property", "entity"):
        return True
    content = content_of(reading)
    return not asked and not operations and not verbs and len(content) <= 3 and not (reading.has("type") and len(content) > 1)


def content_of(reading: Reading) -> list[Item]:
    """The items that say something by themselves."""
    silent = ("small", "follow_up", "also", "scope", "question_words", "place")
    return [item for item in reading.items if item.senses and not all(sense.kind in silent for sense in item.senses)]


def _changed(made: Composition, plan: Plan) -> Plan | None:
    type = _type_of(plan)
    if type is None:
        return None
    if made.has("whole") and isinstance(plan, Aggregate):
        made.take(*made.open("whole", "count", "type", "follow_up", "year"))
        return Aggregate(of=plan.of.model_copy(update={"filters": plan.of.filters[:-1]}))
    years = made.years(type)
    _drop_corrected(made)
    made.take(*made.open("follow_up", "only"))
    if isinstance(plan, Describe) and years:
        made.take(*made.open("compare"))  # versus 2021?
    if (
        made.has("count")
        and isinstance(plan, Select | Rank | Aggregate)
        and not made.has("property", "value", "entity", "type")
    ):
        made.take(*made.open("count"))
        of = _asked_set(made, plan)
        return Aggregate(of=of.model_copy(update={"years": years}) if years else of)
    if isinstance(plan, Describe | Relate | Gaps) and (refs := _same_sort(made, type)):
        return _with_years(_with_things(plan, refs, made), years)
    if isinstance(plan, Describe) and made.has("superlative") and made.focus.selection is not None:
        raise NeedsMore  # and the most expensive one: of the set that this one was of
    if isinstance(plan, Describe):
        properties = made.properties(type)
        if not properties and made.has("money") and (money := made.main_money(type)) is not None:
            properties = (money,)  # price tag?
        if properties:
            plan = plan.model_copy(update={"properties": properties, "expect": None, "direction": None, "when": None})
        expected = made.values(type)
        if expected:
            plan = plan.model_copy(update={"expect": expected[0]})
        return _with_years(plan, years)
    if isinstance(plan, Aggregate) and not plan.group_by and made.reading.items[0].has("compare"):
        made.take(made.reading.items[0])
        other = _changed_set(made, plan, type, years)
        return Compare(sides=(plan, other)) if isinstance(other, Aggregate) and other != plan else None
    if isinstance(plan, Select | Aggregate | Rank | Change):
        return _changed_set(made, plan, type, years)
    if isinstance(plan, Compare) and (added := made.filters(type)):
        subjects = {(one.property, one.via, one.to) for one in added}
        if (other := _another_side(plan, added)) is not None:
            return _with_years(other, years)
        held = any((old.property, old.via, old.to) in subjects for side in plan.sides for old in side.of.filters)
        plan = plan.model_copy(update={"sides": tuple(_with_filters(side, added, held=held) for side in plan.sides)})
        return _with_years(plan, years)
    return _with_years(plan, years) if years else None


def _another_side(plan: Compare, added: tuple[Filter, ...]) -> Compare | None:
    """And the military ones? After two sets that one condition tells apart, the first of them beside a third."""
    subject = (added[0].property, added[0].via, added[0].to)
    held = [one for side in plan.sides for one in side.of.filters if (one.property, one.via, one.to) == subject]
    if (
        plan.how not in ("side_by_side", "difference", "ratio")
        or len(added) != 1
        or len({str(one.value) for one in held}) != len(plan.sides)
    ):
        return None
    first = plan.sides[0]
    return plan.model_copy(update={"sides": (first, _with_filters(first, added, held=True))})


def _with_filters(side: Aggregate, added: tuple[Filter, ...], *, held: bool) -> Aggregate:
    """A side of a comparison with conditions in the place of those on the same subject.

    Args:
        held: whether some side has such conditions: one that has none then stays without.
    """
    new = {(one.property, one.via, one.to): one for one in added}
    known = {(old.property, old.via, old.to) for old in side.of.filters}
    kept = (
        *(new.get((old.property, old.via, old.to), old) for old in side.of.filters),
        *(one for subject, one in new.items() if subject not in known and not held),
    )
    return side.model_copy(update={"of": side.of.model_copy(update={"filters": kept})})


def _asked_set(made: Composition, plan: Select | Rank | Aggregate) -> Selection:
    """The set that the next question is about: of the group that came first, its members."""
    first = isinstance(plan, Aggregate) and plan.limit == 1 and made.focus.selection is not None
    return made.focus.selection if first and made.focus.selection is not None else plan.of


def _drop_corrected(made: Composition) -> None:
    """Not the cost, the rating: what is denied and replaced is out."""
    for no in made.open("not"):
        item = made.after(no, ("property", "value", "entity"), ("small",))
        kinds = {sense.kind for sense in item.senses} if item is not None else set()
        if item is not None and any(other.has(*kinds) for other in made.reading.items if other is not item):
            made.take(no, item)


def _type_of(plan: Plan) -> str | None:
    match plan:
        case Describe() | Gaps() if plan.entities:
            return plan.entities[0].type
        case Relate():
            return plan.source.type
        case Compare():
            return plan.sides[0].of.type
        case Select() | Aggregate() | Rank() | Change():
            return plan.of.type
        case Gaps() if plan.of is not None:
            return plan.of.type
    return None


def _same_sort(made: Composition, type: str) -> tuple[EntityRef, ...]:
    refs: list[EntityRef] = []
    for item in made.open("entity"):
        found = made.refs(item, type)
        if found and found[0].type == type:
            refs += found
            made.take(item)
    return tuple(refs)


def _with_things(plan: Plan, refs: tuple[EntityRef, ...], made: Composition) -> Plan:
    latest = max((year for ref in refs for year in ref.years), default=None)
    match plan:
        case Describe():
            years = plan.years if plan.history or latest is None or set(plan.years) & set(refs[0].years) else (latest,)
            return plan.model_copy(update={"entities": refs, "years": years})
        case Relate():
            year = plan.year if latest is None or plan.year in refs[0].years else latest
            return plan.model_copy(update={"source": refs[0], "year": year})
        case Gaps():
            return plan.model_copy(update={"entities": refs})
    return plan


def _with_years(plan: Plan, years: tuple[int, ...]) -> Plan:
    if not years:
        return plan
    match plan:
        case Describe() | Gaps():
            return plan.model_copy(update={"years": years})
        case Relate():
            return plan.model_copy(update={"year": years[-1]})
        case Select() | Aggregate() | Rank():
            return plan.model_copy(update={"of": plan.of.model_copy(update={"years": years})})
        case Compare():
            apart = _years_apart(plan, years)
            sides = tuple(
                side.model_copy(update={"of": side.of.model_copy(update={"years": (year,)})})
                for side, year in zip(plan.sides, apart, strict=True)
            )
            return plan.model_copy(update={"sides": sides})
        case Change() if len(years) >= 2:
            return plan.model_copy(update={"since": min(years), "until": max(years)})
        case Change():
            return plan.model_copy(update={"since": years[0] - 1, "until": years[0]})
    return plan


def _years_apart(plan: Compare, years: tuple[int, ...]) -> tuple[int, ...]:
    """The year of each side, where others are stated: one for each, or one for all; a change keeps the time between them."""
    before = [side.of.years[-1] for side in plan.sides]
    if len(set(before)) == 1:
        return years[-1:] * len(before)
    if len(years) == len(before):
        return tuple(sorted(years, reverse=before[0] > before[-1]))
    shift = years[-1] - before[0]
    return tuple(year + shift for year in before)


def _changed_set(made: Composition, plan: Select | Aggregate | Rank | Change, type: str, years: tuple[int, ...]) -> Plan | None:
    narrowed = made.reading.has("only")
    groups = made.groups(type)
    if len(years) == 1 and (dated := _dated(plan.of.filters, years[0])) is not None:
        plan, years = plan.model_copy(update={"of": plan.of.model_copy(update={"filters": dated})}), ()
    of = plan.of.model_copy(update={"years": years}) if years else plan.of
    head = next((item for item in made.open("type") if not groups), None)
    other = None
    if head is not None:
        other = made.type_of(head)
        made.take(head)
    kept = of.filters
    added = made.filters(type)
    if not added and not plan.of.among:
        added = by_a_word(made, type)
    for one in added:
        if not narrowed:
            kept = tuple(old for old in kept if (old.property, old.via, old.to) != (one.property, one.via, one.to))
        kept = (*kept, one)
    of = of.model_copy(update={"filters": kept[:8]})
    if other is not None and other[0] != type:
        if added or years:
            return None
        fitting = tuple(one for one in of.filters if _fits(made, one, other[0]))
        of = Selection(type=other[0], level=other[1] or made.view.usual_level(other[0]), years=of.years, filters=fitting)
    measure = next((name for name in MEASURES if made.has(name)), None)
    superlative = next((i for i in made.open("superlative") if any(one[0] == type for one in i.of("superlative"))), None)
    if superlative is not None:
        chosen = next(one for one in superlative.of("superlative") if one[0] == type)
        made.take(superlative, *made.open("most", "least"))
        place = made.place()
        return Rank(of=of, by=chosen[1], descending=bool(chosen[2]), limit=made.limit() or 1, position=place)
    properties = made.properties(type)
    extremes = made.open("most", "least", "largest", "smallest")
    if extremes and (properties or isinstance(plan, Rank)) and measure is None and not groups:
        by = properties[0] if properties else plan.by if isinstance(plan, Rank) else None
        made.take(*extremes)
        return Rank(of=of, by=by, descending=not any(one.has("least", "smallest") for one in extremes), limit=made.limit() or 1)
    if measure is not None:
        if isinstance(plan, Rank) and not added and not years:
            raise NeedsMore  # the sum of the five: of those that were ranked
        property = (
            properties[0]
            if properties
            else plan.property
            if isinstance(plan, Aggregate | Change)
            else plan.by
            if isinstance(plan, Rank) and plan.by and made.kind(type, plan.by) == "number"
            else made.number_of(measure, type)
        )
        made.take(*made.open(*MEASURES))
        if property is None:
            raise NotUnderstood(Unknown(reason="property", detail={"type": type}))
        return Aggregate(of=of, measure=MEASURES[measure], property=property, group_by=groups)
    match plan:
        case Aggregate() if made.has("list") and not groups and not plan.group_by and not properties:
            made.take(*made.open("list", "pronoun_many", "pronoun_one"))
            return Select(of=of)
        case Aggregate():
            updated = plan.model_copy(update={"of": of, "group_by": groups or plan.group_by})
            if properties:
                made.take(*made.open("count"))
                kind = plan.measure if plan.measure != "count" else "sum"
                updated = updated.model_copy(update={"property": properties[0], "measure": kind})
            return updated
        case Rank():
            if groups:
                return Aggregate(of=of, group_by=groups)
            limit = made.limit()
            if properties and limit is None and plan.limit == 1 and len(made.focus.entities) == 1:
                return Describe(entities=made.focus.entities, properties=properties, years=of.years)
            changes = {"of": of} | ({"by": properties[0]} if properties else {}) | ({"limit": limit} if limit else {})
            return plan.model_copy(update=changes)
        case Change():
            return plan.model_copy(update={"of": of} | ({"since": min(years), "until": max(years)} if len(years) > 1 else {}))
        case Select():
            if groups or made.has("count"):
                made.take(*made.open("count"))
                return Aggregate(of=of, group_by=groups)
            return plan.model_copy(update={"of": of, "show": properties or plan.show})
    return None


def _dated(filters: tuple[Filter, ...], year: int) -> tuple[Filter, ...] | None:
    """Conditions on the year of a date, with another year in its place: those that end in 2026, and 2027?"""
    said = {
        one.words
        for one in filters
        if isinstance(one.value, str) and one.words.isdigit() and one.value.startswith(f"{one.words}-")
    }
    if len(said) != 1:
        return None
    old = said.pop()
    return tuple(
        one.model_copy(update={"value": one.value.replace(old, str(year), 1), "words": str(year)})
        if one.words == old and isinstance(one.value, str)
        else one
        for one in filters
    )


def _fits(made: Composition, filter: Filter, type: str) -> bool:
    if filter.via is not None:
        return filter.to is not None and any(one.name == filter.via for one, _ in made.view.between(type, filter.to))
    return filter.property in ("id", "name", "level") or made.view.property(type, filter.property) is not None
