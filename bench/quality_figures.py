"""The section of recall quality: the labelled test questions, in a process of their own."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from time import perf_counter
from typing import Any

LIMIT = 420.0
"""Seconds that it may take, so that a run stays within a quarter of an hour."""
_POINTER = "For the method and the figures of every group see [recall-quality.md](recall-quality.md)."
_SIGNALS = {"vector": "vector alone", "text": "words alone", "fused": "`recall`"}
_GROUPS = ("all", "few words shared")


async def section(quick: bool) -> list[str]:
    """Its lines; quick only tells where the figures are."""
    if quick:
        return [_POINTER]
    began = perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.quality", "--split", "test", "--json", stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(LIMIT):
            out, _ = await process.communicate()
    except TimeoutError:
        return [f"Not done after {LIMIT:.0f} seconds. {_POINTER}"]
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)  # it stops its server then
            await process.wait()
    assert process.returncode == 0, "the questions could not be asked"
    return [*_table(json.loads(out)["test"]), "", f"{_POINTER} This took {perf_counter() - began:.0f} s."]


def _table(found: dict[str, Any]) -> list[str]:
    lines = [
        f"`recall` is {found['gain_at_10_points']:+.1f} points of recall@10 (at least 5) from the best single signal.",
        "",
        "| test questions | signal | recall@5 | recall@10 | recall@25 | MRR | p50 ms, of all | p95 ms, of all |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for group, by in found["groups"].items():
        if not group.startswith(_GROUPS):
            continue
        for name, shown in _SIGNALS.items():
            f, (p50, p95) = by[name], found["p50_p95_ms"][name]
            lines.append(
                f"| {group}: {f['questions']} | {shown} | {f['at_5']:.3f} | {f['at_10']:.3f} | {f['at_25']:.3f} "
                f"| {f['mrr']:.3f} | {p50:.1f} | {p95:.1f} |"
            )
    return lines
