"""A request as a value, and what its response means: shared by the two faces of the SDK, which only send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar

import httpx
from pydantic import ValidationError

from phronesis_contracts import BadRequest, Internal, ServiceError, TimedOut, Unavailable

T = TypeVar("T")
BAD_GATEWAY = 502
LONGEST_HEADER = 255


@dataclass(frozen=True)
class Request(Generic[T]):
    """One call of the gateway's API."""

    method: str
    path: str
    parse: Callable[[Any], T]
    """Makes the result of the decoded JSON body."""
    params: Mapping[str, str | int | list[str]] = field(default_factory=dict)
    json: Any = None
    files: dict[str, tuple[str, bytes]] | None = None
    key: str | None = None
    """Idempotency key: the same key is answered with the first result, so that a repeat does nothing twice."""
    version: int | None = None
    """The version that a change is meant for; another one by now is refused."""
    reads: bool = False
    """Whether the call changes nothing, so that it may be repeated without a key."""
    timeout: float = 30.0
    """Seconds the server may take to answer."""
    answers: frozenset[int] = frozenset()
    """Statuses besides 2xx whose body is an answer and no problem."""

    @property
    def repeatable(self) -> bool:
        """Whether sending it again can do no harm."""
        return self.reads or self.key is not None

    def arguments(self) -> dict[str, Any]:
        """The call as keyword arguments of httpx."""
        headers = {"Idempotency-Key": visible(self.key, "idempotency_key")} if self.key is not None else {}
        if self.version is not None:
            headers["If-Match"] = f'"{self.version}"'
        timeout = httpx.Timeout(self.timeout, connect=5.0, pool=5.0)
        return {
            "method": self.method,
            "url": self.path,
            "params": self.params,
            "json": self.json,
            "files": self.files,
            "headers": headers,
            "timeout": timeout,
        }

    def result(self, response: httpx.Response) -> T:
        """The parsed answer.

        Raises:
            ServiceError: the problem that the response states, or `Internal` for an answer that is none.
        """
        if not response.is_success and response.status_code not in self.answers:
            raise problem(response)
        try:
            return self.parse(response.json() if response.content else None)
        except (ValueError, ValidationError, KeyError, TypeError) as exc:
            raise Internal(f"the answer to {self.method} {self.path} is not what this version expects") from exc


def visible(text: str, name: str) -> str:
    """`text`, which may stand in a header. Raises `BadRequest` for what may not."""
    if not (text.isascii() and text.isprintable() and text.strip() and len(text) <= LONGEST_HEADER):
        raise BadRequest(f"{name} must be 1 to {LONGEST_HEADER} printable ASCII characters", field=name)
    return text


def problem(response: httpx.Response) -> ServiceError:
    """The error that a response states: its problem document, or the class of its status."""
    status = response.status_code
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict) or "code" not in body:
        body = {"status": 503 if status == BAD_GATEWAY else status, "detail": f"the server answered HTTP {status}"}
    error = ServiceError.from_body(body)
    if error.retry_after is None:
        error.retry_after = _seconds(response.headers.get("Retry-After"))
    return error


def _seconds(header: str | None) -> float | None:
    """`Retry-After` in seconds: a number, or an HTTP date."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def translated(exc: httpx.HTTPError | httpx.InvalidURL, url: str, hint: str = "") -> ServiceError:
    """What an error of the transport means for the caller."""
    match exc:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return Unavailable(f"nothing answers at {url}{hint}")
        case httpx.TimeoutException():
            return TimedOut(f"{url} did not answer in time")
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return BadRequest(f"{url} is no address of a gateway", field="url")
        case _:
            return Unavailable(f"the connection to {url} broke")
