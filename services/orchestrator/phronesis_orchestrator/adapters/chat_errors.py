"""How a try of a model call failed, and what that means for the next one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ..reasoner import Spent

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
_TOO_LONG = ("context_length_exceeded", "request_too_large")
_ONE_CALL = Spent(model_calls=1)


class TryFailed(Exception):
    """One try gave no usable answer.

    Args:
        detail: one sentence for people; nothing of the provider's text.
        again: whether another try may succeed.
        after: seconds that the provider asked to wait.
        busy: whether the provider is merely asked too often.
        misconfigured: whether only an operator can mend it.
        spent: what the try used: no call where the provider never saw it, and the tokens that the provider told.
    """

    def __init__(
        self,
        detail: str,
        *,
        again: bool,
        after: float | None = None,
        busy: bool = False,
        misconfigured: bool = False,
        spent: Spent = _ONE_CALL,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.again = again
        self.after = after
        self.busy = busy
        self.misconfigured = misconfigured
        self.spent = spent


def status_failed(status: int, headers: Mapping[str, str], code: str | None, spent: Spent = _ONE_CALL) -> TryFailed:
    """The failure that an HTTP status states.

    Args:
        status: the status.
        headers: the answer's headers.
        code: the provider's own code for the error.
        spent: what the try used.
    """
    if status in _BUSY:
        again = code != "insufficient_quota"
        return TryFailed("the language model is over its rate", again=again, after=retry_after(headers), busy=True, spent=spent)
    if code in _TOO_LONG:
        return TryFailed("the prompt is too long for the language model", again=False, spent=spent)
    if detail := _MISCONFIGURED.get(status):
        return TryFailed(detail, again=False, misconfigured=True, spent=spent)
    again = status >= 500 or status in (408, 409, 425)
    after = retry_after(headers)
    return TryFailed(f"the language model answered with status {status}", again=again, after=after, spent=spent)


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
