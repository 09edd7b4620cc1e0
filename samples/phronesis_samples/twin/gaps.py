"""Gaps of the made-up twin: what is taken out of a strand, and the question that has to find it, with its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random

from phronesis_contracts.twin import Level

from .strands import CHAINS, CODES, LINKS, Hop, Link, Strand


@dataclass(frozen=True)
class Question:
    """A gap question with its right answer; `type` is `None` where nothing is missing."""

    question: str
    node: str
    year: int
    level: Level
    other: str | None = None
    chain: str | None = None
    relationship: str | None = None
    type: str | None = None
    last_node: str | None = None
    missing_step: str | None = None


@dataclass(frozen=True)
class Gap:
    """What has to be found."""

    type: str
    missing_step: str
    last_node: str | None = None


@dataclass(frozen=True)
class Place:
    """Where a gap is planted: the strand, the year that is asked about, and all years."""

    strand: Strand
    year: int
    years: Sequence[int]
    random: Random

    @property
    def elsewhere(self) -> int:
        """Another year."""
        return self.random.choice([year for year in self.years if year != self.year])

    def ask(
        self,
        id: str,
        type: str,
        gap: Gap | None = None,
        *,
        year: int | None = None,
        level: Level | None = None,
        other: str | None = None,
        chain: str | None = None,
        relationship: str | None = None,
    ) -> Question:
        """A question about the strand's node of a type, in the place's year and on its level where no others are stated."""
        year, strand = year or self.year, self.strand
        question = Question(
            f"{id}-{strand.number:05d}", strand.key(type, year), year, level or strand.level, other, chain, relationship
        )
        return replace(question, **asdict(gap)) if gap else question

    def cut(self, links: Sequence[Link], years: Sequence[int]) -> None:
        """Take relationships out."""
        self.strand.cut.update((link, year) for link in links for year in years)

    def last(self, hop: Hop) -> str:
        """The node at which a walk stops that does not get beyond a step: of several the first by key."""
        return min(self.strand.key(type, self.year) for type in hop.sources)

    def another_level(self) -> Level:
        """A level that the strand is not on."""
        return self.random.choice([level for level in Level if level is not self.strand.level])

    def chain(self, fits: Callable[[Hop], bool] = lambda hop: True) -> tuple[str, tuple[Hop, ...], int]:
        """Any chain, and the number of any of its steps that `fits`."""
        name = self.random.choice(list(CHAINS))
        hops = CHAINS[name]
        return name, hops, self.random.choice([at for at, hop in enumerate(hops) if fits(hop)])


Planter = Callable[[Place], list[Question]]


def _chain_break(place: Place) -> list[Question]:
    """A step is missing in every year, for good."""
    name, hops, at = place.chain()
    place.cut(hops[at].links, place.years)
    start = place.random.choice([hop.sources[0] for hop in hops[: at + 1] if len(hop.sources) == 1])
    gap = Gap("ChainBreak", hops[at].text, place.last(hops[at]))
    asked = [place.ask("break", start, gap, chain=name)]
    for other, its in CHAINS.items():
        if not {link for hop in its for link in hop.links} & set(hops[at].links):
            asked.append(place.ask(f"beside-the-break-{other}", its[0].sources[0], chain=other))
            break
    return asked


def _moved_midway(place: Place) -> list[Question]:
    """The node that should follow stands at another level in all years, and nothing joins it: the chain breaks before it."""
    name, hops, at = place.chain(lambda hop: len(hop.targets) == 1 and hop.targets[0] != "SectorObjective")
    place.strand.moved[hops[at].targets[0]] = place.another_level()
    gap = Gap("ChainBreak", hops[at].text, place.last(hops[at]))
    return [place.ask("break-before-moved", hops[0].sources[0], gap, chain=name)]


def _absent_node(place: Place) -> list[Question]:
    """A node that other years have."""
    type = place.random.choice(list(CODES))
    place.strand.absent.add((type, place.year))
    gap = Gap("TemporalGap", place.strand.key(type, place.year))
    return [place.ask("absent", type, gap), place.ask("present", type, year=place.elsewhere)]


def _absent_start(place: Place) -> list[Question]:
    """A chain whose first node only other years have."""
    name, hops, _ = place.chain()
    start = hops[0].sources[0]
    place.strand.absent.add((start, place.year))
    gap = Gap("TemporalGap", place.strand.key(start, place.year))
    return [place.ask("no-start", start, gap, chain=name), place.ask("start", start, year=place.elsewhere, chain=name)]


def _absent_midway(place: Place) -> list[Question]:
    """A chain that other years have whole, and the asked one lacks a node of."""
    name, hops, at = place.chain(lambda hop: len(hop.targets) == 1 and hop.targets[0] != "SectorObjective")
    place.strand.absent.add((hops[at].targets[0], place.year))
    return _in_other_years(place, name, hops, at, "stop")


def _absent_hop(place: Place) -> list[Question]:
    """A chain that other years have whole, and the asked one lacks a relationship of."""
    name, hops, at = place.chain()
    place.cut(hops[at].links, [place.year])
    return _in_other_years(place, name, hops, at, "pause")


def _in_other_years(place: Place, name: str, hops: Sequence[Hop], at: int, id: str) -> list[Question]:
    gap = Gap("TemporalGap", hops[at].text, place.last(hops[at]))
    start = hops[0].sources[0]
    return [place.ask(id, start, gap, chain=name), place.ask(f"no-{id}", start, year=place.elsewhere, chain=name)]


def _absent_pair(place: Place) -> list[Question]:
    """Two nodes that other years join."""
    return _pair(place, "TemporalGap", [place.year])


def _missing_pair(place: Place) -> list[Question]:
    """Two nodes that should be joined and never are."""
    return _pair(place, "DirectRelationshipMissing", place.years)


def _pair(place: Place, type: str, years: Sequence[int]) -> list[Question]:
    link = place.random.choice(LINKS)
    between = [each for each in LINKS if {each.source, each.target} == {link.source, link.target}]
    place.cut(between, years)
    other = place.strand.key(link.target, place.year)
    step = f"{' | '.join(sorted(each.name for each in between))} -> {other}"
    gap = Gap(type, step, place.strand.key(link.source, place.year))
    asked = [place.ask("pair", link.source, gap, other=other)]
    for near in LINKS:
        if near not in between and link.source in (near.source, near.target):
            asked.append(place.ask("beside-the-pair", near.source, other=place.strand.key(near.target, place.year)))
            break
    return asked


def _missing_relationship(place: Place) -> list[Question]:
    """A node without any relationship of a type that it should have; those of other types it has."""
    link = place.random.choice(LINKS)
    same = [each for each in LINKS if (each.source, each.name) == (link.source, link.name)]
    place.cut(same, place.years)
    step = f"{link.name} -> {' | '.join(each.target for each in same)}"
    gap = Gap("DirectRelationshipMissing", step, place.strand.key(link.source, place.year))
    asked = [place.ask("lack", link.source, gap, relationship=link.name)]
    for near in LINKS:
        if near.source == link.source and near.name != link.name:
            asked.append(place.ask("no-lack", near.source, relationship=near.name))
            break
    return asked


def _moved_node(place: Place) -> list[Question]:
    """A node that stands at another level."""
    type, level = place.random.choice(list(CODES)), place.another_level()
    place.strand.moved[type] = level
    gap = Gap("LevelMismatch", place.strand.key(type, place.year))
    return [place.ask("level", type, gap), place.ask("right-level", type, level=level)]


def _moved_start(place: Place) -> list[Question]:
    """A chain whose first node stands at another level."""
    name, hops, _ = place.chain()
    start = hops[0].sources[0]
    place.strand.moved[start] = place.another_level()
    gap = Gap("LevelMismatch", place.strand.key(start, place.year))
    return [place.ask("level-of-start", start, gap, chain=name)]


def _moved_other(place: Place) -> list[Question]:
    """Two nodes of which the second stands at another level."""
    link = place.random.choice(LINKS)
    place.strand.moved[link.target] = place.another_level()
    node, other = (place.strand.key(type, place.year) for type in (link.source, link.target))
    gap = Gap("LevelMismatch", other, node)
    return [place.ask("level-of-other", link.source, gap, other=other)]


PLANTERS: tuple[Planter, ...] = (
    _chain_break, _absent_node, _moved_node, _missing_pair, _absent_hop, _moved_other, _missing_relationship,
    _absent_pair, _moved_midway, _absent_start, _moved_start, _absent_midway,
)  # fmt: skip
"""In such an order that the first four plant one gap of each type."""


def plant(strand: Strand, planter: Planter, years: Sequence[int], random: Random) -> list[Question]:
    """Take something out of a whole strand; the questions about it, the first of which finds the gap."""
    return planter(Place(strand, random.choice(years), years, random))


def without_gap(strand: Strand, years: Sequence[int], random: Random) -> list[Question]:
    """Questions about a whole strand: a chain, a pair and a node."""
    place = Place(strand, random.choice(years), years, random)
    name, hops, _ = place.chain()
    link = random.choice(LINKS)
    return [
        place.ask("whole", hops[0].sources[0], chain=name),
        place.ask("joined", link.source, other=strand.key(link.target, place.year)),
        place.ask("there", random.choice(list(CODES))),
    ]
