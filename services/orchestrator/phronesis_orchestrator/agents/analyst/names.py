"""Names in a question, found in the twin by parts of them, and the twin as the analyst asks it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from typing import Any

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.memory import RECALL, ItemKind, Recall
from phronesis_contracts.twin import (
    DIAGNOSE_GAPS,
    FIND_ENTITIES,
    MAX_ROWS,
    RUN_CHAIN,
    SURVEY,
    ChainRun,
    DiagnoseGaps,
    Entity,
    FindEntities,
    Gap,
    GapQuestion,
    GroupBy,
    Level,
    NodeRef,
    RunChain,
    Survey,
    Surveyed,
)

from ...turns.ports import Neighbours
from .reading import Declined, Reading
from .vocabulary import folded, phrases

MAX_PAGES = 6
"""Pages of a list that one answer reads at most."""


class TooMany(Exception):
    """A list is longer than one answer reads."""


@dataclass
class Twin:
    """Asks on behalf of one caller, for one answer."""

    neighbours: Neighbours
    who: Principal
    statements: list[str] = field(default_factory=list)

    async def survey(self, question: Survey) -> Surveyed:
        """Count, add up, group or list."""
        found = await self.neighbours.ask(self.who, SURVEY, question)
        if found.statement not in self.statements:
            self.statements.append(found.statement)
        return found

    async def every(self, question: Survey) -> list[dict[str, Any]]:
        """All rows of a list, page by page.

        Raises:
            TooMany: it has more than 3,000.
        """
        rows: list[dict[str, Any]] = []
        after: str | None = None
        for _ in range(MAX_PAGES):
            page = await self.survey(question.model_copy(update={"measure": "list", "limit": MAX_ROWS, "after": after}))
            rows += page.rows
            after = page.next
            if after is None:
                return rows
        raise TooMany

    async def years(self, type: str) -> tuple[int, ...]:
        """The years in which there is anything of a type, oldest first."""
        found = await self.survey(Survey(type=type, group_by=(GroupBy(property="year"),)))
        return tuple(sorted(int(row["group"]) for row in found.rows if row["group"] is not None))

    async def entities(self, text: str, types: tuple[str, ...] = (), limit: int = 50) -> tuple[Entity, ...]:
        """What has `text` in its name."""
        request = FindEntities(text=text[:300], types=types, limit=limit)
        return (await self.neighbours.ask(self.who, FIND_ENTITIES, request)).entities

    async def meant(self, text: str) -> tuple[str, ...]:
        """Names of the nodes whose texts are nearest in meaning."""
        recall = Recall(query=text[:1000], limit=5, kinds=(ItemKind.NODE,))
        found = await self.neighbours.ask(self.who, RECALL, recall)
        return tuple(dict.fromkeys(item.title for item in found.items if item.title))

    async def chain(self, chain: str, year: int, level: Level, type: str, start: str) -> ChainRun:
        """Walk a chain from one node of it to its end."""
        question = RunChain(chain=chain, year=year, level=level, start=start, start_type=type)
        run = await self.neighbours.ask(self.who, RUN_CHAIN, question)
        self.statements.append(run.statement)
        return run

    async def gaps(self, questions: tuple[GapQuestion, ...]) -> tuple[Gap, ...]:
        """What is missing, of up to 200 questions."""
        return (await self.neighbours.ask(self.who, DIAGNOSE_GAPS, DiagnoseGaps(questions=questions))).gaps

    @property
    def executed(self) -> str | None:
        """What was read, for the record of the answer (N-066)."""
        return "; ".join(self.statements) or None


def ref(type: str, id: str, year: int) -> NodeRef:
    """A node by its three parts."""
    return NodeRef(type=type, id=id, year=year)


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


MAX_PROBES = 10
"""Searches by name that one question may cost."""
_PART_OF_NAME = frozenset(
    """type dimension category department rating number year measure text status value amount scope joined date unit trend
    change""".split()
)
_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{2,120})[\"”»]|(?<!\w)['‘]([^'‘’]{3,120})['’](?!\w)")


class Names:
    """Finds the names of one question."""

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._probes = 0

    async def resolve(self, reading: Reading, needed: bool) -> Reading:
        """The reading with its names found.

        Args:
            reading: the question.
            needed: whether the question makes no sense without a name, so that words with another meaning may be one.

        Raises:
            Declined: several things fit, and the user has to say which.
        """
        tried: set[int] = set()
        while run := _first_run(reading, tried):
            tried.update(range(*run))
            fit = await self._fitting(reading, *run)
            if fit is not None:
                reading = reading.with_name(fit[1], fit[2], fit[0])
        if not reading.has("entity"):
            reading = await self._from_known_words(reading, needed)
        return reading

    async def suggestions(self, words: str) -> tuple[str, ...]:
        """Names near in meaning to words that nothing explains; none while memory is away."""
        try:
            return await self._twin.meant(words)
        except ServiceError:
            return ()

    async def _fitting(self, reading: Reading, at: int, end: int) -> tuple[Named, int, int] | None:
        wide = _widened(reading, at, end)
        for probe in _probes(reading, wide, (at, end)):
            if self._probes >= MAX_PROBES:
                return None
            self._probes += 1
            found = await self._twin.entities(probe)
            fits = [fit for entity in found if (fit := laid(reading, entity, at, end)) is not None]
            if fits:
                return chosen(fits, reading)
        return None

    async def _from_known_words(self, reading: Reading, needed: bool) -> Reading:
        for at, end in _spans(reading):
            if not needed and not _written_as_a_name(reading, at, end):
                continue
            found = await self._twin.entities(reading.words(at, end))
            said = folded(reading.words(at, end))
            fits = [Fit(one, at, end, True) for one in found if folded(one.name) == said and _is_no_group(one)]
            if fits:
                named, at, end = chosen(fits, reading)
                return reading.with_name(at, end, named)
        return reading


def _is_no_group(entity: Entity) -> bool:
    """Whether it is more than a category or a department's share of one, whose names are ordinary words of a question."""
    return entity.type != "SectorGovEntity" and (entity.type != "EntityProject" or entity.level is Level.L3)


def quoted(text: str) -> tuple[str, ...]:
    """What stands in quotation marks."""
    return tuple(one or two for one, two in _QUOTED.findall(text))


def _first_run(reading: Reading, tried: set[int]) -> tuple[int, int] | None:
    waiting = [at for at in reading.left if at not in tried]
    if not waiting:
        return None
    end = waiting[0] + 1
    while end in waiting:
        end += 1
    return waiting[0], end


def _widened(reading: Reading, at: int, end: int) -> tuple[int, int]:
    """The run with the known words next to it that may be part of a name."""
    part = {n for item in reading.items if item.kind in _PART_OF_NAME for n in range(item.at, item.end)} | set(reading.left)
    while at - 1 in part:
        at -= 1
    while end in part:
        end += 1
    return at, end


def _probes(reading: Reading, wide: tuple[int, int], run: tuple[int, int]) -> list[str]:
    """What to search for: the whole, then its words, then the ends of its longest word, where a slip may be between them."""
    words = sorted((piece.text for piece in reading.pieces[run[0] : run[1]] if len(piece.text) > 1), key=len, reverse=True)
    probes = [reading.words(*wide), reading.words(*run), *words[:3]]
    if words and len(words[0]) >= 7:
        probes += [words[0][:4], words[0][-4:]]
    return list(dict.fromkeys(probe for probe in probes if len(probe) > 1))


def _spans(reading: Reading) -> list[tuple[int, int]]:
    """Runs of known words that may be a name as a whole, with small words inside; the longest first."""
    part = sorted({n for item in reading.items if item.kind in _PART_OF_NAME for n in range(item.at, item.end)})
    small = {n for item in reading.of("small", "followup") for n in range(item.at, item.end)}
    spans: list[tuple[int, int]] = []
    for n in part:
        if spans and set(range(spans[-1][1], n)) <= small and n - spans[-1][1] <= 2:
            spans[-1] = (spans[-1][0], n + 1)
        else:
            spans.append((n, n + 1))
    return sorted(spans, key=lambda span: span[0] - span[1])[:3]


def _written_as_a_name(reading: Reading, at: int, end: int) -> bool:
    return end - at > 1 and sum(piece.text[0].isupper() for piece in reading.pieces[at:end]) > 1


def with_quotes(reading: Reading, text: str) -> Reading:
    """The reading in which words in quotation marks are a name and nothing else."""
    spans = [(text.find(part), text.find(part) + len(part)) for part in quoted(text)]
    inside = {n for n, piece in enumerate(reading.pieces) for start, end in spans if start <= piece.start and piece.end <= end}
    kept = tuple(item for item in reading.items if not set(range(item.at, item.end)) & inside)
    return Reading(reading.pieces, kept, tuple(sorted({*reading.left, *inside})))


def spelt(reading: Reading) -> Reading:
    """The reading with slips of the pen in known words put right."""
    words = [key[0] for key in phrases() if len(key) == 1 and len(key[0]) > 5]
    for at in reading.left:
        said = reading.pieces[at].folded
        near = get_close_matches(said, words, n=1, cutoff=0.88) if len(said) > 5 else []
        if near and near[0][0] == said[0]:
            reading = reading.explaining(at, phrases()[(near[0],)][0])
    return reading
