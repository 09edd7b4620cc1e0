"""One address for several servers, as a load balancer gives it: each connection goes to the next that takes one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from .tcp_proxy import TcpProxy


class RoundRobin(TcpProxy):
    """A proxy before several servers on this machine.

    Args:
        ports: where they listen.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__(("127.0.0.1", ports[0]))
        self._ports = list(ports)
        self.reached: Counter[int] = Counter()
        """Connections to each port."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._ports.append(self._ports.pop(0))
        for port in self._ports:
            try:
                opened = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            self.reached[port] += 1
            return opened
        raise ConnectionRefusedError("no server takes the connection")


@asynccontextmanager
async def round_robin(ports: Sequence[int]) -> AsyncIterator[RoundRobin]:
    """A proxy for the length of a block."""
    proxy = RoundRobin(ports)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
