"""A request as a value: what it is made of, what its response means, and when it is sent again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from phronesis_contracts import BadRequest, Internal, Message, ServiceError, TimedOut, TooManyRequests, Unavailable

T = TypeVar("T")
BAD_GATEWAY = 502
LONGEST_HEADER = 255
USER = "Phronesis-User"
"""Header that names the user whom a key acts for."""


@dataclass(frozen=True)
class Request(Generic[T]):
    method: str
    path: str
    parse: Callable[[Any], T]
    params: Mapping[str, str | int | list[str] | None] = field(default_factory=dict)
    json: Any = None
    files: dict[str, tuple[str, bytes]] | None = None
    key: str | None = None
    """Idempotency key: the same key is answered with the first result, so that a repeat does nothing twice."""
    user: str | None = None
    """The user that the call is made for, by a key that may act for users; the key's own where it is absent."""
    version: int | None = None
    """The version that a change is meant for; another one by now is refused."""
    reads: bool = False
    """Whether the call changes nothing, so that it may be repeated without a key."""
    timeout: float = 30.0
    """Seconds the server may take to answer."""
    answers: frozenset[int] = frozenset()
    """Statuses besides 2xx whose body is an answer and no problem."""
    is_file: bool = False
    """Whether the answer is a file: `parse` is given its bytes."""

    @property
    def repeatable(self) -> bool:
        return self.reads or self.key is not None

    def arguments(self) -> dict[str, Any]:
        headers = {"Idempotency-Key": check_header(self.key, "idempotency_key")} if self.key is not None else {}
        if self.user is not None:
            headers[USER] = check_header(self.user, "user_id")
        if self.version is not None:
            headers["If-Match"] = f'"{self.version}"'
        timeout = httpx.Timeout(self.timeout, connect=5.0, pool=5.0)
        return {
            "method": self.method,
            "url": self.path,
            "params": without_none(self.params),
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
            raise parse_problem(response)
        if self.is_file:
            return self.parse(response.content)
        try:
            return self.parse(response.json() if response.content else None)
        except (ValueError, ValidationError, KeyError, TypeError) as exc:
            raise Internal(f"the answer to {self.method} {self.path} is not what this version expects") from exc


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def check_header(text: str, name: str) -> str:
    """`text`, which may stand in a header. Raises `BadRequest` for what may not."""
    if not (text.isascii() and text.isprintable() and text.strip() and len(text) <= LONGEST_HEADER):
        raise BadRequest(f"{name} must be 1 to {LONGEST_HEADER} printable ASCII characters", field=name)
    return text


def parse_problem(response: httpx.Response) -> ServiceError:
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


def translate_error(exc: httpx.HTTPError | httpx.InvalidURL, url: str, hint: str = "") -> ServiceError:
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


ATTEMPTS = 5
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
WAIT_IN_ALL = 30.0
"""Seconds that the pauses of one call may sum to; a longer `Retry-After` is the caller's to wait."""

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def pause_before(attempt: int) -> float:
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
        error = exc if isinstance(exc, ServiceError) else translate_error(exc, self._url, self._hint)
        wait = max(pause_before(self._attempt), error.retry_after or 0.0)
        if not self._may_repeat(exc, error) or self._attempt >= ATTEMPTS or self._waited + wait > WAIT_IN_ALL:
            raise error from (None if error is exc else exc)
        self._waited += wait
        return wait

    def _may_repeat(self, exc: Exception, error: ServiceError) -> bool:
        passing = isinstance(error, Unavailable | TooManyRequests)
        return passing and (self._request.repeatable or isinstance(exc, _NOT_SENT))


M = TypeVar("M", bound=Message)


def path_segment(text: str, name: str) -> str:
    if not text or text in (".", ".."):
        raise BadRequest(f"{name} is not an id", field=name)
    return quote(text, safe="")


def validate_message(model: type[M], fields: Mapping[str, Any]) -> M:
    """A message of these fields, or a `BadRequest` that names the one at fault."""
    try:
        return model.model_validate(fields)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_context=False)[0]
        raise BadRequest(first["msg"], field=".".join(map(str, first["loc"])) or None) from exc


def listed(items: str | Iterable[T]) -> tuple[str | T, ...]:
    """The items of an iterable; a bare string is one item."""
    return (items,) if isinstance(items, str) else tuple(items)


def parse_list(model: type[M], name: str) -> Callable[[Any], tuple[M, ...]]:
    """Parses the list that an answer holds under `name`."""
    return lambda body: tuple(model.model_validate(one) for one in body[name])
