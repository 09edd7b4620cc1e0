"""Questions and answers: `ask` and `serve`. A handler's error becomes a reply, and a reply the error that the owner raised."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, ConnectionReconnectingError, NoRespondersError, OutboundBufferLimitError
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeout
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from pydantic import ValidationError

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
    TooLarge,
    Unauthorized,
    Unavailable,
)

from . import envelope
from .connection import INBOX, Bus
from .envelope import Call
from .metrics import RPC, TOOL
from .streams import record_refusal
from .tracing import user

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
_QUIET = 0.25
"""Seconds without an answer after which no further copy of a service is waited for: how many there are, nobody knows."""


async def ask(
    bus: Bus, who: Principal, rpc: Rpc[In, Out], request: In, *, timeout: float | None = None, key: str | None = None
) -> Out:
    """Ask `rpc`'s owner on behalf of `who`.

    Args:
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
        headers[envelope.PRINCIPAL] = bus.token(who, rpc.service)
        headers[envelope.DEADLINE] = f"{time.time() + limit:.3f}"
        if key is not None:
            headers[envelope.KEY] = key
        reply = await _request(bus, rpc.on(who.tenant), body, limit, headers)
        if envelope.header(reply.headers, envelope.ERROR):
            raise _parse_error(reply.data)
        try:
            return rpc.output.model_validate_json(reply.data)
        except ValidationError as error:
            raise Internal(f"the answer of {rpc.subject} does not fit its contract") from error


async def ask_each(
    bus: Bus, who: Principal, rpc: Rpc[In, Out], request: In, *, timeout: float | None = None, only: str | None = None
) -> dict[str, Out]:
    """Ask every running copy of `rpc`'s owner, for what each process alone knows.

    Args:
        rpc: the contract, which its owner serves with `every_copy`.
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
            headers = envelope.headers(bus.name) | {envelope.PRINCIPAL: bus.token(who, rpc.service)}
            headers[envelope.DEADLINE] = f"{time.time() + limit:.3f}"
            await bus.nats.publish(rpc.on_each(who.tenant), envelope.encode(request), reply=inbox, headers=headers)
            with suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await _collect(rpc, replies, found, only)
        finally:
            await subscription.unsubscribe()
    return found


async def _collect(rpc: Rpc[In, Out], replies: asyncio.Queue[Msg], found: dict[str, Out], only: str | None) -> None:
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


def _parse_error(data: bytes) -> ServiceError:
    try:
        return ServiceError.from_body(json.loads(data))
    except (ValueError, AttributeError):
        return Internal("an error reply that does not parse")


def read_principal(bus: Bus, msg: Msg) -> Principal | None:
    """Whose a request is; `None` where its token is not believed."""
    try:
        return envelope.read_principal(bus.verifier, msg.headers)
    except (Unauthorized, Unavailable):
        return None


def is_foreign(who: Principal, msg: Msg) -> bool:
    """Whether the subject is another tenant's than the principal."""
    return who.tenant != msg.subject.split(".", 2)[1]


def foreign_subject_error() -> Forbidden:
    """The refusal of such a request."""
    return Forbidden("the subject is another tenant's")


async def audit_refusal(bus: Bus, contract: Rpc[Any, Any] | Tool[Any, Any], who: Principal, msg: Msg, error: Forbidden) -> None:
    """Enter a refusal that was made here: of a tool, or of another tenant's subject. Others are their owner's to enter."""
    if is_foreign(who, msg):
        await record_refusal(bus, who, msg.subject.split(".", 2)[2], {"subject": msg.subject}, error)
    elif isinstance(contract, Tool):
        await record_refusal(bus, who, contract.name, _parse_arguments(msg.data), error)


def _parse_arguments(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


log = logging.getLogger(__name__)

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

    The principal is verified, the tenant held against the subject's, a tool's permissions are checked, the body is parsed, the
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
        who = read_principal(bus, msg)
        answerable = msg.reply.startswith(f"{(who and who.inbox) or INBOX}.")
        work = answer(msg) if answerable else _unanswerable(bus, contract, who, msg)
        if len(running) >= workers * _WAITING_PER_WORKER:
            work.close()
            if answerable:
                await _reply_error(bus, msg, Busy(f"{rpc.service} has too much to do", retry_after=1))
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
    if who is not None and is_foreign(who, msg):
        await audit_refusal(bus, contract, who, msg, foreign_subject_error())


async def _answer(
    bus: Bus, contract: Rpc[In, Out] | Tool[In, Out], rpc: Rpc[In, Out], handler: Callable[[Call, In], Awaitable[Out]], msg: Msg
) -> None:
    headers = msg.headers
    envelope.adopt(headers)
    began, outcome = time.perf_counter(), "ok"
    with _server_span(bus, contract, rpc, headers) as span:
        call: Call | None = None
        request: In | None = None
        try:
            call = _call(bus, msg)
            user.set(call.who.user)
            if is_foreign(call.who, msg):
                raise foreign_subject_error()
            if isinstance(contract, Tool) and not contract.open_to(call.who):
                raise Forbidden(f"{call.who.rights} may not use {contract.name}")
            request = envelope.decode_input(rpc.input, msg.data, rpc.max_bytes)
            due = envelope.parse_deadline(envelope.header(headers, envelope.DEADLINE), rpc.timeout)
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
            outcome = _mark_span(span, error.code)
            await _reply_error(bus, msg, error)
            if isinstance(error, Forbidden) and call is not None:
                await audit_refusal(bus, contract, call.who, msg, error)
        except TimeoutError:
            outcome = _mark_span(span, TimedOut.code)
            await _reply_error(bus, msg, TimedOut(f"{rpc.subject} took too long"))
        except Exception as error:
            log.exception("%s failed", rpc.subject)
            outcome = _mark_span(span, Internal.code)
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            await _reply_error(bus, msg, Internal(f"{rpc.service} failed"))
        finally:
            seconds = time.perf_counter() - began
            bus.tracing.metrics.observe(RPC, seconds, rpc.subject, outcome)
            if isinstance(contract, Tool):
                bus.tracing.metrics.observe(TOOL, seconds, contract.name, outcome)


def _server_span(
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


def _mark_span(span: Span, code: str) -> str:
    span.set_attribute("error.type", code)
    return code


def _call(bus: Bus, msg: Msg) -> Call:
    who = envelope.read_principal(bus.verifier, msg.headers)
    service = envelope.sender(who, msg.headers)
    return Call(who, service, envelope.read_key(msg.headers))


async def _reply_error(bus: Bus, msg: Msg, error: ServiceError) -> None:
    headers = envelope.headers(bus.name) | {envelope.ERROR: error.code, envelope.ERROR_STATUS: str(error.status)}
    await _reply(bus, msg, json.dumps(error.body()).encode(), headers)


async def _reply(bus: Bus, msg: Msg, body: bytes, headers: dict[str, str]) -> None:
    try:
        await bus.nats.publish(msg.reply, body, headers=headers)
    except NatsError:
        log.warning("an answer to %s could not be sent", msg.subject)
