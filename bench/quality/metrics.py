"""Recall, reciprocal rank and percentiles of ranks and times."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """How well one ranking answers some questions."""

    questions: int
    at_5: float
    """Share of the questions with a right item among the first five."""
    at_10: float
    at_25: float
    mrr: float
    """Mean of 1/rank of the first right item; 0 where there is none among the first 25."""


def rank(found: Sequence[str], right: Collection[str]) -> int | None:
    """The place, from 1, of the first of `found` that is right."""
    return next((place for place, id in enumerate(found, 1) if id in right), None)


def figures(ranks: Sequence[int | None]) -> Figures:
    """The figures of the ranks of all questions."""
    known = [place for place in ranks if place is not None and place <= 25]

    def share(most: int) -> float:
        return sum(place <= most for place in known) / max(1, len(ranks))

    mrr = sum(1 / place for place in known) / max(1, len(ranks))
    return Figures(len(ranks), share(5), share(10), share(25), mrr)


def percentiles(milliseconds: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile of at least two times."""
    return statistics.median(milliseconds), statistics.quantiles(milliseconds, n=20)[18]
