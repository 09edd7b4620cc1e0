"""A web server that stands in for all of the internet, and writes down every request that reaches it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_PATCHED = Path(__file__).parent / "patched"


class LoggedWeb:
    """The server.

    Attributes:
        asked: the head of each request, as it came.
        pages: what a path gives; what is not here gives a page of few words.
    """

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.pages: dict[str, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        """What a stack needs to fetch from here."""
        path = os.pathsep.join(filter(None, (str(_PATCHED), os.environ.get("PYTHONPATH", ""))))
        return {"PYTHONPATH": path, "PHRONESIS_TEST_WEB": str(self.port)}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.asked.append(head)
            path = head.split(" ", 2)[1]
            page = self.pages.get(path, "A page of few words.").encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def logged_web() -> AsyncIterator[LoggedWeb]:
    """The server on a free port, for the block."""
    web = LoggedWeb()
    server = await asyncio.start_server(web.answer, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
