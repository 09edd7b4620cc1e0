"""Experiments: which arm a user is in, and confidence intervals of what came of each arm."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from phronesis_contracts.experiments import Interval

_BITS = 64
_SHARE, _LEAST = 0.004, 4.0
"""How far an arm may be above its weight: this share of all users, and at least so many users."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An arm with its weight, and the users that are in it already."""

    name: str
    weight: int
    users: int = 0


def propose_arm(experiment: str, tenant: str, user: str, arms: Sequence[Standing]) -> str:
    """The arm that the hash falls into, by the arms' weights in their order."""
    digest = hashlib.sha256(json.dumps([experiment, tenant, user]).encode()).digest()
    point = int.from_bytes(digest[: _BITS // 8]) * sum(arm.weight for arm in arms) >> _BITS
    for arm in arms:
        point -= arm.weight
        if point < 0:
            return arm.name
    raise ValueError("an experiment has arms")


def choose_arm(experiment: str, tenant: str, user: str, arms: Sequence[Standing]) -> str:
    """The arm of a user who is in none yet: the proposed one, or where that is too full, the one that lacks most."""
    name = propose_arm(experiment, tenant, user, arms)
    users = 1 + sum(arm.users for arm in arms)
    weights = sum(arm.weight for arm in arms)
    above = {arm.name: arm.users - users * arm.weight / weights for arm in arms}
    if above[name] + 1 <= max(_LEAST, _SHARE * users):
        return name
    return min(above, key=lambda arm: above[arm])


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


def mean_interval(sample: Sample, confidence: float, *, binary: bool) -> Interval | None:
    """The interval of one arm's mean; `None` where it has too few users (one for a share, two for a mean)."""
    if sample.users < (1 if binary else 2):
        return None
    z = _quantile(confidence)
    if binary:
        low, high = _wilson_bounds(sample, z)
        return Interval(estimate=sample.mean, low=low, high=high, method="Wilson score")
    return _interval_around(sample.mean, z * sample.error, "normal approximation")


def difference_interval(sample: Sample, first: Sample, confidence: float, *, binary: bool) -> Interval | None:
    """The interval of one arm's mean less the first arm's; `None` where one of both has too few users."""
    if min(sample.users, first.users) < (1 if binary else 2):
        return None
    z, difference = _quantile(confidence), sample.mean - first.mean
    if not binary:
        return _interval_around(difference, z * math.hypot(sample.error, first.error), "normal approximation, unpooled")
    (low, high), (first_low, first_high) = _wilson_bounds(sample, z), _wilson_bounds(first, z)
    return Interval(
        estimate=difference,
        low=difference - math.hypot(sample.mean - low, first_high - first.mean),
        high=difference + math.hypot(high - sample.mean, first.mean - first_low),
        method="Newcombe, method 10",
    )


def _wilson_bounds(sample: Sample, z: float) -> tuple[float, float]:
    n, p = sample.users, sample.mean
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return (0.0 if p == 0 else middle - half, 1.0 if p == 1 else middle + half)


def _interval_around(estimate: float, half: float, method: str) -> Interval:
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half, method=method)


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
