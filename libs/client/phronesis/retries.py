"""When a call is sent again, and after what pause."""

from __future__ import annotations

import random
from typing import Any

import httpx

from phronesis_contracts import ServiceError, TooManyRequests, Unavailable

from .request import Request, translated

ATTEMPTS = 5
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
WAIT_IN_ALL = 30.0
"""Seconds that the pauses of one call may sum to; a longer `Retry-After` is the caller's to wait."""

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def pause(attempt: int) -> float:
    """Seconds before attempt `attempt` + 1: doubling, with jitter, so that many callers do not come back together."""
    return random.uniform(0.5, 1.0) * min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1))


class Retries:
    """The patience of one call: counts its attempts and says how long to wait before the next."""

    def __init__(self, request: Request[Any], url: str, hint: str = "") -> None:
        self._request = request
        self._url = url
        self._hint = hint
        self._attempt = 0
        self._waited = 0.0

    def after(self, exc: ServiceError | httpx.HTTPError | httpx.InvalidURL) -> float:
        """Seconds to wait before sending again.

        Raises:
            ServiceError: what `exc` means, when it must not or need not be tried again.
        """
        self._attempt += 1
        error = exc if isinstance(exc, ServiceError) else translated(exc, self._url, self._hint)
        wait = max(pause(self._attempt), error.retry_after or 0.0)
        if not self._may_repeat(exc, error) or self._attempt >= ATTEMPTS or self._waited + wait > WAIT_IN_ALL:
            raise error from (None if error is exc else exc)
        self._waited += wait
        return wait

    def _may_repeat(self, exc: Exception, error: ServiceError) -> bool:
        passing = isinstance(error, Unavailable | TooManyRequests)
        return passing and (self._request.repeatable or isinstance(exc, _NOT_SENT))
