"""The long chaos runs: `make chaos`. Each prints a report and writes it to docs, for either pair of stores its own."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from phronesis_local.settings import Stores
from tests.support.production import STORES, prepare

from .cuts import cut_streams
from .kills import plan
from .long import broker_away, paused_orchestrator
from .outages import planned, weather, weather_report
from .report import report
from .run import Outcome, run

_OF_STORES = "" if STORES is Stores.EMBEDDED else "-production"
_GENERATED = Path(__file__).parents[2] / "docs" / "generated"
OUTAGES = _GENERATED / f"outages-report{_OF_STORES}.md"
REPORT = _GENERATED / f"chaos-report{_OF_STORES}.md"


async def _main(kills: int, cuts: int, seed: int, away: float, report_to: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="phronesis-chaos-") as folder:
        # Four stacks side by side: two of them mostly wait, and the other two wait for half of their time.
        waiting = asyncio.gather(paused_orchestrator(Path(folder) / "paused", 60), broker_away(Path(folder) / "away", away))
        outcome = await _killed(Path(folder), kills, seed)
        print(outcome.found, flush=True)
        watched = await cut_streams(Path(folder) / "cuts", cuts, seed)
        paused, back = await waiting
    text = report(outcome, watched, seed, paused, away, back)
    print(text)
    report_to.write_text(text)
    return 0 if outcome.found.kept and watched.kept and paused else 1


async def _killed(folder: Path, kills: int, seed: int) -> Outcome:
    """Two stacks share the kills: after one of the orchestrator, turns wait for a lease and the machine has nothing to do."""
    planned = plan(kills, seed)
    one, other = await asyncio.gather(
        run(folder / "one", planned[::2], seed, purge_at=kills // 4, name="one   "),
        run(folder / "other", planned[1::2], seed + 1, purge_at=kills // 4, name="other "),
    )
    return one.plus(other)


async def _weather(given: argparse.Namespace, kills: int, report_to: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="phronesis-outages-") as folder:
        events = planned(kills, given.outages, given.seed)
        result = await weather(Path(folder) / "data", *events, given.turns, given.seconds, given.seed, minutes=given.minutes)
    text = weather_report(result, given.seed, given.seconds, given.turns, sum(map(len, events)))
    print(text)
    report_to.write_text(text)
    return 0 if result.kept else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, help="how many processes are killed (300; with --weather 60)")
    parser.add_argument("--cuts", type=int, default=500, help="how many event streams are cut (500)")
    parser.add_argument("--seed", type=int, default=20, help="decides the order of the kills and the cuts (20)")
    parser.add_argument("--away", type=float, default=600, help="seconds that the broker is gone (600)")
    reports = f"{REPORT.name}, with --weather {OUTAGES.name}, in docs/generated"
    parser.add_argument("--report", type=Path, help=f"where the report is written ({reports})")
    parser.add_argument("--weather", action="store_true", help="take stores away instead, with kills among them")
    parser.add_argument("--turns", type=int, default=500, help="with --weather: turns that are handed in (500)")
    parser.add_argument("--outages", type=int, default=5, help="with --weather: outages of each store (5)")
    parser.add_argument("--seconds", type=float, default=30, help="with --weather: seconds of each outage (30)")
    parser.add_argument("--minutes", type=float, help="with --weather: after which nothing more is begun (no limit)")
    given = parser.parse_args()
    prepare()
    if given.weather:
        kills = 60 if given.kills is None else given.kills
        sys.exit(asyncio.run(_weather(given, kills, given.report or OUTAGES)))
    kills = 300 if given.kills is None else given.kills
    sys.exit(asyncio.run(_main(kills, given.cuts, given.seed, given.away, given.report or REPORT)))
