"""What one key may use: a rate of requests, and a number of open streams."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from phronesis_contracts import TooManyRequests

_KEYS = 10_000


class Rate:
    """A token bucket for each key. The table is bounded: a key that was not seen for long begins with a full bucket.

    Args:
        per_second: requests that flow in each second.
        burst: requests that a bucket holds.
        clock: seconds that only grow.
    """

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, key: str) -> None:
        """Take one request from the bucket of `key`.

        Raises:
            TooManyRequests: it is empty.
        """
        now = self._clock()
        left, since = self._buckets.get(key, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second)
        if left < 1:
            raise TooManyRequests("too many requests for this key", retry_after=(1 - left) / self._per_second)
        self._buckets[key] = (left - 1, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > _KEYS:
            self._buckets.popitem(last=False)


class Streams:
    """Counts open streams.

    Args:
        most: of all keys together.
        most_per_key: of one key.
    """

    def __init__(self, most: int, most_per_key: int) -> None:
        self._most = most
        self._most_per_key = most_per_key
        self._open: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Streams that are open now."""
        return self._open.total()

    @contextmanager
    def opened(self, key: str) -> Iterator[None]:
        """One stream of `key`, for the length of a block.

        Raises:
            TooManyRequests: there are too many already.
        """
        if self._open[key] >= self._most_per_key:
            raise TooManyRequests("too many open streams for this key", retry_after=5)
        if self.open >= self._most:
            raise TooManyRequests("too many open streams", retry_after=5)
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
