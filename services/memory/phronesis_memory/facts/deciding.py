"""Deciding what a new statement does to the facts of its slot. Nothing is deleted: what no longer holds gets an end.

All that was ever said about a slot, in the order of the time at which it was said, gives its facts. So the order in which
statements arrive makes no difference: the newest said is what is held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from .slots import NOT, slot_of
from .values import TRUST, Evidence, Kept, Saying

Status = Literal["added", "confirmed", "kept"]


@dataclass(frozen=True)
class Decided:
    """The facts of a slot from here on."""

    facts: tuple[Kept, ...]
    told: str
    """Id of the fact that the statement is now part of."""
    status: Status
    superseded: tuple[str, ...]
    """Ids of those that were held and are no longer."""


@dataclass(frozen=True)
class _Point:
    """One time that something was said, with the fact that says what it was."""

    fact: Kept
    evidence: Evidence
    known: bool = True


@dataclass
class _Run:
    """One value without a break."""

    points: list[_Point]
    after: _Run | None = None
    """Of what was never held: what stood against it."""
    id: str = ""
    ends: datetime | None = None

    @property
    def value(self) -> str:
        return self.points[0].fact.value

    @property
    def trust(self) -> float:
        return max(TRUST[point.evidence.origin] for point in self.points)

    @property
    def since(self) -> datetime:
        return self.points[0].evidence.said_at

    def add(self, point: _Point) -> None:
        self.points.append(point)
        ended = point.fact.ended_at
        self.ends = ended if self.ends is None or (ended is not None and ended < self.ends) else self.ends


@dataclass
class _Line:
    """The runs of a slot, oldest first, and beside them what was said and not believed."""

    runs: list[_Run] = field(default_factory=list)
    beside: list[_Run] = field(default_factory=list)

    def take(self, point: _Point) -> None:
        run = self.runs[-1] if self.runs else None
        if run is None or (run.ends is not None and point.evidence.said_at >= run.ends):
            self._begin(point)
        elif point.fact.value == run.value:
            run.add(point)
        elif TRUST[point.evidence.origin] < run.trust or _misses(point.fact.value, run.value):
            self._aside(point, run)
        else:
            self._begin(point)

    def _begin(self, point: _Point) -> None:
        self.runs.append(_Run([]))
        self.runs[-1].add(point)

    def _aside(self, point: _Point, run: _Run) -> None:
        found = next((one for one in self.beside if one.after is run and one.value == point.fact.value), None)
        if found is None:
            found = _Run([], run)
            self.beside.append(found)
        found.points.append(point)


def decide(known: Sequence[Kept], saying: Saying, new_id: Callable[[], str]) -> Decided:
    """The facts of a slot once something more was said.

    Args:
        known: all facts of the slot, held or not.
        saying: what was said, and when.
        new_id: makes the id of a fact.
    """
    fresh = _Point(_of(saying), saying.evidence, known=False)
    points = [*(_Point(fact, one) for fact in known for one in fact.evidence), fresh]
    line = _Line()
    for point in sorted(points, key=lambda point: (point.evidence.said_at, point.evidence.source)):
        line.take(point)
    _name(line, {fact.id for fact in known}, new_id)
    facts = _facts(line)
    told = next(run for run in (*line.runs, *line.beside) if fresh in run.points)
    held = {fact.id for fact in facts if fact.held}
    before = {fact.id for fact in known}
    gone = tuple(fact.id for fact in known if fact.held and fact.id not in held)
    status: Status = "kept" if told.after is not None else "confirmed" if told.id in before else "added"
    return Decided(facts, told.id, status, gone)


def _misses(value: str, held: str) -> bool:
    """Whether a denial is of something else than what is held: to leave one employer says nothing of another."""
    return value.startswith(NOT) and value.removeprefix(NOT) != held


def _name(line: _Line, known: set[str], new_id: Callable[[], str]) -> None:
    """Give each run the id of the newest of its facts that no later run has; what is left gets a new one."""
    taken: set[str] = set()
    for run in (*reversed(line.runs), *line.beside):
        ids = [point.fact.id for point in reversed(run.points) if point.known and point.fact.id in known - taken]
        run.id = ids[0] if ids else new_id()
        taken.add(run.id)


def _facts(line: _Line) -> tuple[Kept, ...]:
    found: list[Kept] = []
    for run, following in zip(line.runs, [*line.runs[1:], None], strict=True):
        ends = [when for when in (run.ends, following.since if following else None) if when is not None]
        replaced = following.id if following and ends and following.since <= min(ends) else None
        found.append(_fact(run, min(ends, default=None), replaced))
    for run in line.beside:
        assert run.after is not None
        found.append(_fact(run, run.since, run.after.id))
    return tuple(found)


def _fact(run: _Run, until: datetime | None, by: str | None) -> Kept:
    own = next((point.fact for point in run.points if point.fact.id == run.id), run.points[0].fact)
    evidence = tuple(point.evidence for point in run.points)
    return replace(own, id=run.id, evidence=evidence, valid_from=run.since, valid_to=until, superseded_by=by, ended_at=run.ends)


def _of(saying: Saying) -> Kept:
    statement, evidence = saying.statement, saying.evidence
    slot, value = slot_of(statement)
    return Kept(
        id="",
        slot=slot,
        value=value,
        kind=statement.kind,
        subject=statement.subject,
        predicate=statement.predicate,
        object=statement.object,
        text=statement.text,
        negated=statement.negated,
        valid_from=evidence.said_at,
        evidence=(evidence,),
    )
