"""Serving: a handler's answer or its error as a reply. One of the two places where an error becomes a reply."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from phronesis_contracts import (
    Busy,
    Forbidden,
    Internal,
    Message,
    Principal,
    Rpc,
    ServiceError,
    TimedOut,
    Tool,
)

from . import envelope
from .connection import INBOX, Bus
from .envelope import Call
from .metrics import RPC, TOOL
from .refusals import another_tenants, audit, foreign, verified
from .tracing import user

log = logging.getLogger(__name__)

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
_WAITING_PER_WORKER = 16
_HEADERS = 4096
"""Bytes of the broker's limit that are kept for an answer's headers."""


async def serve(
    bus: Bus,
    contract: Rpc[In, Out] | Tool[In, Out],
    handler: Callable[[Call, In], Awaitable[Out]],
    *,
    workers: int = 32,
    every_copy: bool = False,
) -> None:
    """Answer `contract` with `handler`, up to `workers` questions side by side.

    The principal is verified, the tenant held against the subject's, a tool's roles are checked, the body is parsed, the
    deadline is kept. Whatever the handler raises becomes a typed reply; anything that is no `ServiceError` is logged here
    and leaves as `Internal`, without its text. With `every_copy` this process also answers what all copies of the service
    are asked (`ask_each`).
    """
    rpc = contract.rpc if isinstance(contract, Tool) else contract
    slots = asyncio.Semaphore(workers)
    running: set[asyncio.Task[None]] = set()

    async def answer(msg: Msg) -> None:
        async with slots:
            await _answer(bus, contract, rpc, handler, msg)

    async def received(msg: Msg) -> None:
        who = verified(bus, msg)
        answerable = msg.reply.startswith(f"{(who and who.inbox) or INBOX}.")
        work = answer(msg) if answerable else _unanswerable(bus, contract, who, msg)
        if len(running) >= workers * _WAITING_PER_WORKER:
            work.close()
            if answerable:
                await _fail(bus, msg, Busy(f"{rpc.service} has too much to do", retry_after=1))
            return
        task = asyncio.create_task(work)
        running.add(task)
        task.add_done_callback(running.discard)

    subscriptions = [await bus.nats.subscribe(rpc.on("*"), queue=rpc.service, cb=received)]
    if every_copy:
        subscriptions.append(await bus.nats.subscribe(rpc.on_each("*"), cb=received))
    await bus.settled()

    async def close() -> None:
        await bus.drain(*subscriptions)
        if running:
            await asyncio.wait(running, timeout=5)

    bus.on_stop(close)


async def _unanswerable(bus: Bus, contract: Rpc[Any, Any] | Tool[Any, Any], who: Principal | None, msg: Msg) -> None:
    log.warning("dropped a request on %s whose reply subject is not the caller's inbox", msg.subject)
    if who is not None and foreign(who, msg):
        await audit(bus, contract, who, msg, another_tenants())


async def _answer(
    bus: Bus,
    contract: Rpc[In, Out] | Tool[In, Out],
    rpc: Rpc[In, Out],
    handler: Callable[[Call, In], Awaitable[Out]],
    msg: Msg,
) -> None:
    headers = msg.headers
    envelope.adopt(headers)
    began, outcome = time.perf_counter(), "ok"
    with _asked(bus, contract, rpc, headers) as span:
        call: Call | None = None
        request: In | None = None
        try:
            call = _call(bus, msg)
            user.set(call.who.user)
            if foreign(call.who, msg):
                raise another_tenants()
            if isinstance(contract, Tool) and call.who.role not in contract.roles:
                raise Forbidden(f"role {call.who.role} may not use {contract.name}")
            request = envelope.given(rpc.input, msg.data, rpc.max_bytes)
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
            which = {envelope.PROCESS: bus.process} if msg.subject.endswith(".each") else {}
            await _reply(bus, msg, body, envelope.headers(bus.name) | which)
        except ServiceError as error:
            outcome = _marked(span, error.code)
            await _fail(bus, msg, error)
            if isinstance(error, Forbidden) and call is not None:
                await audit(bus, contract, call.who, msg, error)
        except TimeoutError:
            outcome = _marked(span, TimedOut.code)
            await _fail(bus, msg, TimedOut(f"{rpc.subject} took too long"))
        except Exception as error:
            log.exception("%s failed", rpc.subject)
            outcome = _marked(span, Internal.code)
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            await _fail(bus, msg, Internal(f"{rpc.service} failed"))
        finally:
            seconds = time.perf_counter() - began
            bus.tracing.metrics.observe(RPC, seconds, rpc.subject, outcome)
            if isinstance(contract, Tool):
                bus.tracing.metrics.observe(TOOL, seconds, contract.name, outcome)


def _asked(
    bus: Bus, contract: Rpc[Any, Any] | Tool[Any, Any], rpc: Rpc[Any, Any], headers: Mapping[str, str] | None
) -> AbstractContextManager[Span]:
    tool = contract.name if isinstance(contract, Tool) else None
    return bus.tracing.span(
        f"serve {rpc.subject}",
        kind=SpanKind.SERVER,
        parent=envelope.header(headers, envelope.TRACEPARENT),
        rpc__system__name="nats",
        rpc__method=rpc.subject,
        messaging__system="nats",
        gen_ai__operation__name="execute_tool" if tool else None,
        gen_ai__tool__name=tool,
        gen_ai__tool__type="function" if tool else None,
    )


def _marked(span: Span, code: str) -> str:
    span.set_attribute("error.type", code)
    return code


def _call(bus: Bus, msg: Msg) -> Call:
    who = bus.verifier.principal(envelope.header(msg.headers, envelope.PRINCIPAL))
    service = envelope.sender(who, msg.headers)
    return Call(who, service, envelope.key(msg.headers))


async def _fail(bus: Bus, msg: Msg, error: ServiceError) -> None:
    headers = envelope.headers(bus.name) | {envelope.ERROR: error.code, envelope.ERROR_STATUS: str(error.status)}
    await _reply(bus, msg, json.dumps(error.body()).encode(), headers)


async def _reply(bus: Bus, msg: Msg, body: bytes, headers: dict[str, str]) -> None:
    try:
        await bus.nats.publish(msg.reply, body, headers=headers)
    except NatsError:
        log.warning("an answer to %s could not be sent", msg.subject)
