"""A port on which Prometheus reads the metrics of a process, and whoever supervises it asks how it is.

`/health/live` is answered as long as the event loop runs: a process that lost the broker for good ends by itself.
`/health/ready` says whether the process can be asked, which is a matter of the broker alone: were it one of the stores too,
a store's fall would take every copy of every service that uses it away, and with them the typed errors and the reconnects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from prometheus_client import CONTENT_TYPE_LATEST

from .connection import Bus
from .metrics import CONNECTED, Metrics

log = logging.getLogger(__name__)

_HEAD = 8_192
"""Bytes of a request that are read."""
_SECONDS = 5.0
"""Seconds that one request may take."""
_AT_ONCE = 8


@asynccontextmanager
async def exposed(metrics: Metrics, listen: str, ready: Callable[[], bool]) -> AsyncIterator[int]:
    """Answer `GET /metrics`, `/health/live` and `/health/ready` for the length of a block.

    Args:
        metrics: what is read.
        listen: host and port; port 0 takes a free one.
        ready: whether the process can be asked now; `/health/ready` is a 503 where it cannot.

    Returns:
        The port.

    Raises:
        OSError: the address cannot be had.
    """
    open_now: set[asyncio.StreamWriter] = set()

    async def received(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(open_now) >= _AT_ONCE:
            writer.close()
            return
        open_now.add(writer)
        try:
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _answer(metrics, ready, head))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            log.debug("a reading of the metrics broke off: %s", type(error).__name__)
        finally:
            open_now.discard(writer)
            writer.close()

    host, _, port = listen.rpartition(":")
    server = await asyncio.start_server(received, host.strip("[]"), int(port), limit=_HEAD)
    try:
        bound = int(server.sockets[0].getsockname()[1])
        log.info("metrics at %s:%d/metrics", host, bound)
        yield bound
    finally:
        server.close()


@asynccontextmanager
async def readable(bus: Bus) -> AsyncIterator[None]:
    """The metrics and the health of a connected process on the port that is set, where one is, for the length of a block."""
    async with AsyncExitStack() as opened:
        if bus.settings.metrics_listen is not None:
            bus.tracing.metrics.watch(CONNECTED, lambda: float(bus.connected))
            await opened.enter_async_context(exposed(bus.tracing.metrics, bus.settings.metrics_listen, lambda: bus.ready))
        yield


async def _answer(metrics: Metrics, ready: Callable[[], bool], head: bytes) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    match method, path:
        case b"GET", b"/metrics":
            return _told("200 OK", await metrics.text(), CONTENT_TYPE_LATEST)
        case b"GET", b"/health/live":
            return _told("200 OK", b"live\n")
        case b"GET", b"/health/ready":
            return _told("200 OK", b"ready\n") if ready() else _told("503 Service Unavailable", b"not ready\n")
    return _told("404 Not Found", b"")


def _told(status: str, body: bytes, kind: str = "text/plain") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
