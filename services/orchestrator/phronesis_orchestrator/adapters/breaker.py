"""A circuit breaker: an endpoint that fails again and again is left alone for a while, then one call looks how it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from phronesis_contracts import ModelUnavailable

log = logging.getLogger(__name__)


class Breaker:
    """Counts the failures in a row of one model's endpoint, for all turns of the process.

    Closed, it lets every call through. After `failures` in a row it opens: calls are refused at once, so that a turn
    falls back instead of waiting. After `rest` seconds it is half open: one call is let through, and closes or opens it.

    Args:
        endpoint: what is asked, as logs name it.
        failures: in a row, until it opens.
        rest: seconds that it stays open.
        clock: seconds that only grow.
    """

    def __init__(
        self, endpoint: str = "the model", failures: int = 5, rest: float = 15.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._endpoint, self._limit, self._rest, self._clock = endpoint, failures, rest, clock
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False
        self._era = 0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused at this moment."""
        return self._open_until is not None and self._clock() < self._open_until

    def enter(self) -> int:
        """Ask to make a call.

        Returns:
            The era that the call belongs to, for `leave()`.

        Raises:
            ModelUnavailable: it is open, or another call is the probe.
        """
        if self._open_until is not None:
            wait = self._open_until - self._clock()
            if wait > 0 or self._probing:
                raise ModelUnavailable("the language model failed several times in a row", retry_after=round(max(wait, 1.0), 1))
            self._probing = True
        return self._era

    def leave(self, era: int, healthy: bool | None) -> None:
        """Say how a call went; `None` where it says nothing of the endpoint's health."""
        if era != self._era:
            return  # begun before it opened or closed: its end is old news
        self._probing = False
        if healthy:
            self._failures = 0
            if self._open_until is not None:
                self._open_until, self._era = None, era + 1
                log.info("%s answers again; calls go through", self._endpoint)
        elif healthy is False:
            self._failures += 1
            if self._open_until is not None or self._failures >= self._limit:
                self._open_until, self._era = self._clock() + self._rest, era + 1
                log.warning("%s failed %d times in a row; no calls for %g s", self._endpoint, self._failures, self._rest)
