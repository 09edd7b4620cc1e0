"""What `phronesis status` tells: each part, its process, port, age and memory; and tables for people."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
from rich.console import Console
from rich.table import Table

from . import postgres
from .layout import DataDir, PartRecord, StackRecord, read_record

if TYPE_CHECKING:
    from .parts import Finding


def status(data: DataDir) -> dict[str, Any]:
    """The stack as plain values; `running` says whether its supervisor lives."""
    record = read_record(data)
    if record is None:
        return {"data": str(data.root), "running": False, "parts": []}
    supervisor = record.supervisor.process()
    parts = [_supervisor(record, supervisor)]
    parts += [_part(data, name, part) for name, part in sorted(record.parts.items(), key=lambda pair: pair[0])]
    return {
        "data": str(data.root),
        "running": supervisor is not None,
        "state": record.state if supervisor else "killed",
        "url": record.url,
        "bolt": record.bolt,
        "ready_seconds": record.ready_seconds,
        "memory_mb": sum(part["memory_mb"] or 0 for part in parts),
        "parts": parts,
    }


def all_up(found: dict[str, Any]) -> bool:
    """Whether a stack runs and none of its parts is down."""
    return bool(found["running"]) and all(part["state"] in ("up", "outside") for part in found["parts"])


def _supervisor(record: StackRecord, process: psutil.Process | None) -> dict[str, Any]:
    state = "up" if process else "down"
    nursery = record.nursery.process() if record.nursery else None
    family = [each for each in (process, nursery) if each is not None]
    return _row("supervisor", state, process, family, None, 0, None if process else "it was killed")


def _part(data: DataDir, name: str, part: PartRecord) -> dict[str, Any]:
    process = part.process.process() if part.process else None
    state = "down" if part.state == "up" and process is None else part.state
    family = [process, *_children(process)] if process else []
    if process and name == postgres.NAME:
        family = postgres.workers(data.postgres)
    return _row(name, state, process, family, part.port, part.restarts, part.reason, part.version)


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return process.children(recursive=True)
    return []


def _row(
    name: str,
    state: str,
    process: psutil.Process | None,
    family: list[psutil.Process],
    port: int | None,
    restarts: int,
    reason: str | None,
    version: str | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "state": state,
        "pid": process.pid if process else None,
        "port": port,
        "up_seconds": round(time.time() - process.create_time(), 1) if process else None,
        "memory_mb": round(sum(map(_memory, family)) / 1024**2) if process else None,
        "restarts": restarts,
        "reason": reason.splitlines()[0] if reason else None,
        "version": version,
    }


def _memory(process: psutil.Process) -> int:
    """Memory in bytes: its own, and its part of what it shares, where the system tells; else what is resident."""
    with suppress(psutil.Error, AttributeError):
        return int(process.memory_full_info().pss)
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def print_status(found: dict[str, Any]) -> None:
    console = Console()
    if not found["parts"]:
        console.print(f"nothing runs on {found['data']}", markup=False, highlight=False, soft_wrap=True)
        return
    table = Table("part", "state", "pid", "port", "up", "memory", "restarts", "version", box=None, pad_edge=False)
    for part in found["parts"]:
        memory = f"{part['memory_mb']} MB" if part["memory_mb"] is not None else ""
        cells = (part["pid"], part["port"], _age(part["up_seconds"]), memory, part["restarts"] or "", part["version"])
        table.add_row(part["name"], part["state"], *("" if cell is None else str(cell) for cell in cells))
    console.print(table)
    total = f"{found['state']}: {found['url']}, {found['memory_mb']} MB"
    console.print(total, markup=False, highlight=False, soft_wrap=True)


def print_findings(found: list[Finding]) -> None:
    console = Console()
    for finding in found:
        mark = "ok  " if finding.ok else "WRONG"
        console.print(f"{mark:<6}{finding.what}: {finding.found}", markup=False, highlight=False, soft_wrap=True)
        if not finding.ok:
            console.print(f"      → {finding.remedy}", markup=False, highlight=False, soft_wrap=True)


def _age(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
