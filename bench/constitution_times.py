"""How long the constitutional graph's operations take: the seed's two tables of latency, and our own aims."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from .constitution_graph import Given, Graph, at, nothing
from .constitution_seed import AIMS_MS, OPERATIONS, SIZES, Operation, verdict
from .load import Timed

TOUCHED = "after a write"
"""The second row of a session's start: nothing of it is cached."""


@dataclass(frozen=True)
class Times:
    """One size: the calls of each operation, by tool; a session's start twice."""

    size: int
    by_tool: dict[str, Timed]


async def measured(graph: Graph, calls: int) -> Times:
    """Time every operation."""
    given: dict[str, Given] = {"semantic.search.v1": graph.question, "hybrid.search.v1": graph.around}
    found: dict[str, Timed] = {}
    for one in OPERATIONS:
        found[one.tool] = await graph.timed(one.tool, given.get(one.tool, nothing), calls)
    started = OPERATIONS[0].tool
    found[f"{started} {TOUCHED}"] = await graph.timed(started, nothing, max(5, calls // 2), graph.touch)
    return Times(graph.size, found)


def operations(times: Times) -> list[str]:
    """The table of operations; the seed states it for 500 nodes."""
    lines = [
        f"| operation, {times.size:,} nodes | target, median s | median s | P99, s | P99 measured, s | kept |",
        "|---|---|---|---|---|---|",
    ]
    for one in OPERATIONS:
        seconds = times.by_tool[one.tool].seconds
        middle, high = median(seconds), at(seconds, 99)
        kept = middle < one.median_s and high < one.p99_s
        lines.append(f"| {one.name} | {one.median_s} | {middle:.3f} | {one.p99_s} | {high:.3f} | {verdict(kept)} |")
    return lines


def by_size(found: list[Times]) -> list[str]:
    """The table of sizes: measured medians beside the ceilings."""
    shown = [one for one in OPERATIONS if one.by_size_s]
    heads = " | ".join(f"{one.name}: ceiling, median s" for one in shown)
    lines = [f"| nodes | {heads} |", "|---|" + "---|" * len(shown)]
    for times in found:
        cells = " | ".join(_cell(one, times) for one in shown)
        lines.append(f"| {times.size:,} | {cells} |")
    return lines


def _cell(one: Operation, times: Times) -> str:
    middle = median(times.by_tool[one.tool].seconds)
    if times.size not in SIZES:
        return f"—, {middle:.3f}"
    ceiling = one.by_size_s[SIZES.index(times.size)]
    return f"{ceiling}, {middle:.3f} {verdict(middle < ceiling)}"


def aims(found: list[Times]) -> list[str]:
    """Our own aims at 5,000 nodes, and the same at the other sizes."""
    lines = ["| nodes | operation | p50 ms | p95 ms | aim for p95, ms (at 5,000) | kept |", "|---|---|---|---|---|---|"]
    for times in found:
        for name, timed in times.by_tool.items():
            aim = AIMS_MS.get(name.split(" ")[0])
            if aim is not None:
                kept = verdict(timed.p95 < aim) if times.size == 5_000 else ""
                lines.append(f"| {times.size:,} | {name} | {timed.p50:.1f} | {timed.p95:.1f} | {aim:.0f} | {kept} |")
    return lines
