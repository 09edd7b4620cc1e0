"""The media service as a process of its own, and how much memory it and its reading processes take."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import psutil

from phronesis_bus import Bus, ask
from phronesis_contracts import Nothing, ServiceError
from phronesis_contracts.service import HEALTH
from tests.support.bus import eventually, somebody
from tests.support.servers import NatsServer

_EVERY = 0.02


@dataclass
class Peaks:
    """The most bytes that each had resident."""

    service: int = 0
    readers: dict[int, int] = field(default_factory=dict)
    """By process id."""
    sum: int = 0
    """Of all of them at one time."""


@asynccontextmanager
async def media_process(nats: NatsServer, gateway: Bus, **more: str) -> AsyncIterator[psutil.Process]:
    """`python -m phronesis_media`, once it is ready, for the length of a block."""
    bus = nats.settings("media")
    environment = {
        "BUS_URL": bus.url,
        "BUS_PASSWORD_FILE": str(bus.password_file),
        "BUS_TRUST_DIR": str(bus.trust_dir),
        "BUS_SIGNING_KEY_FILE": str(bus.signing_key_file or ""),
        **more,
    }
    given = {name: value for name, value in environment.items() if value}
    running = await asyncio.create_subprocess_exec(sys.executable, "-m", "phronesis_media", env=given, stderr=DEVNULL)
    try:
        await eventually(lambda: is_ready(gateway), within=60)
        yield psutil.Process(running.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.terminate()
        await running.wait()


async def is_ready(gateway: Bus) -> bool:
    """Whether the service says that it is."""
    try:
        return (await ask(gateway, somebody(), HEALTH["media"], Nothing(), timeout=1)).ready
    except ServiceError:
        return False


@contextmanager
def watched(process: psutil.Process) -> Iterator[Peaks]:
    """The peaks within the block, looked at fifty times a second from a thread."""
    peaks, over = Peaks(), threading.Event()

    def look() -> None:
        while not over.wait(_EVERY):
            with contextlib.suppress(psutil.Error):
                _add(peaks, process)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def _add(peaks: Peaks, process: psutil.Process) -> None:
    total = process.memory_info().rss
    peaks.service = max(peaks.service, total)
    for reader in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            size = reader.memory_info().rss
            peaks.readers[reader.pid] = max(size, peaks.readers.get(reader.pid, 0))
            total += size
    peaks.sum = max(peaks.sum, total)
