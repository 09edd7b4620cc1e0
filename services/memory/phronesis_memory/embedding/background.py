"""Work after the fact, such as vectors for what was stored without: done in whatever process finds it waiting."""

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


def work_in_background(bus: Bus, what: str, step: Callable[[], Awaitable[bool]], wake: asyncio.Event) -> None:
    """Do batch after batch until the bus stops; a batch at hand is then done again by somebody else.

    Args:
        what: what is worked on, for the log.
        step: does one batch, and says whether there was one.
        wake: set when something waits.
    """

    async def work() -> None:
        while True:
            wake.clear()
            try:
                if await step():
                    continue
            except ServiceError as error:
                log.warning("%s wait: %s", what, error.code)
            except Exception:
                # The loop may not end: nothing more would be done.
                log.exception("%s could not be worked on", what)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REST):
                    await wake.wait()

    task = asyncio.create_task(work(), name=f"work on {what}")

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    bus.on_stop(stop)
