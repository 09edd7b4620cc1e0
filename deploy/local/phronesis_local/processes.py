"""Processes.

One child that is started, known to be ready and stopped; others that may not be our children; and their log files.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import psutil


def is_running(process: psutil.Process) -> bool:
    """Whether it still does anything; one that has ended and that nobody has taken note of does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_gone(processes: Iterable[psutil.Process], within: float) -> list[psutil.Process]:
    """Wait until all have ended, `within` seconds at most; those that still run then."""
    limit = time.monotonic() + within
    left = [process for process in processes if is_running(process)]
    while left and time.monotonic() < limit:
        time.sleep(0.05)
        left = [process for process in left if is_running(process)]
    return left


def kill_processes(processes: Iterable[psutil.Process]) -> None:
    killed = list(processes)
    for process in killed:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    wait_gone(killed, 5)


log = logging.getLogger(__name__)

_LARGEST = 8 * 1024 * 1024


def rotate(path: Path) -> None:
    """Make room: a file that has grown large becomes `<name>.1`, in place of the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LARGEST:
        path.replace(path.with_name(f"{path.name}.1"))


def trim(path: Path) -> None:
    """Bound a file that a running process appends to: its content goes to `<name>.1`, and it starts again at nothing."""
    try:
        if path.exists() and path.stat().st_size > _LARGEST:
            path.with_name(f"{path.name}.1").write_bytes(path.read_bytes())
            with path.open("r+b") as file:
                file.truncate(0)
    except OSError as error:  # a full disk: the parts run on
        log.warning("%s could not be trimmed: %s", path.name, error)


def read_since(path: Path, offset: int) -> str:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read().decode(errors="replace").rstrip()


def read_tail(path: Path, lines: int = 15) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16_384))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


_POLL, _LONGEST_POLL = 0.05, 0.25


class ChildFailed(Exception):
    """A child process ended before it was ready, or was not ready in time."""


async def _prepare_nothing() -> None:
    """Preparation of a program that needs none."""


async def _say_nothing() -> bool:
    """The answer of a program that cannot say whether it recovers."""
    return False


@dataclass(frozen=True)
class Program:
    """What is run, and how one knows that it is ready.

    Args:
        ready: whether it does its work now, or `None` when that cannot be told; called again and again.
        prepare: runs before every start, the first and any later one.
        folder: its working folder, the parent's by default.
        stop_signal: asks it to stop in order.
        stop_within: seconds it has for that before it is killed.
        ready_within: seconds it has from its start until it is ready; where it recovers, those without any progress.
        recovers: whether it may have to recover its data before it is ready, which nobody may interrupt.
        says_it_recovers: whether it answers on its port that it recovers.
    """

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    ready: Callable[[], Awaitable[bool | None]]
    prepare: Callable[[], Awaitable[None]] = _prepare_nothing
    folder: Path | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within: float = 10.0
    ready_within: float = 30.0
    recovers: bool = False
    says_it_recovers: Callable[[], Awaitable[bool]] = _say_nothing


class Recovery:
    """Tells a program that recovers its data from one that hangs, by what it adds to its log, reads and writes, and says."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._seen: object = None
        self._came_on = time.monotonic()

    async def still(self, process: psutil.Process | None) -> float:
        """Seconds for which nothing was seen of it; where it has nothing to recover, since this watch began."""
        if not self._program.recovers:
            return time.monotonic() - self._came_on
        seen = (_size(self._program.log), _moved_bytes(process))
        if seen != self._seen or await self._program.says_it_recovers():
            self._seen, self._came_on = seen, time.monotonic()
        return time.monotonic() - self._came_on


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _moved_bytes(process: psutil.Process | None) -> int:
    """Bytes that a process has read from the disk and written to it; 0 where that cannot be told."""
    try:
        moved = process.io_counters() if process is not None else None
    except (psutil.Error, OSError, NotImplementedError):
        return 0
    return moved.read_bytes + moved.write_bytes if moved is not None else 0


class Started(Protocol):
    """A process that was started."""

    pid: int

    def end(self) -> int | None:
        """Kill it with all that stayed in its process group. What it ended with; `None` where nobody can tell."""


class Executed:
    """A process of our own."""

    def __init__(self, program: Program, log: BinaryIO) -> None:
        self._process = subprocess.Popen(
            program.command,
            env=dict(program.environment),
            cwd=program.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def end(self) -> int:
        """Kill it with its process group. What it ended with."""
        # Until it is waited for, its number cannot be given to another process or group.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()


Fork = Callable[[Program, BinaryIO], Awaitable[Started | None]]
"""Forks a process for a program, with the file for its output; `None` where it has to be executed."""


async def fork_nothing(program: Program, log: BinaryIO) -> Started | None:
    """Every program is executed."""
    return None


@dataclass
class Child:
    """A program that is run, ended and run again."""

    program: Program
    fork: Fork = field(default=fork_nothing, repr=False)
    exit_code: int | None = None
    """What it last ended with; negative for a signal, `None` where nobody could tell."""
    _process: Started | None = field(default=None, repr=False)
    _watched: psutil.Process | None = field(default=None, repr=False)

    @property
    def pid(self) -> int | None:
        if self._watched is None:
            return None
        try:
            return None if self._watched.status() == psutil.STATUS_ZOMBIE else self._watched.pid
        except psutil.NoSuchProcess:
            return None

    async def start(self) -> None:
        """Start it, with a session of its own: a Ctrl-C in the terminal is not meant for it.

        Raises:
            ChildFailed: it could not be prepared or run.
        """
        self.kill()
        try:
            await self.program.prepare()
            rotate(self.program.log)
            with self.program.log.open("ab") as log:
                self._process = await self.fork(self.program, log) or Executed(self.program, log)
            self._watched = psutil.Process(self._process.pid)
        except (OSError, psutil.NoSuchProcess) as error:
            raise ChildFailed(f"{self.program.name} could not be started: {error}") from error

    @property
    def process(self) -> psutil.Process | None:
        """The process, where it runs."""
        return self._watched if self.pid is not None else None

    async def wait_ready(self, on_recovery: Callable[[], None] = lambda: None) -> None:
        """Return when it does its work.

        Args:
            on_recovery: called once when its time is over and it is left to recover.

        Raises:
            ChildFailed: it ended, or the time for it is over; the text holds the end of its log.
        """
        recovery, limit = Recovery(self.program), time.monotonic() + self.program.ready_within
        pause, told = _POLL, False
        while self.pid is not None:
            if await self.program.ready():
                return
            still = await recovery.still(self.process)
            if not told and self.program.recovers and time.monotonic() > limit and still <= self.program.ready_within:
                on_recovery()
                told = True
            if still > self.program.ready_within:
                raise ChildFailed(f"{self.program.name} was not ready in time\n{read_tail(self.program.log)}")
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, _LONGEST_POLL)  # asking costs both sides time that the start needs
        self.kill()
        raise ChildFailed(f"{self.program.name} ended with code {self.exit_code}\n{read_tail(self.program.log)}")

    async def wait_end(self) -> None:
        """Return when it has ended well, for a program that does one thing and ends.

        Raises:
            ChildFailed: it ended otherwise, or the time for it is over.
        """
        await self._ended(self.program.ready_within)
        self.kill()
        if self.exit_code != 0:
            raise ChildFailed(f"{self.program.name} ended with code {self.exit_code}\n{read_tail(self.program.log)}")

    async def stop(self) -> None:
        """Ask it to stop; kill it, and what it started, when it does not in time."""
        if self._watched is not None:
            with suppress(psutil.NoSuchProcess):
                self._watched.send_signal(self.program.stop_signal)
            await self._ended(self.program.stop_within)
        self.kill()

    def kill(self) -> None:
        """End it at once with all that stayed in its process group, and take note of its end."""
        if self._process is None:
            return
        self.exit_code = self._process.end()
        self._process = self._watched = None

    async def _ended(self, within: float) -> None:
        limit = time.monotonic() + within
        while self.pid is not None and time.monotonic() < limit:  # noqa: ASYNC110  # no event tells of it
            await asyncio.sleep(_POLL)
