"""The planner of rules: a message becomes a plan by patterns of the language, or by words that all are explained."""

from __future__ import annotations

import re

from .composing import Composition, NotUnderstood
from .language import Language
from .lexicon import Lexicon
from .plan import AboutUser, Compose, Focus, Plan, Talk, Understood, Unknown
from .questions import compose
from .reading import Reading, read
from .references import NeedsMore, continue_plan, refer

_MENDED = 0.9
"""Certainty that is left for each misspelt word."""
_LEANS = 0.95


def understand(text: str, lexicon: Lexicon | None, focus: Focus, language: Language, *, personal: bool = True) -> Understood:
    """Understand one message.

    Args:
        text: what the user wrote.
        lexicon: the words of the twin; `None` where the caller may not read it, or it is away.
        focus: what the conversation is about.
        language: the language of the message.
        personal: whether it may be about the person; `False` once their facts were asked in vain.
    """
    text = " ".join(text.split())
    if (talk := language.recognise(text, "talk")) is not None:
        return Understood(plan=Talk(about=talk, text=text[:1_000]), language=language.name)
    if personal and (order := language.recognise(text, "user")) is not None and not _corrects_data(order, focus):
        about = AboutUser(action=order, text=text[:4_000], explicit=True)
        return Understood(plan=about, language=language.name)
    of_data = _of_data(text, lexicon, focus) if lexicon is not None else None
    if of_data is not None and lexicon is not None and isinstance(of_data.plan, Unknown):
        of_data = _last_question(text, lexicon, focus) or of_data
    if of_data is not None and not isinstance(of_data.plan, Unknown) and not (personal and _possessive(text, language)):
        return of_data
    if (task := language.recognise(text, "compose")) is not None:
        return Understood(plan=Compose(task=task, text=text[:4_000]), language=language.name)
    if personal and _about_user(text, language):
        question = text.rstrip().endswith("?") or _is_question(text, language)
        return Understood(
            plan=AboutUser(action="recall" if question else "remember", text=text[:4_000]), language=language.name
        )
    if of_data is not None:
        return of_data
    return Understood(plan=Unknown(reason="scope", words=text[:300]), language=language.name)


def _last_question(text: str, lexicon: Lexicon, focus: Focus) -> Understood | None:
    """The question of a message that says something else before it; `None` where that is not understood either."""
    parts = [part.strip() for part in re.split(r"(?<=[.!?:])\s+", text) if part.strip()]
    if len(parts) < 2 or len(parts[-1].split()) < 3:
        return None
    asked = _of_data(parts[-1], lexicon, focus)
    return asked if not isinstance(asked.plan, Unknown) else None


def _of_data(text: str, lexicon: Lexicon, focus: Focus) -> Understood:
    reading = read(text, lexicon)
    base, named, leans = refer(reading, focus)
    certainty = _MENDED ** len(reading.mended) * (_LEANS if leans else 1.0)
    notes = tuple(f"{wrong} → {right}" for wrong, right in reading.mended)

    def result(plan: Plan, sure: float, leant: bool, more: tuple[str, ...] = ()) -> Understood:
        sure = round(min(1.0, certainty * sure), 3)
        return Understood(plan=plan, language=lexicon.language.name, leans=leant, certainty=sure, notes=(*notes, *more))

    if isinstance(base, Unknown):
        return result(base, 1.0, True)
    try:
        continued = continue_plan(reading, lexicon, focus)
        if continued is not None:
            return result(continued, _LEANS, True)
    except (NotUnderstood, NeedsMore):
        pass
    made = Composition(reading, lexicon, focus, base=base, named=named)
    try:
        plan = compose(made)
    except NotUnderstood as problem:
        return result(problem.plan, 1.0, leans)
    return result(plan, made.certainty, leans, tuple(made.notes))


def _corrects_data(order: str, focus: Focus) -> bool:
    """Whether a correction is one of the question about the data before it."""
    return order == "correct" and focus.plan is not None


def _words(text: str, language: Language, kind: str) -> bool:
    said = [token.folded for token in language.tokens(text)]
    joined = f" {' '.join(said)} "
    return any(f" {word} " in joined for word in language.words.get(f"user.{kind}", ()))


def _possessive(text: str, language: Language) -> bool:
    """Whether a message is about what is the speaker's own."""
    own = language.words.get("user.question", ())[:2]
    said = {token.folded for token in language.tokens(text)}
    return bool(said & set(own))


def _about_user(text: str, language: Language) -> bool:
    return _words(text, language, "question") or _words(text, language, "statement")


def _is_question(text: str, language: Language) -> bool:
    tokens = language.tokens(text)
    first = language.phrases.get((tokens[0].stem,), ()) if tokens else ()
    return any(sense.kind in ("question_words", "count") for sense in first)


def reading_of(text: str, lexicon: Lexicon) -> Reading:
    """A message as the planner reads it, for the trace and for tests."""
    return read(" ".join(text.split()), lexicon)
