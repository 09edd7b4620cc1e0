"""The values that the parts of this package hand to each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from phronesis_contracts.facts import FactKind, Origin, Statement

TRUST: dict[Origin, float] = {
    Origin.USER: 1.0,
    Origin.IMPORT: 0.8,
    Origin.REPLY: 0.3,
    Origin.MEDIA: 0.3,
    Origin.TOOL: 0.3,
}
"""How far each origin is trusted, 0 to 1."""
SAYS = frozenset({Origin.USER, Origin.IMPORT})
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


@dataclass(frozen=True)
class Saying:
    """A statement with the time and place at which it was made."""

    statement: Statement
    evidence: Evidence


@dataclass(frozen=True)
class Kept:
    """A fact as it is stored: one value of a slot, over one stretch of time."""

    id: str
    slot: str
    """What there can be one value of at a time (`slots.py`)."""
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

    @property
    def held(self) -> bool:
        """Whether it holds now."""
        return self.valid_to is None

    @property
    def best(self) -> Origin:
        """The most trusted of its origins."""
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
