"""The section of both pairs of stores: recall on pgvector and Weaviate, expansion on ArcadeDB and Neo4j, in one run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.graph import opened
from tests.support.production_servers import Neo4jServer
from tests.support.servers import ArcadeServer

from . import expansion, recall
from .processes import megabytes_of
from .progress import say
from .stacks import started

SIZES, QUICK = (10_000, 100_000), (2_000,)
_GRAPHS: dict[str, Callable[[Path], ArcadeServer | Neo4jServer]] = {"ArcadeDB": ArcadeServer, "Neo4j": Neo4jServer}


async def section(quick: bool) -> list[str]:
    """Its lines."""
    sizes, questions = (QUICK, 40) if quick else (SIZES, 200)
    return [*await recall.table(sizes, questions), "", *await _expansion(sizes, questions)]


async def _expansion(sizes: tuple[int, ...], questions: int) -> list[str]:
    lines = [
        "| expansion over items | store | p50 ms | p95 ms | items found | filled in, s | its server's memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        for name, kind in _GRAPHS.items():
            say(f"expansion: {size:,} items on {name}")
            with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
                async with started(kind) as graph, opened(graph, Path(folder)) as stores:
                    row = await expansion.measure(stores.knowledge, size, questions=questions)
                    lines.append(
                        f"| {size:,} | {name} | {row.p50_ms:.1f} | {row.p95_ms:.1f} | {row.found:.1f} | {row.fill_s:.0f} "
                        f"| {megabytes_of(graph.pid):.0f} |"
                    )
    return lines
