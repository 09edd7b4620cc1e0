"""A proxy between a client and a server that breaks the connection in every way a network can."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

Mode = Literal["pass", "refuse", "reset", "stall", "slow", "cut"]
_CHUNK = 65_536
_RESET = struct.pack("ii", 1, 0)


class TcpProxy:
    """Listens on a port of the loopback interface, or on a Unix socket, and forwards to one address.

    Modes, which connections that are open already obey too:
        pass: forwards.
        refuse: nobody listens, and open connections are reset.
        reset: connections are taken and reset at once.
        stall: connections are taken, and nothing ever comes through (half-open).
        slow: each piece comes through after `delay` seconds.
        cut: a connection is closed after `after` bytes of the server's.

    Args:
        target: the server: host and port, or the path of a Unix socket.
        listen: the path of a Unix socket, in place of a port.
    """

    def __init__(self, target: tuple[str, int] | Path, listen: Path | None = None) -> None:
        self._target = target
        self._listen = listen
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.port = 0
        self.mode: Mode = "pass"
        self.delay = 5.0
        self.after = 100
        self.accepted = 0
        """Connections taken so far."""
        self.heard: bytearray | None = None
        """What came through, either way, for who puts something here to be filled."""

    async def start(self) -> None:
        """Begin to listen."""
        if self._listen is not None:
            self._listen.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(self._connection, self._listen)
            self._listen.chmod(0o777)
            return
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no more, and drop every connection."""
        self._close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def be(self, mode: Mode) -> None:
        """Break, or mend."""
        self.mode = mode
        if mode == "stall":
            self._flowing.clear()
        else:
            self._flowing.set()
        if mode == "refuse":
            self._close()
        elif self._server is None:
            await self.start()
        if mode in ("refuse", "reset"):
            for writer in list(self._writers):
                _reset(writer)

    @asynccontextmanager
    async def broken(self, mode: Mode) -> AsyncIterator[None]:
        """Broken for the length of a block."""
        await self.be(mode)
        try:
            yield
        finally:
            await self.be("pass")

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self._writers.add(writer)
        far: asyncio.StreamWriter | None = None
        try:
            if self.mode in ("reset", "refuse"):
                _reset(writer)
                return
            await self._flowing.wait()
            far_reader, far = await self._reach()
            self._writers.add(far)
            await self._both(reader, writer, far_reader, far)
        except OSError:
            _reset(writer)
        except asyncio.CancelledError:
            return  # the proxy stops
        finally:
            for one in (writer, far):
                if one is not None:
                    self._writers.discard(one)
                    one.close()
            self._open.discard(task)

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, Path):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection(*self._target)

    async def _both(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far: asyncio.StreamWriter,
    ) -> None:
        ways = [
            asyncio.create_task(self._pump(reader, far, up=True)),
            asyncio.create_task(self._pump(far_reader, writer, up=False)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool) -> None:
        """Forward until either side ends; what was read before a fault began is held back by it too."""
        sent = 0
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                if self.heard is not None:
                    self.heard += data
                if self.mode == "slow":
                    await asyncio.sleep(self.delay)
                await self._flowing.wait()
                ends = self.mode == "cut" and not up and sent + len(data) > self.after
                if ends:
                    data = data[: max(0, self.after - sent)]
                sent += len(data)
                writer.write(data)
                await writer.drain()
                if ends:
                    return


def _reset(writer: asyncio.StreamWriter) -> None:
    """Drop a connection with a reset, where there is such a thing."""
    found = writer.transport.get_extra_info("socket")
    if found is not None and found.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


@asynccontextmanager
async def tcp_proxy(target: tuple[str, int] | Path, listen: Path | None = None) -> AsyncIterator[TcpProxy]:
    """A proxy for the length of a block."""
    proxy = TcpProxy(target, listen)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
