"""The planner of rules: a message becomes a plan by patterns of the language, or by words that all are explained; and which
plan a question about the twin is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from phronesis_contracts.twin import GapType

from .composing import MEASURES, Composition, NotUnderstood, distinct, pass_over_appositions, refuse_leftovers
from .language import Language, Token, languages
from .lexicon import Lexicon
from .plan import (
    AboutUser,
    Aggregate,
    Change,
    Compare,
    Compose,
    Coverage,
    Describe,
    Focus,
    Plan,
    Rank,
    Relate,
    Select,
    Selection,
    Talk,
    Understood,
    Unknown,
)
from .questions_of_sets import of_a_set
from .questions_of_things import of_things
from .reading import Item, Reading, read
from .references import NeedsMore, chosen_of, continue_plan, is_pronoun, of_another, point_back, refer


def compose(made: Composition) -> Plan:
    """The plan of a question about the twin. Raises `NotUnderstood`: with the `Unknown` that says why."""
    plan = _of_ontology(made) or _concept(made) or _coverage(made) or of_things(made) or of_a_set(made)
    if isinstance(plan, Describe | Relate):
        pass_over_appositions(made)
    refuse_leftovers(made)
    if isinstance(plan, Aggregate) and plan.group_by and made.base is not None:
        plan = _over_all_groups(made.base, plan)
    if _leaves_out_named(made, plan):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))
    if isinstance(plan, Select | Aggregate) and _asks_for_more(made, plan):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))
    return plan


def _over_all_groups(base: Selection, plan: Aggregate) -> Aggregate:
    """Which category is the dearest, after a figure of one: of all of them, and not of the one that was spoken of."""
    grouped = {(one.property if one.via is None else "id", one.via) for one in plan.group_by}
    kept = tuple(
        one for one in plan.of.filters if one not in base.filters or (one.property, one.via) not in grouped or one.op != "="
    )
    return plan.model_copy(update={"of": plan.of.model_copy(update={"filters": kept})})


def _leaves_out_named(made: Composition, plan: Plan) -> bool:
    """Whether a pronoun stands for things of which a plan over a set says nothing."""
    if not made.named or made.base is not None or not isinstance(plan, Select | Aggregate | Rank | Change | Compare):
        return False
    sets = [side.of for side in plan.sides] if isinstance(plan, Compare) else [plan.of]
    told: set[object] = {ref.id for of in sets for ref in of.among}
    told |= {plan.expect.id} if isinstance(plan, Rank) and plan.expect is not None else set()
    for one in (one for of in sets for one in of.filters):
        told |= set(one.value) if isinstance(one.value, tuple) else {one.value}
    return not told & {ref.id for ref in made.named}


def _asks_for_more(made: Composition, plan: Select | Aggregate) -> bool:
    """Whether a message relates years or properties of the same thing to each other, which one set cannot say."""
    if made.asks("why"):
        return True  # the reasons of a set stand in no one text
    if made.says("never") and not made.reading.has("unknown", "without"):
        return True  # of all years together
    if made.says("both") and len(plan.of.years) > 1 and not made.reading.has("each_year", "year_word"):
        return True  # in the one and in the other
    if made.says("advice") and any(one.op in ("=", "in") for one in plan.of.filters):
        return True  # what ought to be, not what is
    turns = "".join("y" if item.has("year") else "v" for item in made.reading.items if item.has("year", "value"))
    if "vyvy" in turns or "yvyv" in turns:
        return True  # one value in one year, another in the next
    compared = any(item.has("compare_greater", "compare_less") for item in made.reading.items)
    return (
        compared
        and not made.states_figure()
        and made.reading.has("property", "money")
        and not made.reading.has("year_word", "entity")
    )


def _coverage(made: Composition) -> Plan | None:
    found = made.open("coverage")
    if not found or made.named or (made.has("entity", "count", "value") and "years" not in found[0].of("coverage")):
        return None
    about = found[0].of("coverage")[0]
    types = made.open("type")
    if about == "years" and not made.has("entity", "value", "property", "count", "most", "least", "largest", "smallest"):
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


_OF_WORDS = frozenset("small question_words concept detail coverage list follow_up also existence numbers number each".split())
"""Kinds of words beside what a question about the ontology itself asks for."""


def _of_ontology(made: Composition) -> Plan | None:
    """Which relationship joins projects to risks? What levels are there? What kinds of gaps? What the ontology itself says."""
    types = made.open("type")
    silent, kinds = _OF_WORDS | {"type", "pronoun_one", "place", "year_word", "scope"}, made.reading.language.cues("kinds")

    def asks_only(*more: str) -> bool:
        rest = (item for item in made.reading.items if not item.has(*silent, *more) and item.text.casefold() not in kinds)
        return not any(rest) and made.reading.has(*more)

    if made.has("relationship_word") and asks_only(
        "relationship_word", "connect", "relation", "level_word", "joined", "property"
    ):
        pairs = [(one.of("type")[0][0], other.of("type")[0][0]) for one in types for other in types if one.at < other.at]
        ways = [each.name for one, other in pairs for each, _ in made.view.between(one, other)]
        if made.has("level_word") and not types and made.view.ontology.hierarchy is not None:
            ways = [made.view.ontology.hierarchy]
        if len(dict.fromkeys(ways)) == 1:
            made.take(*made.reading.items)
            return Coverage(about="concept", term=ways[0])
    if made.has("level_word") and asks_only("level_word", "count"):
        levelled = [one.name for one in made.view.ontology.types if len(one.levels) > 1 and made.view.things(one.name)]
        type = made.type_of(types[0])[0] if types else max(levelled, key=lambda one: len(made.view.things(one)), default=None)
        if type is not None:
            made.take(*made.reading.items)
            return Coverage(about="concept", type=type)
    if made.has("type_word") and (asks_only("type_word", "count") or (made.has("scope") and asks_only("type_word", "value"))):
        made.take(*made.reading.items)
        return Coverage(about="concept", term="types")
    if made.has("type_word") and made.has("relation") and asks_only("type_word", "relation", "connect", "group"):
        made.take(*made.reading.items)
        return Coverage(about="concept", term=made.reading.of("relation")[0].of("relation")[0][0])
    gaps = {kind.value.casefold(): kind.value for kind in GapType}
    named = [gaps[token.folded] for token in made.reading.tokens if token.folded in gaps]
    others = [item for item in made.reading.items if item.text.casefold() not in gaps]
    if len(named) == 1 and all(item.has(*silent, "mean", "missing", "ordinals", "follow_up") for item in others):
        made.take(*made.reading.items)
        return Coverage(about="concept", term=named[0])
    if made.says("kinds") and not types and made.has("missing") and asks_only("missing"):
        made.take(*made.reading.items)
        return Coverage(about="concept", term="gap")
    return None


def _concept(made: Composition) -> Plan | None:
    """What is a policy tool? What does delivery confidence mean? The whole message has to be that."""
    asked = made.open("concept")
    kinds = ("type", "property", "value", "chain", "relation", "missing")
    terms = [item for item in made.reading.items if item.senses and item.has(*kinds)]
    rest = [
        item
        for item in made.reading.items
        if item not in terms
        and not item.has("concept", "small", "question_words", "detail", "connect", "scope", "relationship_word")
    ]
    joins = made.has("connect") and len(terms) == 1 and terms[0].has("relation")  # what does it join
    if not (asked or joins) or len(terms) != 1 or rest or not (joins or _is_definition(made, terms[0])):
        return None
    term = terms[0]
    made.take(*made.reading.items)
    if term.has("type"):
        return Coverage(about="concept", type=made.type_of(term)[0])
    if term.has("property", "value") and not joins:
        type, property = (*term.of("property"), *(one[:2] for one in term.of("value")))[0]
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


_MENDED = 0.9
"""Certainty that is left for each misspelt word."""
_LEANS = 0.95
_OPEN = 6
"""Words of a message at most that leaves its subject to what was said before."""
_FRAGMENT = 4
"""Words of a message that may be no more than the name of a thing."""
_OF_DATA = ("type", "entity", "value", "property", "superlative", "most", "least")
"""Kinds of words that speak of what is on record."""
_ASIDE = frozenset("small polite question_words pronoun_one pronoun_many filler yes_or_no detail list money place".split())
"""Kinds of words of which a remark beside the question is made, and words that nothing explains."""


def understand(
    text: str, lexicon: Lexicon | None, focus: Focus, language: Language, *, personal: bool = True, spoken: bool = False
) -> Understood:
    """Understand one message.

    Args:
        text: what the user wrote.
        lexicon: the words of the twin; `None` where the caller may not read it, or it is away.
        focus: what the conversation is about.
        language: the language of the message.
        personal: whether it may be about the person; `False` once their facts were asked in vain.
        spoken: whether anything was said before it in the conversation, understood or not.
    """
    text = _without_label(_without_courtesy(" ".join(text.split()), language), language)
    for one in (language, *(other for other in languages().values() if other is not language)):
        if (talk := one.recognise(text, "talk")) is not None:
            return Understood(plan=Talk(about=talk, text=text[:1_000]), language=one.name)
    if (waits := focus.clarification) is not None and lexicon is not None:
        chosen = chosen_of(waits, text, lexicon)
        if chosen is not None:
            focus = focus.model_copy(update={"clarification": None})
            question = waits.question.replace(waits.name, chosen.name, 1)
            meant = understand(question, lexicon, focus, language, personal=personal, spoken=spoken)
            return meant.model_copy(update={"leans": True})
        # It is not known which of them “it” is, nor is it what was spoken of before them.
        focus = Focus(entities=waits.options, listed=waits.options, language=focus.language)
    ordered = language.recognise(text, "order") is not None
    order = _of_memory(text, language) if personal else None
    if order is not None and not _corrects_data(order[0], focus) and not (ordered and order[0] == "remember"):
        about = AboutUser(action=order[0], text=order[1][:4_000], explicit=True)
        return Understood(plan=about, language=language.name)
    if ordered:
        return Understood(plan=Unknown(reason="unsupported", words=text[:300]), language=language.name)
    of_data = _of_data(text, lexicon, focus, spoken) if lexicon is not None else None
    if of_data is not None and lexicon is not None and isinstance(of_data.plan, Unknown):
        of_data = _last_question(text, lexicon, focus, spoken) or _without_asides(text, lexicon, focus, spoken) or of_data
    own = personal and is_own(text, language)
    if of_data is not None and not isinstance(of_data.plan, Unknown) and not own:
        return of_data
    every = (language, *(other for other in languages().values() if other is not language))
    task = next((found for one in every if (found := one.recognise(text, "compose")) is not None), None)
    if task is not None and not (own and task == "explain"):
        return Understood(plan=Compose(task=task, text=text[:4_000]), language=language.name)
    data_like = of_data is not None and of_data.plan.kind == "unknown" and of_data.plan.detail.get("about") == "data"
    if personal and is_about_user(text, language) and (own or not data_like) and not _asks_elsewhere(text, language):
        asked = asks(text, language) or _names_own(text, language) or _wishes(text, language)
        action: Literal["recall", "remember"] = "recall" if asked else "remember"
        return Understood(plan=AboutUser(action=action, text=text[:4_000]), language=language.name)
    if of_data is not None:
        return of_data
    return Understood(plan=Unknown(reason="scope", words=text[:300]), language=language.name)


def _of_memory(text: str, language: Language) -> tuple[str, str] | None:
    """What a message asks of the person's memory, and in which words: to forget something may stand in its last sentence."""
    parts = _sentences(text)
    if (what := to_forget(text, language) or (to_forget(parts[-1], language) if len(parts) > 1 else "")) != "":
        return "forget", what
    order = language.recognise(text, "user")
    return (order, text) if order is not None else None


def to_forget(text: str, language: Language) -> str:
    """What a message orders to forget, in its own words; empty where it orders no such thing.

    An order to delete something is one where it speaks of memory or of what is the speaker's own.
    """
    if language.recognise(text, "user") == "forget":
        return text
    tokens = language.tokens(text)
    polite = language.cues("please") | language.cues("asks_kindly")
    at = next((n for n, token in enumerate(tokens) if token.folded not in polite), len(tokens))
    said = {token.folded for token in tokens}
    if at == len(tokens) or tokens[at].folded not in language.cues("deletes"):
        return ""
    if names_source(text, language):
        return text
    if not said & language.cues("memory") and not said & language.cues("about_it") and not _possessive(text, language):
        return ""
    what = re.split(_CLAUSES, text[tokens[at].end :])[0]
    for token in reversed(language.tokens(what)):
        what = what[: token.start] + what[token.end :] if token.folded in polite | language.cues("memory") else what
    return what.strip() or text


_QUOTES = "\"'“”„«»‘’"
_FILE_NAME = re.compile(
    r"[\"'“”„«»‘’]?(\S[^\"“”„«»‘’\n]*?\.(?:pdf|docx?|xlsx?|pptx?|html?|md|txt|csv|png|jpe?g|webp|gif|bmp|tiff?|wav|mp3|flac|ogg|m4a))"
    r"(?![\w.])",
    re.I,
)


def file_names(text: str) -> tuple[str, ...]:
    """What may be names of files in a text, the longest first: a name may have spaces."""
    found: list[str] = []
    for match in _FILE_NAME.finditer(text):
        parts = match.group(1).split()
        found += [" ".join(parts[at:]).lstrip(_QUOTES) for at in range(max(0, len(parts) - _NAME_WORDS), len(parts))]
    return tuple(dict.fromkeys(found))


_NAME_WORDS = 5
"""Words of a file's name at most."""


def names_source(text: str, language: Language) -> bool:
    """Whether an order to delete something names a file, or speaks of the conversation or of what was attached to it."""
    if file_names(text) or language.holds(text, language.cues("this_conversation")):
        return True
    said = {token.folded for token in language.tokens(text)}
    return bool(said & language.cues("forgets")) and language.holds(text, language.cues("the_document"))


_COURTESIES, _MOST_COURTESIES = ("greeting", "thanks", "praise"), 3


def _without_courtesy(text: str, language: Language) -> str:
    """A message without the courtesy that it begins with: good morning, …; thanks. …"""
    for _ in range(_MOST_COURTESIES):
        first, *rest = re.split(r"[,.!:;]\s|\s[-–—]\s", text, maxsplit=1)
        if not rest or language.recognise(first, "talk") not in _COURTESIES:
            break
        text = rest[0]
    return text


def _without_label(text: str, language: Language) -> str:
    """A statement of the person without the word or two that announce it: update: I moved to the coast."""
    label, _, rest = text.partition(": ")
    ordered = any(one.recognise(text, "compose") is not None for one in languages().values())  # rephrase: I am late
    told = not ordered and len(label.split()) <= _LABEL and is_about_user(rest, language) and not asks(rest, language)
    return rest if rest and told else text


_LABEL = 4
"""Words of what announces a statement, at most."""


def _last_question(text: str, lexicon: Lexicon, focus: Focus, spoken: bool) -> Understood | None:
    """The question of a message that says something else before it; `None` where that is not understood either."""
    parts = _sentences(text)
    if len(parts) < 2 or len(parts[-1].split()) < 3:
        return None
    if lexicon.language.cues("pronoun") & {token.folded for token in lexicon.language.tokens(parts[-1])}:
        return None  # it asks about what is said before it
    if read(parts[-1], lexicon).has("pronoun_many") or any(_may_name(read(part, lexicon), lexicon) for part in parts[:-1]):
        return None
    asked = _of_data(parts[-1], lexicon, focus, spoken)
    return asked if not isinstance(asked.plan, Unknown) else None


def _without_asides(text: str, lexicon: Lexicon, focus: Focus, spoken: bool) -> Understood | None:
    """What is asked beside a remark that has nothing of the data: I'm on the train: …; `None` where it is not understood."""
    parts = re.split(r"(?<=[,;:)])\s+|\s+(?=[(])|\s+[-–—]\s+", text)
    kept = list(parts)
    while len(kept) > 1 and _is_aside(kept[0], lexicon):
        kept.pop(0)
    while len(kept) > 1 and _is_aside(kept[-1], lexicon):
        kept.pop()
    if len(kept) == len(parts) or _is_aside(" ".join(kept), lexicon):
        return None
    asked = _of_data(" ".join(kept).rstrip(",;: "), lexicon, focus, spoken)
    if isinstance(asked.plan, Unknown):
        return None
    return asked.model_copy(update={"certainty": round(asked.certainty * _LEANS, 3)})


def _is_aside(part: str, lexicon: Lexicon) -> bool:
    """Whether a part says nothing of the data, and nothing that could be a name or a subject of it."""
    reading = read(part, lexicon)
    if not all({sense.kind for sense in item.senses} <= _ASIDE for item in reading.items):
        return False
    explained = all(item.senses for item in reading.items)
    return explained or (_words(part, lexicon.language, "statement") and not _may_name(reading, lexicon))


def _may_name(reading: Reading, lexicon: Lexicon) -> bool:
    """Whether a word that nothing explains may be a name or a subject of the data: let's do defence."""
    return any(lexicon.may_name(reading.tokens[item.at]) for item in reading.items if not item.senses)


def _of_data(text: str, lexicon: Lexicon, focus: Focus, spoken: bool) -> Understood:
    reading = point_back(read(text, lexicon), focus, lexicon)
    base, named, leans = refer(reading, focus)
    certainty = _MENDED ** len(reading.mended) * (_LEANS if leans else 1.0)
    notes = tuple(f"{wrong} → {right}" for wrong, right in reading.mended)

    def result(plan: Plan, sure: float, leant: bool, more: tuple[str, ...] = ()) -> Understood:
        sure = round(min(1.0, certainty * sure), 3)
        return Understood(plan=plan, language=lexicon.language.name, leans=leant, certainty=sure, notes=(*notes, *more))

    if isinstance(base, Unknown):
        spoken = spoken or focus.plan is not None or bool(focus.entities) or focus.quoted is not None or focus.personal
        of_data = reading.has(*_OF_DATA)
        if base.reason == "reference" and not spoken and _names_unknown(reading):
            return result(Unknown(reason="words", words=text[:300]), 1.0, False)  # the Garden Bridge: when does it open?
        if base.reason == "reference" and not spoken and not of_data:
            return result(Unknown(reason="scope", words=text[:300]), 1.0, False)  # nothing was spoken of: will it rain?
        return result(base, 1.0, True)
    try:
        of_some = isinstance(base, Selection) and bool(base.among) and base != focus.selection  # the rating of all three
        chosen = (named and reading.has("ordinals")) or (of_some and reading.has("number", "numbers"))
        continued = of_another(reading, focus, named) if chosen else continue_plan(reading, lexicon, focus)
        if continued is not None:
            return result(continued, _LEANS, True)
    except (NotUnderstood, NeedsMore):
        pass
    made = Composition(reading, lexicon, focus, base=base, named=named)
    try:
        plan = compose(made)
    except NotUnderstood as problem:
        figure = reading.has("property", "superlative") and reading.has("value", "year", "count", *MEASURES)
        points = lexicon.language.cues("pronoun") & {token.folded for token in reading.tokens}
        of_data = (reading.has("type", "entity") or figure) and not points
        strange = sum(not item.senses for item in reading.items)
        known = sum(bool({sense.kind for sense in item.senses} & set(_OF_DATA)) for item in reading.items)
        about = {"about": "data"} if of_data else {}
        if strange > known:
            about["unexplained"] = "most"  # it is rather of something else
        topics = [item.of("type")[0][0] for item in reading.of("type")]
        if len(set(topics)) == 1 and not reading.has("value", "entity"):
            about["topic"] = topics[0]
        missing = problem.plan
        if missing.reason == "ambiguous" and strange and not focus.plan:
            missing = Unknown(reason="words", words=made.left_over()[:300] or text[:300])  # it asks for something else as well
        missed = result(missing.model_copy(update={"detail": {**missing.detail, **about}}), 1.0, leans)
        refs = distinct(ref for item in reading.of("entity") for refs in item.of("entity")[:1] for ref in refs)
        strays = bool(strange) and problem.plan.reason == "words" and not (points or reading.has("pronoun_many", "pronoun_one"))
        of_it = len(refs) == 1 and set(topics) <= {refs[0].type}  # a condition on others is not what was asked about
        return missed.model_copy(update={"named": refs if of_it else (), "strays": strays})
    if focus.quoted is not None and _is_everything(reading, plan):
        return result(Unknown(reason="scope", words=text[:300]), 1.0, leans)  # a word of the text that was spoken of
    nowhere = _points_nowhere(reading, plan) or (spoken and (_leaves_open(reading, plan) or _ends_pointing(reading, plan)))
    if not leans and nowhere:
        return result(Unknown(reason="reference", words=text[:200]), 1.0, True)
    understood = result(plan, made.certainty, leans, tuple(made.notes))
    return understood.model_copy(update={"passed": tuple(made.passed)})


def _names_unknown(reading: Reading) -> bool:
    """Whether a word in capitals that nothing explains stands before a pronoun: it is what the pronoun stands for."""
    pronoun = next((item.at for item in reading.of("pronoun_one", "pronoun_many")), 0)
    return any(not item.senses and item.text[:1].isupper() for item in reading.items if item.at < pronoun)


def _points_nowhere(reading: Reading, plan: Plan) -> bool:
    """Whether a message points back, nothing was found that it points to, and it would be answered of everything."""
    if _is_one_of_its_type(reading, plan):
        return True
    pronouns = reading.of("pronoun_one", "pronoun_many")
    points = any(is_pronoun(reading, item) for item in pronouns) or (bool(reading.items) and reading.items[0].has("follow_up"))
    named = reading.has("type", "entity", "value", "coverage", "concept")
    return points and _is_whole(plan) and not named


def _is_whole(plan: Plan) -> bool:
    """Whether a plan takes all things of a type."""
    return isinstance(plan, Select | Aggregate | Rank) and not plan.of.filters and not plan.of.among


def _is_one_of_its_type(reading: Reading, plan: Plan) -> bool:
    """Who is the department? Which one was it in? One thing is meant, and not all of its type."""
    items = reading.of("type")
    figure = isinstance(plan, Aggregate) and plan.property is not None and not plan.group_by
    if not (isinstance(plan, Select) or figure) or not _is_whole(plan) or len(items) != 1 or not items[0].at:
        return False
    if figure and items[0].has("scope"):
        return False  # what does the portfolio cost
    if items[0].text.casefold().endswith(reading.language.words.get("plural_endings", ())):
        return False
    definite = reading.tokens[items[0].at - 1].folded in reading.language.cues("the_one")
    it = bool(reading.language.cues("pronoun") & {token.folded for token in reading.tokens})
    return reading.has("question_words", "detail") and (definite or it)


def _ends_pointing(reading: Reading, plan: Plan) -> bool:
    """How many projects is that? Where nothing is known that it points to."""
    points = any(item.has("pronoun_one", "pronoun_many") for item in reading.items[-1:])
    return points and _is_whole(plan) and not reading.has("year", "entity", "value")


def _leaves_open(reading: Reading, plan: Plan) -> bool:
    """Whether a message in the midst of a conversation says neither of what it asks nor of when: the cheapest? rating?"""
    whole = isinstance(plan, Select | Aggregate | Rank) and not plan.of.among
    listed = isinstance(plan, Coverage) and plan.about == "values"
    said = reading.has("type", "entity", "year", "relative_years", "each_year", "coverage", "scope")
    return (whole or listed) and not said and len(reading.tokens) <= _OPEN


def _is_everything(reading: Reading, plan: Plan) -> bool:
    """Whether a plan takes all things of a type, and neither a year nor a figure is asked for."""
    whole = isinstance(plan, Select | Rank) and not plan.of.filters and not plan.of.among
    return whole and not reading.has("year", "relative_years", "entity", "value")


def _corrects_data(order: str, focus: Focus) -> bool:
    """Whether a correction is one of the question about the data before it."""
    return order == "correct" and focus.plan is not None


def _words(text: str, language: Language, kind: str) -> bool:
    return language.holds(text, language.words.get(f"user.{kind}", ()))


def is_own(text: str, language: Language) -> bool:
    """Whether a message is about the speaker: what is theirs, what they do or are."""
    return _possessive(text, language) or _first_person(text, language)


def _possessive(text: str, language: Language) -> bool:
    """Whether a message is about what is the speaker's own."""
    return bool(language.cues("own") & {token.folded for token in language.tokens(text)})


def _first_person(text: str, language: Language) -> bool:
    """Whether a question asks what the speaker does or is: do I, am I."""
    return language.holds(text, (phrase for phrase in language.words.get("user.question", ()) if " " in phrase))


def is_about_user(text: str, language: Language) -> bool:
    """Whether a message has a word for the speaker: I, my, our."""
    for polite in language.words.get("polite", ()):
        text = re.sub(rf"\b{re.escape(polite)}\b", " ", text, flags=re.IGNORECASE)
    return _words(text, language, "question") or _words(text, language, "statement")


def _wishes(text: str, language: Language) -> bool:
    """Whether a message names something and says please, and tells nothing: hobbies of mine, please."""
    folded = [token.folded for token in language.tokens(text)]
    says = language.cues("exists") | language.cues("verb")
    return bool(language.cues("please") & set(folded[1:])) and folded[0] not in language.cues("own") and not says & set(folded)


def _names_own(text: str, language: Language) -> bool:
    """Whether a message does no more than name something of the speaker's: and my favourite book."""
    every = language.tokens(text)
    says = language.cues("exists") | language.cues("verb")
    if ":" not in text and _names_of_own(every, language) and not says & {token.folded for token in every}:
        return True
    tokens = [token for token in every if not any(s.kind == "also" for s in language.phrases.get((token.stem,), ()))]
    if len(tokens) == len(every):
        return False
    bare = not any(token.folded in says or token.folded[:1].isdigit() for token in tokens)
    return bool(tokens) and len(tokens) <= _FRAGMENT and tokens[0].folded in language.cues("own") and bare


def _names_of_own(tokens: Sequence[Token], language: Language) -> bool:
    """Whether a message begins with a thing of the speaker's, or with any thing of theirs: topic of my dissertation."""
    folded = [token.folded for token in tokens]
    if folded[:1] and folded[0] in language.cues("any_such"):
        return True
    written = any(token.text[:1].isupper() for token in tokens[1:]) or any(word[:1].isdigit() for word in folded)
    of = [n for n, word in enumerate(folded[:_FRAGMENT]) if word in language.cues("of")]
    return len(folded) <= _FRAGMENT + 2 and not written and any(set(folded[n + 1 : n + 2]) & language.cues("own") for n in of)


def _asks_elsewhere(text: str, language: Language) -> bool:
    """Whether a message ends with a question that is not about the speaker, whatever they said before it."""
    last = _sentences(text)[-1:]
    return bool(last) and last[0] != text and last[0].endswith("?") and not is_own(last[0], language)


def _sentences(text: str) -> list[str]:
    # An abbreviation such as “i.e.” ends no sentence.
    return [part.strip() for part in re.split(r"(?<=[.!?:])(?<!\b\w\.\w\.)\s+", text) if part.strip()]


_CLAUSES = r"[,.;:!?–—]\s+|\s+-\s+"
"""What parts the clauses of a message."""


def asks(text: str, language: Language) -> bool:
    """Whether a message is a question, or an order to tell something."""
    clauses = re.split(_CLAUSES, text)
    if any(_opens_question(clause, language) for clause in clauses[1:]) or language.holds(text, language.cues("wonders")):
        return True  # this came in the post, what is it
    left_open = text.rstrip().endswith(("...", "…"))  # and the day we are back is …
    verbs = language.cues("verb") & {token.folded for token in language.tokens(text)[-1:]}
    return text.rstrip().endswith("?") or bool(left_open and verbs) or is_question(text, language)


def last_clause(text: str) -> str:
    """What stands behind the last mark of a message: this came in the post, what is it."""
    return re.split(_CLAUSES, text)[-1]


_PARTS = 3
"""Questions at most in one message."""


def parts_of(text: str, language: Language) -> list[str]:
    """The questions of a message, where a word that joins stands before one that opens a question, or a mark behind it."""
    tokens = language.tokens(text)
    opening, joining = language.cues("opening"), language.cues("joining")
    cuts = [0]
    for n, token in enumerate(tokens[1:-1], 1):
        marked = text[tokens[n - 1].end : token.start].strip() in ("?", "?!", ";")
        joined = token.folded in joining and tokens[n + 1].folded in opening
        if marked or joined:
            cuts.append(token.end if joined else token.start)
    parts = [text[at:end].strip() for at, end in pairwise([*cuts, len(text)])]
    for n, token in ((n, token) for n, part in enumerate(parts) for token in language.tokens(part)[-1:]):
        if n < len(parts) - 1 and token.folded in joining:
            parts[n] = parts[n][: -len(token.text)].strip()
    return parts if 1 < len(parts) <= _PARTS else []


def _opens_question(clause: str, language: Language) -> bool:
    """Whether a clause begins as a question does, and not as one that belongs to the word before it: who, which is."""
    words = [token.folded for token in language.tokens(clause)]
    if len(words) < 2:
        return False
    if any(f" {order} " in f" {' '.join(words[:4])} " for order in language.cues("ask")):
        return True  # here is the report, please tell me who wrote it
    verb = words[1] in language.words.get("yes_or_no", ())
    if (
        len(words) == 3
        and verb
        and words[0] in language.cues("who")
        and words[2] in language.cues("pointing") | language.cues("pronoun")
    ):
        return True
    if words[0] in language.cues("which") and words[0] not in language.cues("what"):
        return not verb
    return words[0] in language.cues("what") or (verb and words[0] in language.cues("opens"))


def is_question(text: str, language: Language) -> bool:
    """Whether a message begins as a question does, or as an order to tell something."""
    tokens = language.tokens(text)
    said = " ".join(token.folded for token in tokens[:4])
    if any(f"{said} ".startswith(f"{order} ") for order in language.cues("ask")):
        return True
    lead = tokens[1:2] if tokens and tokens[0].folded in language.cues("lead") else tokens[:1]
    first = language.phrases.get((lead[0].stem,), ()) if lead else ()
    if lead and not first and any(language.nearly(cue, lead[0].folded) for cue in ("sort", "which", "when", "who")):
        return True  # waht is …
    asks = any(sense.kind in ("question_words", "count", "yes_or_no") for sense in first)
    return asks or (bool(lead) and lead[0].folded in language.cues("sort"))
