"""Questions and answers: `ask` and `serve`. A handler's error becomes a reply, and a reply the error that the owner raised."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from faststream import BaseMiddleware, ContextRepo, Response
from faststream.message import StreamMessage
from faststream.nats import NatsMessage, NatsRouter
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, ConnectionReconnectingError, NoRespondersError, OutboundBufferLimitError
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeout
from opentelemetry.trace import SpanKind, Status, StatusCode, get_current_span
from pydantic import ValidationError

from phronesis_contracts import (
    Busy,
    Forbidden,
    Internal,
    Message,
    Principal,
    Role,
    Rpc,
    ServiceError,
    TimedOut,
    Tool,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

from . import envelope
from .connection import INBOX, Bus
from .envelope import Call
from .fairness import FairQueue, Verdict
from .metrics import RPC, RPC_REFUSED, RPC_WAITED, TOOL
from .streams import record_refusal
from .tracing import correlation, user

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


log = logging.getLogger(__name__)

_Request = StreamMessage[Any]
_Next = Callable[[_Request], Awaitable[Response]]

_AT_ONCE = 0.005
"""Seconds of waiting that are not worth a figure: the event loop's own."""
_HEADERS = 4096
"""Bytes of the broker's limit that are kept for an answer's headers."""


_call: ContextVar[Call | None] = ContextVar("call", default=None)
"""How the request at hand came, once its principal is believed."""


@dataclass(frozen=True)
class _Served:
    """What one contract's middlewares know."""

    bus: Bus
    contract: Rpc[Any, Any] | Tool[Any, Any]

    @property
    def rpc(self) -> Rpc[Any, Any]:
        return self.contract.rpc if isinstance(self.contract, Tool) else self.contract

    @property
    def tool(self) -> str | None:
        return self.contract.name if isinstance(self.contract, Tool) else None


class _Middleware(BaseMiddleware[Any, Msg | None]):
    def __init__(self, served: _Served, msg: Msg | None, /, *, context: ContextRepo) -> None:
        super().__init__(msg, context=context)
        self._served = served


class _Traced(_Middleware):
    """A span and a time for each request, in the trace and with the ids of whoever asks.

    FastStream's own would name spans and series by the subject, which holds the tenant.
    """

    async def consume_scope(self, call_next: _Next, msg: _Request) -> Response:
        served, began, outcome = self._served, time.perf_counter(), "ok"
        envelope.adopt(msg.headers)
        span = served.bus.tracing.span(
            f"serve {served.rpc.subject}",
            kind=SpanKind.SERVER,
            parent=envelope.header(msg.headers, envelope.TRACEPARENT),
            rpc__system__name="nats",
            rpc__method=served.rpc.subject,
            messaging__system="nats",
            gen_ai__operation__name="execute_tool" if served.tool else None,
            gen_ai__tool__name=served.tool,
            gen_ai__tool__type="function" if served.tool else None,
        )
        try:
            with span as current:
                response = await call_next(msg)
                if code := response.headers.get(envelope.ERROR):
                    outcome = code
                    current.set_attribute("error.type", code)
                return response
        finally:
            seconds = time.perf_counter() - began
            served.bus.tracing.metrics.observe(RPC, seconds, served.rpc.subject, outcome)
            if served.tool:
                served.bus.tracing.metrics.observe(TOOL, seconds, served.tool, outcome)


class _Answered(_Middleware):
    """Whatever is raised further inside leaves as a typed reply; a refusal is audited once its reply is on the way."""

    _refusal: tuple[Principal, Forbidden] | None = None

    async def consume_scope(self, call_next: _Next, msg: _Request) -> Response:
        rpc = self._served.rpc
        try:
            return await call_next(msg)
        except ServiceError as error:
            if isinstance(error, Forbidden) and (call := _call.get()) is not None:
                self._refusal = call.who, error
            return _error_response(self._served.bus, error)
        except TimeoutError:
            return _error_response(self._served.bus, TimedOut(f"{rpc.subject} took too long"))
        except Exception as error:
            log.exception("%s failed", rpc.subject)
            get_current_span().set_status(Status(StatusCode.ERROR, type(error).__name__))
            return _error_response(self._served.bus, Internal(f"{rpc.service} failed"))

    async def after_processed(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> bool:
        if self._refusal is not None and self.msg is not None:
            await _audit_refusal(self._served, self.msg, *self._refusal)
        return False


class _Permitted(_Middleware):
    """The principal is believed, of the subject's tenant, and may use the tool."""

    async def consume_scope(self, call_next: _Next, msg: _Request) -> Response:
        contract = self._served.contract
        who = envelope.read_principal(self._served.bus.verifier, msg.headers)
        _call.set(Call(who, envelope.sender(who, msg.headers), envelope.read_key(msg.headers)))
        user.set(who.user)
        if _is_foreign(who, msg.raw_message):
            raise _foreign_subject_error()
        if isinstance(contract, Tool) and not contract.open_to(who):
            raise Forbidden(f"{who.rights} may not use {contract.name}")
        return await call_next(msg)


class _Due(_Middleware):
    """The handler ends with the deadline of whoever asks, and what it asks further inside inherits that."""

    async def consume_scope(self, call_next: _Next, msg: _Request) -> Response:
        due = envelope.parse_deadline(envelope.header(msg.headers, envelope.DEADLINE), self._served.rpc.timeout)
        envelope.deadline.set(due)
        left = due - time.time()
        if left <= 0:
            raise TimedOut("the deadline had passed when the question came")
        async with asyncio.timeout(left):
            return await call_next(msg)


async def serve(
    bus: Bus,
    contract: Rpc[In, Out] | Tool[In, Out],
    handler: Callable[[Call, In], Awaitable[Out]],
    *,
    workers: int = 32,
    every_copy: bool = False,
) -> None:
    """Answer `contract` with `handler`, up to `workers` questions side by side, tenants and their users in turn.

    The principal is verified, the tenant held against the subject's, a tool's permissions are checked, the deadline is kept,
    the body is parsed. Whatever the handler raises becomes a typed reply; anything that is no `ServiceError` is logged here
    and leaves as `Internal`, without its text. With `every_copy` this process also answers what all copies of the service
    are asked (`ask_each`).
    """
    served = _Served(bus, contract)
    rpc: Rpc[In, Out] = served.rpc

    async def handle(request: _Request) -> Response:
        call = _call.get()
        assert call is not None  # `_Permitted` lets no other request through
        result = await handler(call, envelope.decode_input(rpc.input, request.body, rpc.max_bytes))
        body = envelope.encode(result)
        if len(body) > bus.nats.max_payload - _HEADERS:
            log.error("an answer of %s is over the broker's limit: %d bytes", rpc.subject, len(body))
            raise Internal(f"the answer of {rpc.subject} is over the broker's limit")
        which = {envelope.PROCESS: bus.process} if request.raw_message.subject.endswith(".each") else {}
        return _response(body, envelope.headers(bus.name) | which)

    parts: tuple[type[_Middleware], ...] = (_Traced, _Answered, _Permitted, _Due)
    router = NatsRouter(middlewares=[partial(part, served) for part in parts])
    bus.application.include_router(router)
    endpoint = router.subscriber(rpc.on("*"), rpc.service, parser=_parse)
    endpoint(handle)
    admission = _Admission(served, endpoint.process_message, workers)
    # Admission comes before FastStream's parsing and queue: behind those `busy` would be said too late, or never.
    subscriptions = [await bus.nats.subscribe(rpc.on("*"), queue=rpc.service, cb=admission.received)]
    if every_copy:
        subscriptions.append(await bus.nats.subscribe(rpc.on_each("*"), cb=admission.received))
    endpoint.subscription = subscriptions[0]  # so that FastStream makes none of its own
    await endpoint.start()
    await bus.settled()

    async def close() -> None:
        await bus.drain(*subscriptions)
        await admission.idle()

    bus.on_stop(close)


@dataclass(frozen=True)
class _Waiting:
    msg: Msg
    who: Principal | None
    answerable: bool
    """Whether the answer goes to the caller."""
    since: float

    @property
    def tenant(self) -> str:
        return self.who.tenant if self.who else ""


class _Admission:
    """Which raw messages become requests: those whose answer goes to the caller, each tenant and user in its turn."""

    def __init__(self, served: _Served, process: Callable[[Msg], Awaitable[Any]], workers: int) -> None:
        shares = served.bus.fairness
        self._served = served
        self._process = process
        self._queue: FairQueue[_Waiting] = FairQueue(workers, shares.tenant_share, shares.tenant_weights)
        self._running: set[asyncio.Task[None]] = set()

    async def received(self, msg: Msg) -> None:
        who = _read_principal(self._served.bus, msg)
        answerable = msg.reply.startswith(f"{(who and who.inbox) or INBOX}.")
        one = _Waiting(msg, who, answerable, time.perf_counter())
        if who is not None and _has_rate(who) and not await self._in_rate(one, who):
            return
        no_room = self._queue.put(one.tenant, who.user if who else "", one)
        self._begin()
        if no_room is not None:
            await self._refuse(no_room, "busy", Busy(f"{self._served.rpc.service} has too much to do", retry_after=1))

    async def idle(self) -> None:
        """Wait for the work at hand, for some seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                while self._running:
                    await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)

    async def _in_rate(self, one: _Waiting, who: Principal) -> bool:
        rates = self._served.bus.rates
        verdict = rates.check(who.key or f"{who.tenant}/{who.user}")
        if verdict is Verdict.REFUSE:
            error = TooManyRequests(f"this key may ask {rates.rate:g} times a second", retry_after=max(1.0, 1 / rates.rate))
            await self._refuse(one, "rate", error)
        elif verdict is Verdict.DROP:
            self._served.bus.tracing.metrics.count(RPC_REFUSED, one.tenant, "dropped")
        return verdict is Verdict.PASS

    async def _refuse(self, one: _Waiting, reason: str, error: ServiceError) -> None:
        bus = self._served.bus
        bus.tracing.metrics.count(RPC_REFUSED, one.tenant, reason)
        if not one.answerable:
            return
        response = _error_response(bus, error)
        try:
            await bus.nats.publish(one.msg.reply, response.body, headers=response.headers)
        except NatsError:
            log.warning("an answer to %s could not be sent", one.msg.subject)

    def _begin(self) -> None:
        while (found := self._queue.take()) is not None:
            task = asyncio.create_task(self._work(*found))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _work(self, tenant: str, one: _Waiting) -> None:
        try:
            if not one.answerable:
                await self._drop(one)
                return
            waited = time.perf_counter() - one.since
            if waited > _AT_ONCE:
                self._served.bus.tracing.metrics.observe(RPC_WAITED, waited, one.tenant)
            await self._process(one.msg)
        finally:
            self._queue.done(tenant)
            self._begin()

    async def _drop(self, one: _Waiting) -> None:
        log.warning("dropped a request on %s whose reply subject is not the caller's inbox", one.msg.subject)
        if one.who is not None and _is_foreign(one.who, one.msg):
            await _audit_refusal(self._served, one.msg, one.who, _foreign_subject_error())


async def _parse(msg: Msg) -> NatsMessage:
    return NatsMessage(msg, msg.data, headers=msg.headers, reply_to=msg.reply)


def _read_principal(bus: Bus, msg: Msg) -> Principal | None:
    """Whose a request is; `None` where its token is not believed."""
    try:
        return envelope.read_principal(bus.verifier, msg.headers)
    except (Unauthorized, Unavailable):
        return None


def _has_rate(who: Principal) -> bool:
    """Whether it is an external system, whose requests no gateway has counted; the owner of a local stack has no rate."""
    first = (who.tenant, who.user, who.role, who.acted_by) == ("local", "owner", Role.OWNER, None)
    return who.inbox is not None and not first


def _is_foreign(who: Principal, msg: Msg) -> bool:
    return who.tenant != msg.subject.split(".", 2)[1]


def _foreign_subject_error() -> Forbidden:
    return Forbidden("the subject is another tenant's")


async def _audit_refusal(served: _Served, msg: Msg, who: Principal, error: Forbidden) -> None:
    """Enter a refusal that was made here: of a tool, or of another tenant's subject. Others are their owner's to enter."""
    if _is_foreign(who, msg):
        await record_refusal(served.bus, who, msg.subject.split(".", 2)[2], {"subject": msg.subject}, error)
    elif served.tool:
        await record_refusal(served.bus, who, served.tool, _parse_arguments(msg.data), error)


def _parse_arguments(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _response(body: bytes, headers: dict[str, str]) -> Response:
    return Response(body, headers={"content-type": "application/json"} | headers, correlation_id=correlation.get())


def _error_response(bus: Bus, error: ServiceError) -> Response:
    stated = {envelope.ERROR: error.code, envelope.ERROR_STATUS: str(error.status)}
    return _response(json.dumps(error.body()).encode(), envelope.headers(bus.name) | stated)
