"""Confidence intervals: for shares and means, and for differences of them.

Shares: Wilson's score interval (E. B. Wilson, 1927). Their difference: Newcombe's method 10, made of two of those (R. G.
Newcombe, 1998). Means and their difference: the normal approximation with the sample's deviations, unpooled (Welch, 1938).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from phronesis_contracts.experiments import Interval


@dataclass(frozen=True, slots=True)
class Sample:
    """What one arm's users came to; each counts once."""

    users: int
    total: float
    squares: float
    """Sum of the squares."""
    binary: bool
    """Whether every user's value is 0 or 1."""

    @property
    def mean(self) -> float:
        """Of the users' values."""
        return self.total / self.users

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        spread = max(0.0, self.squares - self.users * self.mean**2) / (self.users - 1)
        return math.sqrt(spread / self.users)


def of_mean(sample: Sample, confidence: float, *, binary: bool) -> Interval | None:
    """The interval of one arm's mean; `None` where it has too few users (one for a share, two for a mean)."""
    if sample.users < (1 if binary else 2):
        return None
    z = _quantile(confidence)
    if binary:
        low, high = _wilson(sample, z)
        return Interval(estimate=sample.mean, low=low, high=high, method="Wilson score")
    return _around(sample.mean, z * sample.error, "normal approximation")


def of_difference(sample: Sample, first: Sample, confidence: float, *, binary: bool) -> Interval | None:
    """The interval of one arm's mean less the first arm's; `None` where one of both has too few users."""
    if min(sample.users, first.users) < (1 if binary else 2):
        return None
    z, difference = _quantile(confidence), sample.mean - first.mean
    if not binary:
        return _around(difference, z * math.hypot(sample.error, first.error), "normal approximation, unpooled")
    (low, high), (first_low, first_high) = _wilson(sample, z), _wilson(first, z)
    return Interval(
        estimate=difference,
        low=difference - math.hypot(sample.mean - low, first_high - first.mean),
        high=difference + math.hypot(high - sample.mean, first.mean - first_low),
        method="Newcombe, method 10",
    )


def _wilson(sample: Sample, z: float) -> tuple[float, float]:
    n, p = sample.users, sample.mean
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return (0.0 if p == 0 else middle - half, 1.0 if p == 1 else middle + half)


def _around(estimate: float, half: float, method: str) -> Interval:
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half, method=method)


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
