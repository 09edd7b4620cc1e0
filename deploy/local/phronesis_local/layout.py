"""What stands where in a data directory; `stack.json`, which processes run; and the mark by which they are found."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from .processes import is_running


class AlreadyRunning(Exception):
    """Another process holds this data directory."""


class DataDir:
    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()
        self.record = self.root / "stack.json"
        self.secrets = self.root / "secrets"
        self.roles = self.root / "roles"
        """Passwords of the services' roles, for a database that is not ours."""
        self.trust = self.root / "trust"
        """Public keys of the services that sign principals."""
        self.nats = self.root / "nats"
        self.postgres = self.root / "postgres"
        self.arcadedb = self.root / "arcadedb"
        self.neo4j = self.root / "neo4j"
        self.weaviate = self.root / "weaviate"
        self.stores = self.root / "stores"
        """Which stores hold the data: `embedded` or `production`."""
        self.logs = self.root / "logs"
        self.key = self.root / "key"
        self.url = self.root / "url"
        self.restart = self.root / "restart.json"
        """A restart that was asked for and that the supervisor has not taken up yet."""
        self.operator = self.root / "operator.json"
        """The variables with which a backup reaches the servers, while the stack runs."""
        self._lock = self.root / "lock"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def create(self) -> None:
        """Make the folders, and shut them and the private files to others, also where an earlier version left them open."""
        for folder in (self.root, self.secrets, self.roles, self.trust, self.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _shut(folder, 0o700)
        for path in self.private_files():
            _shut(path.parent, 0o700)
            _shut(path, 0o600)

    def private_files(self) -> Iterator[Path]:
        """The files there are that hold keys, passwords or their hashes."""
        for pattern in _PRIVATE:
            yield from self.root.glob(pattern)

    def strike_keys(self) -> None:
        """Take keys of the API out of the logs of starts, where earlier versions wrote the owner's. The caller holds the lock:
        a supervisor that runs writes to such a file, and would go on in the old one.
        """
        for log in self.logs.glob("up.log*"):
            text = log.read_bytes()
            if _KEY.search(text):
                write_atomically(log, _KEY.sub(b"(struck)", text))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory for the length of a block; the system lets go of it when the process ends in any way.

        Raises:
            AlreadyRunning: another process holds it.
        """
        with self._lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AlreadyRunning(str(self.root)) from error
            yield


_PRIVATE = (
    "key",
    "operator.json",
    "secrets/*",
    "roles/*",
    "nats/nats.conf",
    "arcadedb/server-users.jsonl",
    "neo4j/conf/neo4j.conf",
    "neo4j/data/dbms/auth.ini",
)
_KEY = re.compile(rb"phr_[A-Za-z0-9_-]{43}")


def _shut(path: Path, mode: int) -> None:
    # What belongs to somebody else is theirs to shut: `doctor` names a folder that is open.
    with suppress(PermissionError, FileNotFoundError):  # a file may go while a supervisor works here
        if path.stat().st_mode & 0o077:
            path.chmod(mode)


def write_atomically(path: Path, text: str | bytes, mode: int = 0o600) -> None:
    """Write a file that a reader, or a kill half-way, sees whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(mode=mode)
    fresh.write_bytes(text if isinstance(text, bytes) else text.encode())
    fresh.replace(path)


State = Literal["waiting", "starting", "recovering", "up", "down", "outside", "stopped"]


class ProcessId(BaseModel):
    """A process by number and time of its start, so that a recycled number is never mistaken for it."""

    model_config = ConfigDict(frozen=True)

    pid: int
    created: float
    """Seconds since the epoch."""

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The identity of a running process; `None` when there is no such process."""
        try:
            return cls(pid=pid, created=psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return None

    def process(self) -> psutil.Process | None:
        """The process, if it still runs."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created) < 2  # the clock may have been set
            return process if same and is_running(process) else None
        except psutil.NoSuchProcess:
            return None


class PartRecord(BaseModel):
    """One part of the stack."""

    state: State
    process: ProcessId | None = None
    port: int | None = None
    seconds: float | None = None
    """What its last start took until it was ready."""
    restarts: int = 0
    reason: str | None = None
    version: str | None = None
    """What a service's process said of itself when it came up."""


class Restart(BaseModel):
    """A rolling restart, as far as it has come."""

    id: str
    state: Literal["running", "done", "failed"] = "running"
    lines: tuple[str, ...] = ()


class StackRecord(BaseModel):
    """The whole stack."""

    state: Literal["starting", "ready", "stopping"]
    supervisor: ProcessId
    nursery: ProcessId | None = None
    """The process that forks the services, where there is one."""
    started_at: float
    """Seconds since the epoch."""
    ready_seconds: float | None = None
    """What the start took until everything was ready."""
    url: str
    parts: dict[str, PartRecord]
    bolt: str | None = None
    restart: Restart | None = None


def read_record(data: DataDir) -> StackRecord | None:
    """What the last supervisor wrote; `None` when none has, or when it stopped in order."""
    try:
        return StackRecord.model_validate_json(data.record.read_text())
    except (FileNotFoundError, ValidationError):
        return None


def write_record(data: DataDir, record: StackRecord) -> None:
    """Write the record in place of the one before."""
    write_atomically(data.record, record.model_dump_json(indent=2))


_STACK = "PHRONESIS_STACK"
_PART = "PHRONESIS_PART"


def inherited_environment() -> dict[str, str]:
    """This process's own environment, to hand on: the services read their settings and keys from it."""
    return dict(os.environ)  # noqa: TID251  # handed on, not read


def part_environment(data: DataDir, name: str, more: Mapping[str, str]) -> dict[str, str]:
    marks = {_STACK: str(data.root), _PART: name}
    # fewer arenas of the allocator: a service's memory stays near what it uses
    return {"MALLOC_ARENA_MAX": "2", "PYTHONUNBUFFERED": "1"} | inherited_environment() | dict(more) | marks


def marked_processes(data: DataDir) -> list[tuple[str, psutil.Process]]:
    """Running processes that this stack started, with the name of their part; what postgres starts hides its environment."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            ours = environment.get(_STACK) == str(data.root) and process.pid != os.getpid()
            if ours and is_running(process):
                found.append((environment.get(_PART, ""), process))
        except (psutil.Error, OSError):
            continue  # it has ended, or is another user's
    return found
