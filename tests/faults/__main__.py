"""Measure every fault and write the table to docs/generated/faults.md: `python -m tests.faults`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from tests.faults.measure import Row
from tests.faults.model_part import Said, model_part
from tests.faults.report import report
from tests.faults.stack import FaultStack, fault_stack
from tests.faults.store_part import store_part
from tests.support.production import prepare

REPORT = Path(__file__).parents[2] / "docs" / "generated" / "faults.md"
_DATABASES = tuple(f"{name} to Postgres" for name in ("gateway", "orchestrator", "memory", "instructions"))
_OTHERS = ("graph to its store", "memory to the embedding service")
_BUS = tuple(f"{name} to NATS" for name in ("gateway", "orchestrator", "memory", "instructions", "graph", "media"))
Part = Callable[[FaultStack, Said], Awaitable[None]]


async def _measured(folder: Path, part: Part, began: float) -> list[Row]:
    rows: list[Row] = []

    def say(row: Row) -> None:
        rows.append(row)
        mark = f"  <- wanted: {row.wanted or 'a way back'}" if row.bad else ""
        seen = f"{row.status} {row.said} {','.join(row.degraded)}"
        print(f"{time.monotonic() - began:5.0f} s  {row.fault} / {row.where}: {seen} in {row.seconds:.1f} s{mark}", flush=True)

    async with fault_stack(folder) as stack:
        await part(stack, say)
    return rows


async def _main(only: str | None, target: Path) -> int:
    parts: dict[str, Part] = {
        "model": model_part,
        "databases": partial(store_part, links=_DATABASES),
        "stores": partial(store_part, links=(*_OTHERS, *_BUS[:2])),
        "services": partial(store_part, links=_BUS[2:]),
    }
    chosen = {name: part for name, part in parts.items() if only in (None, name)}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="phronesis-faults-") as folder:
        # A stack for each part, side by side: most of the time all of them wait.
        found = await asyncio.gather(*(_measured(Path(folder) / name, part, began) for name, part in chosen.items()))
    rows = dict(zip(chosen, found, strict=True))
    model = rows.pop("model", [])
    stores = [row for some in rows.values() for row in some]
    text = report(model, stores, time.monotonic() - began)
    await asyncio.to_thread(target.write_text, text)
    bad = [row for row in (*model, *stores) if row.bad]
    print(f"{len(model) + len(stores)} cells, {len(bad)} of them bad; written to {target}")
    return 1 if bad else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("model", "databases", "stores", "services"), help="measure one part alone")
    parser.add_argument("--out", type=Path, default=REPORT, help="the page that is written")
    given = parser.parse_args()
    prepare()
    sys.exit(asyncio.run(_main(given.only, given.out)))
