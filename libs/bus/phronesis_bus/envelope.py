"""The envelope: what stands in a message's headers. The body is the message alone."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from phronesis_contracts import BadRequest, Message, Principal, TooLarge
from phronesis_contracts.service import SERVICES

from .principals import Verifier
from .tracing import conversation, correlation, traceparent, turn

PRINCIPAL = "Phronesis-Principal"
DEADLINE = "Phronesis-Deadline"
CORRELATION = "Correlation-Id"
TRACEPARENT = "traceparent"
TURN = "Phronesis-Turn"
CONVERSATION = "Phronesis-Conversation"
SERVICE = "Phronesis-Service"
KEY = "Idempotency-Key"
ERROR = "Nats-Service-Error"
ERROR_STATUS = "Nats-Service-Error-Code"
MESSAGE_ID = "Nats-Msg-Id"
PROCESS = "Phronesis-Process"
"""Which running copy of a service answers, where all of them were asked."""
PARKED_FROM = "Phronesis-Parked-From"
PARKED_REASON = "Phronesis-Parked-Reason"

M = TypeVar("M", bound=Message)

LONGEST_KEY = 400
"""Characters of an idempotency key: what a caller of the gateway may send, and what the gateway puts before it."""
LONGEST_ID = 200
"""Characters of a correlation id, and of the ids of a turn and a conversation."""
_AT_HAND = {CORRELATION: correlation, TURN: turn, CONVERSATION: conversation}
"""Ids that stand in every message, and in the log lines of whoever gets it."""
LONGEST = 300.0
"""Seconds that a deadline may lie ahead, whatever the caller writes."""

deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
"""When the answer at hand is due, in seconds since the epoch; every question asked on the way inherits it."""


@dataclass(frozen=True)
class Call:
    """How a message came to a handler."""

    who: Principal
    service: str
    """The asking service; `bus/<user>` for an outside system, so that its keys of writes never meet a service's."""
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
    result = {SERVICE: service}
    if parent := traceparent():
        result[TRACEPARENT] = parent
    return result | {name: current for name, id in _AT_HAND.items() if (current := id.get())}


def sender(who: Principal, found: Mapping[str, str] | None) -> str:
    """Who sent a message: the service that its headers name, or the outside system that acts for `who`."""
    stated = header(found, SERVICE)
    return stated if stated in SERVICES and who.inbox is None else f"bus/{who.user}"


def read_principal(verifier: Verifier, found: Mapping[str, str] | None, *, at: float | None = None) -> Principal:
    """Whom a message acts for, as its headers say; raises as `Verifier.principal` does."""
    return verifier.principal(header(found, PRINCIPAL), at=at, request=header(found, CORRELATION))


def read_key(found: Mapping[str, str] | None) -> str | None:
    """The idempotency key of a write. Raises `BadRequest`: it is nothing that a store could keep."""
    stated = header(found, KEY)
    if stated is not None and not _is_plain(stated, LONGEST_KEY):
        raise BadRequest(f"an idempotency key is 1 to {LONGEST_KEY} printable ASCII characters", field=KEY)
    return stated


def adopt(found: Mapping[str, str] | None) -> None:
    """Take over the ids that a message brings, for the questions and the log lines of the work on it; only plain short ones."""
    for name, id in _AT_HAND.items():
        stated = header(found, name)
        id.set(stated if stated is not None and _is_plain(stated, LONGEST_ID) else None)


def _is_plain(text: str, longest: int) -> bool:
    return 1 <= len(text) <= longest and text.isascii() and text.isprintable()


def remaining(timeout: float) -> float:
    """Seconds left: `timeout`, or less where the work at hand is due sooner."""
    due = deadline.get()
    return timeout if due is None else min(timeout, due - time.time())


def parse_deadline(found: str | None, timeout: float) -> float:
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
        raise to_bad_request(error) from error


def decode_input(model: type[M], data: bytes, limit: int) -> M:
    """The message in `data` as a caller gave it; raises as `decode` does, and for a text that holds NUL: no store keeps one."""
    message = decode(model, data, limit)
    if b"\\u0000" in data and _holds_nul(json.loads(data)):
        raise BadRequest("a text holds NUL")
    return message


def _holds_nul(value: object) -> bool:
    match value:
        case str():
            return "\x00" in value
        case list():
            return any(_holds_nul(member) for member in value)
        case dict():
            return any(_holds_nul(part) for member in value.items() for part in member)
        case _:
            return False


def to_bad_request(error: ValidationError) -> BadRequest:
    """The first fault of a validation as our own error, without the value at fault."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return BadRequest(first["msg"], field=field or None)


def header(found: Mapping[str, str] | None, name: str) -> str | None:
    return found.get(name) if found else None
