"""Everything that is measured, in one run: `make bench`. It prints a report and writes it to docs/bench-report.md."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
from pathlib import Path

from phronesis.postgres import Database
from tests.chaos.stack import ChaosStack
from tests.chaos.traffic import Traffic
from tests.support.servers import PostgresServer

from .processes import megabytes, python
from .recall import RecallFigures, measure
from .turns import IN_FLIGHT, Compared, compare, ready_seconds

REPORT = Path(__file__).parents[1] / "docs" / "bench-report.md"
SIZES = (10_000, 100_000)


async def main() -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
        stack = ChaosStack(Path(folder) / "data", {"GATEWAY_REQUESTS_PER_SECOND": "100000", "GATEWAY_BURST": "100000"})
        await stack.up()
        first = ready_seconds(stack)
        await stack.down()
        await stack.up()
        warm = ready_seconds(stack)
        try:
            idle = megabytes(stack)
            await _load_portfolio(stack)
            compared = await compare(stack)
            busy = megabytes(stack)
        finally:
            await stack.down()
    recall = await _recall()
    text = _report(first, warm, idle, busy, compared, recall)
    print(text)
    REPORT.write_text(text)


async def _recall() -> list[RecallFigures]:
    """Recall over each size, on a database of its own."""
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
        server = PostgresServer(Path(folder))
        await server.start()
        try:
            async with server.fresh_schema("memory") as settings:
                patient = settings.model_copy(update={"command_timeout": 600.0})
                async with Database.open(patient, "memory") as database:
                    return [await measure(database, size) for size in SIZES]
        finally:
            await server.stop()


async def _load_portfolio(stack: ChaosStack) -> None:
    traffic = Traffic(stack.url, stack.key)
    assert await traffic.ready(60)
    await traffic.close()
    command = [sys.executable, "-m", "phronesis.client", "load", "portfolio", "--data", str(stack.data.root)]
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == 0


def _report(
    first: float,
    warm: float,
    idle: dict[str, float],
    busy: dict[str, float],
    compared: list[Compared],
    recall: list[RecallFigures],
) -> str:
    lines = [
        "# Bench report",
        "",
        f"Made by `make bench` on {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()};",
        "the client runs on the same machine. Read the ratios; the absolute figures move with the machine. No model is",
        "called: the `extractive` reasoner stands in its place. The chain (`bench/chain.py`) is bare nats-py and asyncpg",
        "with the same hops, commits and payloads, on servers of its own, measured turn about with the product.",
        "",
        "| reply by HTTP | median ms | p95 ms | chain's median ms | ratio of medians (at most 2.5) | requests/s, 32 in flight "
        "| chain's | share (at least 0.4) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in compared:
        ours = sorted(t.p50 for t in c.ours)[len(c.ours) // 2]
        p95 = sorted(t.p95 for t in c.ours)[len(c.ours) // 2]
        chain = sorted(t.p50 for t in c.chain)[len(c.chain) // 2]
        share = c.ours_rate / c.chain_rate
        lines.append(
            f"| {c.name} | {ours:.1f} | {p95:.1f} | {chain:.1f} | {c.ratio:.2f} "
            f"| {c.ours_rate:.0f} | {c.chain_rate:.0f} | {share:.2f} |"
        )
    lines += [
        "",
        "| recall over items | p50 ms | p95 ms (aim 25 at 100,000) "
        "| recall@10 against exact search inside the filter (at least 0.98) |",
        "|---|---|---|---|",
        *(f"| {r.items:,} | {r.p50_ms:.1f} | {r.p95_ms:.1f} | {r.recall_at_10:.3f} |" for r in recall),
        "",
        "| ready after | seconds (aim 15) |",
        "|---|---|",
        f"| the first start, with new databases | {first:.1f} |",
        f"| a later start | {warm:.1f} |",
        "",
        "| memory, MB | idle | after the load |",
        "|---|---|---|",
        *(f"| {name} | {idle.get(name, 0):.0f} | {size:.0f} |" for name, size in busy.items()),
        f"| all Python processes (aim 900) | {python(idle):.0f} | {python(busy):.0f} |",
        "",
        f"In flight: {IN_FLIGHT}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    asyncio.run(main())
