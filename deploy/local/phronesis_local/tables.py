"""Tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from .finding import Finding


def status_table(found: dict[str, Any]) -> None:
    """Print what `status` found."""
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


def doctor_table(found: list[Finding]) -> None:
    """Print what `doctor` found."""
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
