"""How names of the twin lie on the words of a question, and which of several is meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from phronesis_contracts.graph import Level
from phronesis_contracts.twin import Entity

from .problems import Declined
from .reading import Reading
from .tokens import folded

MAX_CHOICES = 8
"""Candidates that the user is shown."""


GENERIC = frozenset("programme program project scheme portfolio the and of for".split())
"""Words of a name that tell nothing apart."""


@dataclass(frozen=True)
class Named:
    """One thing of the twin under all its ids: an id may be spelt differently in another year."""

    type: str
    ids: tuple[str, ...]
    name: str
    level: Level
    years: tuple[int, ...]


@dataclass(frozen=True)
class Fit:
    """How a name lies on the question's words."""

    entity: Entity
    at: int
    end: int
    whole: bool
    """Whether every telling word of the name was said."""
    sure: bool = True
    """Whether enough of it was said: two telling words, half of them, or its short form in capitals."""


def same(entities: list[Entity]) -> tuple[Named, ...]:
    """Entities put together that are one thing: alike in id or name but for case, of one type, in different years."""
    groups: list[list[Entity]] = []
    for entity in entities:
        for group in groups:
            if any(_alike(entity, other) for other in group):
                group.append(entity)
                break
        else:
            groups.append([entity])
    return tuple(_merged(group) for group in groups)


def _alike(one: Entity, other: Entity) -> bool:
    if one.type != other.type:
        return False
    if one.id.casefold() == other.id.casefold():
        return True
    return folded(one.name) == folded(other.name) and not set(one.years) & set(other.years)


def _merged(group: list[Entity]) -> Named:
    newest = max(group, key=lambda entity: max(entity.years, default=0))
    ids = tuple(dict.fromkeys(entity.id for entity in group))
    return Named(newest.type, ids, newest.name, newest.level, tuple(sorted({year for one in group for year in one.years})))


def laid(reading: Reading, entity: Entity, at: int, end: int) -> Fit | None:
    """How the name lies over the run, and on over the words next to it; `None` where it does not cover the run."""
    name = folded(entity.name)
    said = [piece.folded for piece in reading.pieces]
    if said[at] == entity.id.casefold():
        return Fit(entity, at, at + 1, True)
    best: Fit | None = None
    for start, word in enumerate(name):
        if not _like(said[at], word):
            continue
        right, used = _extended(said, name, at, start, 1)
        left, before = _extended(said, name, at, start, -1)
        if right < end - 1:
            continue
        telling = {n for n, one in enumerate(name) if one not in GENERIC}
        met = telling & (used | before)
        sure = len(met) > 1 or 2 * len(met) >= len(telling) or any(name[n] in _capitals(entity.name) for n in met)
        fit = Fit(entity, left, right + 1, telling <= met, sure)
        if best is None or (fit.end - fit.at, fit.whole) > (best.end - best.at, best.whole):
            best = fit
    return best


def _capitals(name: str) -> set[str]:
    """Words of a name that are written in capitals alone, in a name that is not."""
    return {word.casefold() for word in re.findall(r"\b[A-Z][A-Z0-9]+\b", name)} if name.upper() != name else set()


def _extended(said: list[str], name: tuple[str, ...], at: int, start: int, step: int) -> tuple[int, set[int]]:
    """How far the name goes on from one shared word, one way; words of the name may be left out, none of the question."""
    used, place = {start}, start
    while 0 <= at + step < len(said):
        ahead = range(place + step, len(name)) if step > 0 else range(place + step, -1, -1)
        found = next((n for n in ahead if _like(said[at + step], name[n])), None)
        if found is None:
            break
        at, place = at + step, found
        used.add(found)
    return at, used


def _like(said: str, word: str) -> bool:
    if said == word:
        return True
    if min(len(said), len(word)) < 5 or said[0] != word[0] or said.isdigit():
        return False
    return SequenceMatcher(None, said, word).ratio() >= 0.82


def chosen(fits: list[Fit], reading: Reading) -> tuple[Named, int, int]:
    """The one thing that is meant, and where its name lies.

    Raises:
        Declined: several fit as well, or too little of the name was said; the user has to say which.
    """
    projects = {fit.entity.id for fit in fits if fit.entity.type == "EntityProject"}
    # The portfolio's risks bear the number of their project, and its name in theirs.
    fits = [fit for fit in fits if fit.entity.type != "EntityRisk" or fit.entity.id not in projects]
    longest = max(fit.end - fit.at for fit in fits)
    fits = [fit for fit in fits if fit.end - fit.at == longest]
    fits = [fit for fit in fits if fit.whole] or fits
    things = same([fit.entity for fit in fits])
    if len(things) == 1 and any(fit.sure for fit in fits):
        return things[0], fits[0].at, fits[0].end
    said = reading.words(fits[0].at, fits[0].end)
    shown = things[:MAX_CHOICES]
    choices = "\n".join(f"- {thing.name}" for thing in shown)
    more = f"\n\nThere are {len(things) - len(shown)} more." if len(things) > len(shown) else ""
    rows: tuple[dict[str, object], ...] = tuple({"name": thing.name} for thing in shown)
    asked = f"Several things are called “{said}”. Which one do you mean?" if len(things) > 1 else f"“{said}”: do you mean this?"
    raise Declined(f"{asked}\n\n{choices}{more}", mode="E", rows=rows)
