"""Who is worked on next, and who has to wait: shares by tenant, then by user, and rates of external systems' keys."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")

_WAITING_PER_SLOT = 16
"""Requests of one tenant, for each slot, that are worked on or wait; all tenants together may have twice as many waiting."""
_RECENT = 60.0
"""Seconds for which a tenant that asked counts as one that may ask again, so that slots are kept for it."""
_KEYS = 4096
"""Keys whose rates are remembered; the one that was silent for the longest goes."""


@dataclass
class _User(Generic[T]):
    name: str
    turn: float
    waiting: deque[T] = field(default_factory=deque)


@dataclass
class _Tenant(Generic[T]):
    """What one tenant has waiting, by user, and at work."""

    users: dict[str, _User[T]] = field(default_factory=dict)
    turn: float = 0.0
    """When its next request comes, in the queue's own time: the smallest of all is next."""
    waiting: int = 0
    running: int = 0
    seen: float = 0.0


class FairQueue(Generic[T]):
    """Weighted fair queueing: tenants take turns by their weights, and the users of a tenant one after the other.

    Whoever is alone may have every slot. As soon as two tenants have asked within a minute, none holds more than its share,
    so that whoever floods leaves slots to those who come next. When there is no room, the newest request goes of whoever has
    the most waiting.

    Args:
        slots: requests that are worked on side by side.
        share: the part of the slots that one of several tenants may hold, over 0 and up to 1.
        weights: turns of a tenant to one of a tenant that is not named.
        clock: seconds.
    """

    def __init__(
        self,
        slots: int,
        share: float = 1.0,
        weights: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slots = slots
        self._share = max(1, int(slots * share))
        self._each = slots * _WAITING_PER_SLOT
        self._weights = weights or {}
        self._clock = clock
        self._tenants: OrderedDict[str, _Tenant[T]] = OrderedDict()
        self._now = 0.0
        self._running = 0
        self._waiting = 0

    def put(self, tenant: str, user: str, item: T) -> T | None:
        """Let `item` wait. Returns what has no room now: `item` itself, or one of whoever has the most; `None` mostly."""
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = _Tenant()
        self._tenants.move_to_end(tenant)
        found.seen = self._clock()
        if not found.waiting:
            found.turn = max(found.turn, self._now)  # nobody saves turns up while it asks nothing
        line = found.users.get(user)
        if line is None:
            first = min((each.turn for each in found.users.values()), default=0.0)
            line = found.users[user] = _User(user, first)
        line.waiting.append(item)
        found.waiting += 1
        self._waiting += 1
        if found.waiting + found.running > self._each:
            return self._push_out(found)
        if self._waiting > 2 * self._each:
            return self._push_out(max(self._tenants.values(), key=lambda each: each.waiting))
        return None

    def take(self) -> tuple[str, T] | None:
        """The next request and its tenant, with a slot for it; `None` where nobody waits, or whoever does gets no slot yet."""
        if not self._waiting or self._running >= self._slots:
            return None
        self._forget()
        most = self._slots if len(self._tenants) == 1 else self._share
        open_to = [name for name, each in self._tenants.items() if each.waiting and each.running < most]
        if not open_to:
            return None
        name = min(open_to, key=lambda name: self._tenants[name].turn)
        tenant = self._tenants[name]
        self._now = tenant.turn
        tenant.turn += 1 / self._weights.get(name, 1.0)
        user = min(tenant.users.values(), key=lambda each: each.turn)
        item = user.waiting.popleft()
        user.turn += 1
        self._left(tenant, user)
        tenant.running += 1
        self._running += 1
        return name, item

    def done(self, tenant: str) -> None:
        """A request that `take` returned has ended."""
        self._tenants[tenant].running -= 1
        self._running -= 1

    def _push_out(self, tenant: _Tenant[T]) -> T:
        user = max(tenant.users.values(), key=lambda each: len(each.waiting))
        item = user.waiting.pop()
        self._left(tenant, user)
        return item

    def _left(self, tenant: _Tenant[T], user: _User[T]) -> None:
        tenant.waiting -= 1
        self._waiting -= 1
        if not user.waiting:
            del tenant.users[user.name]

    def _forget(self) -> None:
        """Drop tenants that asked nothing for a while; the one that asked last stands last."""
        while self._tenants:
            name, tenant = next(iter(self._tenants.items()))
            if tenant.waiting or tenant.running or tenant.seen > self._clock() - _RECENT:
                return
            del self._tenants[name]


class Verdict(Enum):
    """What becomes of one more request of a key."""

    PASS = "pass"
    REFUSE = "refuse"
    """It is over its rate, and is told so."""
    DROP = "drop"
    """It is far over its rate: even the refusals would cost others something."""


@dataclass
class _Bucket:
    requests: float
    refusals: float
    at: float


class Rates:
    """How often each key may ask: a bucket of `burst` requests that fills with `rate` a second, and one like it of refusals.

    Args:
        rate: requests a second; 0 for no limit.
        burst: requests at once.
        clock: seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def check(self, key: str) -> Verdict:
        """Count a request of `key`."""
        if not self.rate:
            return Verdict.PASS
        now = self._clock()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, self._burst, now)
            if len(self._buckets) > _KEYS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        more = (now - bucket.at) * self.rate
        bucket.requests = min(self._burst, bucket.requests + more)
        bucket.refusals = min(self._burst, bucket.refusals + more)
        bucket.at = now
        if bucket.requests >= 1:
            bucket.requests -= 1
            return Verdict.PASS
        if bucket.refusals >= 1:
            bucket.refusals -= 1
            return Verdict.REFUSE
        return Verdict.DROP
