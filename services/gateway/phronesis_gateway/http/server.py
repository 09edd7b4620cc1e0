"""The HTTP server inside the gateway's process.

It listens before the gateway is up, stops before the bus does, and limits the head of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 64 * 1024
"""Bytes of a request's line and headers."""
HEAD_SECONDS = 15.0
"""Seconds in which they have to arrive."""
_REFUSAL = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """One connection. The parser collects a head without end; this ends it."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._in_head = True
        self._fed = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._fed += len(data)
        super().data_received(data)
        if self._fed > MAX_HEAD and not self.transport.is_closing():
            if self._in_head and self._idle:
                self.transport.write(_REFUSAL)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._fed = 0
        if self._deadline is None:
            self._wait()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._arrived()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Body is the application's to count."""
        self._fed = 0
        super().on_body(body)

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self._idle and not self.transport.is_closing():
            self.transport.close()


log = logging.getLogger(__name__)

GRACE = 7
"""Seconds that running requests have to end in; the bus gives its parts ten."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to the process, which stops everything in order."""
        yield


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket on `host` and `port`. Raises `SystemExit`: it cannot be had; the text says why."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, kind, proto)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(2_048)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise SystemExit(f"the gateway cannot listen on {host}:{port}: {error.strerror}") from error
    bound.setblocking(False)
    return bound


class HttpServer:
    """Serves an application on a bound socket.

    Args:
        max_connections: open connections at most; more get a 503.
        closing: called when it stops, before requests have to end: ends what would keep them open.
        notice: seconds for which it still answers when it is told to stop.
    """

    def __init__(
        self, app: ASGIApp, bound: socket.socket, max_connections: int, closing: Callable[[], None], notice: float = 0.0
    ) -> None:
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=max_connections,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE,
            # A request must not inherit the span of the one before it on its connection.
            reset_contextvars=True,
        )
        self._server = _Server(config)
        self._bound = bound
        self._closing = closing
        self._notice = notice
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        return int(self._bound.getsockname()[1])

    async def start(self) -> None:
        host, port = self._bound.getsockname()[:2]
        self._task = asyncio.create_task(self._server.serve([self._bound]), name="http")
        up = asyncio.create_task(self._server.answers.wait())
        await asyncio.wait({up, self._task}, return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        if self._task.done():
            await self._task
        log.info("listening on http://%s:%s", host, port)

    async def stop(self) -> None:
        """Give notice, let running requests end, and answer no more."""
        await asyncio.sleep(self._notice)
        self._closing()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
