"""The process that keeps what all workers of one run share: it outlives none of them, and starts each server when it is asked.

    python -m tests.support.keeper FOLDER WORKERS

The run's first process starts it and holds its standard input open. When that ends, in whichever way the run ended, the keeper
stops its servers in order, and then everything that the run started and that still runs: each of those has the run's folder in
its environment.

It listens on the socket `keeper` in that folder. A line with the name of a server is answered with a line of JSON: how to reach
it, once it is ready.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psutil

MARK = "PHRONESIS_TEST_RUN"
"""The variable by which everything that a run started is found; its value is the run's folder."""
SOCKET = "keeper"
_CONNECTIONS = 300
_STOP_WITHIN = 15.0


class Keeper:
    """The servers of one run.

    Args:
        folder: theirs; it has the socket too.
        workers: how many processes run tests.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._workers = workers
        self._stops: list[Callable[[], Awaitable[None]]] = []
        self._started: dict[str, dict[str, Any]] = {}
        self._starting = asyncio.Lock()
        self._starts = {"postgres": self._postgres, "arcadedb": self._arcadedb}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Start what a worker asks for, unless it is started, and say how it is reached."""
        name = (await reader.readline()).decode().strip()
        try:
            async with self._starting:
                if name not in self._started:
                    self._started[name] = await self._starts[name]()
            answer = self._started[name]
        except Exception as error:  # the worker that asked reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        with suppress(ConnectionError):
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
            writer.close()

    async def stop(self) -> None:
        """Stop what was started."""
        await asyncio.gather(*(stop() for stop in self._stops), return_exceptions=True)

    async def _postgres(self) -> dict[str, Any]:
        from tests.support.servers import PostgresServer

        server = PostgresServer(self._folder / "postgres", _CONNECTIONS, outlives=False)
        self._stops.append(server.stop)
        await server.start()
        return {}

    async def _arcadedb(self) -> dict[str, Any]:
        from tests.support.servers import ArcadeServer

        databases = [f"{ArcadeServer.database}_{number}" for number in range(self._workers)]
        server = ArcadeServer(self._folder / "arcadedb", databases)
        self._stops.append(server.stop)
        await server.start()
        assert server.reader is not None
        logins = [(login.user, login.password) for login in (server.root, server.reader)]
        return {"bolt": server.ports.bolt, "http": server.ports.http, "logins": logins, "databases": databases}


async def keep(folder: Path, workers: int) -> None:
    """Answer until standard input ends."""
    keeper = Keeper(folder, workers)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    async with await asyncio.start_unix_server(keeper.answer, folder / SOCKET):
        await ended.wait()
    await keeper.stop()


def end_what_is_left(folder: Path) -> None:
    """End every process that this run started and that nobody stopped: in order if it ends in time, and at once if not."""
    left = [process for process in psutil.process_iter() if _marked(process, folder)]
    for process in left:
        with suppress(psutil.Error):
            process.terminate()
    end = monotonic() + _STOP_WITHIN
    while (alive := [process for process in left if _runs(process)]) and monotonic() < end:
        sleep(0.05)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()


def _runs(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended and whose parent has not asked how does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _marked(process: psutil.Process, folder: Path) -> bool:
    with suppress(psutil.Error, OSError):
        return process.pid != os.getpid() and process.environ().get(MARK) == str(folder)
    return False


def main() -> None:
    """The command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is meant for the run, whose end is heard of
    folder, workers = Path(sys.argv[1]), int(sys.argv[2])
    asyncio.run(keep(folder, workers))
    end_what_is_left(folder)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
