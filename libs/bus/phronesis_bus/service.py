"""The life of one service process, and what every service answers alike: its health and its recent spans."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import uvloop

from phronesis_contracts import Nothing
from phronesis_contracts.service import HEALTH, SPANS, Health, Spans, TraceRef

from .connection import LOST, Bus, connect
from .envelope import Call
from .exposition import readable
from .logs import configure
from .serving import serve
from .settings import BusSettings
from .tracing import VERSION

log = logging.getLogger(__name__)

Ping = Callable[[], Awaitable[None]]


async def health(service: str, pings: dict[str, Ping], *, limit: float = 1.0, offers: tuple[str, ...] = ()) -> Health:
    """Run the pings side by side; each has `limit` seconds and raises where its dependency is down."""

    async def up(ping: Ping) -> bool:
        try:
            async with asyncio.timeout(limit):
                await ping()
        except Exception as error:
            log.warning("a dependency of %s is down: %s", service, type(error).__name__)
            return False
        return True

    results = await asyncio.gather(*(up(ping) for ping in pings.values()))
    down = tuple(name for name, ok in zip(pings, results, strict=True) if not ok)
    return Health(service=service, version=VERSION, ready=not down, down=down, offers=offers)


async def serve_basics(bus: Bus, pings: dict[str, Ping], offers: Callable[[], tuple[str, ...]] = tuple) -> None:
    """Answer for the service's health and for the spans it remembers: each copy for itself, where all are asked.

    Args:
        bus: the connected bus.
        pings: by dependency what raises where it is down.
        offers: gives what the service can do, where that depends on its surroundings.
    """

    async def on_health(call: Call, request: Nothing) -> Health:
        return await health(bus.name, pings, offers=offers())

    async def on_spans(call: Call, request: TraceRef) -> Spans:
        return bus.tracing.recent.of(request)

    await serve(bus, HEALTH[bus.name], on_health, every_copy=True)
    await serve(bus, SPANS[bus.name], on_spans, every_copy=True)


def run(name: str, start: Callable[[Bus], AbstractAsyncContextManager[None]]) -> None:
    """Run a service until SIGTERM or SIGINT: stores open, broker starts; broker drains, stores close.

    Args:
        name: the service's name.
        start: opens the stores and wires the handlers; closes the stores at its end.

    Raises:
        SystemExit: the connection to the broker ended for good; whoever supervises the process starts it again.
    """
    configure(name)
    if not uvloop.run(_life(name, start)):
        raise SystemExit(LOST)


async def _life(name: str, start: Callable[[Bus], AbstractAsyncContextManager[None]]) -> bool:
    asked, up = asyncio.Event(), asyncio.Event()
    work = asyncio.create_task(_serve(name, start, asked, up))

    def stop() -> None:
        asked.set()
        if not up.is_set():
            work.cancel()  # it waits for the broker or a store, perhaps for ever

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    with contextlib.suppress(asyncio.CancelledError):
        await work
    return asked.is_set()


async def _serve(
    name: str, start: Callable[[Bus], AbstractAsyncContextManager[None]], asked: asyncio.Event, up: asyncio.Event
) -> None:
    async with connect(name, BusSettings()) as bus, readable(bus), start(bus):
        bus.up.set()
        up.set()
        log.info("%s is up", name)
        ends = [asyncio.create_task(event.wait()) for event in (asked, bus.lost)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        log.info("%s stops", name)
        await bus.stop()
