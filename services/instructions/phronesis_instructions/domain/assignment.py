"""Which arm a user is in.

A hash of experiment, tenant and user proposes an arm, so that a user's arm is the same wherever and whenever it is worked out.
By chance alone, 10,000 users at one half each stray from it by more than 1 % one time in twenty-two. So the proposal is taken
unless the arm is full already beyond a small tolerance; then the arm that lacks most is taken (the big stick design of Soares
and Wu, 1983). What was decided at the first exposure is kept, and holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

_BITS = 64
_SHARE, _LEAST = 0.004, 4.0
"""How far an arm may be above its weight: this share of all users, and at least so many users."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An arm with its weight, and the users that are in it already."""

    name: str
    weight: int
    users: int = 0


def proposed(experiment: str, tenant: str, user: str, arms: Sequence[Standing]) -> str:
    """The arm that the hash falls into, by the arms' weights in their order."""
    digest = hashlib.sha256(json.dumps([experiment, tenant, user]).encode()).digest()
    point = int.from_bytes(digest[: _BITS // 8]) * sum(arm.weight for arm in arms) >> _BITS
    for arm in arms:
        point -= arm.weight
        if point < 0:
            return arm.name
    raise ValueError("an experiment has arms")


def chosen(experiment: str, tenant: str, user: str, arms: Sequence[Standing]) -> str:
    """The arm of a user who is in none yet: the proposed one, or where that is too full, the one that lacks most."""
    name = proposed(experiment, tenant, user, arms)
    users = 1 + sum(arm.users for arm in arms)
    weights = sum(arm.weight for arm in arms)
    above = {arm.name: arm.users - users * arm.weight / weights for arm in arms}
    if above[name] + 1 <= max(_LEAST, _SHARE * users):
        return name
    return min(above, key=lambda arm: above[arm])
