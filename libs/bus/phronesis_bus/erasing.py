"""Erasing what streams keep of something that is forgotten: lines that were shown of turns, and messages that were parked."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from nats.errors import Error as NatsError

from phronesis_contracts import Out, Unavailable

from . import envelope
from .connection import Bus
from .stored import stored

_ANSWER = 5.0
_GONE = {10037, 10057}
"""The server's numbers for a message, or a sequence, that is not there."""
_NO_ADDRESS = 3
"""Tokens of a parked message's former subject that have to be there: its kind, the tenant and the rest."""


async def erase_shown(bus: Bus, out: Out[Any], tenant: str, user: str, turns: Iterable[str]) -> int:
    """Erase what was shown of a user's turns; how many lines that were. The service must be allowed to.

    Raises:
        Unavailable: the broker is away, or does not erase.
    """
    gone = 0
    for turn in turns:
        answer = await _api(bus, "STREAM.PURGE.OUT", {"filter": out.on(tenant, user, turn)})
        gone += int(answer.get("purged", 0))
    return gone


async def erase_parked(bus: Bus, tenant: str, ids: Iterable[str]) -> int:
    """Erase a tenant's parked messages that name one of these ids as a whole text; how many that were.

    The stream is read through: what is parked is the exception, and nothing else says what a message holds.

    Raises:
        Unavailable: the broker is away, or does not erase.
        TimedOut: it did not answer in time.
    """
    fields = [json.dumps(id).encode() for id in ids]
    gone = sequence = 0
    while fields and (found := await stored(bus, "PARKED", "parked.>", sequence)) is not None:
        sequence = int(found["seq"])
        body = base64.b64decode(found.get("data", ""))
        if _tenant(found) == tenant and any(field in body for field in fields):
            await _api(bus, "STREAM.MSG.DELETE.PARKED", {"seq": sequence})
            gone += 1
    return gone


def _tenant(found: dict[str, Any]) -> str | None:
    """Whose a parked message is: it says on which subject it was sent."""
    for line in base64.b64decode(found.get("hdrs", "")).decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        parts = value.strip().split(".", 2)
        if name.strip().casefold() == envelope.PARKED_FROM.casefold() and len(parts) == _NO_ADDRESS:
            return parts[1]
    return None


async def _api(bus: Bus, what: str, body: dict[str, Any]) -> dict[str, Any]:
    if not bus.connected:
        raise Unavailable("the broker is away", retry_after=1)
    try:
        reply = await bus.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=_ANSWER)
        answer: dict[str, Any] = json.loads(reply.data)
    except (NatsError, TimeoutError, OSError, ValueError) as error:
        raise Unavailable("the broker did not erase", retry_after=1) from error
    problem = answer.get("error")
    if problem and problem.get("err_code") not in _GONE:
        raise Unavailable("the broker refused to erase", retry_after=1)
    return answer
