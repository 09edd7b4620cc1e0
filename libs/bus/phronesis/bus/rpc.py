"""Questions and answers: `ask` and `serve`. One of the two places where an error becomes a reply, and back."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, ConnectionReconnectingError, NoRespondersError, OutboundBufferLimitError
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeout
from opentelemetry.trace import SpanKind
from pydantic import ValidationError

from phronesis.contracts import (
    Busy,
    Forbidden,
    Internal,
    Message,
    Principal,
    Rpc,
    ServiceError,
    TimedOut,
    Tool,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from phronesis.contracts.service import AUDITED, SERVICES

from . import envelope
from .audit import audited
from .connection import INBOX, Bus
from .envelope import Call
from .tracing import correlation

log = logging.getLogger(__name__)

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
_WAITING_PER_WORKER = 16


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
    with bus.tracing.span(f"ask {rpc.subject}", kind=SpanKind.CLIENT):
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


async def _request(bus: Bus, subject: str, body: bytes, limit: float, headers: dict[str, str]) -> Msg:
    if not bus.connected:
        raise Unavailable("the broker is away", retry_after=1)
    try:
        return await bus.nats.request(subject, body, timeout=limit, headers=headers)
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


async def serve(
    bus: Bus, contract: Rpc[In, Out] | Tool[In, Out], handler: Callable[[Call, In], Awaitable[Out]], *, workers: int = 32
) -> None:
    """Answer `contract` with `handler`, up to `workers` questions side by side.

    The principal is verified, the tenant held against the subject's, a tool's roles are checked, the body is parsed, the
    deadline is kept. Whatever the handler raises becomes a typed reply; anything that is no `ServiceError` is logged here
    and leaves as `Internal`, without its text.
    """
    rpc = contract.rpc if isinstance(contract, Tool) else contract
    slots = asyncio.Semaphore(workers)
    running: set[asyncio.Task[None]] = set()

    async def answer(msg: Msg) -> None:
        async with slots:
            await _answer(bus, contract, rpc, handler, msg)

    async def received(msg: Msg) -> None:
        if not msg.reply.startswith(f"{INBOX}.") and not _outsider(bus, msg):
            log.warning("dropped a request on %s whose reply subject is not an inbox", msg.subject)
            return
        if len(running) >= workers * _WAITING_PER_WORKER:
            await _fail(bus, msg, Busy(f"{rpc.service} has too much to do", retry_after=1))
            return
        task = asyncio.create_task(answer(msg))
        running.add(task)
        task.add_done_callback(running.discard)

    subscription = await bus.nats.subscribe(rpc.on("*"), queue=rpc.service, cb=received)

    async def close() -> None:
        await subscription.drain()
        if running:
            await asyncio.wait(running, timeout=5)

    bus.on_stop(close)


def _outsider(bus: Bus, msg: Msg) -> bool:
    """Whether an outside system asks, with a reply subject below its own prefix."""
    try:
        who = bus.verifier.principal(envelope.header(msg.headers, envelope.PRINCIPAL))
    except Unauthorized:
        return False
    return who.inbox is not None and msg.reply.startswith(f"{who.inbox}.")


async def _answer(
    bus: Bus,
    contract: Rpc[In, Out] | Tool[In, Out],
    rpc: Rpc[In, Out],
    handler: Callable[[Call, In], Awaitable[Out]],
    msg: Msg,
) -> None:
    headers = msg.headers
    correlation.set(envelope.header(headers, envelope.CORRELATION))
    with bus.tracing.span(
        f"serve {rpc.subject}", kind=SpanKind.SERVER, parent=envelope.header(headers, envelope.TRACEPARENT)
    ) as span:
        call: Call | None = None
        request: In | None = None
        try:
            call = _call(bus, msg)
            if isinstance(contract, Tool) and call.who.role not in contract.roles:
                raise Forbidden(f"role {call.who.role} may not use {contract.name}")
            request = envelope.decode(rpc.input, msg.data, rpc.max_bytes)
            due = float(envelope.header(headers, envelope.DEADLINE) or time.time() + rpc.timeout)
            envelope.deadline.set(due)
            left = due - time.time()
            if left <= 0:
                raise TimedOut("the deadline had passed when the question came")
            async with asyncio.timeout(left):
                result = await handler(call, request)
            await _reply(bus, msg, envelope.encode(result), envelope.headers(bus.name))
        except ServiceError as error:
            span.set_attribute("error.type", error.code)
            await _fail(bus, msg, error)
            if isinstance(error, Forbidden) and call is not None and isinstance(contract, Tool):
                await _audit_refusal(bus, contract.name, call, msg.data, error)
        except TimeoutError:
            span.set_attribute("error.type", TimedOut.code)
            await _fail(bus, msg, TimedOut(f"{rpc.subject} took too long"))
        except Exception as error:
            log.exception("%s failed", rpc.subject)
            span.set_attribute("error.type", type(error).__name__)
            await _fail(bus, msg, Internal(f"{rpc.service} failed"))


def _call(bus: Bus, msg: Msg) -> Call:
    who = bus.verifier.principal(envelope.header(msg.headers, envelope.PRINCIPAL))
    tenant = msg.subject.split(".", 2)[1]
    if who.tenant != tenant:
        raise Forbidden("the subject is another tenant's")
    if who.inbox is not None and not msg.reply.startswith(f"{who.inbox}."):
        raise Forbidden("the reply subject is not the caller's")
    service = envelope.header(msg.headers, envelope.SERVICE)
    return Call(
        who, service if service in SERVICES and who.inbox is None else who.user, envelope.header(msg.headers, envelope.KEY)
    )


async def _fail(bus: Bus, msg: Msg, error: ServiceError) -> None:
    headers = envelope.headers(bus.name) | {envelope.ERROR: error.code, envelope.ERROR_STATUS: str(error.status)}
    await _reply(bus, msg, json.dumps(error.body()).encode(), headers)


async def _reply(bus: Bus, msg: Msg, body: bytes, headers: dict[str, str]) -> None:
    try:
        await bus.nats.publish(msg.reply, body, headers=headers)
    except NatsError:
        log.warning("an answer to %s could not be sent", msg.subject)


async def _audit_refusal(bus: Bus, tool: str, call: Call, data: bytes, error: ServiceError) -> None:
    from .streams import announce

    try:
        arguments: Any = json.loads(data)
    except ValueError:
        arguments = {}
    entry = audited(call.who, tool, arguments if isinstance(arguments, dict) else {}, code=error.code)
    try:
        await announce(bus, call.who.tenant, AUDITED[bus.name], entry)
    except ServiceError:
        log.exception("a refusal could not be audited")
