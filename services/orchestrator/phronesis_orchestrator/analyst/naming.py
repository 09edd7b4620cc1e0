"""Names in a question: found in the twin by parts of them, with slips of the pen, and never by a guess."""

from __future__ import annotations

import re

from phronesis_contracts import ServiceError
from phronesis_contracts.graph import Level
from phronesis_contracts.twin import Entity

from .fitting import Fit, Named, chosen, laid
from .reading import Reading
from .tokens import folded
from .twin import Twin

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
