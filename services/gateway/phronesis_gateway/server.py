"""The HTTP server inside the gateway's process: it listens before the gateway is up, and stops before the bus does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Generator

import uvicorn
from starlette.types import ASGIApp

from .protocol import BoundedProtocol

log = logging.getLogger(__name__)

GRACE = 7
"""Seconds that running requests have to end in; the bus gives its parts ten."""
NOTICE = 2.0
"""Seconds for which a gateway that stops still answers, and is not ready: a load balancer takes that long to send no more."""


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


def bind(host: str, port: int) -> socket.socket:
    """A socket on `host` and `port`.

    Raises:
        SystemExit: it cannot be had; the text says why.
    """
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
        app: the application.
        bound: where to serve it.
        max_connections: open connections at most; more get a 503.
        closing: called when it stops, before requests have to end: ends what would keep them open.
        notice: seconds for which it still answers when it is told to stop.
    """

    def __init__(
        self,
        app: ASGIApp,
        bound: socket.socket,
        max_connections: int,
        closing: Callable[[], None],
        notice: float = 0.0,
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
        """The port it listens on."""
        return int(self._bound.getsockname()[1])

    async def start(self) -> None:
        """Begin to answer."""
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
