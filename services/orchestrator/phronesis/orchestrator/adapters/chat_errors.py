"""How a try of a model call failed, and what that means for the next one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_MISCONFIGURED = {
    400: "the language model refused the request",
    401: "the language model refused the key",
    402: "the language model's account has no credit",
    403: "the language model refused the key's permissions",
    404: "the language model's provider does not know the model or the address",
    413: "the request is too large for the language model",
    422: "the language model refused the request",
}
_BUSY = frozenset({429, 498})


class TryFailed(Exception):
    """One try gave no usable answer.

    Args:
        detail: one sentence for people; nothing of the provider's text.
        again: whether another try may succeed.
        reached: whether the provider saw the request.
        timed_out: whether time ran out.
        after: seconds that the provider asked to wait.
        counts: whether it speaks against the provider's health.
        misconfigured: whether only an operator can mend it.
    """

    def __init__(
        self,
        detail: str,
        *,
        again: bool,
        reached: bool = True,
        timed_out: bool = False,
        after: float | None = None,
        counts: bool = True,
        misconfigured: bool = False,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.again = again
        self.reached = reached
        self.timed_out = timed_out
        self.after = after
        self.counts = counts
        self.misconfigured = misconfigured


def status_failed(status: int, headers: Mapping[str, str], body: object) -> TryFailed:
    """The failure that an HTTP status states."""
    if status in _BUSY:
        again = _code(body) != "insufficient_quota"
        return TryFailed("the language model is over its rate", again=again, after=retry_after(headers), counts=False)
    if detail := _MISCONFIGURED.get(status):
        return TryFailed(detail, again=False, counts=False, misconfigured=True)
    again = status >= 500 or status in (408, 409, 425)
    return TryFailed(f"the language model answered with status {status}", again=again, after=retry_after(headers))


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a `Retry-After` asks for, given as a number or as a date; `None` without one that can be read."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - (now or datetime.now(UTC))).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _code(body: object) -> str | None:
    error = body.get("error", body) if isinstance(body, dict) else None
    return str(error.get("code")) if isinstance(error, dict) else None
