"""Embedding after the fact: what was stored without vectors gets them in whatever process finds it waiting."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from phronesis_bus import Bus
from phronesis_contracts import ServiceError

log = logging.getLogger(__name__)

_REST = 5.0
"""Seconds between looks at what waits, where nobody says that something does."""


def embed_in_background(bus: Bus, what: str, step: Callable[[], Awaitable[bool]], wake: asyncio.Event) -> None:
    """Embed batch after batch until the bus stops; a batch at hand is then made again by somebody else.

    Args:
        what: what is embedded, for the log.
        step: embeds one batch, and says whether there was one.
        wake: set when something waits.
    """

    async def work() -> None:
        while True:
            wake.clear()
            try:
                if await step():
                    continue
            except ServiceError as error:
                log.warning("%s wait for their vectors: %s", what, error.code)
            except Exception:
                # The loop may not end: nothing more would be found by its meaning.
                log.exception("%s could not be embedded", what)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REST):
                    await wake.wait()

    task = asyncio.create_task(work(), name=f"embedding of {what}")

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    bus.on_stop(stop)
