"""How every process learns which keys of outside systems are revoked: a stream that keeps them, read and then heard."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from nats.aio.msg import Msg

from phronesis_contracts import ServiceError

from .stored import stored
from .topology import REVOKED

if TYPE_CHECKING:  # a connection reads it before it is handed out
    from .connection import Bus

log = logging.getLogger(__name__)

SUBJECT = "revoked"
_FIRST = 2.0
"""Seconds that a process waits for the first reading before it goes on; until it is done outside systems are told to wait."""
_AGAIN = 1.0
_EVERY = 300.0
"""Seconds between readings: one that was missed by ear is found then."""


class Revocations:
    """Keeps a bus's list of revoked keys.

    Args:
        bus: the connected bus.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._tried = asyncio.Event()
        self._again = asyncio.Event()

    async def start(self) -> None:
        """Begin to hear, and read what was said before."""
        subscription = await self._bus.nats.subscribe(f"{SUBJECT}.*", cb=self._heard)
        # What is revoked between reading and hearing would be missed: the subscription stands first.
        await self._bus.settled()
        self._bus.on_reconnect(self._again.set)
        task = asyncio.create_task(self._keep(), name="revocations")

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._bus.drain(subscription)

        self._bus.on_stop(stop)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST):
                await self._tried.wait()

    async def _heard(self, msg: Msg) -> None:
        self._bus.revoked.add(msg.subject.partition(".")[2])

    async def _keep(self) -> None:
        while True:
            self._again.clear()
            wait = _EVERY
            try:
                await self._read()
            except ServiceError as error:
                log.warning("which keys are revoked could not be read: %s", error.code)
                wait = _AGAIN
            except Exception:
                # This loop may not end: the list would grow old with nobody to notice.
                log.exception("which keys are revoked could not be read")
                wait = _AGAIN
            self._tried.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._again.wait()

    async def _read(self) -> None:
        sequence = 0
        while (message := await stored(self._bus, REVOKED, f"{SUBJECT}.*", sequence)) is not None:
            self._bus.revoked.add(str(message["subject"]).partition(".")[2])
            sequence = int(message["seq"])
        self._bus.revoked.known = True
