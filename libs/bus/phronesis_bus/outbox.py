"""Publishing to a stream, and the outbox relay: what a store's transaction wrote down as news is published until it is sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from phronesis_contracts import Busy, Event, Message, ServiceError, TimedOut, Unavailable

from . import envelope
from .connection import Bus
from .metrics import UNSENT

_TIMEOUT = 5.0
_FULL = {10077, 10122}
"""The server's numbers for a full stream and for a subject that is full."""


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
        reply = await bus.request(subject, body, timeout=envelope.remaining(_TIMEOUT), headers=headers)
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


log = logging.getLogger(__name__)

BATCH = 100
_EVERY = 1.0


@dataclass(frozen=True)
class Sendable:
    """One event as an outbox keeps it."""

    id: str
    """Unique in the outbox; with the tenant it is the message's id."""
    tenant: str
    subject: str
    body: bytes
    headers: Mapping[str, str]


def sendable(service: str, id: str, tenant: str, event: Event[Any], message: Message) -> Sendable:
    """The row for an event, with the envelope of the work at hand."""
    return Sendable(id, tenant, event.on(tenant), envelope.encode(message), envelope.headers(service))


class Outbox(Protocol):
    """Where a store keeps unsent news. Rows are found by being unsent, never by standing above a mark."""

    async def unsent(self, limit: int) -> list[Sendable]:
        """The oldest unsent rows."""
        ...

    async def sent(self, ids: list[str]) -> None:
        """Mark rows as sent, or remove them."""
        ...


@runtime_checkable
class CountedOutbox(Protocol):
    """An outbox that can say how much waits in it."""

    async def waiting(self) -> int:
        """How many rows are unsent."""
        ...


class Relay:
    """Publishes an outbox for as long as the bus runs. A row may go out twice; its message id is the same both times."""

    def __init__(self, bus: Bus, outbox: Outbox) -> None:
        self._bus = bus
        self._outbox = outbox
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to relay."""
        if isinstance(self._outbox, CountedOutbox):
            self._bus.tracing.metrics.probe(self._look)
        self._task = asyncio.create_task(self._run(), name="outbox-relay")
        self._bus.on_stop(self._stop)

    def wake(self) -> None:
        """Say that a transaction has just written to the outbox."""
        self._wake.set()

    async def _look(self) -> None:
        assert isinstance(self._outbox, CountedOutbox)
        self._bus.tracing.metrics.set(UNSENT, await self._outbox.waiting())

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while not self._bus.stopping.is_set():
            self._wake.clear()
            try:
                more = await self._send()
            except ServiceError as error:
                log.warning("the outbox could not be read: %s", error.code)
                await asyncio.sleep(_EVERY)
                continue
            except Exception:
                # The relay may not end: unsent news would stay unsent with nobody to notice.
                log.exception("the outbox could not be relayed")
                await asyncio.sleep(_EVERY)
                continue
            if not more:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_EVERY):
                        await self._wake.wait()

    async def _send(self) -> bool:
        if not self._bus.connected:
            return False
        rows = await self._outbox.unsent(BATCH)
        if not rows:
            return False
        results = await asyncio.gather(*(self._publish(row) for row in rows))
        done = [row.id for row, ok in zip(rows, results, strict=True) if ok]
        if done:
            await self._outbox.sent(done)
        if len(done) < len(rows):
            await asyncio.sleep(_EVERY)
        return len(rows) == BATCH

    async def _publish(self, row: Sendable) -> bool:
        try:
            id = f"{row.tenant}.{self._bus.name}.{row.id}"
            await publish(self._bus, row.subject, row.body, {**row.headers, envelope.MESSAGE_ID: id})
        except ServiceError as error:
            log.warning("news on %s is not sent yet: %s", row.subject, error.code)
            return False
        return True
