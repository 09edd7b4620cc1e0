"""Publishing to a stream: done when it is stored, or refused with a reason."""

from __future__ import annotations

import json

from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from phronesis_contracts import Busy, TimedOut, Unavailable

from . import envelope
from .connection import Bus

_TIMEOUT = 5.0
_FULL = {10077, 10122}
"""The server's numbers for a full stream and for a subject that is full."""


async def publish(bus: Bus, subject: str, body: bytes, headers: dict[str, str]) -> bool:
    """Publish to a stream and wait until it is stored.

    Returns:
        `False` where the stream held a message with the same id already.

    Raises:
        Busy: the stream, or the subject in it, is full.
        Unavailable: the broker is away, or no stream takes the subject.
    """
    if not bus.connected:
        raise Unavailable("the broker is away", retry_after=1)
    try:
        reply = await bus.request(subject, body, timeout=envelope.remaining(_TIMEOUT), headers=headers)
        answer = json.loads(reply.data)
    except NoRespondersError as error:
        raise Unavailable("no stream takes the message", retry_after=1) from error
    except (NatsTimeout, TimeoutError) as error:
        raise TimedOut("the broker did not store the message in time") from error
    except (NatsError, OSError, ValueError) as error:
        raise Unavailable("the broker did not store the message", retry_after=1) from error
    if problem := answer.get("error"):
        if problem.get("err_code") in _FULL:
            raise Busy("the queue is full", retry_after=2)
        raise Unavailable("the broker did not store the message", retry_after=1)
    return not answer.get("duplicate", False)
