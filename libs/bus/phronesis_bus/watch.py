"""Watching turns: what is shown is heard at once by one subscription of the process, and read again from its stream."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from nats.aio.msg import Msg

from phronesis_contracts import BadRequest, Message, Out, Principal

from . import envelope
from .connection import Bus, read_message

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)
_UNHEARD = 256
"""Messages that a listener keeps for its owner; older ones are dropped, and can be read from the stream."""


@dataclass(frozen=True)
class ShownMessage(Generic[M]):
    message: M
    correlation: str | None = None
    """Correlation id of the work that showed it."""
    sequence: int = 0
    """Position in the stream; 0 for a message that was heard and not read."""


class Listener(Generic[M]):
    """What is shown of one turn from now on. Hints: what is said while the broker is away is not heard."""

    def __init__(self) -> None:
        self._heard: deque[ShownMessage[M]] = deque(maxlen=_UNHEARD)
        self._something = asyncio.Event()
        self.closed = False
        """Whether the process stops: nothing more will be heard."""

    async def next(self, seconds: float) -> ShownMessage[M] | None:
        """The next message, or `None` when none came within `seconds`, or the listener was closed."""
        if not self._heard and not self.closed and seconds > 0:
            self._something.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._something.wait()
            except TimeoutError:
                return None
        return self._heard.popleft() if self._heard else None

    def add(self, shown: ShownMessage[M]) -> None:
        self._heard.append(shown)
        self._something.set()

    def close(self) -> None:
        self.closed = True
        self._something.set()


class Watch(Generic[M]):
    """All that is shown on one contract, handed to whoever watches a turn.

    Args:
        bus: the connected bus; its service must be allowed to watch.
    """

    def __init__(self, bus: Bus, out: Out[M]) -> None:
        self._bus = bus
        self._out = out
        self._listeners: dict[str, list[Listener[M]]] = {}
        self._closed = False

    async def start(self) -> None:
        subscription = await self._bus.nats.subscribe(self._out.on("*", "*", "*"), cb=self._received)
        self._bus.on_stop(lambda: self._bus.drain(subscription))

    def close(self) -> None:
        self._closed = True
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.close()

    @contextmanager
    def turn(self, who: Principal, turn: str) -> Iterator[Listener[M]]:
        """Hear a turn of `who` for the length of a block. Another user's messages have another subject."""
        subject = self._out.on(who.tenant, who.user, turn)
        listener: Listener[M] = Listener()
        listener.closed = self._closed
        self._listeners.setdefault(subject, []).append(listener)
        try:
            yield listener
        finally:
            listeners = self._listeners[subject]
            listeners.remove(listener)
            if not listeners:
                del self._listeners[subject]

    async def after(self, who: Principal, turn: str, sequence: int) -> ShownMessage[M] | None:
        """The first stored message of a turn behind `sequence`, or `None` when there is none (any more, or yet).

        Raises:
            Unavailable: the broker is away or has no such stream.
            TimedOut: it did not answer in time.
        """
        found = await read_message(self._bus, "OUT", self._out.on(who.tenant, who.user, turn), sequence)
        if found is None:
            return None
        message = envelope.decode(self._out.input, base64.b64decode(found.get("data", "")), self._out.max_bytes)
        return ShownMessage(message, sequence=int(found["seq"]))

    async def _received(self, msg: Msg) -> None:
        listeners = self._listeners.get(msg.subject)
        if not listeners:
            return
        try:
            message = envelope.decode(self._out.input, msg.data, self._out.max_bytes)
        except BadRequest:
            log.warning("what was shown on %s does not parse", self._out.subject)
            return
        shown = ShownMessage(message, envelope.header(msg.headers, envelope.CORRELATION))
        for listener in listeners:
            listener.add(shown)
