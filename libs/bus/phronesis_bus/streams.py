"""Durable messages: `tell` and `take` for jobs, `announce` and `follow` for events, `show` for progress.

Pull consumers are read by `pulling`; their handlers are given what the envelope and the contract let through.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from uuid import uuid4

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from opentelemetry.trace import Span, SpanKind

from phronesis_contracts import (
    Event,
    Forbidden,
    Job,
    Message,
    Out,
    Principal,
    ServiceError,
    TooLarge,
)
from phronesis_contracts.service import AUDITED

from . import envelope
from .audit import audited
from .connection import Bus
from .envelope import Call, News
from .publishing import publish
from .pulling import pull
from .redelivery import Work
from .topology import JOB_STREAMS

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


async def tell(bus: Bus, who: Principal, job: Job[M], message: M) -> None:
    """Put work on a job queue, on behalf of `who`; it is stored when this returns.

    Raises:
        Busy: the tenant's queue is full.
        Unavailable: the broker is away or has no such queue.
    """
    with _published(bus, "tell", job):
        headers = envelope.headers(bus.name) | {envelope.PRINCIPAL: bus.token(who)}
        await publish(bus, job.on(who.tenant), _body(job, message), headers)


async def announce(bus: Bus, tenant: str, event: Event[M], message: M, *, id: str | None = None) -> None:
    """Publish news; it is stored when this returns. Changes of a store go through its outbox, not through here."""
    with _published(bus, "announce", event):
        headers = envelope.headers(bus.name) | {envelope.MESSAGE_ID: f"{tenant}.{event.subject}.{id or uuid4()}"}
        await publish(bus, event.on(tenant), _body(event, message), headers)


def _published(bus: Bus, operation: str, contract: Job[Any] | Event[Any]) -> AbstractContextManager[Span]:
    return bus.tracing.span(
        f"{operation} {contract.subject}",
        kind=SpanKind.PRODUCER,
        messaging__system="nats",
        messaging__destination__name=contract.on("*"),
        messaging__operation__name=operation,
        messaging__operation__type="send",
    )


async def refused(bus: Bus, who: Principal, action: str, arguments: dict[str, Any], error: ServiceError) -> None:
    """Enter in the audit trail that `who` was refused `action`. A trail that is away changes nothing about the refusal."""
    try:
        await announce(bus, who.tenant, AUDITED[bus.name], audited(who, action, arguments, code=error.code))
    except ServiceError:
        log.exception("a refusal could not be audited")


async def show(bus: Bus, who: Principal, out: Out[M], turn: str, message: M) -> None:
    """Show a turn's progress to whoever watches. It is a hint: when the broker is away it is dropped."""
    try:
        await bus.nats.publish(out.on(who.tenant, who.user, turn), envelope.encode(message), headers=envelope.headers(bus.name))
    except NatsError:
        log.warning("progress of a turn could not be shown")


def _body(contract: Job[Any] | Event[Any], message: Message) -> bytes:
    body = envelope.encode(message)
    if len(body) > contract.max_bytes:
        raise TooLarge(f"a message to {contract.subject} is over {contract.max_bytes} bytes")
    return body


async def take(bus: Bus, job: Job[M], handler: Callable[[Call, M], Awaitable[None]], *, workers: int = 4) -> None:
    """Take jobs, and acknowledge each after its handler: the platform's own and those of outside systems, up to `workers` of
    each side by side.

    A job without a good principal, or that does not parse, is handed to nobody: it is terminated and logged. One with
    another tenant's principal is audited.
    """

    def opened(msg: Msg) -> Work:
        stored = msg.metadata.timestamp.timestamp()
        who = bus.verifier.principal(envelope.header(msg.headers, envelope.PRINCIPAL), at=stored)
        if who.tenant != msg.subject.split(".", 2)[1]:
            log.warning("a job on %s is another tenant's", msg.subject)
            foreign = Forbidden("the subject is another tenant's")
            return lambda: refused(bus, who, job.subject, {"subject": msg.subject}, foreign)
        message = envelope.decode(job.input, msg.data, job.max_bytes)
        return lambda: handler(Call(who, envelope.sender(who, msg.headers)), message)

    for stream in JOB_STREAMS:
        await pull(bus, stream, job.durable, f"take {job.subject}", opened, workers)


async def follow(
    bus: Bus, event: Event[M], handler: Callable[[News, M], Awaitable[None]], *, workers: int = 4, every_copy: bool = False
) -> None:
    """Follow an event, at least once, up to `workers` messages side by side. The handler must bear a repeat.

    Args:
        bus: the connected bus.
        event: the contract; this service must stand among its followers.
        handler: what to do.
        workers: how many at once.
        every_copy: each running copy of the service hears it, and what is said while a copy is away is not repeated to
            it: for dropping caches, which must also expire by themselves.
    """

    def opened(msg: Msg) -> Work:
        id = envelope.header(msg.headers, envelope.MESSAGE_ID)
        if id is None or envelope.header(msg.headers, envelope.SERVICE) != event.service:
            raise Forbidden("an event without its envelope")
        deliveries = 1 if every_copy else msg.metadata.num_delivered
        news = News(msg.subject.split(".", 2)[1], id, deliveries)
        message = envelope.decode(event.input, msg.data, event.max_bytes)
        return lambda: handler(news, message)

    if every_copy:
        await _hear(bus, event, opened)
    else:
        await pull(bus, "EVT", event.durable(bus.name), f"follow {event.subject}", opened, workers)


async def _hear(bus: Bus, event: Event[Any], opened: Callable[[Msg], Work]) -> None:
    async def received(msg: Msg) -> None:
        try:
            await opened(msg)()
        except Exception:
            log.exception("%s was not heard", event.subject)

    subscription = await bus.nats.subscribe(event.on("*"), cb=received)
    await bus.settled()
    bus.on_stop(lambda: bus.drain(subscription))
