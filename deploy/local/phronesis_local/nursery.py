"""The nursery: a process that has imported what the services share, and forks them. They share its memory, and start at once.

`Nursery` is the supervisor's side. The process itself, `python -m phronesis_local.nursery`, has one thread and no event loop.
It takes orders from the socket on its stdin, and answers there: who was forked, and how it ended.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

import psutil
from pydantic import BaseModel, ConfigDict

from .processes import Program, is_running, rotate, wait_gone

NURSERY: Final = "nursery"
_MODULE = "phronesis_local.nursery"
_SHARED = (
    "phronesis_bus",
    "phronesis_contracts.instructions",
    "phronesis_contracts.memory",
    "phronesis_contracts.orchestrator",
    "phronesis_contracts.twin",
    "phronesis_postgres",
    "asyncpg",
    "httpx",
    "yaml",
)
"""What most services import. None of it may start a thread: a process with threads cannot be forked."""
_ROOM = "PHRONESIS_ROOM"
_ROOM_BYTES = 32 * 1024
_LARGEST = 1024 * 1024
"""Bytes of an order at most; the system's own limit is lower."""
_PATIENCE = 30.0
"""Seconds that the nursery may take to import and to fork, before a service is executed instead."""
_FULL = 0.05
_TOLD_WITHIN = 1.0

log = logging.getLogger(__name__)


class Order(BaseModel):
    """A process to fork. The file that it writes its output to comes beside it."""

    model_config = ConfigDict(frozen=True)

    id: str
    command: tuple[str, ...]
    """A module, and its arguments."""
    environment: dict[str, str]


class Answer(BaseModel):
    """That an order was carried out, or that a process has ended."""

    model_config = ConfigDict(frozen=True)

    order: str | None = None
    pid: int | None = None
    """`None` where nothing could be forked."""
    code: int | None = None
    """What the process ended with; negative for a signal."""


class Forked:
    """A process that the nursery has forked."""

    def __init__(self, process: psutil.Process, nursery: Nursery) -> None:
        self.pid = process.pid
        self._process = process
        self._nursery = nursery

    def end(self) -> int | None:
        """Kill it with its process group, where it runs. What it ended with; `None` where its nursery died and cannot tell."""
        if is_running(self._process):  # of one that has ended, the nursery has killed the group
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            wait_gone([self._process], 5)
        return self._nursery.code(self.pid)


class Nursery:
    """The supervisor's side: has services forked, and learns how they ended. On Linux alone; elsewhere nothing is forked.

    Args:
        environment: the nursery's own; a service's comes with its program.
        log: the file that the nursery itself writes to.
    """

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._environment = dict(environment)
        self._log = log
        self._usable = sys.platform == "linux"
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._waiting: dict[str, asyncio.Future[int | None]] = {}
        self._codes: dict[int, int | None] = {}
        self._proved = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the process, which imports for about a second; orders may be given at once.

        Raises:
            OSError: it could not be started.
        """
        if self._socket is not None or not self._usable:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        rotate(self._log)
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE],
                env=self._environment | {_ROOM: " " * _ROOM_BYTES},
                stdin=theirs.fileno(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._socket, self._proved = ours, False
        asyncio.get_running_loop().add_reader(ours, self._read)

    async def fork(self, program: Program, log: BinaryIO) -> Forked | None:
        """Fork a process that runs `program`, a module of this very Python; any other has to be executed.

        Args:
            log: the file that it writes its output to.

        Returns:
            The process; `None` where it has to be executed: the program is another's, or has an environment of its own that
            Python or the loader reads as a process starts, or there is no nursery.
        """
        python, *command = program.command
        if not self._usable or python != sys.executable or command[:1] != ["-m"] or program.folder is not None:
            return None
        if _read_at_start(program.environment) != _read_at_start(self._environment):
            return None
        order = Order(id=uuid4().hex, command=tuple(command[1:]), environment=dict(program.environment))
        answer = self._waiting[order.id] = asyncio.get_running_loop().create_future()
        pid: int | None = None
        try:
            self.start()
            async with asyncio.timeout(_PATIENCE):
                await self._send(order, log)
                pid = await answer
            return Forked(psutil.Process(pid), self) if pid is not None else None
        except (OSError, psutil.NoSuchProcess):
            return None
        finally:
            del self._waiting[order.id]
            if pid is None and answer.done() and not answer.cancelled():
                _kill(answer.result())  # it was told while nobody waited any more

    async def _send(self, order: Order, log: BinaryIO) -> None:
        while self._socket is not None:
            try:
                socket.send_fds(self._socket, [order.model_dump_json().encode()], [log.fileno()])
                return
            except BlockingIOError:  # many orders wait for a nursery that still imports
                await asyncio.sleep(_FULL)

    def code(self, pid: int) -> int | None:
        """What a process that has ended did end with; `None` where nobody can tell."""
        limit = time.monotonic() + _TOLD_WITHIN
        while True:
            self._read()
            if pid in self._codes or self._socket is None or time.monotonic() > limit:
                return self._codes.pop(pid, None)
            select.select([self._socket], [], [], 0.1)

    def close(self) -> None:
        """End the nursery; what it has forked runs on."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)

    def _read(self) -> None:
        while self._socket is not None:
            try:
                message = self._socket.recv(4096)
            except BlockingIOError:
                return
            except ConnectionError:
                message = b""
            if not message:
                if not self._proved:  # the next one would do no better
                    self._usable = False
                    log.warning("services are executed, and not forked: the nursery ended at once; its log says why")
                self.close()
                return
            answer = Answer.model_validate_json(message)
            if answer.order is None:
                if answer.pid is not None:
                    self._codes[answer.pid] = answer.code
                continue
            self._proved = True
            if answer.pid is not None:
                self._codes.pop(answer.pid, None)  # of an earlier process with this number, after which nobody asked
            waiting = self._waiting.get(answer.order)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer.pid)
            else:
                _kill(answer.pid)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """What Python and the loader read before anything is imported, which has no effect in a process that is forked."""
    return {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LD_"))}


def _kill(pid: int | None) -> None:
    with suppress(psutil.NoSuchProcess):
        if pid is not None:
            psutil.Process(pid).kill()


class _Block:
    """The memory in which the system keeps a process's arguments and environment, as `ps` and the supervisor see them."""

    def __init__(self) -> None:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        self._arguments, end, self._environment, last = map(int, fields[45:49])
        self._sizes = end - self._arguments, last - self._environment
        if min(self._sizes) <= 0:
            raise OSError("the system does not tell where the environment is")
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:  # where it is forbidden, that fails here
            memory.seek(self._environment)
            before = memory.read(self._sizes[1])
            memory.seek(self._environment)
            memory.write(before)

    def holds(self, environment: Mapping[str, str]) -> bool:
        return len(_packed(environment)) < self._sizes[1]

    def write(self, order: Order) -> None:
        """Show what an executed process would show. Nothing may point into the old environment any more."""
        command = "\0".join(order.command).encode()
        arguments = Path("/proc/self/cmdline").read_bytes().replace(_MODULE.encode(), command)
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(self._environment)
            memory.write(_packed(order.environment).ljust(self._sizes[1], b"\0"))
            if len(arguments) <= self._sizes[0]:  # a service's; the longer one of migrations keeps the nursery's
                memory.seek(self._arguments)
                memory.write(arguments.ljust(self._sizes[0], b"\0"))


def _packed(environment: Mapping[str, str]) -> bytes:
    return b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())


def _stamps() -> dict[str, tuple[int, int]]:
    """The files that were imported, and which they are."""
    stamps = {}
    for module in list(sys.modules.values()):
        if path := getattr(module, "__file__", None):
            with suppress(OSError):
                found = os.stat(path)
                stamps[path] = (found.st_ino, found.st_mtime_ns)
    return stamps


def _reap(channel: socket.socket) -> None:
    """Tell of those that have ended. What is left in their process groups goes with them, while the number is still theirs."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(ended.si_pid, signal.SIGKILL)
        pid, status = os.waitpid(ended.si_pid, 0)
        _say(channel, Answer(pid=pid, code=os.waitstatus_to_exitcode(status)))


def _say(channel: socket.socket, answer: Answer) -> None:
    with suppress(ConnectionError):  # the supervisor is gone, which the next look at the socket tells
        channel.send(answer.model_dump_json().encode())


def _serve() -> str:
    """Take orders until the supervisor is gone. Returns only in a process that was forked: the module that it is to run."""
    gc.disable()  # next to nothing that is imported becomes garbage, and looking for it is a fifth of the work
    for name in _SHARED:
        importlib.import_module(name)
    importlib.import_module("phronesis_tokens").load()  # 35 MB in each service that counts
    # A copy, which goes when this process is executed anew; stdin stays.
    channel = socket.socket(fileno=os.dup(0))
    block = _Block()
    rings, ringing = socket.socketpair()
    ringing.setblocking(False)
    signal.set_wakeup_fd(ringing.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    imported = _stamps()
    gc.collect()
    gc.freeze()  # a collection in a service would write to these pages, and share them no more
    gc.enable()
    while True:
        _reap(channel)
        ready, _, _ = select.select([channel, rings], [], [])
        if rings in ready:
            rings.recv(4096)
        if channel not in ready:
            continue
        if _stamps() != imported:
            # What is installed has changed. This process keeps its number and its children, and finds the order again.
            os.execv(sys.executable, [sys.executable, "-m", _MODULE])
        message, files, _, _ = socket.recv_fds(channel, _LARGEST, 1)
        if not message:
            raise SystemExit
        order = Order.model_validate_json(message)
        if _forked(channel, order, block):
            signal.set_wakeup_fd(-1)
            for pair in (rings, ringing):
                pair.close()
            _become(order, block, files[0])
            _say(channel, Answer(order=order.id, pid=os.getpid()))
            channel.close()
            return order.command[0]
        os.close(files[0])


def _forked(channel: socket.socket, order: Order, block: _Block) -> bool:
    """Whether this is the new process."""
    if block.holds(order.environment):
        with suppress(OSError):
            return os.fork() == 0
    _say(channel, Answer(order=order.id))
    return False


def _become(order: Order, block: _Block, log: int) -> None:
    """Be what an executed process would be."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()  # noqa: TID251
    os.environ.update(order.environment)  # noqa: TID251
    block.write(order)
    sys.argv[1:] = order.command[1:]
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, log, log)):
        os.dup2(file, number)
    os.close(nothing)
    os.close(log)
    importlib.invalidate_caches()


if __name__ == "__main__":
    runpy.run_module(_serve(), run_name="__main__", alter_sys=True)
