"""A port on which Prometheus reads the metrics of a process that has no other one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
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
async def exposed(metrics: Metrics, listen: str) -> AsyncIterator[int]:
    """Answer `GET /metrics` for the length of a block.

    Args:
        metrics: what is read.
        listen: host and port; port 0 takes a free one.

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
                writer.write(await _answer(metrics, head))
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
    """The metrics of a connected process on the port that is set, where one is, for the length of a block."""
    async with AsyncExitStack() as opened:
        if bus.settings.metrics_listen is not None:
            bus.tracing.metrics.watch(CONNECTED, lambda: float(bus.connected))
            await opened.enter_async_context(exposed(bus.tracing.metrics, bus.settings.metrics_listen))
        yield


async def _answer(metrics: Metrics, head: bytes) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if (method, path) != (b"GET", b"/metrics"):
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    body = await metrics.text()
    told = f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE_LATEST}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return told.encode() + body
