"""Serving: a handler's answer or its error as a reply. One of the two places where an error becomes a reply."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from opentelemetry.trace import SpanKind

from phronesis.contracts import Busy, Forbidden, Internal, Message, Rpc, ServiceError, TimedOut, Tool, Unauthorized
from phronesis.contracts.service import AUDITED, SERVICES

from . import envelope
from .audit import audited
from .connection import INBOX, Bus
from .envelope import Call
from .streams import announce
from .tracing import correlation

log = logging.getLogger(__name__)

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
_WAITING_PER_WORKER = 16
_HEADERS = 4096
"""Bytes of the broker's limit that are kept for an answer's headers."""


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
        if not _answerable(bus, msg):
            log.warning("dropped a request on %s whose reply subject is not the caller's inbox", msg.subject)
            return
        if len(running) >= workers * _WAITING_PER_WORKER:
            await _fail(bus, msg, Busy(f"{rpc.service} has too much to do", retry_after=1))
            return
        task = asyncio.create_task(answer(msg))
        running.add(task)
        task.add_done_callback(running.discard)

    subscription = await bus.nats.subscribe(rpc.on("*"), queue=rpc.service, cb=received)
    await bus.settled()

    async def close() -> None:
        await bus.drain(subscription)
        if running:
            await asyncio.wait(running, timeout=5)

    bus.on_stop(close)


def _answerable(bus: Bus, msg: Msg) -> bool:
    """Whether the reply subject is an inbox, and the caller's own where an outside system asks."""
    try:
        inbox = bus.verifier.principal(envelope.header(msg.headers, envelope.PRINCIPAL)).inbox
    except Unauthorized:
        inbox = None
    return msg.reply.startswith(f"{inbox or INBOX}.")


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
            due = envelope.due(envelope.header(headers, envelope.DEADLINE), rpc.timeout)
            envelope.deadline.set(due)
            left = due - time.time()
            if left <= 0:
                raise TimedOut("the deadline had passed when the question came")
            async with asyncio.timeout(left):
                result = await handler(call, request)
            body = envelope.encode(result)
            if len(body) > bus.nats.max_payload - _HEADERS:
                log.error("an answer of %s is over the broker's limit: %d bytes", rpc.subject, len(body))
                raise Internal(f"the answer of {rpc.subject} is over the broker's limit")
            await _reply(bus, msg, body, envelope.headers(bus.name))
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
    try:
        arguments: Any = json.loads(data)
    except ValueError:
        arguments = {}
    entry = audited(call.who, tool, arguments if isinstance(arguments, dict) else {}, code=error.code)
    try:
        await announce(bus, call.who.tenant, AUDITED[bus.name], entry)
    except ServiceError:
        log.exception("a refusal could not be audited")
