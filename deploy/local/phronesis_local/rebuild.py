"""`phronesis rebuild`: the memory service's own program, run with the environment of the service that runs here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import psutil

from .environment import marked
from .layout import DataDir

_SERVICE = "memory"


class NotRunning(Exception):
    """No memory service runs on this data directory."""


def rebuild(data: DataDir, parts: Sequence[str]) -> int:
    """Make `parts` anew, beside the stack; the program's exit code.

    Raises:
        NotRunning: the stack does not run.
    """
    for name, process in marked(data):
        if name == _SERVICE:
            try:
                environment = process.environ()
            except psutil.Error:
                continue
            return subprocess.call([sys.executable, "-m", "phronesis_memory.rebuild", *parts], env=environment)
    raise NotRunning(f"no stack runs on {data.root}; start it with `phronesis up`")
