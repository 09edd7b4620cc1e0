"""What the workers of one run share, and what keeps them apart.

A run has one Postgres and one ArcadeDB, which its keeper starts when the first test asks (`tests/support/keeper.py`). Each
worker has its own databases in them, and its own NATS: the services answer in queue groups and work for all tenants, so two
workers on one NATS or in one database would take each other's work. Neo4j's Community edition has one database alone, so on
the production stores each worker has its own. Ports that a worker draws come from a range of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from phronesis_local import loopback
from tests.support.keeper import MARK, SOCKET

ROOT = Path(__file__).parents[2]
_LOWEST, _HIGHEST = 10_000, 32_000
_START_WITHIN, _STOP_WITHIN = 180, 60
_MEMORY, _ROOM = Path("/dev/shm"), 4 * 1024**3
"""A file system in memory, and the bytes that have to be free there for what the shared servers write."""


def worker() -> int:
    """The number of this process among those that run tests."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def port_range() -> tuple[int, int]:
    """The ports that this worker, and every stack that it starts, draws from."""
    width = (_HIGHEST - _LOWEST) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return _LOWEST + worker() * width, _LOWEST + (worker() + 1) * width - 2


def keep_ports_apart(lowest: int, highest: int) -> None:
    """Let this process draw its ports from a range alone."""
    loopback._LOWEST, loopback._HIGHEST = lowest, highest


def quick_folder(memory: Path = _MEMORY, room: int = _ROOM) -> Path | None:
    """Where files that need not outlive the run are made and removed at once; `None`, for the usual place, without room there.

    A database of a test's own is 400 files, whose entries in the journal of a disk take up to ten times as long as the rest.
    """
    try:
        return memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= room else None
    except OSError:
        return None


class Kept:
    """A keeper, from here to the end of the run; the run's first process makes it.

    Args:
        workers: how many processes run tests.
    """

    def __init__(self, workers: int) -> None:
        self._folder = tempfile.mkdtemp(prefix="phronesis-tests-", dir=quick_folder())
        os.chmod(self._folder, 0o755)  # where who runs the tests is root, the servers are run by another user
        environment = dict(os.environ)
        environment.pop(MARK, None)  # the keeper is not among what it ends
        os.environ[MARK] = self._folder
        command = [sys.executable, "-m", "tests.support.keeper", self._folder, str(workers)]
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, start_new_session=True)

    def end(self) -> None:
        """Let it stop its servers and remove its folder, and wait for that."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_STOP_WITHIN)


def folder() -> Path:
    """The folder of this run."""
    return Path(os.environ[MARK])


def ask(server: str) -> dict[str, Any]:
    """How a shared server is reached, once it is ready.

    Raises:
        RuntimeError: it could not be started.
    """
    with _connected() as connection:
        connection.sendall(f"{server}\n".encode())
        with connection.makefile() as lines:
            answer: dict[str, Any] = json.loads(lines.readline())
    if "error" in answer:
        raise RuntimeError(f"the run's {server} did not start: {answer['error']}")
    return answer


def _connected() -> socket.socket:
    """A connection to the keeper, which may have begun a moment ago."""
    end = monotonic() + _START_WITHIN
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(_START_WITHIN)
            connection.connect(str(folder() / SOCKET))
        except OSError:
            connection.close()
            if monotonic() > end:
                raise
            sleep(0.05)
        else:
            return connection
