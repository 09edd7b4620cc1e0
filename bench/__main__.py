"""Everything that is measured, in one run: `make bench`. It prints a report and writes it to docs/bench-report.md.

python -m bench                            all of it
python -m bench --only media streams       some sections, printed; nothing is written
python -m bench --quick                    tiny sizes, to see that a section runs; nothing is written
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

from . import constitution, faces, gaps, media, pairs, quality_figures, rebuild, replies, streams, tracing
from .progress import say

REPORT = Path(__file__).parents[1] / "docs" / "bench-report.md"
Section = Callable[[bool], Awaitable[list[str]]]
"""Measures and gives the lines of the report; told whether it has to be quick."""
SECTIONS: dict[str, tuple[str, Section]] = {
    "replies": ("Replies, start and memory", replies.section),
    "pairs": ("Recall and graph expansion on both pairs of stores", pairs.section),
    "rebuild": ("Rebuilding the vectors", rebuild.section),
    "constitution": ("The constitutional graph", constitution.section),
    "gaps": ("Gaps in a made-up twin", gaps.section),
    "media": ("Media by kind", media.section),
    "faces": ("One tool by each face", faces.section),
    "tracing": ("What tracing costs", tracing.section),
    "streams": ("Event streams at once", streams.section),
    "quality": ("Recall quality", quality_figures.section),
}


async def run(names: list[str], quick: bool) -> tuple[str, bool]:
    """The report of some sections, and whether each could be measured. One that fails does not cost the others."""
    lines, whole = _head(), True
    for name in names:
        title, section = SECTIONS[name]
        say(name)
        began = perf_counter()
        try:
            found = await section(quick)
        except Exception as error:
            traceback.print_exc()
            found, whole = [f"Not measured: {type(error).__name__}."], False
        lines += [f"## {title}", "", *found, ""]
        say(f"{name}: done in {perf_counter() - began:.0f} s")
    return "\n".join(lines), whole


def _head() -> list[str]:
    return [
        "# Bench report",
        "",
        f"Made by `make bench` on {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()};",
        "the client runs on the same machine. Read the ratios; the absolute figures move with the machine. No model is",
        "called: the `extractive` reasoner stands in its place, where nothing else is said.",
        "",
    ]


def main() -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    report, whole = asyncio.run(run(chosen.only or list(SECTIONS), chosen.quick))
    print(report)
    if whole and not chosen.only and not chosen.quick:
        REPORT.write_text(report, encoding="utf-8")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
