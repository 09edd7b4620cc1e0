"""How well a name answers to a text: the whole name first, then parts of it."""

from __future__ import annotations

from dataclasses import dataclass

from phronesis_contracts.twin import Entity, Level

_WORDS = 12
"""Words of a text that are looked for at most; a sentence has its names among them."""
_SHORTEST = 3
"""Letters of a word, or of a name inside a sentence, that tell anything."""


@dataclass(frozen=True)
class NamedNode:
    """A node that a text may mean."""

    type: str
    id: str
    name: str
    year: int
    level: Level
    aliases: tuple[str, ...] = ()


def fold(text: str) -> str:
    """Without case, and with single spaces."""
    return " ".join(text.split()).lower()


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text that a name may hold all of."""
    found = ("".join(letter if letter.isalnum() else " " for letter in fold(text))).split()
    return tuple(dict.fromkeys(word for word in found if len(word) >= _SHORTEST))[:_WORDS]


def score(text: str, named: NamedNode) -> float:
    """1 for the whole name, id or alias, less for a part of a name, least for a name inside a sentence; 0 for neither."""
    wanted, id = fold(text), fold(named.id)
    names = tuple(fold(name) for name in (named.name, *named.aliases))
    if wanted == id or wanted in names:
        return 1.0
    if best := max((_score_of_part(wanted, text, name) for name in names), default=0.0):
        return best
    inside = max((len(each) for each in (*names, id) if _contains_words(each, wanted)), default=0)
    return round(0.3 * inside / len(wanted), 3)


def _score_of_part(wanted: str, text: str, name: str) -> float:
    if wanted in name:
        return round(0.6 + 0.35 * len(wanted) / len(name), 3)
    if (its := split_words(text)) and all(word in name for word in its):
        return round(0.3 + 0.3 * min(1.0, sum(map(len, its)) / len(name)), 3)
    return 0.0


def find_best(text: str, found: list[NamedNode], limit: int) -> tuple[Entity, ...]:
    """The things that the nodes stand for, the best first; each has the name of its latest year that fits."""
    years: dict[tuple[str, str], list[NamedNode]] = {}
    for named in found:
        years.setdefault((named.type, named.id), []).append(named)
    entities = [entity for of_one in years.values() if (entity := _to_entity(text, of_one)).score > 0]
    return tuple(sorted(entities, key=lambda entity: (-entity.score, entity.name, entity.type, entity.id))[:limit])


def _to_entity(text: str, of_one: list[NamedNode]) -> Entity:
    like = max(of_one, key=lambda named: (score(text, named), named.year))
    return Entity(
        type=like.type,
        id=like.id,
        name=like.name,
        aliases=like.aliases,
        level=like.level,
        years=tuple(sorted({named.year for named in of_one})),
        score=score(text, like),
    )


def _contains_words(name: str, text: str) -> bool:
    at = text.find(name) if len(name) >= _SHORTEST else -1
    if at < 0:
        return False
    before, after = text[at - 1 : at] if at else "", text[at + len(name) : at + len(name) + 1]
    return not before.isalnum() and not after.isalnum()
