"""uvicorn's HTTP protocol with a limit on the head of a request: on its size, and on the time it may take."""

from __future__ import annotations

import asyncio
from typing import Any

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
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes and is no body: a head, or what follows a body in chunks."""
        self._fed += len(data)
        super().data_received(data)
        if self._fed > MAX_HEAD and not self.transport.is_closing():
            if self._in_head and self._idle:
                self.transport.write(_REFUSAL)
            self.transport.close()

    def on_message_begin(self) -> None:
        """A new request: the head comes first."""
        super().on_message_begin()
        self._in_head = True
        self._fed = 0
        if self._deadline is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """The head is complete."""
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
