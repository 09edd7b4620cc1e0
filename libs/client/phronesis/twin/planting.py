"""Taking things out of strands, each time with the question that has to find it, and with its right answer.

Each planting has a strand of its own, so that nothing but what it takes out is missing there. Beside the question that finds
the gap it gives one that looks alike and has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from .questions import Gap, Place, Question
from .shape import CHAINS, CODES, LINKS, Hop
from .strands import Strand

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
