"""Durable pull consumers.

One message for each free slot, and what becomes of it: acknowledged, handed back, parked, terminated.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from uuid import uuid4

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from opentelemetry.trace import Span, SpanKind

from phronesis_contracts import BadRequest, Forbidden, ServiceError, TimedOut, Unauthorized, Unavailable

from . import envelope
from .connection import INBOX, Bus
from .metrics import HANDLED, PARKED
from .outbox import publish


async def count_parked(bus: Bus) -> int:
    """Messages that were parked and not yet looked at. The declaring program's user alone may ask.

    Raises:
        Unavailable: the broker is away, or has no such stream.
    """
    try:
        reply = json.loads((await bus.request("$JS.API.STREAM.INFO.PARKED", b"", timeout=3)).data)
        return int(reply["state"]["messages"])
    except (NatsError, TimeoutError, OSError, KeyError) as error:
        raise Unavailable("the broker does not say what is parked") from error


log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]
"""The work on one message, ready to begin."""
_LONGEST_DELAY = 60.0


async def handle_message(bus: Bus, name: str, durable: str, opened: Callable[[Msg], Work], msg: Msg) -> None:
    """Open a message, do the work on it, and tell the broker what became of it."""
    envelope.adopt(msg.headers)
    try:
        work = opened(msg)
    except (Unauthorized, Forbidden) as error:
        log.warning("%s: terminated a message on %s: %s", name, msg.subject, error.code)
        await msg.term()
        return
    except BadRequest as error:
        await _park(bus, durable, msg, error)
        return
    except Unavailable as error:
        await _handle_failure(bus, name, durable, msg, error)
        return
    began, outcome = time.perf_counter(), "ok"
    heartbeat = asyncio.create_task(_in_progress(msg, bus.settings.ack_wait / 3))
    try:
        with _consumer_span(bus, name, durable, msg):
            await work()
    except Exception as error:
        outcome = error.code if isinstance(error, ServiceError) else type(error).__name__
        await _handle_failure(bus, name, durable, msg, error)
    else:
        await msg.ack()
    finally:
        bus.tracing.metrics.observe(HANDLED, time.perf_counter() - began, name, outcome)
        heartbeat.cancel()


def _consumer_span(bus: Bus, name: str, durable: str, msg: Msg) -> AbstractContextManager[Span]:
    kind, _, rest = msg.subject.split(".", 2)
    return bus.tracing.span(
        name,
        kind=SpanKind.CONSUMER,
        parent=envelope.header(msg.headers, envelope.TRACEPARENT),
        messaging__system="nats",
        messaging__destination__name=f"{kind}.*.{rest}",
        messaging__destination__subscription__name=durable,
        messaging__operation__name=name.partition(" ")[0],
        messaging__operation__type="process",
    )


async def _handle_failure(bus: Bus, name: str, durable: str, msg: Msg, error: Exception) -> None:
    tries = msg.metadata.num_delivered
    settings = bus.settings
    passing = isinstance(error, (Unavailable, TimedOut, TimeoutError))
    if isinstance(error, BadRequest) or (tries >= settings.redelivery_limit and not passing):
        await _park(bus, durable, msg, error)
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
    headers |= {envelope.PARKED_FROM: msg.subject, envelope.PARKED_REASON: code}
    try:
        await publish(bus, f"parked.{durable}", msg.data, headers)
    except ServiceError:
        log.exception("a message could not be parked; it stays in its queue")
        await msg.nak(delay=bus.settings.redelivery_delay)
        return
    bus.tracing.metrics.count(PARKED, durable)
    log.error("parked a message on %s after %d tries: %s", msg.subject, msg.metadata.num_delivered, code, exc_info=error)
    await msg.term()


async def _in_progress(msg: Msg, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        try:
            await msg.in_progress()
        except NatsError as error:
            log.warning("could not say that work goes on: %s", type(error).__name__)


_EXPIRES = 20.0
"""Seconds that a pull request stays with the server."""
_GRACE = 8.0
"""Seconds that running handlers have when the service stops."""


async def pull(bus: Bus, stream: str, durable: str, name: str, opened: Callable[[Msg], Work], workers: int) -> None:
    """Read a consumer until the bus stops.

    Args:
        bus: the connected bus.
        stream: the consumer's stream.
        durable: the consumer.
        name: what the reading is called in spans and logs.
        opened: checks and parses a message and gives the work on it.
        workers: how many messages at once.
    """
    puller = _Puller(bus, stream, durable, name, opened, workers)
    await puller.start()
    bus.on_stop(puller.stop)


class _Puller:
    """A slot asks for one message, handles it, asks again."""

    def __init__(self, bus: Bus, stream: str, durable: str, name: str, opened: Callable[[Msg], Work], workers: int) -> None:
        self._bus = bus
        self._durable = durable
        self._name = name
        self._opened = opened
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._inbox = f"{INBOX}.{bus.name}.{uuid4().hex}"
        # A slot has at most one request out, so its queue stays as short; `None` says that the broker was away.
        self._slots: list[asyncio.Queue[Msg | None]] = [asyncio.Queue() for _ in range(workers)]
        self._tasks: list[asyncio.Task[None]] = []
        self._subscriptions: list[Subscription] = []
        self._busy: set[int] = set()

    async def start(self) -> None:
        # One subscription for each slot: a message comes with its own subject, which does not say who asked for it.
        for slot, queue in enumerate(self._slots):
            subscription = await self._bus.nats.subscribe(f"{self._inbox}.{slot}", cb=_put_into(queue))
            self._subscriptions.append(subscription)
        self._bus.on_reconnect(self._ask_again)
        self._tasks = [asyncio.create_task(self._run(i), name=f"{self._name}-{i}") for i in range(len(self._slots))]

    def _ask_again(self) -> None:
        """The broker forgot every request when it went away; a slot that waits would wait for nothing."""
        for slot, queue in enumerate(self._slots):
            if slot not in self._busy and queue.empty():
                queue.put_nowait(None)

    async def stop(self) -> None:
        """Ask for nothing more, hand back what was not begun, let what runs end. Cut short, it leaves nothing at work."""
        try:
            await self._ended()
        finally:
            for task in self._tasks:  # a message that was not acknowledged comes again
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ended(self) -> None:
        idle = [task for i, task in enumerate(self._tasks) if i not in self._busy]
        for task in idle:
            task.cancel()
        await self._bus.drain(*self._subscriptions)
        await asyncio.gather(*idle, return_exceptions=True)
        for queue in self._slots:
            while not queue.empty():
                msg = queue.get_nowait()
                if msg is not None and _status(msg) is None:
                    await msg.nak()
        if running := [task for task in self._tasks if not task.done()]:
            await asyncio.wait(running, timeout=_GRACE)

    async def _run(self, slot: int) -> None:
        queue = self._slots[slot]
        while not self._bus.stopping.is_set():
            try:
                msg = await self._one(slot, queue)
                if msg is not None:
                    self._busy.add(slot)
                    await handle_message(self._bus, self._name, self._durable, self._opened, msg)
            except Exception:
                # Nothing may end this loop: a service that follows nothing looks healthy and loses everything.
                log.exception("%s: a slot stumbled", self._name)
                await asyncio.sleep(1)
            finally:
                self._busy.discard(slot)

    async def _one(self, slot: int, queue: asyncio.Queue[Msg | None]) -> Msg | None:
        if queue.empty():
            if not self._bus.connected:
                await asyncio.sleep(0.2)
                return None
            request = json.dumps({"batch": 1, "expires": int(_EXPIRES * 1e9)}).encode()
            await self._bus.nats.publish(self._next, request, reply=f"{self._inbox}.{slot}")
        try:
            async with asyncio.timeout(_EXPIRES + 2):
                msg = await queue.get()
        except TimeoutError:
            return None
        status = None if msg is None else _status(msg)
        if status is None:
            return msg
        if status not in ("404", "408"):
            # 409 and 503: the consumer or the stream is gone, or the server is starting; it is declared anew by others.
            await asyncio.sleep(0.5)
        return None


def _put_into(queue: asyncio.Queue[Msg | None]) -> Callable[[Msg], Awaitable[None]]:
    async def received(msg: Msg) -> None:
        queue.put_nowait(msg)

    return received


def _status(msg: Msg) -> str | None:
    return msg.headers.get("Status") if msg.headers and not msg.data else None
