"""Patience with a provider: few tries with jitter inside the time left, and a breaker for when it is down."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from phronesis.bus.envelope import remaining
from phronesis.contracts import ServiceError, TimedOut, Unavailable

from .chat_errors import TryFailed

log = logging.getLogger(__name__)

TRIES = 3
_LONGEST_WAIT = 4.0
_LEAST = 0.2
"""Seconds below which a try is not begun."""
Value = TypeVar("Value")


class Breaker:
    """Refuses calls for a while after failures in a row, then lets one through to see.

    Args:
        failures: in a row, until it opens.
        rest: seconds that it stays open.
    """

    def __init__(self, failures: int = 5, rest: float = 15.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._rest, self._clock = failures, rest, clock
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False

    def enter(self) -> None:
        """Ask to make a call. Raises `Unavailable` while open, and while another call is the probe."""
        if self._open_until is None:
            return
        wait = self._open_until - self._clock()
        if wait > 0 or self._probing:
            raise Unavailable("the language model failed several times in a row", retry_after=round(max(wait, 1.0), 1))
        self._probing = True

    def leave(self, healthy: bool | None) -> None:
        """Say how the call went; `None` where it says nothing of the provider's health."""
        probing, self._probing = self._probing, False
        if healthy:
            self._failures, self._open_until = 0, None
        elif healthy is False:
            self._failures += 1
            if probing or self._failures >= self._limit:
                self._open_until = self._clock() + self._rest
                log.warning("the language model failed %d times in a row; no calls for %g s", self._failures, self._rest)


@dataclass(frozen=True)
class Tried(Generic[Value]):
    """A value, and the tries that the provider saw."""

    value: Value
    calls: int


class Patience:
    """Tries a call up to three times within its limit and the deadline of the work at hand.

    Args:
        breaker: shared by all calls to one provider.
        backoff: seconds that the first wait may take; doubled for the second. The wait is drawn evenly below that.
    """

    def __init__(self, breaker: Breaker, backoff: float = 0.5) -> None:
        self._breaker = breaker
        self._backoff = backoff

    async def run(self, attempt: Callable[[float], Awaitable[Value]], limit: float) -> Tried[Value]:
        """Call `attempt` with the seconds it may take.

        Raises:
            TimedOut: the time ran out first.
            Unavailable: it failed for good, or the breaker is open.
        """
        due = time.monotonic() + remaining(limit)
        calls = 0
        for number in range(1, TRIES + 1):
            left = due - time.monotonic()
            if left < _LEAST:
                raise TimedOut("no time is left for the language model")
            try:
                value = await self._one(attempt, left)
            except TryFailed as failed:
                calls += failed.reached
                log.warning("model call, try %d of %d: %s", number, TRIES, failed.detail)
                wait = self._wait(failed, number)
                if not failed.again or number == TRIES or wait + _LEAST > due - time.monotonic():
                    raise _for_good(failed) from failed
                await asyncio.sleep(wait)
            else:
                return Tried(value, calls + 1)
        raise AssertionError("every try returns, waits or raises")

    async def _one(self, attempt: Callable[[float], Awaitable[Value]], left: float) -> Value:
        self._breaker.enter()
        healthy: bool | None = None
        try:
            value = await attempt(left)
            healthy = True
        except TryFailed as failed:
            healthy = False if failed.counts else None
            raise
        finally:
            self._breaker.leave(healthy)
        return value

    def _wait(self, failed: TryFailed, number: int) -> float:
        if failed.after is not None:
            return failed.after
        return random.uniform(0, min(_LONGEST_WAIT, self._backoff * 2 ** (number - 1)))


def _for_good(failed: TryFailed) -> ServiceError:
    if failed.misconfigured:
        log.error("the language model is set up wrongly: %s", failed.detail)
    return TimedOut(failed.detail) if failed.timed_out else Unavailable(failed.detail, retry_after=failed.after)
