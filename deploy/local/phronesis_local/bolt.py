"""Whether a server speaks Bolt."""

from __future__ import annotations

import asyncio

from .ports import LOOPBACK

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
