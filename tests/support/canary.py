"""A canary: it listens on every address of this machine, and remembers whoever connects."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import psutil

WELL_KNOWN = (80, 443, 4222, 5432, 6379, 7687, 8080)
"""Ports at which a refused address would be asked; each is watched where this user may listen on it and nobody else does."""
_UNUSABLE = (errno.EACCES, errno.EADDRINUSE, errno.EADDRNOTAVAIL)


class Canary:
    """Listeners on one port of its own, and on the well-known ones that are free.

    Args:
        spared: addresses that are somebody else's.
    """

    def __init__(self, spared: Sequence[str] = ()) -> None:
        self.port = 0
        self.heard: list[str] = []
        """Where each connection came in, in order; empty as long as nobody was fooled."""
        self.listening: set[tuple[str, int]] = set()
        self._spared = spared
        self._servers: list[asyncio.Server] = []

    async def start(self) -> None:
        """Listen."""
        first, *others = self.addresses()
        await self._listen(first, 0)
        self.port = self._servers[0].sockets[0].getsockname()[1]
        for address in others:
            await self._try(address, self.port)
        for port in WELL_KNOWN:
            for address in (first, *others):
                await self._try(address, port)

    def stop(self) -> None:
        """Listen no more."""
        for server in self._servers:
            server.close()

    def addresses(self) -> list[str]:
        """What this machine can be reached at, 127.0.0.1 first."""
        found = {"127.0.0.1": None, "127.1.2.3": None, "::1": None}
        for cards in psutil.net_if_addrs().values():
            for card in cards:
                if card.family in (socket.AF_INET, socket.AF_INET6) and not ipaddress.ip_address(card.address).is_link_local:
                    found[card.address] = None
        return [address for address in found if address not in self._spared]

    async def _try(self, address: str, port: int) -> None:
        try:
            await self._listen(address, port)
        except OSError as error:
            if error.errno not in _UNUSABLE:
                raise

    async def _listen(self, address: str, port: int) -> None:
        def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.heard.append("{0[0]} {0[1]}".format(writer.get_extra_info("sockname")))
            writer.close()

        server = await asyncio.start_server(heard, address, port)
        self._servers.append(server)
        self.listening.add((address, server.sockets[0].getsockname()[1]))


@asynccontextmanager
async def canary(*spared: str) -> AsyncIterator[Canary]:
    """A canary for the length of a block."""
    made = Canary(spared)
    try:
        await made.start()
        yield made
    finally:
        made.stop()


async def knock(address: str, port: int) -> None:
    """Connect, and hang up."""
    _, writer = await asyncio.open_connection(address, port)
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
