"""Memory of the stack's processes."""

from __future__ import annotations

import psutil

from phronesis_local import layout
from phronesis_local.parts import EVERY_SERVER
from tests.chaos.stack import ChaosStack


def megabytes(stack: ChaosStack) -> dict[str, float]:
    """Memory of each part in megabytes: its own pages, and its share of those that it has in common with others (PSS)."""
    found = layout.read_record(stack.data)
    assert found is not None
    parts = {"supervisor": found.supervisor, "nursery": found.nursery} | {
        name: part.process for name, part in found.parts.items()
    }
    sizes = {}
    for name, identity in parts.items():
        process = identity.process() if identity else None
        if process is not None:
            sizes[name] = (
                process.memory_full_info().pss / 1e6 if name in ("supervisor", "nursery") else megabytes_of(process.pid)
            )
    return sizes


def megabytes_of(pid: int | None) -> float:
    """Memory of a running process with all that it started, in megabytes, as above."""
    assert pid is not None, "it does not run"
    process = psutil.Process(pid)
    return sum(p.memory_full_info().pss for p in [process, *process.children(recursive=True)]) / 1e6


def python(sizes: dict[str, float]) -> float:
    """All Python processes together, in megabytes."""
    return sum(size for name, size in sizes.items() if name not in EVERY_SERVER)


def cpu_seconds(stack: ChaosStack) -> dict[str, float]:
    """Processor seconds that each part has used."""
    found = layout.read_record(stack.data)
    assert found is not None
    used = {}
    for name, part in found.parts.items():
        process = part.process.process() if part.process else None
        if process is not None:
            family: list[psutil.Process] = [process, *process.children(recursive=True)]
            used[name] = sum(t.user + t.system for t in (p.cpu_times() for p in family))
    return used
