"""A made-up twin from a number of nodes and a seed, and its files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import TypeVar

from phronesis_contracts.twin import MAX_BATCH, Level, NodeRef, Upsert, UpsertNode, UpsertRelationship

from .gaps import PLANTERS, Question, plant, without_gap
from .strands import CODES, LINKS, Strand, Subjects, make_name, make_properties, whole_strands

T = TypeVar("T")

YEARS = (2024, 2025)
FEWEST = 400
"""Nodes; with fewer there is no room for gaps of all four types beside what is whole."""
_PLANTED = 0.45
"""Share of the strands in which a gap is planted."""
_BETWEEN = 6
"""Relationships from a whole strand to others of its level."""


@dataclass(frozen=True)
class Twin:
    """Nodes, relationships, and the questions about them."""

    nodes: tuple[UpsertNode, ...]
    relationships: tuple[UpsertRelationship, ...]
    questions: tuple[Question, ...]

    def batches(self) -> Iterator[Upsert]:
        """All of it, in the order in which it has to be written; to write it twice changes nothing.

        Like stands beside like: the fewer kinds a batch holds, the fewer statements write it.
        """
        for nodes in _parts(sorted(self.nodes, key=lambda node: node.type), MAX_BATCH):
            yield Upsert(nodes=tuple(nodes))
        for relationships in _parts(sorted(self.relationships, key=_kinds), 2 * MAX_BATCH):
            yield Upsert(relationships=tuple(relationships))


def generate(nodes: int, seed: int, years: Sequence[int] = YEARS) -> Twin:
    """A twin of 17 node types on three levels over some years, with gaps planted in it.

    Args:
        nodes: how many nodes in all.
        seed: the same number gives the same twin, on every machine.
        years: two or more.

    Raises:
        ValueError: there are too few nodes or years for gaps to be planted.
    """
    if nodes < FEWEST * len(years) // 2 or len(set(years)) < 2:
        raise ValueError(f"{FEWEST * len(years) // 2} nodes and 2 years are the least")
    random = Random(seed)
    strands = whole_strands(nodes // (len(CODES) * len(years)))
    questions = list(_plant_gaps(strands, years, random))
    made = list(_nodes(strands, years, random))
    whole = [strand for strand in strands if strand.whole]
    joined = list(_relationships(strands, whole, years, random))
    extra, their = _extras(whole, years, nodes - len(made))
    return Twin((*made, *extra), (*joined, *their), tuple(questions))


def _plant_gaps(strands: Sequence[Strand], years: Sequence[int], random: Random) -> Iterator[Question]:
    chosen = random.sample(strands, max(4, int(len(strands) * _PLANTED)))
    for number, strand in enumerate(chosen):
        yield from plant(strand, PLANTERS[number % len(PLANTERS)], years, random)
    for strand in strands:
        if strand.whole:
            yield from without_gap(strand, years, random)


def _nodes(strands: Sequence[Strand], years: Sequence[int], random: Random) -> Iterator[UpsertNode]:
    subjects = Subjects(random)
    for strand in strands:
        subject = subjects.of(strand.number)
        for year in years:
            for type in CODES:
                stated = make_properties(type, random)
                if strand.has(type, year):
                    level = strand.standing(type)
                    yield UpsertNode(
                        type=type,
                        id=strand.id(type),
                        year=year,
                        name=make_name(type, level, subject),
                        level=level,
                        properties=stated,
                    )


def _relationships(
    strands: Sequence[Strand], whole: Sequence[Strand], years: Sequence[int], random: Random
) -> Iterator[UpsertRelationship]:
    """Those inside strands, the hierarchy, and some from whole strands to whole ones, which add ways and close no gap."""
    by_level = {level: [strand for strand in whole if strand.level is level] for level in Level}
    for strand in strands:
        others = (
            [(random.choice(by_level[strand.level]), random.choice(LINKS)) for _ in range(_BETWEEN)] if strand.whole else []
        )
        for year in years:
            for link in strand.links(year):
                yield _relationship(link.name, _ref(strand, link.source, year), _ref(strand, link.target, year))
            for other, link in dict.fromkeys((other, link) for other, link in others if other is not strand):
                yield _relationship(link.name, _ref(strand, link.source, year), _ref(other, link.target, year))
            for type in CODES:
                if strand.parent and strand.joinable(type, year) and strand.parent.joinable(type, year):
                    yield _relationship("PARENT_OF", _ref(strand.parent, type, year), _ref(strand, type, year))


def _extras(whole: Sequence[Strand], years: Sequence[int], count: int) -> tuple[list[UpsertNode], list[UpsertRelationship]]:
    """As many further vendors of whole strands as are missing from the number of nodes that was asked for."""
    nodes, relationships = [], []
    for number in range(count):
        strand, year = whole[number % len(whole)], years[-1]
        id = f"{CODES['EntityVendor']}-{strand.number:05d}-{number}"
        vendor = UpsertNode(type="EntityVendor", id=id, year=year, name=f"Reserve supplier {number + 1}", level=strand.level)
        nodes.append(vendor)
        end = NodeRef(type=vendor.type, id=id, year=year)
        relationships.append(_relationship("DEPENDS_ON", _ref(strand, "EntityITSystem", year), end))
    return nodes, relationships


def _ref(strand: Strand, type: str, year: int) -> NodeRef:
    return NodeRef(type=type, id=strand.id(type), year=year)


def _relationship(name: str, source: NodeRef, target: NodeRef) -> UpsertRelationship:
    return UpsertRelationship(type=name, source=source, target=target)


def _kinds(relationship: UpsertRelationship) -> tuple[str, str, str]:
    return relationship.type, relationship.source.type, relationship.target.type


def _parts(items: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


TWIN, TRUTH = "twin.jsonl", "truth.jsonl"


def write(twin: Twin, folder: Path) -> None:
    """Write `twin.jsonl`, a batch for the graph in each line, and `truth.jsonl`, an answered gap question in each line.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TWIN).write_text("".join(f"{batch.model_dump_json()}\n" for batch in twin.batches()), encoding="utf-8")
    (folder / TRUTH).write_text("".join(f"{json.dumps(asdict(one))}\n" for one in twin.questions), encoding="utf-8")
