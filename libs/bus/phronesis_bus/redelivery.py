"""What becomes of one durable message: acknowledged, handed back with a growing delay, parked, or terminated."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from opentelemetry.trace import Span, SpanKind

from phronesis_contracts import BadRequest, Forbidden, ServiceError, TimedOut, Unauthorized, Unavailable

from . import envelope
from .connection import Bus
from .metrics import HANDLED, PARKED
from .publishing import publish

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]
"""The work on one message, ready to begin."""
_LONGEST_DELAY = 60.0


async def handled(bus: Bus, name: str, durable: str, opened: Callable[[Msg], Work], msg: Msg) -> None:
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
        await _failed(bus, name, durable, msg, error)
        return
    began, outcome = time.perf_counter(), "ok"
    heartbeat = asyncio.create_task(_in_progress(msg, bus.settings.ack_wait / 3))
    try:
        with _received(bus, name, durable, msg):
            await work()
    except Exception as error:
        outcome = error.code if isinstance(error, ServiceError) else type(error).__name__
        await _failed(bus, name, durable, msg, error)
    else:
        await msg.ack()
    finally:
        bus.tracing.metrics.observe(HANDLED, time.perf_counter() - began, name, outcome)
        heartbeat.cancel()


def _received(bus: Bus, name: str, durable: str, msg: Msg) -> AbstractContextManager[Span]:
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


async def _failed(bus: Bus, name: str, durable: str, msg: Msg, error: Exception) -> None:
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
