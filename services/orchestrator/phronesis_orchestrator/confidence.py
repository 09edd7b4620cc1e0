"""How sure an answer is: a formula over what was found, which the model's own number can lower and never raise."""

from __future__ import annotations

from .findings import Findings

EMPTY = 0.5
"""What a question that was answered with no rows counts: that nothing is there is known, why it is not there is not."""
FLOOR = 0.2
"""What is left where nothing could be read at all: the answer can still say so."""
GAP = 0.5
"""The share that goes where every question about what is linked found a gap."""
FIGURES = 0.5
"""The share that goes where no figure of the answer is in the evidence."""
DEGRADED = 0.9
"""The factor for each part that did not answer."""
AT_ONCE = 0.9
"""The most that an answer without data may claim."""
UNSTATED = 0.5
"""For an answer without data whose model gave no number."""


def coverage(findings: Findings) -> float:
    """The share of the questions to the twin that were answered, from `FLOOR` to 1."""
    asked = len(findings.reads) + (1 if findings.unanswered else 0)
    if not asked:
        return FLOOR
    answered = sum(1.0 if read.rows else EMPTY for read in findings.reads)
    return round(FLOOR + (1 - FLOOR) * answered / asked, 6)


def confidence(findings: Findings, gaps: int, asked: int, agreement: float, degraded: int, stated: float | None) -> float:
    """The confidence of an answer that rests on data, rounded to two places.

    Args:
        findings: what was read.
        gaps: gaps found.
        asked: questions about gaps that were asked; 0 where none was.
        agreement: share of the answer's figures that are in the evidence.
        degraded: parts that did not answer.
        stated: the model's own number.
    """
    missing = min(1.0, gaps / asked) if asked else 0.0
    found = coverage(findings) * (1 - GAP * missing) * (1 - FIGURES * (1 - agreement)) * DEGRADED**degraded
    return round(found if stated is None else min(found, (found + stated) / 2), 2)


def at_once(stated: float | None) -> float:
    """The confidence of an answer that needed no data."""
    return round(min(AT_ONCE, UNSTATED if stated is None else stated), 2)
