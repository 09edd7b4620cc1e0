"""The smallest HTTP client that can ask whether a server is well."""

from __future__ import annotations

import asyncio

from .ports import LOOPBACK


async def status_of(port: int, path: str, *, within: float = 3.0) -> int | None:
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
