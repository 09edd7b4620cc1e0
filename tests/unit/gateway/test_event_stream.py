"""A stream to a client that is slow, leaves, or stays too long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

import pytest
from starlette.types import Message

from phronesis_gateway.turns import events
from phronesis_gateway.turns.events import EventStream


class Lines:
    """Lines that come, and then none for ever; knows whether it was closed, and counts who is in."""

    def __init__(self, *lines: bytes, end: bool = False) -> None:
        self._lines = lines
        self._end = end
        self.closed = False
        self.inside = 0

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The lines."""
        try:
            for line in self._lines:
                yield line
            if not self._end:
                await asyncio.Event().wait()
        finally:
            self.closed = True

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Counts."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1


class Client:
    """The other end of the connection."""

    def __init__(self, *, reads: bool = True, leaves: bool = False) -> None:
        self.body: list[bytes] = []
        self.complete = False
        self._reads = reads
        self._leaves = leaves
        self._served = asyncio.Event()

    async def receive(self) -> Message:
        """Leave, or stay silent."""
        if not self._leaves:
            await asyncio.Event().wait()
        await self._served.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take what is sent."""
        if message["type"] == "http.response.body":
            if not self._reads:
                await asyncio.Event().wait()
            self.body.append(message["body"])
            self._served.set()
            self.complete = not message["more_body"]


async def run(lines: Lines, client: Client, seconds: float = 60.0) -> None:
    async with asyncio.timeout(5):
        await EventStream(lines.stream(), seconds, lines.opened)({"type": "http"}, client.receive, client.send)
    assert (lines.closed, lines.inside) == (True, 0)


async def test_lines_are_sent_and_the_stream_ends_with_them() -> None:
    client = Client()
    await run(Lines(b"a", b"b", end=True), client)
    assert (client.body, client.complete) == ([b"a", b"b", b""], True)


async def test_a_stream_that_was_open_long_enough_ends_with_a_time_to_come_back() -> None:
    client = Client()
    await run(Lines(b"a"), client, seconds=0.05)
    assert (client.body[0], client.body[1].startswith(b"retry: "), client.complete) == (b"a", True, True)


async def test_a_client_that_leaves_ends_the_stream() -> None:
    await run(Lines(b"a"), Client(leaves=True))


async def test_a_client_that_does_not_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SLOWEST", 0.05)
    client = Client(reads=False)
    await run(Lines(b"a"), client)
    assert (client.body, client.complete) == ([], False)


async def test_a_fault_in_the_lines_is_not_swallowed() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"a"
        raise ZeroDivisionError

    lines, client = Lines(), Client()
    with pytest.raises(ZeroDivisionError):
        await EventStream(broken(), 60.0, lines.opened)({"type": "http"}, client.receive, client.send)
    assert lines.inside == 0
