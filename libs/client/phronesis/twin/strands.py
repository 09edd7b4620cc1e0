"""A strand of the twin: one node of each type on one level, over the years, and what has been taken out of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from phronesis_contracts.graph import Level

from .shape import CODES, LINKS, Link


@dataclass(eq=False)
class Strand:
    """Whole when it is made; planting a gap takes something out."""

    number: int
    level: Level
    parent: Strand | None
    absent: set[tuple[str, int]] = field(default_factory=set)
    """Types that have no node in a year."""
    moved: dict[str, Level] = field(default_factory=dict)
    """Types whose node stands at another level, in all years; nothing of this level joins it."""
    cut: set[tuple[Link, int]] = field(default_factory=set)
    """Relationships that are not there in a year."""

    @property
    def whole(self) -> bool:
        """Whether nothing was taken out."""
        return not (self.absent or self.moved or self.cut)

    def id(self, type: str) -> str:
        """The id of the strand's node of a type, the same in all years."""
        return f"{CODES[type]}-{self.number:05d}"

    def key(self, type: str, year: int) -> str:
        """`type/id/year`."""
        return f"{type}/{self.id(type)}/{year}"

    def standing(self, type: str) -> Level:
        """The level on which the node of a type is written."""
        return self.moved.get(type, self.level)

    def has(self, type: str, year: int) -> bool:
        """Whether there is a node of the type in the year."""
        return (type, year) not in self.absent

    def joinable(self, type: str, year: int) -> bool:
        """Whether the node is there, and on the strand's level."""
        return self.has(type, year) and type not in self.moved

    def links(self, year: int) -> Iterator[Link]:
        """The relationships inside the strand in a year."""
        for link in LINKS:
            ends = self.joinable(link.source, year) and self.joinable(link.target, year)
            if ends and (link, year) not in self.cut:
                yield link


_TREE = ((Level.L1, None), (Level.L2, 0), (Level.L3, 1), (Level.L3, 1), (Level.L2, 0), (Level.L3, 4), (Level.L3, 4))
"""One area: a strand of L1 over two of L2, each over two of L3; any beginning of it hangs together too."""


def whole_strands(count: int) -> list[Strand]:
    """Strands in areas, the last of which may be cut short."""
    made: list[Strand] = []
    for number in range(count):
        area, at = divmod(number, len(_TREE))
        level, parent = _TREE[at]
        made.append(Strand(number, level, None if parent is None else made[area * len(_TREE) + parent]))
    return made
