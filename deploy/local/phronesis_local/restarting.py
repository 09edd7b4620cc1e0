"""`phronesis restart`: asks the supervisor for a rolling restart, and tells how it goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import uuid4

from .layout import DataDir, write_atomically
from .parts import SERVICES, service_of
from .progress import Progress
from .record import StackRecord, read
from .rolling import Asked, planned

OK, FAILED, REFUSED = 0, 1, 2
_TAKEN_UP = 30.0
"""Seconds in which the supervisor has to take up what it was asked."""
_LOOK = 0.1


def restart(data: DataDir, names: Sequence[str]) -> int:
    """Have services restarted one process after the other, and print what is done.

    Args:
        data: the stack's data directory.
        names: services or parts; none for all.

    Returns:
        The exit code: 0 when all came up, 1 when one did not and the rest was left as it was, 2 when nothing was begun.
    """
    progress = Progress()
    progress.done()
    record = read(data)
    if record is None or record.supervisor.process() is None:
        progress.line(f"nothing runs on {data.root}")
        return REFUSED
    if data.restart.exists() or (record.restart is not None and record.restart.state == "running"):
        progress.line("a restart is under way already")
        return REFUSED
    try:
        parts = planned(names, [part for part in record.parts if service_of(part) in SERVICES])
    except LookupError as error:
        progress.line(str(error))
        return REFUSED
    asked = Asked(id=uuid4().hex, parts=parts)
    write_atomically(data.restart, asked.model_dump_json())
    return _followed(data, record, asked.id, progress)


def _followed(data: DataDir, before: StackRecord, id: str, progress: Progress) -> int:
    """Print each line of the restart as it is told; its exit code."""
    shown, limit = 0, time.monotonic() + _TAKEN_UP
    while True:
        record = read(data)
        told = record.restart if record and record.restart and record.restart.id == id else None
        for line in told.lines[shown:] if told else ():
            progress.line(line)
        shown = len(told.lines) if told else shown
        if told and told.state != "running":
            return OK if told.state == "done" else FAILED
        if before.supervisor.process() is None or record is None or record.state == "stopping":
            progress.line("the stack was stopped")
            return FAILED
        if told is None and time.monotonic() > limit:
            data.restart.unlink(missing_ok=True)
            progress.line("the supervisor does not take it up; it may be of an older version: use down and up")
            return FAILED
        time.sleep(_LOOK)
