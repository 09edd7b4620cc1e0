"""How many messages wait for an operator."""

from __future__ import annotations

import json

from nats.errors import Error as NatsError

from phronesis_contracts import Unavailable

from .connection import Bus


async def parked(bus: Bus) -> int:
    """Messages that were parked and not yet looked at. The declaring program's user alone may ask.

    Raises:
        Unavailable: the broker is away, or has no such stream.
    """
    try:
        reply = json.loads((await bus.request("$JS.API.STREAM.INFO.PARKED", b"", timeout=3)).data)
        return int(reply["state"]["messages"])
    except (NatsError, TimeoutError, OSError, KeyError) as error:
        raise Unavailable("the broker does not say what is parked") from error
