"""The turn core under many seeds: `make simulate`. A seed that breaks something is replayed exactly with `--replay SEED`."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from dataclasses import asdict
from pathlib import Path

from .report import Totals, write_report
from .seeds import run_seeds
from .world import run_seed

REPORT = Path(__file__).parents[2] / "docs" / "generated" / "simulation.md"


def replay(seed: int) -> int:
    """Run one seed and say all that happens."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="          %(message)s")
    outcome = run_seed(seed, print)
    print(f"seed {seed}: {outcome.violation or 'nothing was violated'}")
    print(f"options: {outcome.options}; {outcome.steps} steps; digest {outcome.digest}")
    return 1 if outcome.violation else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000, help="how many seeds are run (20000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--processes", type=int, default=2, help="processes side by side (2)")
    parser.add_argument("--minutes", type=float, default=600, help="minutes after which no more are begun (600)")
    parser.add_argument("--json", type=Path, help="file for what became of the seeds that broke something, and the totals")
    parser.add_argument("--report", nargs="?", type=Path, const=REPORT, help=f"write a report ({REPORT.name} of the docs)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run this seed alone, and say all that happens")
    given = parser.parse_args()
    if given.replay is not None:
        return replay(given.replay)
    asked = f"--seeds {given.seeds} --first {given.first} --minutes {given.minutes:g} --processes {given.processes} --report"
    totals = Totals(f"{parser.prog} {asked}", processes=given.processes)
    began = said = time.monotonic()
    for outcome in run_seeds(given.first, given.seeds, given.processes):
        totals.add(outcome)
        if outcome.violation:
            print(f"seed {outcome.seed}: {outcome.violation}\n  {outcome.options}", flush=True)
        if time.monotonic() - began > given.minutes * 60:
            break
        if time.monotonic() - said > 10:
            said = time.monotonic()
            print(f"{totals.seeds} seeds, {totals.seeds / (said - began):.1f} a second", flush=True)
    totals.seconds = time.monotonic() - began
    print(totals.sentence)
    if given.json:
        given.json.write_text(json.dumps(asdict(totals), indent=2))
    if given.report:
        write_report(given.report, totals)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
