"""Gap questions with their right answers, and where a gap is planted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random

from phronesis_contracts.graph import Level

from .shape import CHAINS, Hop, Link
from .strands import Strand


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
