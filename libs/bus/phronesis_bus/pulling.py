"""Durable pull consumers: read with plain pull requests, one message for each free slot, so that nothing is fetched
that cannot be begun. No exception and no absence of the broker ends a loop, and no message is dropped."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from uuid import uuid4

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from .connection import INBOX, Bus
from .redelivery import Work, handled

log = logging.getLogger(__name__)

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
            subscription = await self._bus.nats.subscribe(f"{self._inbox}.{slot}", cb=_into(queue))
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
                    await handled(self._bus, self._name, self._durable, self._opened, msg)
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


def _into(queue: asyncio.Queue[Msg | None]) -> Callable[[Msg], Awaitable[None]]:
    async def received(msg: Msg) -> None:
        queue.put_nowait(msg)

    return received


def _status(msg: Msg) -> str | None:
    return msg.headers.get("Status") if msg.headers and not msg.data else None
