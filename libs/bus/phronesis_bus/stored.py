"""Reading a stream message by message, without a consumer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from phronesis_contracts import TimedOut, Unavailable

from . import envelope

if TYPE_CHECKING:  # a connection reads which keys are revoked before it is handed out
    from .connection import Bus

_NO_MESSAGE = 10037


async def stored(bus: Bus, stream: str, subject: str, after: int) -> dict[str, Any] | None:
    """The first message on `subject` behind the sequence `after`, as the broker's API gives it; `None` where there is none.

    Raises:
        Unavailable: the broker is away or has no such stream.
        TimedOut: it did not answer in time.
    """
    if not bus.connected:
        raise Unavailable("the broker is away", retry_after=1)
    wanted = json.dumps({"seq": after + 1, "next_by_subj": subject}).encode()
    try:
        reply = await bus.request(f"$JS.API.STREAM.MSG.GET.{stream}", wanted, timeout=envelope.remaining(3.0))
        answer = json.loads(reply.data)
    except NoRespondersError as error:
        raise Unavailable(f"there is no stream {stream}", retry_after=1) from error
    except (NatsTimeout, TimeoutError) as error:
        raise TimedOut("the broker did not answer in time") from error
    except (NatsError, OSError, ValueError) as error:
        raise Unavailable("the broker did not answer", retry_after=1) from error
    if problem := answer.get("error"):
        if problem.get("err_code") == _NO_MESSAGE:
            return None
        raise Unavailable(f"there is no stream {stream}", retry_after=1)
    found: dict[str, Any] = answer["message"]
    return found
