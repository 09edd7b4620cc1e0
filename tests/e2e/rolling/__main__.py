"""The long run: `python -m tests.e2e.rolling`. It prints a report and writes it to docs/generated/rolling-restart.md."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from .report import report
from .run import long_run

REPORT = Path(__file__).parents[3] / "docs" / "generated" / "rolling-restart.md"


async def _main(minutes: float, seed: int, report_to: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="phronesis-rolling-") as folder:
        outcome = await long_run(Path(folder), seed, minutes)
    text = report(outcome, seed, minutes)
    print(text)
    report_to.write_text(text)
    return 0 if outcome.held.kept and outcome.quiet else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long services are restarted (10)")
    parser.add_argument("--seed", type=int, default=5, help="decides what is said, and which processes are killed (5)")
    parser.add_argument(
        "--report", type=Path, default=REPORT, help="where the report is written (docs/generated/rolling-restart.md)"
    )
    given = parser.parse_args()
    sys.exit(asyncio.run(_main(given.minutes, given.seed, given.report)))
