"""A response that streams events to a client that may be slow, or gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from .events import retry

log = logging.getLogger(__name__)

SLOWEST = 20.0
"""Seconds that a client may take to read what was sent before it is left."""


class EventStream(Response):
    """Sends lines as they come. It ends when the lines do, the client leaves or reads too slowly, or the time is over.

    Args:
        lines: what to send; closed in every case.
        seconds: how long the stream may be open.
        opened: entered for as long as it is.
    """

    media_type = "text/event-stream"

    def __init__(
        self, lines: AsyncGenerator[bytes, None], seconds: float, opened: Callable[[], AbstractContextManager[None]]
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._lines = lines
        self._seconds = seconds
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        with self._opened():
            sending = asyncio.create_task(self._send(send))
            leaving = asyncio.create_task(_gone(receive))
            try:
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (sending, leaving):
                    task.cancel()
                results = await asyncio.gather(sending, leaving, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _send(self, send: Send) -> None:
        try:
            await _within(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                async with asyncio.timeout(self._seconds), aclosing(self._lines) as lines:
                    async for line in lines:
                        await _within(send, _part(line))
            except TimeoutError:
                await _within(send, _part(retry()))
            await _within(send, _part(b"", more=False))
        except _TooSlow:
            log.info("left a reader of events that was too slow")


class _TooSlow(Exception):
    """The client does not read."""


def _part(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _within(send: Send, message: Message) -> None:
    try:
        async with asyncio.timeout(SLOWEST):
            await send(message)
    except TimeoutError as error:
        raise _TooSlow from error


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
