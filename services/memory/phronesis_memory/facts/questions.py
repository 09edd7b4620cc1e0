"""Questions about the user: what they ask for, and which facts answer them. No fact is better than a wrong one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from phronesis_contracts.facts import FactKind, Statement

from ..words.analysis import stems
from .decision import StoredFact
from .extraction import extract_statements
from .language import Ask, Language, expand, fill, language_of, languages, noun_of, restore
from .predicates import IS, NOTED, beside, is_relation, normalize, predicate_of, related
from .wording import USER

EVERYTHING = "everything"
_HOLDING = frozenset({"has", "plans", NOTED})
"""Predicates whose objects are things of many kinds."""
ABOUT = "about"
"""What a question for anything about somebody that has a name asks for."""
_EXACT = 1.0
_BY_WORDS = 0.7
"""How sure an answer is that only shares its words with the question."""
_FEWEST = 2
"""Words of a question that is not said to be about the user."""
_ADJECTIVES = 2
"""Words by which a predicate may be closer than what is asked for."""
_SHARED, _AS_NEAR = 0.25, 0.08
"""What it adds to a cosine if a fact holds every word of the question, and sums that are as near as each other."""
_BESIDE, _PART, _MOST_NEAR = 0.25, 0.3, 4
"""How much less near a fact of the same message may be, what part of the best sum others need, and facts told at most."""
_SINCE = 0.6
"""How much less near a sentence may be that tells a change and was said later."""
_NEAR, _NEAR_SURE = 0.15, 0.4
_FAIR, _FAIR_SURE = 0.35, 0.45
_CLOSE, _CLOSE_SURE = 0.6, 0.55
"""The sum from which a fact is near, nearer and very near to a question, and how sure it counts to answer it then."""


@dataclass(frozen=True)
class Wanted:
    """What a question asks for."""

    subject: str
    """`user`, `user's <relation>`, or a name."""
    predicates: tuple[str, ...]
    object: str | None = None
    """What the object has to be, or to hold, where one is named."""
    holds: tuple[frozenset[str], ...] = ()
    """Stems, of which the object of what stands for many things must hold one group whole."""
    yes_or_no: bool = False
    negated: bool = False
    soft: bool = False
    """Whether it may as well ask for something else, unless there is an answer."""
    words: tuple[str, ...] = ()
    """Stems to find a fact by, where no pattern fits; of a question by a noun, what a sentence has to say to answer it."""
    endings: tuple[str, ...] = ()
    """What a predicate may end in where none is known: a wedding anniversary is an anniversary."""
    all_words: bool = False
    """Whether a fact has to share all of them."""

    @property
    def by_words(self) -> bool:
        """Whether it is looked for by its words alone."""
        return not self.predicates


def read_question(text: str, language: str | None = None) -> Wanted | None:
    """What a question about the user asks for; `None` for one that is none."""
    spoken = language_of(text, language)
    plain = expand(text[:400].strip().rstrip(" .!?"), spoken) + " "
    rest = _without_tails(_without_leads(plain, spoken), spoken)
    for ask in spoken.asks:
        for pattern in (ask.form.first, ask.form.third):
            if pattern is not None and (match := pattern.fullmatch(rest)) and (found := _wanted(ask, match, spoken)):
                return replace(found, words=_telling(rest, spoken)) if found.endings else found
    stated = extract_statements(f"{rest.strip()}.", spoken)
    if stated:
        one: Statement = stated[0]
        return Wanted(one.subject, (predicate_of(one.predicate).name,), one.object, yes_or_no=True, negated=one.negated)
    words = _telling(rest, spoken)
    of_user = _about_user(plain, spoken)
    if not words or (not of_user and len(words) < _FEWEST):
        return None
    return Wanted(USER, (), words=words, soft=True, all_words=not of_user)


def answers_yes(question: str, wanted: Wanted, fact: StoredFact, language: Language) -> bool | None:
    """Whether a fact says yes or no to a question; `None` where the question asks for no yes, or the fact leaves it open."""
    if not language.any_of("yes_or_no").match(_without_leads(f"{expand(question[:400], language)} ", language)):
        return None
    if fact.predicate == NOTED:
        if not _digits(question) <= _digits(fact.object):
            return None  # is it still 1,150: it says another figure, or none
        denied = any(language.holds(key, expand(fact.object, language)) for key in ("negations", "denials"))
        return None if denied else True
    if wanted.yes_or_no and wanted.object is not None:
        asked, own = set(stems(wanted.object)), set(stems(fact.object))
        same = bool(asked) and (asked <= own or own <= asked)
        return same is not (fact.negated is not wanted.negated)
    return not fact.negated if wanted.by_words else None


def _digits(text: str) -> frozenset[str]:
    return frozenset(word.strip(".,!?") for word in text.split() if any(sign.isdigit() for sign in word))


def without_past(text: str, language: Language) -> str | None:
    """A question about what was so before, asked of what is so now; `None` where it asks for no past."""
    plain = f"{expand(text[:400].strip().rstrip(' .!?'), language)} "
    if not language.holds("past", plain):
        return None
    present: dict[str, str] = language.raw.get("present") or {}
    return " ".join(present.get(word.casefold(), word) for word in language.without("past", plain).split())


def _without_leads(text: str, language: Language) -> str:
    lead = language.any_of("question_leads")
    while (found := lead.match(text)) and (rest := text[found.end() :].lstrip(" ,:")):
        text = rest
    return text


def _without_tails(text: str, language: Language) -> str:
    tail = re.compile(rf"(?:,\s+)?(?<=\s)(?:{language.any_of('question_tails').pattern})$", re.IGNORECASE)
    while (shorter := tail.sub("", text).rstrip(" ,.!?") + " ") != text and shorter.strip():
        text = shorter
    return text


def _telling(text: str, language: Language) -> tuple[str, ...]:
    return tuple(dict.fromkeys(stem for stem in stems(text) if stem not in _plain(language)))


def _plain(language: Language) -> frozenset[str]:
    return frozenset(stem for word in language.words("plain_words") for stem in stems(word))


def _about_user(text: str, language: Language) -> bool:
    own = frozenset((*language.words("first"), *language.words("my"), *language.words("me")))
    return any(word.casefold() in own for word in text.split())


def _wanted(ask: Ask, match: re.Match[str], language: Language) -> Wanted | None:
    groups = {name: value.strip(" ,") if value else value for name, value in match.groupdict().items()}
    subject = _subject(ask, groups, language)
    if subject is None:
        return None
    thing = restore(fill(ask.object, groups)) if ask.object else None
    if thing is not None and (not thing or len(thing.split()) > 8):
        return None
    base = Wanted(subject, (), thing or None, yes_or_no=thing is not None, negated=ask.negated, soft=ask.soft)
    if len(ask.predicates) == 1 and ("{noun}" in ask.predicates[0] or "{rel}" in ask.predicates[0]):
        return _by_noun(fill(ask.predicates[0], groups), base, language)
    holds = (frozenset(stems(ask.about)),) if ask.about else ()
    return replace(base, predicates=ask.predicates, holds=holds)


def _subject(ask: Ask, groups: dict[str, str | None], language: Language) -> str | None:
    if ask.of is not None:
        named = fill(ask.of, groups)
        relation = language.relations.get(named.casefold())
        return f"{USER}'s {relation.name}" if relation else named
    if whose := groups.get("whose"):
        return f"{USER}'s {language.relations[' '.join(whose.casefold().split())].name}"
    if groups.get("pronoun"):
        return None
    return groups.get("they") or USER


def _by_noun(noun: str, base: Wanted, language: Language) -> Wanted | None:
    """What a noun stands for: a relation, a predicate, or an open property of that name."""
    plain = noun_of(noun, language)
    relation = language.relations.get(plain)
    if relation is not None:
        names = related(relation.name)
        forms = tuple(frozenset(stems(form)) for form, one in language.relations.items() if one.name in names)
        return replace(base, predicates=(*(f"{name}{IS}" for name in names), "has"), holds=forms)
    if plain in language.words("idle"):
        return None
    own = f"{USER}'s "
    predicate = language.nouns.get(plain)
    if predicate == "called" and base.subject.startswith(own):
        return _by_noun(base.subject.removeprefix(own), replace(base, subject=USER), language)
    known = (predicate, *beside(predicate)) if predicate else ()
    open_ones = (f"{plain}{IS}", f"{plain.removesuffix('s')}{IS}", f"{plain}s{IS}", *known, "has", "plans", NOTED)
    return replace(
        base,
        predicates=tuple(dict.fromkeys(open_ones)),
        holds=(frozenset(stems(plain)),),
        endings=tuple(f" {one}{IS}" for one in dict.fromkeys((plain, plain.removesuffix("s"), f"{plain}s"))),
    )


def choose(wanted: Wanted, facts: Sequence[StoredFact]) -> list[tuple[StoredFact, float]]:
    """The facts that answer a question, surest first, each with how sure that is, 0 to 1.

    What others say answers only what the user's own words do not; where all is asked for, it comes after them.
    """
    own = [one for one in facts if not one.claimed]
    if not wanted.by_words and wanted.predicates[0] in (EVERYTHING, ABOUT):
        return _choose(wanted, [*own, *(one for one in facts if one.claimed)])
    return _choose(wanted, own) or _choose(wanted, facts)


def _choose(wanted: Wanted, facts: Sequence[StoredFact]) -> list[tuple[StoredFact, float]]:
    facts = [one for one in facts if one.predicate != NOTED or not one.negated]
    if wanted.by_words:
        return _share_words(wanted, facts)
    if wanted.predicates[0] in (EVERYTHING, ABOUT):
        return [(one, _EXACT) for one in dict.fromkeys(facts)]
    for predicate in (*wanted.predicates, *_ending(wanted, facts)):
        fit = [one for one in facts if predicate_of(one.predicate).name == predicate_of(predicate).name and _fits(wanted, one)]
        if chosen := _right_sign(wanted, fit):
            if predicate == NOTED and len(chosen) > 1:  # of two sentences about the same the newer one holds
                chosen = [max(chosen, key=lambda one: one.valid_from)]
            also = _others(wanted, predicate, facts)
            newer = _noted_since(wanted, chosen, facts) if predicate.endswith(IS) else []
            found = dict.fromkeys((*newer, *chosen, *also, *_said_with(chosen, facts)))
            return [(one, round(_EXACT * one.confidence, 4)) for one in found]
    return []


def _ending(wanted: Wanted, facts: Sequence[StoredFact]) -> list[str]:
    """Predicates that name what is asked for more closely, what is over left out unless nothing else is."""
    if not wanted.endings:
        return []
    small = {word for language in languages().values() for word in language.marks}
    known = dict.fromkeys(predicate_of(one.predicate).name for one in facts)
    found = [
        name
        for name in known
        if (ending := next((one for one in wanted.endings if name.endswith(one)), None)) is not None
        and len(more := name.removesuffix(ending).split()) <= _ADJECTIVES
        and not small & set(more)
        and set(wanted.words) <= set(stems(name))
    ]
    return sorted(found, key=lambda name: name.split()[0] in _over())


@cache
def _over() -> frozenset[str]:
    return frozenset(word for language in languages().values() for word in language.words("over"))


def _noted_since(wanted: Wanted, chosen: Sequence[StoredFact], facts: Sequence[StoredFact]) -> list[StoredFact]:
    """The newest sentence that speaks of the same and was said later."""
    since = max(one.valid_from for one in chosen)
    later = [one for one in facts if one.predicate == NOTED and one.valid_from > since and _names(wanted, one)]
    return [max(later, key=lambda one: one.valid_from)] if later else []


def _said_with(chosen: Sequence[StoredFact], facts: Sequence[StoredFact]) -> list[StoredFact]:
    """The sentences that facts were drawn from, where they say more than those."""
    turns = {one.evidence[-1].turn_id for one in chosen if one.predicate != NOTED}
    objects = [set(stems(one.object)) for one in chosen]
    return [
        one
        for one in facts
        if one.predicate == NOTED
        and one.evidence[-1].turn_id in turns
        and any(words and words <= set(stems(one.object)) for words in objects)
    ]


def _names(wanted: Wanted, fact: StoredFact) -> bool:
    own = set(stems(fact.object))
    return any(words and words <= own for words in wanted.holds)


def _others(wanted: Wanted, predicate: str, facts: Sequence[StoredFact]) -> list[StoredFact]:
    """What belongs to the same answer: of children, the sons and the daughters."""
    if not predicate.endswith(IS) or not is_relation(predicate.removesuffix(IS)):
        return []
    rest = wanted.predicates[wanted.predicates.index(predicate) + 1 :]
    found: list[StoredFact] = []
    for other in rest:
        if other == "has" or (other.endswith(IS) and is_relation(other.removesuffix(IS))):
            same = (one for one in facts if predicate_of(one.predicate).name == other and not one.negated)
            found.extend(one for one in same if _fits(wanted, one))
    return found


def _fits(wanted: Wanted, fact: StoredFact) -> bool:
    if fact.predicate in _HOLDING:
        if wanted.holds and not _names(wanted, fact):
            return False
        if wanted.endings and not set(wanted.words) <= set(stems(f"{fact.text} {fact.predicate}")):
            return False  # it speaks of the thing, and not of what is asked about it
    if wanted.object is None or predicate_of(fact.predicate).values == "one":
        return True
    asked, own = set(stems(wanted.object)), set(stems(fact.object))
    return bool(asked) and (asked <= own or own <= asked) and bool(own)


def _right_sign(wanted: Wanted, fit: Sequence[StoredFact]) -> list[StoredFact]:
    """What is so, or what is not where that is asked for. Of one value at a time, that it is not so answers too."""
    if wanted.yes_or_no:
        return list(fit)
    right = [one for one in fit if one.negated == wanted.negated]
    if right or not fit:
        return right
    predicate = predicate_of(fit[0].predicate)
    return list(fit) if predicate.values == "one" or predicate.denials else []


def _share_words(wanted: Wanted, facts: Sequence[StoredFact]) -> list[tuple[StoredFact, float]]:
    asked = set(wanted.words)
    found = [one for one in facts if asked <= set(stems(f"{one.text} {one.predicate}"))]
    noted = [one for one in found if one.predicate == NOTED]
    if len(noted) > 1:
        newest = max(noted, key=lambda one: one.valid_from)
        found = [one for one in found if one.predicate != NOTED or one is newest]
    return sorted(((one, round(_BY_WORDS * one.confidence, 4)) for one in found), key=lambda pair: -pair[1])


def nearest(question: str, found: Sequence[tuple[StoredFact, float]], language: Language) -> list[tuple[StoredFact, float]]:
    """What comes nearest to a question that nothing answers: the newest fact of those that are as near, then what comes near
    too; a small embedder often puts the answer second or third. What became of it since comes before what was so.

    Args:
        found: facts, each with the cosine of its text and the question.

    Returns:
        Each fact with how sure it is that it answers, 0 to 1; empty where nothing is near.
    """
    asked = frozenset(stems(expand(question, language))) - _plain(language)

    def score(fact: StoredFact, cosine: float) -> float:
        shared = _SHARED * len(asked & set(stems(fact.text))) / len(asked) if asked else 0.0
        known = fact.predicate != NOTED and set(stems(fact.object)) <= asked  # it says no more than the question does
        return cosine + shared - (_SHARED if known else 0.0)

    fit = [one for one in found if one[0].subject != USER or all(sort.fits(question, one[0].object) for sort in language.sorts)]
    scored = sorted(((score(*one), one[0]) for one in fit), key=lambda one: -one[0])
    best = scored[0][0] if scored else 0.0
    if best < _NEAR:
        return []
    newest = max((fact for points, fact in scored if points >= best - _AS_NEAR), key=lambda fact: fact.valid_from)
    since = [
        fact
        for points, fact in scored
        if fact.valid_from > newest.valid_from and points >= best - _SINCE and tells_change(fact, language)
    ]
    first = max(since, key=lambda fact: fact.valid_from, default=newest)
    several = predicate_of(newest.predicate).values == "many" and newest.predicate != NOTED

    def belongs(fact: StoredFact, points: float) -> bool:
        turn = newest.evidence[-1].turn_id
        with_it = turn is not None and fact.evidence[-1].turn_id == turn and points >= best - _BESIDE
        alike = several and (fact.predicate, fact.subject) == (newest.predicate, newest.subject)
        return points >= best * _PART or with_it or alike

    others = [newest, *(fact for points, fact in scored if belongs(fact, points))]
    told = [first, *(fact for fact in dict.fromkeys(others) if fact is not first)]
    sure = _CLOSE_SURE if best >= _CLOSE else _FAIR_SURE if best >= _FAIR else _NEAR_SURE
    return [(fact, sure) for fact in told[:_MOST_NEAR]]


def tells_change(fact: StoredFact, language: Language) -> bool:
    """Whether a fact is a sentence that says that something is no longer as it was."""
    return fact.predicate == NOTED and language.holds("changes", expand(fact.object, language))


def names_of(subject: str, facts: Sequence[StoredFact]) -> tuple[str, ...]:
    """What else stands for a subject, by the user's relations: a wife's name for `user's wife`, and the other way round."""
    own = f"{USER}'s "
    plain = normalize(subject)
    found = [subject]
    for one in facts:
        relation = predicate_of(one.predicate).name.removesuffix(IS)
        if one.kind is not FactKind.RELATION or one.negated or one.subject != USER or not is_relation(relation):
            continue
        if plain.startswith(own) and relation in related(plain.removeprefix(own)):
            found.extend((one.object, f"{own}{relation}"))
        elif normalize(one.object) == plain:
            found.append(f"{own}{relation}")
    return tuple(dict.fromkeys(found))
