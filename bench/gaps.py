"""Gaps in a made-up twin: how many of those planted are found, what is found beside them, and how long a chain takes."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.twin import DiagnoseGaps
from phronesis_graph.twin.handlers import ReasoningHandlers
from phronesis_samples.twin.generator import Twin, generate
from tests.support import production
from tests.support.bus import eventually, somebody
from tests.support.graph import Stores, opened
from tests.support.twins import asked, call, diagnosed, found, planted, reasoning

from .progress import say

NODES, QUICK, SEED = 10_000, 600, 1
_WARM = 10


async def section(quick: bool) -> list[str]:
    """Its lines, for the store that PHRONESIS_STORES names."""
    production.prepare()
    twin, who = generate(QUICK if quick else NODES, SEED), somebody()
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
        server = production.graph_server(Path(folder))
        await server.start()
        try:
            async with opened(server, Path(folder)) as stores:
                filled = await _load(stores, who, twin)
                handlers = reasoning(stores)
                began = time.perf_counter()
                answers = await diagnosed(handlers, who, twin)
                all_s = time.perf_counter() - began
                chains = await _chains(handlers, who, twin)
        finally:
            await server.stop()
    wanted, got = planted(twin), found(gap for answer in answers for gap in answer.gaps)
    right = len(wanted & got)
    return [
        "| twin on | nodes | questions | planted | recall (1.0) | precision (1.0) | all questions, s | one chain, p50 ms "
        "| p95 ms (under 2,000) | to load, s |",
        "|---|---|---|---|---|---|---|---|---|---|",
        f"| {server.dialect} | {len(twin.nodes):,} | {len(twin.questions)} | {len(wanted)} | {right / len(wanted):.3f} "
        f"| {right / len(got) if got else 0:.3f} | {all_s:.1f} | {statistics.median(chains):.0f} "
        f"| {statistics.quantiles(chains, n=20)[18]:.0f} | {filled:.0f} |",
    ]


async def _load(stores: Stores, who: Principal, twin: Twin) -> float:
    await eventually(lambda: _ready(stores), within=120)
    began = time.perf_counter()
    for number, batch in enumerate(twin.batches(), 1):
        await stores.upsert(who, batch)
        if number % 10 == 0:
            say(f"gaps: {number} batches")
    return time.perf_counter() - began


async def _ready(stores: Stores) -> bool:
    """Whether the store takes what is written; one that has just started lets its first callers wait."""
    try:
        await stores.schema.declared()
    except ServiceError:
        return False
    return True


async def _chains(handlers: ReasoningHandlers, who: Principal, twin: Twin) -> list[float]:
    """Milliseconds of each question about a chain, asked alone."""
    taken = []
    for one in (one for one in twin.questions if one.chain is not None):
        began = time.perf_counter()
        await handlers.diagnose_gaps(call(who), DiagnoseGaps(questions=(asked(one),)))
        taken.append((time.perf_counter() - began) * 1000)
    return taken[_WARM:]
