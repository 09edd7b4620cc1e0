"""`stack.json`: which processes run, written by the supervisor and read by everybody else."""

from __future__ import annotations

from typing import Literal

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from .layout import DataDir, write_atomically
from .processes import runs

State = Literal["waiting", "starting", "up", "down", "outside", "stopped"]


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
            return process if same and runs(process) else None
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
    """Why it is not up."""
    version: str | None = None
    """What a service's process said of itself when it came up."""


class Restart(BaseModel):
    """A rolling restart, as far as it has come."""

    id: str
    state: Literal["running", "done", "failed"] = "running"
    lines: tuple[str, ...] = ()
    """What was done so far, for a reader."""


class StackRecord(BaseModel):
    """The whole stack."""

    state: Literal["starting", "ready", "stopping"]
    supervisor: ProcessId
    started_at: float
    """Seconds since the epoch."""
    ready_seconds: float | None = None
    """What the start took until everything was ready."""
    url: str
    """The gateway's address."""
    parts: dict[str, PartRecord]
    bolt: str | None = None
    """Address of the graph store."""
    restart: Restart | None = None
    """The last rolling restart that was asked for."""


def read(data: DataDir) -> StackRecord | None:
    """What the last supervisor wrote; `None` when none has, or when it stopped in order."""
    try:
        return StackRecord.model_validate_json(data.record.read_text())
    except (FileNotFoundError, ValidationError):
        return None


def write(data: DataDir, record: StackRecord) -> None:
    """Write the record in place of the one before."""
    write_atomically(data.record, record.model_dump_json(indent=2))
