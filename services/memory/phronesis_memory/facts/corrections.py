"""Corrections: what a user means in place of what they said before, in the same conversation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from phronesis_contracts.facts import Statement

from ..words.analysis import stems
from .decision import StoredFact
from .extraction import sentences
from .language import Language, expand, language_of, restore
from .predicates import normalize, predicate_of
from .wording import sentence_of

_WORDS = 8
"""Words that are put in the place of others at most."""
_SURE = 0.9
_DASHES = str.maketrans("–—", "--")
_FIGURE = re.compile(r"(?<![\w.,])\d[\d.,]*\d(?![\w])|(?<![\w.,])\d(?![\w.,])")
"""A figure that stands by itself: 22,000."""
_DAY = re.compile(r"\b\d{1,2}(?:st|nd|rd|th|\.)? (?:of )?(?P<word>[^\W\d]{3,})(?: \d{4})?\b|\b\d{4}-\d\d-\d\d\b")
"""What has the form of a day with its month, whose word has to be one."""


@dataclass(frozen=True)
class Correction:
    """What is meant, and in place of what, where that was said."""

    new: str
    old: str | None
    certain: bool = True
    """Whether the message can be nothing else; a bare `X, not Y` is one only where Y was said before."""


def find_correction(text: str, language: str | None = None) -> Correction | None:
    """The correction that a message is, if it is one."""
    spoken = language_of(text, language)
    for sentence in sentences(text[:400], spoken):
        if sentence.endswith("?"):
            return None
        plain = expand(sentence.translate(_DASHES).rstrip(" .!"), spoken)
        rest, led = _without_leads(f"{plain} ", spoken)
        for one in spoken.amends:
            if (one.lead and not led) or (match := one.pattern.fullmatch(rest)) is None:
                continue
            groups = match.groupdict()
            new, old = restore(groups.get("new") or groups.get("Name") or ""), restore(groups.get("old") or "")
            if new and len(new.split()) <= _WORDS and len(old.split()) <= _WORDS:
                return Correction(new, old or None, certain=not one.bare)
    return None


def _without_leads(text: str, language: Language) -> tuple[str, bool]:
    lead, led = language.any_of("correction_leads"), False
    while (found := lead.match(text)) and (rest := text[found.end() :].lstrip(" ,:!.-")):
        text, led = rest, True
    return text, led


def resolve(
    correction: Correction, said: Sequence[StoredFact], conversation_id: str, language: Language
) -> tuple[Statement, ...]:
    """What a correction states: that the one is so, and where both could be, that the other is not.

    Args:
        said: held facts that may be meant, those said last first. What was said in other conversations is meant only by what
            it said.

    Returns:
        Nothing where no fact, or more than one of the last message, can be meant.
    """
    positive = [one for one in said if not one.negated]
    if correction.old is None:
        positive = [one for one in positive if any(each.conversation_id == conversation_id for each in one.evidence)]
    meant = _meant(correction, positive, language)
    if meant is None:
        return ()
    fact, thing = meant
    right = _statement(fact, thing, language, negated=False)
    if predicate_of(fact.predicate).values in ("one", "topic"):
        return (right,)
    return right, _statement(fact, fact.object, language, negated=True)


def _meant(correction: Correction, said: Sequence[StoredFact], language: Language) -> tuple[StoredFact, str] | None:
    if correction.old is not None:
        whole = next((one for one in said if _same(correction.old, one.object)), None)
        if whole is not None:
            return whole, correction.new
        for one in said:
            if (part := _with_part(one.object, correction.old, correction.new)) is not None:
                return one, part
    last = _last_said(said)
    if correction.old is None:
        for one in last:
            if (swapped := _swapped(one.object, correction.new, language)) is not None:
                return one, swapped
    core = _core(correction.new, language)
    swaps = [(one, thing) for one in last if core and (thing := _swapped(one.object, core, language)) is not None]
    if len(swaps) == 1:  # we fly on 10 April, not the 9th; it was 8,900 with the trailer
        return swaps[0]
    if correction.old is not None:
        return None
    alike = [one for one in last if _shape(one.object) == _shape(correction.new)]
    return (alike[0], correction.new) if len(alike) == 1 else None


def _last_said(said: Sequence[StoredFact]) -> list[StoredFact]:
    """Those that were said in the newest message."""
    if not said:
        return []
    turn = said[0].evidence[-1].turn_id
    return [one for one in said if one.evidence[-1].turn_id == turn]


def _same(one: str, other: str) -> bool:
    return normalize(one) == normalize(other) or (bool(stems(one)) and stems(one) == stems(other))


def _with_part(thing: str, old: str, new: str) -> str | None:
    """`thing` with a part of it replaced; `None` where it has no such part."""
    found = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", thing, re.IGNORECASE)
    return thing[: found.start()] + new + thing[found.end() :] if found else None


def _swapped(thing: str, new: str, language: Language) -> str | None:
    """`thing` with one date, weekday, month or number in place of another."""
    if _is_day(new, language):
        dated = next((found for found in _DAY.finditer(thing) if _is_day(found[0], language)), None)
        if dated is not None:
            return thing[: dated.start()] + new + thing[dated.end() :]
        return None
    if _FIGURE.fullmatch(new):
        days = [found.span() for found in _DAY.finditer(thing) if _is_day(found[0], language)]
        found = [one for one in _FIGURE.finditer(thing) if not any(a <= one.start() < b for a, b in days)]
        return thing[: found[0].start()] + new + thing[found[0].end() :] if len(found) == 1 else None
    for group in language.raw.get("swaps") or ():
        if new.casefold() in group:
            for word in thing.split():
                if word.casefold().strip(",.") in group and len(thing.split()) > 1:
                    return _with_part(thing, word.strip(",."), new)
    return None


def _core(new: str, language: Language) -> str | None:
    """The day or the figure in what is meant, where it has one."""
    day = next((found[0] for found in _DAY.finditer(new) if _is_day(found[0], language)), None)
    figures = _FIGURE.findall(new)
    return day or (figures[0] if len(figures) == 1 else None)


def _is_day(text: str, language: Language) -> bool:
    """Whether a text is a day with its month: 14 May 2027, and not 4 Mill."""
    found = _DAY.fullmatch(text)
    if found is None or found["word"] is None:
        return found is not None
    return any(found["word"].casefold() in group for group in language.raw.get("swaps") or ())


def _shape(text: str) -> str:
    """What kind of text it is: a number, a name, or words."""
    if any(sign.isdigit() for sign in text):
        return "number"
    return "name" if text[:1].isupper() else "words"


def _statement(fact: StoredFact, thing: str, language: Language, *, negated: bool) -> Statement:
    made = Statement(
        kind=fact.kind,
        subject=fact.subject,
        predicate=fact.predicate,
        object=thing[:1_000],
        text="-",
        negated=negated,
        confidence=_SURE,
    )
    return made.model_copy(update={"text": sentence_of(made, language)[:2_000]})
