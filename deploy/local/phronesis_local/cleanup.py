"""End what a stack has left running, whoever started it: `phronesis down`, and the next start after a killed supervisor."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import psutil

from . import postgres
from .environment import marked
from .layout import AlreadyRunning, DataDir
from .parts import EVERY_SERVER
from .processes import end, wait_gone
from .record import StackRecord, read

_STOP_WITHIN = 45.0
_ORDERLY = 12.0
_LOOKS = 100


class WillNotEnd(Exception):
    """Somebody holds the data directory and cannot be told to end."""


def down(data: DataDir) -> bool:
    """Stop the stack, in order if its supervisor lives.

    Returns:
        Whether there was anything to stop.

    Raises:
        WillNotEnd: somebody still holds the data directory.
    """
    if not data.root.is_dir():
        return False
    stopped = False
    for _ in range(_LOOKS):
        record = read(data)
        supervisor = record.supervisor.process() if record else None
        if supervisor is not None:
            _end([supervisor], _STOP_WITHIN)
            stopped = True
        try:
            with data.locked():
                return bool(end_leftovers(data)) or stopped
        except AlreadyRunning:
            time.sleep(0.1)  # it is so young that it has not written who it is
    raise WillNotEnd(f"a process holds {data.root} and does not say who it is")


def end_leftovers(data: DataDir) -> int:
    """End every process of a stack that has no supervisor: services first, then servers. The caller holds the lock.

    Returns:
        How many there were.
    """
    found = _processes(data, read(data))
    _end([process for name, process in found if name not in EVERY_SERVER], _ORDERLY)
    _end([process for name, process in found if name in EVERY_SERVER and name != postgres.NAME], _ORDERLY)
    _end([process for name, process in found if name == postgres.NAME], _ORDERLY, signal.SIGINT)
    late = [process for _, process in marked(data)]
    end(late)
    workers = postgres.workers(data.postgres)
    postgres.end_workers(data.postgres)
    data.record.unlink(missing_ok=True)
    data.url.unlink(missing_ok=True)
    return len(found) + len(late) + len(workers)


def _processes(data: DataDir, record: StackRecord | None) -> list[tuple[str, psutil.Process]]:
    found = {process.pid: (name, process) for name, process in marked(data)}
    for name, part in record.parts.items() if record else ():
        process = part.process.process() if part.process else None
        if process is not None:
            found[process.pid] = (name, process)
    return list(found.values())


def _end(processes: list[psutil.Process], within: float, asking: signal.Signals = signal.SIGTERM) -> None:
    """Ask, wait, kill."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(asking)
    end(wait_gone(processes, within))
