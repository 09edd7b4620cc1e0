"""Processes that may not be our children."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil


def runs(process: psutil.Process) -> bool:
    """Whether it still does anything; one that has ended and that nobody has taken note of does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_gone(processes: Iterable[psutil.Process], within: float) -> list[psutil.Process]:
    """Wait until all have ended, `within` seconds at most; those that still run then."""
    limit = time.monotonic() + within
    left = [process for process in processes if runs(process)]
    while left and time.monotonic() < limit:
        time.sleep(0.05)
        left = [process for process in left if runs(process)]
    return left


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill all of them and wait for their end."""
    killed = list(processes)
    for process in killed:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    wait_gone(killed, 5)
