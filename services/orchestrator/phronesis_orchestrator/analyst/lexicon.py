"""The words that rules understand, and what each means. A word that is not here has to be part of a name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from phronesis_contracts.graph import Level

from .departments import DEPARTMENTS, ONLY_IN_CAPITALS
from .measures import CATEGORIES
from .ontology import LEVELS, THINGS, plural
from .tokens import folded
from .vocabulary import PHRASES, PROJECTS, SMALL, SYNONYMS


@dataclass(frozen=True)
class Meaning:
    """What a phrase means: its kind, and the value of that kind."""

    kind: str
    value: Any = None


@cache
def phrases() -> dict[tuple[str, ...], tuple[Meaning, ...]]:
    """Every phrase, as folded words, with the meanings that it may have; the first is the usual one."""
    found: dict[tuple[str, ...], tuple[Meaning, ...]] = {}

    def add(phrase: str, meaning: Meaning) -> None:
        key = folded(phrase)
        if key and meaning not in found.get(key, ()):
            found[key] = (*found.get(key, ()), meaning)

    for (kind, value), listed in PHRASES.items():
        for phrase in listed.split("|"):
            add(phrase, Meaning(kind, value))
    for name, longer in DEPARTMENTS.items():
        for phrase in (name, *longer):
            add(phrase, Meaning("department", name))
    for name in CATEGORIES:
        for phrase in (name, *SYNONYMS[name]):
            add(phrase, Meaning("category", name))
    for noun in PROJECTS:
        add(noun, Meaning("type", ("EntityProject", Level.L3)))
    _add_things(add)
    for word in SMALL:
        add(word.rstrip("?"), Meaning("small"))
    return found


def _add_things(add: Any) -> None:
    for type, thing in THINGS.items():
        for noun in (thing.plural, thing.singular, *thing.also):
            if type != "EntityProject":
                level = LEVELS[thing.levels.index(noun)] if noun in thing.levels else None
                level = level or (LEVELS[2] if thing.singular == thing.levels[2] and noun == thing.plural else None)
                add(noun, Meaning("type", (type, level)))
        for level, noun in zip(LEVELS, thing.levels, strict=True):
            for word in (noun, plural(noun)):
                add(word, Meaning("type", (type, level)))


def longest() -> int:
    """Words of the longest phrase."""
    return max(map(len, phrases()))


def in_capitals_only(name: str, written: str) -> bool:
    """Whether a department's short name is meant, and not an ordinary word."""
    return name not in ONLY_IN_CAPITALS or written == name or len(written) > 2
