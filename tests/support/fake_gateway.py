"""A gateway that works in memory and fails on demand: what the SDK and the command are tested against, over real HTTP."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.support.fake_routes import FakeGateway, Seen, problem

KEY = "phr_test"
__all__ = ["KEY", "FakeGateway", "Seen", "Server", "problem", "running"]


class Server:
    """An HTTP server of this machine, in a thread, that one fake gateway after the other answers on.

    It records each request, answers the gateway's next fault, and asks for the key.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._gateway = FakeGateway(url)
        self._app = self._gateway.app()

    def fresh(self) -> FakeGateway:
        """A gateway that remembers nothing; streams of the one before it end."""
        self._gateway.closing.set()
        self._gateway = FakeGateway(self._url)
        self._app = self._gateway.app()
        return self._gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        gateway, request = self._gateway, Request(scope, receive)
        body = await request.body()
        gateway.seen.append(Seen(request.method, request.url.path, dict(request.headers), request.url.query, body))
        response = _refusal(gateway, request)
        sent = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Any:
            return next(sent, None) or await receive()

        await (response or self._app)(scope, replay, send)


def _refusal(gateway: FakeGateway, request: Request) -> Response | None:
    if gateway.faults:
        return gateway.faults.popleft()()
    open_to_all = request.url.path.startswith("/health")
    if not open_to_all and request.headers.get("authorization") != f"Bearer {KEY}":
        return problem(401, "unauthorized", "no such key")()
    return None


@contextmanager
def running() -> Iterator[Server]:
    """A server on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        gateways = Server(f"http://127.0.0.1:{listening.getsockname()[1]}")
        config = uvicorn.Config(gateways, log_level="critical", ws="none", lifespan="off", timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 10
        while not server.started and time.monotonic() < deadline:
            thread.join(0.01)
        try:
            yield gateways
        finally:
            gateways.fresh()
            server.should_exit = True
            thread.join(10)
