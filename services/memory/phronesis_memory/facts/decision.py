"""Facts and their slots, and what a new statement does to a slot. Nothing is deleted: what no longer holds gets an end.

What looks like a secret never becomes a fact: `has_secret`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from phronesis_contracts import UNKNOWN, Label, formed, untrusted
from phronesis_contracts.facts import FactKind, Origin, Statement

from ..values import Draft
from .predicates import NEGATION, known_name, slot_of

TRUST: dict[Origin, float] = {Origin.USER: 1.0, Origin.IMPORT: 0.8, Origin.REPLY: 0.3, Origin.MEDIA: 0.3, Origin.TOOL: 0.3}
"""How far each origin is trusted, 0 to 1."""
PREFERENCE_ORIGINS = frozenset({Origin.USER, Origin.IMPORT})
"""Origins that may state a preference: what a document, a tool or an agent said is not what the user wants."""


@dataclass(frozen=True)
class Evidence:
    """One time that something was said."""

    source: str
    """Its name, unique among those of an owner: `turn:<id>/<number>` or `import:<digest>/<number>`."""
    said_at: datetime
    origin: Origin
    confidence: float
    turn_id: str | None = None
    conversation_id: str | None = None
    labels: tuple[Label, ...] = UNKNOWN
    """Where what was said comes from."""


@dataclass(frozen=True)
class Assertion:
    """A statement with the time and place at which it was made."""

    statement: Statement
    evidence: Evidence


@dataclass(frozen=True)
class StoredFact:
    """A fact as it is stored: one value of a slot, over one stretch of time."""

    id: str
    slot: str
    """What there can be one value of at a time."""
    value: str
    kind: FactKind
    subject: str
    predicate: str
    object: str
    text: str
    negated: bool
    valid_from: datetime
    evidence: tuple[Evidence, ...]
    valid_to: datetime | None = None
    superseded_by: str | None = None
    ended_at: datetime | None = None
    """When it ended for good, where what took its place was forgotten."""
    worded: tuple[Label, ...] = UNKNOWN
    """Where its words come from."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """Where it comes from: as its words do, where the user has said it, or else as all that said it."""
        if any(not untrusted(one.labels) for one in self.evidence):
            return self.worded
        return formed(label for one in self.evidence for label in one.labels)

    @property
    def claimed(self) -> bool:
        """Whether it is what somebody else says, and not the user."""
        return bool(untrusted(self.labels))

    @property
    def held(self) -> bool:
        return self.valid_to is None

    @property
    def best(self) -> Origin:
        return max((one.origin for one in self.evidence), key=lambda origin: TRUST[origin])

    @property
    def trust(self) -> float:
        """0 to 1, by its most trusted source."""
        return TRUST[self.best]

    @property
    def confidence(self) -> float:
        """0 to 1: each time that it was said makes it surer, by how far that source is trusted."""
        doubt = 1.0
        for one in self.evidence:
            doubt *= 1.0 - min(0.95, one.confidence * TRUST[one.origin])
        return round(1.0 - doubt, 4)


DraftsByText = Mapping[str, Draft]
"""Drafts by their text, complete."""


class TextMissing(Exception):
    """A fact that is held now has no vector yet; the caller makes it and tries again."""

    def __init__(self, text: str) -> None:
        super().__init__("a fact has no vector")
        self.text = text


Status = Literal["added", "confirmed", "kept"]


@dataclass(frozen=True)
class Decision:
    """The facts of a slot from here on."""

    facts: tuple[StoredFact, ...]
    told: str
    """Id of the fact that the statement is now part of."""
    status: Status
    superseded: tuple[str, ...]
    """Ids of those that were held and are no longer."""


@dataclass(frozen=True)
class _Point:
    """One time that something was said, with the fact that says what it was."""

    fact: StoredFact
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
class _Timeline:
    """The runs of a slot, oldest first, and beside them what was said and not believed."""

    runs: list[_Run] = field(default_factory=list)
    beside: list[_Run] = field(default_factory=list)

    def take(self, point: _Point) -> None:
        run = self.runs[-1] if self.runs else None
        if run is None or (run.ends is not None and point.evidence.said_at >= run.ends):
            self._begin(point)
        elif point.fact.value == run.value:
            run.add(point)
        elif TRUST[point.evidence.origin] < run.trust or _denies_other(point.fact.value, run.value):
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


def decide(known: Sequence[StoredFact], saying: Assertion, new_id: Callable[[], str]) -> Decision:
    """The facts of a slot once something more was said."""
    fresh = _Point(_fact_of_assertion(saying), saying.evidence, known=False)
    points = [*(_Point(fact, one) for fact in known for one in fact.evidence), fresh]
    line = _Timeline()
    for point in sorted(points, key=lambda point: (point.evidence.said_at, point.evidence.source)):
        line.take(point)
    _assign_ids(line, {fact.id for fact in known}, new_id)
    facts = _facts_of_timeline(line)
    told = next(run for run in (*line.runs, *line.beside) if fresh in run.points)
    held = {fact.id for fact in facts if fact.held}
    before = {fact.id for fact in known}
    gone = tuple(fact.id for fact in known if fact.held and fact.id not in held)
    status: Status = "kept" if told.after is not None else "confirmed" if told.id in before else "added"
    return Decision(facts, told.id, status, gone)


def _denies_other(value: str, held: str) -> bool:
    """Whether a denial is of something else than what is held: to leave one employer says nothing of another."""
    return value.startswith(NEGATION) and value.removeprefix(NEGATION) != held


def _assign_ids(line: _Timeline, known: set[str], new_id: Callable[[], str]) -> None:
    """Give each run the id of the newest of its facts that no later run has; what is left gets a new one."""
    taken: set[str] = set()
    for run in (*reversed(line.runs), *line.beside):
        ids = [point.fact.id for point in reversed(run.points) if point.known and point.fact.id in known - taken]
        run.id = ids[0] if ids else new_id()
        taken.add(run.id)


def _facts_of_timeline(line: _Timeline) -> tuple[StoredFact, ...]:
    found: list[StoredFact] = []
    for run, following in zip(line.runs, [*line.runs[1:], None], strict=True):
        ends = [when for when in (run.ends, following.since if following else None) if when is not None]
        replaced = following.id if following and ends and following.since <= min(ends) else None
        found.append(_fact_of_run(run, min(ends, default=None), replaced))
    for run in line.beside:
        assert run.after is not None
        found.append(_fact_of_run(run, run.since, run.after.id))
    return tuple(found)


def _fact_of_run(run: _Run, until: datetime | None, by: str | None) -> StoredFact:
    own = next((point.fact for point in run.points if point.fact.id == run.id), run.points[0].fact)
    evidence = tuple(point.evidence for point in run.points)
    better = next((p.fact for p in run.points if not p.known and untrusted(own.worded) and not untrusted(p.fact.worded)), None)
    if better is not None:  # the user says it too: in their words it is theirs
        own = replace(better, id=own.id)
    return replace(own, id=run.id, evidence=evidence, valid_from=run.since, valid_to=until, superseded_by=by, ended_at=run.ends)


def _fact_of_assertion(saying: Assertion) -> StoredFact:
    statement, evidence = saying.statement, saying.evidence
    slot, value = slot_of(statement)
    return StoredFact(
        id="",
        slot=slot,
        value=value,
        kind=statement.kind,
        subject=statement.subject,
        predicate=known_name(statement.predicate),
        object=statement.object,
        text=statement.text,
        negated=statement.negated,
        valid_from=evidence.said_at,
        evidence=(evidence,),
        worded=evidence.labels,
    )


_SHAPES = re.compile(
    r"""
      -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY
    | \b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{16,} | \bgsk_[A-Za-z0-9]{20,}
    | \bphr_[A-Za-z0-9_-]{16,} | \bxox[abprs]-[\w-]{10,} | \bAKIA[0-9A-Z]{12,} | \bAIza[\w-]{30,}
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*
    | \b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)|pin(?:\s+(?:code|number))?|secret(?:\s+key)?|api[\s_-]?key|access[\s_-]?(?:key|token)"
    r"|private[\s_-]?key|bearer|credentials?|cvv|cvc|otp|seed\s+phrase|security\s+(?:code|answer)|log[\s-]?in|passwort|kennwort|geheimzahl|zugangs(?:code|daten))\b"
    r"\s*(?:(?:is|are|ist|lautet)\b|[:=]|(?=\S*\d\S*\d))\s*\S",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")


def has_secret(text: str) -> bool:
    """Whether a text holds what looks like a key, a named password, or a card number."""
    return any(one.search(text) for one in (_SHAPES, _NAMED)) or any(_luhn(found[0]) for found in _DIGITS.finditer(text))


def _luhn(number: str) -> bool:
    digits = [int(one) for one in number if one.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
