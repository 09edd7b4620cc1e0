"""A NATS server with JetStream and no users: what the bare chain runs on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from phronesis_local import nats
from phronesis_local.loopback import LOOPBACK, free_port


class PlainNats:
    """One server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"nats://{LOOPBACK}:{self._port}"

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        options = ["-js", "-a", LOOPBACK, "-p", str(self._port), "-sd", str(self._folder)]
        self._process = await asyncio.create_subprocess_exec(
            str(nats.binary()), *options, stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
        )
        await listening(self._port)

    async def stop(self) -> None:
        """Stop it."""
        self._process.terminate()
        await self._process.wait()


async def listening(port: int) -> None:
    """Return when something listens on a loopback port."""
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection(LOOPBACK, port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.05)
