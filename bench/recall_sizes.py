"""The section of recall over many items, on a database of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

from phronesis.postgres import Database
from tests.support.servers import PostgresServer

from .progress import say
from .recall import RecallFigures, measure

SIZES, QUICK = (10_000, 100_000), (2_000,)


async def section(quick: bool) -> list[str]:
    """Its lines."""
    found = []
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
        server = PostgresServer(Path(folder))
        await server.start()
        try:
            async with server.fresh_schema("memory") as settings:
                patient = settings.model_copy(update={"command_timeout": 600.0})
                async with Database.open(patient, "memory") as database, server.session(settings, "memory") as session:
                    for size in QUICK if quick else SIZES:
                        say(f"recall: {size:,} items")
                        found.append(await measure(database, session, size, questions=30 if quick else 200))
        finally:
            await server.stop()
    return _table(found)


def _table(found: list[RecallFigures]) -> list[str]:
    return [
        "| recall over items | p50 ms | p95 ms (aim 25 at 100,000) | of it, vectors alone, p95 ms | words alone, p95 ms "
        "| recall@10 against exact search inside the filter (at least 0.98) |",
        "|---|---|---|---|---|---|",
        *(
            f"| {r.items:,} | {r.p50_ms:.1f} | {r.p95_ms:.1f} | {r.vector_p95_ms:.1f} | {r.text_p95_ms:.1f} "
            f"| {r.recall_at_10:.3f} |"
            for r in found
        ),
    ]
