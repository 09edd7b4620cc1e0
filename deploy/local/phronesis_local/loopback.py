"""The loopback interface: free ports, and whether a server answers HTTP or speaks Bolt."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"
_LOWEST, _HIGHEST = 10_000, 32_000
_given: deque[int] = deque(maxlen=5_000)
"""Ports that this process was given last: who asked for one may not listen on it yet."""


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port(run: int = 1) -> int:
    """A port that nobody listens on, and that was given to nobody else of this process.

    It lies below the range that the system gives to outgoing connections: while a server is away for a restart, a
    client's own connection could otherwise be given the server's port.

    Args:
        run: how many such ports there are, one after the other, from the one that is returned.

    Raises:
        OSError: hundreds of tries found none.
    """
    for _ in range(500):
        first = random.randint(_LOWEST, _HIGHEST)
        ports = range(first, first + run)
        if not any(port in _given for port in ports) and all(map(is_free, ports)):
            _given.extend(ports)
            return first
    raise OSError("no free port")


async def http_status(port: int, path: str, *, within: float = 3.0) -> int | None:
    """The status with which the loopback server on `port` answers a GET of `path`; `None` when it does not in time."""
    request = f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(within):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(request.encode())
                return int((await reader.readline()).split()[1])
            finally:
                writer.close()
    except (OSError, TimeoutError, IndexError, ValueError):
        return None


_OFFER = b"\x60\x60\xb0\x17" + b"\x00\x00\x04\x04" + b"\x00" * 12
"""The protocol's greeting, with version 4.4 alone, which both graph stores know."""


async def speaks_bolt(port: int) -> bool:
    """Whether a Bolt server answers the handshake on `port`."""
    try:
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(_OFFER)
                return await reader.readexactly(4) == b"\x00\x00\x04\x04"
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
