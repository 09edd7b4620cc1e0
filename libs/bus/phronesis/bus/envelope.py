"""The envelope: what stands in a message's headers. The body is the message alone."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from phronesis.contracts import BadRequest, Message, Principal, TooLarge

from .tracing import correlation, traceparent

PRINCIPAL = "Phronesis-Principal"
DEADLINE = "Phronesis-Deadline"
CORRELATION = "Correlation-Id"
TRACEPARENT = "traceparent"
SERVICE = "Phronesis-Service"
KEY = "Idempotency-Key"
ERROR = "Nats-Service-Error"
ERROR_STATUS = "Nats-Service-Error-Code"
MESSAGE_ID = "Nats-Msg-Id"
PARKED_FROM = "Phronesis-Parked-From"
PARKED_REASON = "Phronesis-Parked-Reason"

M = TypeVar("M", bound=Message)

LONGEST = 300.0
"""Seconds that a deadline may lie ahead, whatever the caller writes."""

deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
"""When the answer at hand is due, in seconds since the epoch; every question asked on the way inherits it."""


@dataclass(frozen=True)
class Call:
    """How a message came to a handler."""

    who: Principal
    service: str
    """The asking service; the user's name for an outside system."""
    key: str | None = None
    """Idempotency key of a write, unique with tenant and service."""


@dataclass(frozen=True)
class News:
    """How an event came to a handler. An event acts for nobody: it has a tenant and no principal."""

    tenant: str
    id: str
    """The same for every delivery of one event."""
    deliveries: int


def headers(service: str) -> dict[str, str]:
    """The headers that every message of `service` has."""
    result = {SERVICE: service}
    if parent := traceparent():
        result[TRACEPARENT] = parent
    if current := correlation.get():
        result[CORRELATION] = current
    return result


def remaining(timeout: float) -> float:
    """Seconds left: `timeout`, or less where the work at hand is due sooner."""
    due = deadline.get()
    return timeout if due is None else min(timeout, due - time.time())


def due(found: str | None, timeout: float) -> float:
    """When an answer is due: what the header says, or `timeout` seconds from now without one.

    Raises:
        BadRequest: the header holds no time.
    """
    now = time.time()
    try:
        stated = now + timeout if found is None else float(found)
    except ValueError as error:
        raise BadRequest("the deadline is no time") from error
    if not math.isfinite(stated):
        raise BadRequest("the deadline is no time")
    return min(stated, now + LONGEST)


def encode(message: Message) -> bytes:
    """The message as JSON."""
    return message.__pydantic_serializer__.to_json(message)


def decode(model: type[M], data: bytes, limit: int) -> M:
    """The message in `data`.

    Raises:
        TooLarge: `data` is over `limit` bytes.
        BadRequest: `data` is no JSON, or does not fit; the error names the first field at fault.
    """
    if len(data) > limit:
        raise TooLarge(f"the message is over {limit} bytes")
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise invalid(error) from error


def invalid(error: ValidationError) -> BadRequest:
    """The first fault of a validation as our own error, without the value at fault."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return BadRequest(first["msg"], field=field or None)


def header(found: Mapping[str, str] | None, name: str) -> str | None:
    """One header, or `None`."""
    return found.get(name) if found else None
