"""The environment of the children: what this process was given, the addresses, and a mark by which they are found."""

from __future__ import annotations

import os
from collections.abc import Mapping

import psutil

from .layout import DataDir
from .processes import runs

_STACK = "PHRONESIS_STACK"
_PART = "PHRONESIS_PART"


def inherited() -> dict[str, str]:
    """This process's own environment, to hand on: the services read their settings and keys from it."""
    return dict(os.environ)  # noqa: TID251  # handed on, not read


def of_part(data: DataDir, name: str, more: Mapping[str, str]) -> dict[str, str]:
    """The environment of the part `name`."""
    marks = {_STACK: str(data.root), _PART: name}
    # fewer arenas of the allocator: a service's memory stays near what it uses
    return {"MALLOC_ARENA_MAX": "2", "PYTHONUNBUFFERED": "1"} | inherited() | dict(more) | marks


def marked(data: DataDir) -> list[tuple[str, psutil.Process]]:
    """Running processes that this stack started, with the name of their part; what postgres starts hides its environment."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            ours = environment.get(_STACK) == str(data.root) and process.pid != os.getpid()
            if ours and runs(process):
                found.append((environment.get(_PART, ""), process))
        except (psutil.Error, OSError):
            continue  # it has ended, or is another user's
    return found
