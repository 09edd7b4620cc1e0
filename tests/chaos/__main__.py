"""The long chaos run: `make chaos`. It prints a report and writes it to docs/chaos-report.md."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from .long import broker_away, paused_orchestrator
from .report import report
from .run import run

REPORT = Path(__file__).parents[2] / "docs" / "chaos-report.md"


async def _main(kills: int, seed: int, away: float) -> int:
    with tempfile.TemporaryDirectory(prefix="phronesis-chaos-") as folder:
        # Three stacks side by side: two of them mostly wait.
        waiting = asyncio.gather(paused_orchestrator(Path(folder) / "paused", 60), broker_away(Path(folder) / "away", away))
        outcome = await run(Path(folder) / "kills", kills, seed, purge_at=kills // 2)
        print(outcome.found, flush=True)
        paused, back = await waiting
    text = report(outcome, seed, paused, away, back)
    print(text)
    REPORT.write_text(text)
    return 0 if outcome.found.kept and paused else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many processes are killed (200)")
    parser.add_argument("--seed", type=int, default=20, help="decides the order of the kills (20)")
    parser.add_argument("--away", type=float, default=600, help="seconds that the broker is gone (600)")
    given = parser.parse_args()
    sys.exit(asyncio.run(_main(given.kills, given.seed, given.away)))
