"""Facts in words: to the one whom they are about, and as memory keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from phronesis_contracts import Label

from ..values import CLAIM, NOBODY, tell_claim
from .language import Language
from .predicates import IS, is_relation, predicate_of

USER = "user"
"""The subject that stands for the one who spoke."""


class Stated(Protocol):
    """What can be put into words: a statement, or a fact."""

    @property
    def subject(self) -> str: ...
    @property
    def predicate(self) -> str: ...
    @property
    def object(self) -> str: ...
    @property
    def negated(self) -> bool: ...


def sentence_of(one: Stated, language: Language) -> str:
    """A statement as a sentence about somebody, as memory keeps it."""
    told = language.raw["words"]
    return _sentence(one, language, _who(one.subject, language, told["user"], told["relation_of_user"]), you=False)


def words_to_user(one: Stated, language: Language, labels: Sequence[Label] = ()) -> str:
    """A fact as a sentence to the user whom it is about; as what its source says, where that is somebody else."""
    told = language.raw["words"]
    return tell_claim(_words_to_user(one, language), labels, told.get("claimed", CLAIM), told.get("nobody", NOBODY))


def _words_to_user(one: Stated, language: Language) -> str:
    told = language.raw["words"]
    if one.subject == USER:
        return _sentence(one, language, "", you=True)
    return _sentence(one, language, _who(one.subject, language, "", told["your_relation"]), you=False)


def _who(subject: str, language: Language, user: str, of_user: object) -> str:
    if subject == USER:
        return user
    own = f"{USER}'s "
    return _related(subject.removeprefix(own), language, of_user) if subject.startswith(own) else subject


def _related(relation: str, language: Language, told: object) -> str:
    """`your wife`, with the form that goes with the relation's gender where the language has several."""
    known = language.word_for(relation)
    word, gender = (known.word, known.gender) if known else (relation, "")
    template = told.get(gender or "m", "{rel}") if isinstance(told, Mapping) else str(told)
    return str(template).replace("{rel}", word)


def _sentence(one: Stated, language: Language, who: str, *, you: bool) -> str:
    told = language.raw["words"]
    predicate = predicate_of(one.predicate).name
    noun = one.predicate.removesuffix(IS)
    form = ("you" if you else "other") + ("_not" if one.negated else "")
    if predicate in told["predicates"]:
        template = told["predicates"][predicate][form]
    elif predicate.endswith(IS) and is_relation(predicate.removesuffix(IS)) and (one.subject == USER):
        template = told["relation"]["not" if one.negated else "say"]
        who = _related(predicate.removesuffix(IS), language, told["your_relation" if you else "relation_of_user"])
    elif predicate.endswith(IS):
        template = told["noun"][form]
    else:
        template, noun = told["open"][form], predicate
    if "{a}" in template:
        template = template.replace("{a}", _article(one.object, told["a"]))
    filled = template.replace("{who}", who).replace("{noun}", noun).replace("{what}", one.object)
    return f"{' '.join(filled.split())}."


def _article(thing: str, told: Mapping[str, str]) -> str:
    """The article that goes before a thing: by its first letter, none before a capital."""
    if thing[:1].isupper():
        return ""
    return next((article for letters, article in told.items() if thing[:1] in letters and letters != "else"), told["else"])
