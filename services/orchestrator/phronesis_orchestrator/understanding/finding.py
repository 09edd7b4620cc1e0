"""What an executed plan found, with no sentence in it, and how far an answer that rests on it is to be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, Literal

import yaml

from phronesis_contracts.twin import GroupBy

from .plan import EntityRef, Understood

Row = dict[str, Any]
Outcome = Literal["found", "empty", "too_many", "unordered", "incomparable", "no_way"]
"""`empty`: nothing fits; `too_many`: more than one answer lists; `unordered`: what was to rise or be ranked has no order;
`incomparable`: of two things that were to be held against each other, one has no value;
`no_way`: two things are not linked within the steps that are looked at."""


@dataclass(frozen=True)
class Figure:
    """One figure, and what it rests on."""

    value: float | str | None
    """`None` where nothing is known of it."""
    known: int
    unknown: int = 0
    total: int = 0
    """Nodes of the set, each once."""


@dataclass(frozen=True)
class Note:
    """Something that a reader has to know beside the answer: which sentence says it, and with which values."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """The result of a plan. Which fields are filled goes by the plan's kind."""

    outcome: Outcome = "found"
    rows: tuple[Row, ...] = ()
    """Whole, up to 3,000: members (`id`, `name`, `year` and properties), groups (`group`, `group2`, `value`, `known`,
    `unknown`), changes (`before`, `after`), links, gaps, or values."""
    show: tuple[str, ...] = ()
    """Properties in the rows of members, in the order in which they are shown."""
    dimensions: tuple[GroupBy, ...] = ()
    """What groups are made by; the year may have been added."""
    figures: tuple[Figure, ...] = ()
    """Of an aggregate the one over the whole set; of a comparison one for each side."""
    value: float | None = None
    """What the figures make together: a share in per cent, a ratio, a difference or the number that was asked for."""
    percent: float | None = None
    """A difference in per cent of what it is held against; `None` where that is 0 or unknown."""
    holds: bool | None = None
    """Of a yes-or-no question; `None` where it is not on record."""
    when: int | None = None
    """The year that was asked for."""
    total: int = 0
    """Nodes of the set, each once in each year."""
    known: int = 0
    unknown: int = 0
    """Things whose value would count, and is not published."""
    gaps: int = 0
    """Kinds of gap that were met."""
    years: tuple[int, ...] = ()
    """The years that the answer is about, where they are not those of the plan; or those that have something."""
    absent: tuple[Row, ...] = ()
    """Named things and the years in which they are not on record: `name`, `year`."""
    links: tuple[Row, ...] = ()
    """Of a described thing: what it is linked to, a few of each kind. Of a path: its steps."""
    entities: tuple[EntityRef, ...] = ()
    """The things that were listed, in order, or that were asked about."""
    sources: tuple[str, ...] = ()
    """Keys (`type/id/year`) of the nodes that the answer rests on, at most 60; none for figures over many."""
    notes: tuple[Note, ...] = ()
    statements: tuple[str, ...] = ()
    """What was read, as the store was asked."""


_EACH_GAP = 0.95
"""What each kind of gap that was met leaves of the confidence; three count at most."""
_EACH_DEGRADED = 0.9
"""The same for each part that the answer was made without."""
_SHARE_AT_LEAST = 0.4
"""An answer that says how much is not published is not worthless, however much that is."""
_MOST = 3


def confidence(finding: Finding, understood: Understood, degraded: int = 0) -> float:
    """From 0 to 1.

    Args:
        finding: what was found; what could not be listed or ordered is no answer, and has 0.
        understood: how the message was understood, with its certainty.
        degraded: how many parts of the turn failed open.
    """
    if finding.outcome in ("too_many", "unordered", "incomparable"):
        return 0.0
    whole = finding.known + finding.unknown
    share = max(finding.known / whole, _SHARE_AT_LEAST) if whole else 1.0
    raw = understood.certainty * share * _EACH_GAP ** min(finding.gaps, _MOST) * _EACH_DEGRADED ** min(degraded, _MOST)
    return round(calibrated(raw, _points()), 3)


def calibrated(raw: float, points: Sequence[tuple[float, float]]) -> float:
    """The value at `raw` of the line through points that rise from left to right."""
    if raw <= points[0][0]:
        return points[0][1]
    for (x, y), (x2, y2) in pairwise(points):
        if raw <= x2:
            return y + (y2 - y) * (raw - x) / (x2 - x)
    return points[-1][1]


@cache
def _points() -> tuple[tuple[float, float], ...]:
    file = files("phronesis_orchestrator.understanding").joinpath("content", "calibration.yaml")
    return tuple((float(raw), float(right)) for raw, right in yaml.safe_load(file.read_text(encoding="utf-8"))["points"])
