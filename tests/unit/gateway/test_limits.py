"""Rates and open streams."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from phronesis_contracts import TooManyRequests
from phronesis_gateway.auth.authentication import OpenStreams, RateLimiter


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_and_then_the_rate() -> None:
    clock = Clock()
    rate = RateLimiter(2.0, 3, clock)
    for _ in range(3):
        rate.spend("k")
    with pytest.raises(TooManyRequests) as refused:
        rate.spend("k")
    assert refused.value.retry_after == 0.5
    clock.now += 0.5
    rate.spend("k")
    with pytest.raises(TooManyRequests):
        rate.spend("k")


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    clock = Clock()
    rate = RateLimiter(100.0, 2, clock)
    clock.now += 3_600
    rate.spend("k")
    rate.spend("k")
    with pytest.raises(TooManyRequests):
        rate.spend("k")


def test_one_keys_requests_are_not_anothers() -> None:
    rate = RateLimiter(1.0, 1, Clock())
    rate.spend("a")
    rate.spend("b")
    with pytest.raises(TooManyRequests):
        rate.spend("a")


def test_the_table_of_buckets_is_bounded_and_forgets_the_longest_unseen() -> None:
    clock = Clock()
    rate = RateLimiter(1.0, 1, clock)
    for number in range(10_001):
        rate.spend(str(number))
    rate.spend("0")
    with pytest.raises(TooManyRequests):
        rate.spend("10000")


def test_streams_are_limited_for_each_key_and_in_all() -> None:
    streams = OpenStreams(3, 2)
    with ExitStack() as held:
        held.enter_context(streams.opened("a"))
        held.enter_context(streams.opened("a"))
        with pytest.raises(TooManyRequests), streams.opened("a"):
            pass
        held.enter_context(streams.opened("b"))
        with pytest.raises(TooManyRequests), streams.opened("c"):
            pass
        assert streams.open == 3
    assert streams.open == 0
    with streams.opened("c"):
        assert streams.open == 1
