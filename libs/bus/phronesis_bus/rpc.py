"""Asking: a question on the bus, and its answer or its error as the class that the owner raised."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import TypeVar

from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, ConnectionReconnectingError, NoRespondersError, OutboundBufferLimitError
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeout
from opentelemetry.trace import SpanKind
from pydantic import ValidationError

from phronesis_contracts import Internal, Message, Principal, Rpc, ServiceError, TimedOut, TooLarge, Unavailable

from . import envelope
from .connection import Bus

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
_QUIET = 0.25
"""Seconds without an answer after which no further copy of a service is waited for: how many there are, nobody knows."""


async def ask(
    bus: Bus, who: Principal, rpc: Rpc[In, Out], request: In, *, timeout: float | None = None, key: str | None = None
) -> Out:
    """Ask `rpc`'s owner on behalf of `who`.

    Args:
        bus: the connected bus.
        who: the caller; the token for it is signed by this service.
        rpc: the contract.
        request: the question.
        timeout: seconds to wait, the contract's by default; never longer than the work at hand has.
        key: idempotency key of a write.

    Raises:
        ServiceError: what the owner answered, as the same class; `Unavailable` where nobody serves it or the broker is
            away; `TimedOut` where no answer came in time.
    """
    limit = envelope.remaining(rpc.timeout if timeout is None else timeout)
    if limit <= 0:
        raise TimedOut(f"no time left to ask {rpc.subject}")
    body = envelope.encode(request)
    if len(body) > rpc.max_bytes:
        raise TooLarge(f"a message to {rpc.subject} is over {rpc.max_bytes} bytes")
    with bus.tracing.span(
        f"ask {rpc.subject}", kind=SpanKind.CLIENT, rpc__system__name="nats", rpc__method=rpc.subject, messaging__system="nats"
    ):
        headers = envelope.headers(bus.name)
        headers[envelope.PRINCIPAL] = bus.token(who)
        headers[envelope.DEADLINE] = f"{time.time() + limit:.3f}"
        if key is not None:
            headers[envelope.KEY] = key
        reply = await _request(bus, rpc.on(who.tenant), body, limit, headers)
        if envelope.header(reply.headers, envelope.ERROR):
            raise _error(reply.data)
        try:
            return rpc.output.model_validate_json(reply.data)
        except ValidationError as error:
            raise Internal(f"the answer of {rpc.subject} does not fit its contract") from error


async def ask_each(
    bus: Bus, who: Principal, rpc: Rpc[In, Out], request: In, *, timeout: float | None = None, only: str | None = None
) -> dict[str, Out]:
    """Ask every running copy of `rpc`'s owner, for what each process alone knows.

    Args:
        bus: the connected bus.
        who: the caller.
        rpc: the contract, which its owner serves with `every_copy`.
        request: the question.
        timeout: seconds to wait at most, the contract's by default.
        only: the process whose answer is all that is waited for.

    Returns:
        The answers by the process that gave them, those that came before none had come for a quarter of a second. Empty
        where no copy runs, and where the broker is away.
    """
    if not bus.connected:
        return {}
    limit = envelope.remaining(rpc.timeout if timeout is None else timeout)
    found: dict[str, Out] = {}
    replies: asyncio.Queue[Msg] = asyncio.Queue()
    inbox = bus.nats.new_inbox()
    with suppress(NatsError, OSError):
        subscription = await bus.nats.subscribe(inbox, cb=replies.put)
        try:
            headers = envelope.headers(bus.name) | {envelope.PRINCIPAL: bus.token(who)}
            headers[envelope.DEADLINE] = f"{time.time() + limit:.3f}"
            await bus.nats.publish(rpc.on_each(who.tenant), envelope.encode(request), reply=inbox, headers=headers)
            with suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await _collect(rpc, replies, found, only)
        finally:
            await subscription.unsubscribe()
    return found


async def _collect(rpc: Rpc[In, Out], replies: asyncio.Queue[Msg], found: dict[str, Out], only: str | None) -> None:
    """Add answers to `found` until no more are awaited. The broker itself answers where nobody listens."""
    while only not in found:
        async with asyncio.timeout(_QUIET if found else None):
            reply = await replies.get()
        process = envelope.header(reply.headers, envelope.PROCESS)
        if process is None:
            if envelope.header(reply.headers, "Status") == "503":
                return
            continue
        with suppress(ValidationError):
            found[process] = rpc.output.model_validate_json(reply.data)


async def _request(bus: Bus, subject: str, body: bytes, limit: float, headers: dict[str, str]) -> Msg:
    if not bus.connected:
        raise Unavailable("the broker is away", retry_after=1)
    try:
        return await bus.request(subject, body, timeout=limit, headers=headers)
    except NoRespondersError as error:
        service = subject.split(".")[2]
        raise Unavailable(f"{service} is not there", retry_after=1) from error
    except (NatsTimeout, TimeoutError) as error:
        raise TimedOut(f"no answer on {subject.split('.', 2)[2]} in time") from error
    except (ConnectionClosedError, ConnectionReconnectingError, OutboundBufferLimitError, OSError) as error:
        raise Unavailable("the broker is away", retry_after=1) from error
    except NatsError as error:
        raise Unavailable("the broker refused the message", retry_after=1) from error


def _error(data: bytes) -> ServiceError:
    try:
        return ServiceError.from_body(json.loads(data))
    except (ValueError, AttributeError):
        return Internal("an error reply that does not parse")
