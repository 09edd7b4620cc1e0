"""Durable messages: `tell` and `take` for jobs, `announce` and `follow` for events, `show` for progress.

Pull consumers are read with plain pull requests, one message for each free slot, so that nothing is fetched that
cannot be begun. No exception and no absence of the broker ends a loop.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import uuid4

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout
from opentelemetry.trace import SpanKind

from phronesis.contracts import (
    BadRequest,
    Busy,
    Event,
    Forbidden,
    Job,
    Message,
    Out,
    Principal,
    ServiceError,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
)

from . import envelope
from .connection import INBOX, Bus
from .envelope import Call, News
from .tracing import correlation

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)
_PUBLISH_TIMEOUT = 5.0
_EXPIRES = 20.0
"""Seconds that a pull request stays with the server."""
_LONGEST_DELAY = 60.0
_FULL = {10077, 10122}
"""The server's numbers for a full stream and for a subject that is full."""


async def tell(bus: Bus, who: Principal, job: Job[M], message: M) -> None:
    """Put work on a job queue, on behalf of `who`; it is stored when this returns.

    Raises:
        Busy: the tenant's queue is full.
        Unavailable: the broker is away or has no such queue.
    """
    with bus.tracing.span(f"tell {job.subject}", kind=SpanKind.PRODUCER):
        headers = envelope.headers(bus.name) | {envelope.PRINCIPAL: bus.token(who)}
        await publish(bus, job.on(who.tenant), _body(job, message), headers)


async def announce(bus: Bus, tenant: str, event: Event[M], message: M, *, id: str | None = None) -> None:
    """Publish news; it is stored when this returns. Changes of a store go through its outbox, not through here."""
    headers = envelope.headers(bus.name) | {envelope.MESSAGE_ID: f"{tenant}.{id or uuid4()}"}
    await publish(bus, event.on(tenant), _body(event, message), headers)


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
        reply = await bus.nats.request(subject, body, timeout=envelope.remaining(_PUBLISH_TIMEOUT), headers=headers)
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


async def take(bus: Bus, job: Job[M], handler: Callable[[Call, M], Awaitable[None]], *, workers: int = 4) -> None:
    """Take jobs, up to `workers` side by side, and acknowledge each after its handler.

    A job without a good principal, or that does not parse, is handed to nobody: it is terminated and logged.
    """

    async def handle(msg: Msg) -> None:
        stored = msg.metadata.timestamp.timestamp()
        who = bus.verifier.principal(envelope.header(msg.headers, envelope.PRINCIPAL), at=stored)
        if who.tenant != msg.subject.split(".", 2)[1]:
            raise Forbidden("the subject is another tenant's")
        service = envelope.header(msg.headers, envelope.SERVICE) or who.user
        await handler(Call(who, service), envelope.decode(job.input, msg.data, job.max_bytes))

    await _pull(bus, "JOB", f"{job.service}-{job.subject.replace('.', '-')}", f"take {job.subject}", handle, workers)


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

    async def handle(msg: Msg) -> None:
        id = envelope.header(msg.headers, envelope.MESSAGE_ID)
        if id is None or envelope.header(msg.headers, envelope.SERVICE) != event.service:
            raise Forbidden("an event without its envelope")
        deliveries = msg.metadata.num_delivered if not every_copy else 1
        news = News(msg.subject.split(".", 2)[1], id, deliveries)
        await handler(news, envelope.decode(event.input, msg.data, event.max_bytes))

    if every_copy:
        await _hear(bus, event, handle)
    else:
        await _pull(bus, "EVT", event.durable(bus.name), f"follow {event.subject}", handle, workers)


async def _hear(bus: Bus, event: Event[Any], handle: Callable[[Msg], Awaitable[None]]) -> None:
    async def received(msg: Msg) -> None:
        try:
            await handle(msg)
        except Exception:
            log.exception("%s was not heard", event.subject)

    subscription = await bus.nats.subscribe(event.on("*"), cb=received)
    bus.on_stop(subscription.drain)


async def _pull(bus: Bus, stream: str, durable: str, name: str, handle: Callable[[Msg], Awaitable[None]], workers: int) -> None:
    puller = _Puller(bus, stream, durable, name, handle, workers)
    await puller.start()
    bus.on_stop(puller.stop)


class _Puller:
    """Reads one durable consumer with `workers` slots. A slot asks for one message, handles it, asks again."""

    def __init__(
        self, bus: Bus, stream: str, durable: str, name: str, handle: Callable[[Msg], Awaitable[None]], workers: int
    ) -> None:
        self._bus = bus
        self._durable = durable
        self._name = name
        self._handle = handle
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._inbox = f"{INBOX}.{bus.name}.{uuid4().hex}"
        self._slots: list[asyncio.Queue[Msg]] = [asyncio.Queue() for _ in range(workers)]
        self._tasks: list[asyncio.Task[None]] = []
        self._subscriptions: list[Subscription] = []
        self._busy: set[int] = set()

    async def start(self) -> None:
        # One subscription for each slot: a message comes with its own subject, which does not say who asked for it.
        for slot, queue in enumerate(self._slots):
            subscription = await self._bus.nats.subscribe(f"{self._inbox}.{slot}", cb=_into(queue))
            self._subscriptions.append(subscription)
        self._tasks = [asyncio.create_task(self._run(i), name=f"{self._name}-{i}") for i in range(len(self._slots))]

    async def stop(self) -> None:
        """Ask for nothing more, hand back what was not begun, let what runs end."""
        idle = [task for i, task in enumerate(self._tasks) if i not in self._busy]
        for task in idle:
            task.cancel()
        if self._bus.connected:
            await asyncio.gather(*(subscription.drain() for subscription in self._subscriptions))
        await asyncio.gather(*idle, return_exceptions=True)
        for queue in self._slots:
            while not queue.empty():
                msg = queue.get_nowait()
                if not _status(msg):
                    await msg.nak()
        running = [task for task in self._tasks if not task.done()]
        if running:
            await asyncio.wait(running, timeout=8)

    async def _run(self, slot: int) -> None:
        queue = self._slots[slot]
        while not self._bus.stopping.is_set():
            try:
                msg = await self._one(slot, queue)
                if msg is not None:
                    self._busy.add(slot)
                    await _handled(self._bus, self._name, self._durable, self._handle, msg)
            except Exception:
                # Nothing may end this loop: a service that follows nothing looks healthy and loses everything.
                log.exception("%s: a slot stumbled", self._name)
                await asyncio.sleep(1)
            finally:
                self._busy.discard(slot)

    async def _one(self, slot: int, queue: asyncio.Queue[Msg]) -> Msg | None:
        if not queue.empty():
            return queue.get_nowait()  # came for an earlier request, over a broker that was away
        if not self._bus.connected:
            await asyncio.sleep(0.2)
            return None
        request = json.dumps({"batch": 1, "expires": int(_EXPIRES * 1e9)}).encode()
        await self._bus.nats.publish(self._next, request, reply=f"{self._inbox}.{slot}")
        msg = await self._answer(queue)
        if msg is None:
            return None
        status = _status(msg)
        if status is None:
            return msg
        if status not in ("404", "408"):
            # 409 and 503: the consumer or the stream is gone, or the server is starting; it is declared anew by others.
            await asyncio.sleep(0.5)
        return None

    async def _answer(self, queue: asyncio.Queue[Msg]) -> Msg | None:
        """The next message of the slot; `None` when the request ran out, or the broker went away with it."""
        waited = 0.0
        while waited < _EXPIRES + 2:
            try:
                async with asyncio.timeout(1.0):
                    return await queue.get()
            except TimeoutError:
                waited += 1.0
                if not self._bus.connected:
                    return None
        return None


def _into(queue: asyncio.Queue[Msg]) -> Callable[[Msg], Awaitable[None]]:
    async def received(msg: Msg) -> None:
        queue.put_nowait(msg)

    return received


def _status(msg: Msg) -> str | None:
    return msg.headers.get("Status") if msg.headers and not msg.data else None


async def _handled(bus: Bus, name: str, durable: str, handle: Callable[[Msg], Awaitable[None]], msg: Msg) -> None:
    correlation.set(envelope.header(msg.headers, envelope.CORRELATION))
    heartbeat = asyncio.create_task(_in_progress(msg, bus.settings.ack_wait / 3))
    try:
        with bus.tracing.span(name, kind=SpanKind.CONSUMER, parent=envelope.header(msg.headers, envelope.TRACEPARENT)):
            await handle(msg)
        await msg.ack()
    except (Unauthorized, Forbidden) as error:
        log.warning("%s: terminated a message on %s: %s", name, msg.subject, error.code)
        await msg.term()
    except Exception as error:
        await _failed(bus, name, durable, msg, error)
    finally:
        heartbeat.cancel()


async def _failed(bus: Bus, name: str, durable: str, msg: Msg, error: Exception) -> None:
    tries = msg.metadata.num_delivered
    settings = bus.settings
    passing = isinstance(error, (Unavailable, TimedOut, TimeoutError, asyncio.CancelledError))
    hopeless = isinstance(error, BadRequest)
    if not passing and (hopeless or tries >= settings.redelivery_limit):
        await _park(bus, durable, msg, error)
        log.error("%s: parked a message on %s after %d tries", name, msg.subject, tries, exc_info=error)
        return
    delay = min(_LONGEST_DELAY, settings.redelivery_delay * 2 ** min(tries - 1, 10))
    if isinstance(error, ServiceError):
        log.warning("%s: %s, again in %.1f s", name, error.code, delay)
    else:
        log.warning("%s failed, again in %.1f s", name, delay, exc_info=error)
    await msg.nak(delay=delay)


async def _park(bus: Bus, durable: str, msg: Msg, error: Exception) -> None:
    """Keep the message where an operator finds it; only then is it taken from the queue."""
    headers = {k: v for k, v in (msg.headers or {}).items() if k != envelope.MESSAGE_ID}
    code = error.code if isinstance(error, ServiceError) else type(error).__name__
    headers |= {"Phronesis-Parked-From": msg.subject, "Phronesis-Parked-Reason": code}
    try:
        await publish(bus, f"parked.{durable}", msg.data, headers)
    except ServiceError:
        log.exception("a message could not be parked; it stays in its queue")
        await msg.nak(delay=bus.settings.redelivery_delay)
        return
    await msg.term()


async def _in_progress(msg: Msg, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        try:
            await msg.in_progress()
        except NatsError:
            log.warning("could not say that work goes on")
