"""Everything that is measured: `make bench`. It prints each section, and writes it to docs/generated/bench-report.md.

python -m bench                            all of it
python -m bench --only media streams       some sections; the report's others stay as they are
python -m bench --quick                    tiny sizes, to see that a section runs; nothing is written
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

from . import (
    cognition,
    console,
    constitution,
    conversations,
    experience,
    faces,
    gaps,
    growth,
    journal,
    media,
    origins,
    pairs,
    quality_figures,
    rebuild,
    replicas,
    replies,
    report,
    streams,
    tasks,
    tracing,
    understanding,
)
from .progress import say

REPORT = Path(__file__).parents[1] / "docs" / "generated" / "bench-report.md"
Section = Callable[[bool], Awaitable[list[str]]]
"""Measures and gives the lines of the report; told whether it has to be quick."""
SECTIONS: dict[str, tuple[str, Section]] = {
    "replies": ("Replies, start and memory", replies.section),
    "replicas": ("More copies of the services", replicas.section),
    "pairs": ("Recall and graph expansion on both pairs of stores", pairs.section),
    "growth": ("Growth to a million items, and to a hundred thousand tenants", growth.section),
    "rebuild": ("Rebuilding the vectors", rebuild.section),
    "experience": ("Episodes, strategies and questions to the memory", experience.section),
    "constitution": ("The constitutional graph", constitution.section),
    "understanding": ("Questions without a model", understanding.section),
    "cognition": ("Thinking about a message", cognition.section),
    "origins": ("What binding calls to their origin costs", origins.section),
    "journal": ("Journalled steps", journal.section),
    "tasks": ("Background tasks at once", tasks.section),
    "gaps": ("Gaps in a made-up twin", gaps.section),
    "media": ("Media by kind", media.section),
    "faces": ("One tool by each face", faces.section),
    "tracing": ("What tracing costs", tracing.section),
    "streams": ("Event streams at once", streams.section),
    "quality": ("Recall quality", quality_figures.section),
    "conversations": ("What was said in conversations", conversations.section),
    "console": ("The first page of the console", console.section),
}


async def run(names: list[str], quick: bool) -> bool:
    """Measure some sections, each printed and written as soon as it is there.

    Returns:
        Whether each could be measured. One that fails does not cost the others, and its old figures stay in the report.
    """
    whole, made_at = True, report.commit()
    print(report.head())
    for name in names:
        title, measure = SECTIONS[name]
        say(name)
        began = perf_counter()
        try:
            made = report.section(title, await measure(quick), made_at)
        except Exception:
            traceback.print_exc()
            whole = False
            continue
        print(made, flush=True)
        if not quick:
            old = REPORT.read_text(encoding="utf-8") if REPORT.exists() else ""
            titles = [title for title, _ in SECTIONS.values()]
            REPORT.write_text(report.with_sections(old, titles, {title: made}), encoding="utf-8")
        say(f"{name}: done in {perf_counter() - began:.0f} s")
    return whole


def main() -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    return 0 if asyncio.run(run(chosen.only or list(SECTIONS), chosen.quick)) else 1


if __name__ == "__main__":
    sys.exit(main())
