"""Patience with a provider: few tries with jitter inside the time left, none while its breaker is open."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from phronesis_bus.envelope import remaining
from phronesis_contracts import ModelRateLimited, ModelUnavailable, ServiceError

from ..reasoner import CallFailed, Spent
from .breaker import Breaker
from .chat_errors import TryFailed

log = logging.getLogger(__name__)

TRIES = 3
_LONGEST_WAIT = 4.0
_LEAST = 0.2
"""Seconds below which a try is not begun."""
Value = TypeVar("Value")


@dataclass(frozen=True)
class Tried(Generic[Value]):
    """A value, and what the tries before it used."""

    value: Value
    before: Spent


class Patience:
    """Tries a call up to three times within its limit and the deadline of the work at hand.

    Args:
        breaker: shared by all calls to one endpoint.
        backoff: seconds that the first wait may take; doubled for the second. The wait is drawn evenly below that, and
            comes on top of what the provider asks for, so that those who failed together do not come back together.
    """

    def __init__(self, breaker: Breaker, backoff: float = 0.5) -> None:
        self._breaker = breaker
        self._backoff = backoff

    @property
    def is_open(self) -> bool:
        """Whether the breaker refuses calls at this moment."""
        return self._breaker.is_open

    async def run(self, attempt: Callable[[float], Awaitable[Value]], limit: float, tries: int = TRIES) -> Tried[Value]:
        """Call `attempt` with the seconds it may take, at most `tries` times.

        Raises:
            CallFailed: it failed for good, no time is left, or the breaker is open.
        """
        due = time.monotonic() + remaining(limit)
        spent = Spent()
        for number in range(1, tries + 1):
            left = due - time.monotonic()
            if left < _LEAST:
                raise CallFailed(ModelUnavailable("no time is left for the language model"), spent)
            try:
                era = self._breaker.enter()
            except ModelUnavailable as error:
                raise CallFailed(error, spent) from error
            healthy: bool | None = None
            try:
                value = await attempt(left)
                healthy = True
                return Tried(value, spent)
            except TryFailed as failed:
                log.warning("model call, try %d of %d: %s", number, tries, failed.detail)
                spent = spent.plus(failed.spent)
                wait = self._wait(failed, number)
                last = not failed.again or number == tries or wait + _LEAST > due - time.monotonic()
                # One that is asked too often is not ill; not when the call came to nothing over it, though.
                healthy = False if failed.again and (last or not failed.busy) else None
                if last:
                    raise CallFailed(_for_good(failed), spent) from failed
            finally:
                self._breaker.leave(era, healthy)
            await asyncio.sleep(wait)
        raise AssertionError("every try returns, waits or raises")

    def _wait(self, failed: TryFailed, number: int) -> float:
        return (failed.after or 0.0) + random.uniform(0, min(_LONGEST_WAIT, self._backoff * 2 ** (number - 1)))


def _for_good(failed: TryFailed) -> ServiceError:
    if failed.misconfigured:
        log.error("the language model is set up wrongly: %s", failed.detail)
    kind = ModelRateLimited if failed.busy else ModelUnavailable
    return kind(failed.detail, retry_after=failed.after)
