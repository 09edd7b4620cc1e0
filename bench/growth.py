"""The section of growth: what a tenant of a million items, and a hundred thousand tenants of ten, cost in time and in space.

    python -m bench.growth --items 1000000 --tenants 100000      what the report has; printed

Rows are loaded with vectors that are made beforehand. A recall embeds its question by the local model; its answer is looked
up by a vector that is given, so that neighbours are distributed as real ones are.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from time import perf_counter

import numpy as np

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.memory import Recall, Remember, RememberItem
from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.app import assemble
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Vector
from phronesis_postgres import Database
from tests.support.servers import PostgresServer

from .filling import build_indexes, drop_indexes, fill_tenants
from .processes import megabytes_of
from .progress import say
from .recall import NoGraph, space, table
from .stacks import started
from .synthetic import Embedding, GivenVectors, Synthetic

ITEMS, TENANTS, EACH = 1_000_000, 100_000, 10
_QUESTIONS, _ADDED = 200, 1_000
_PATIENT = 3_600.0


class _Drawn(Embedding):
    """Questions cost what the model takes. What is stored costs nothing: its vectors are of the `source` of all others."""

    def __init__(self, works: LocalEmbedder, given: GivenVectors, source: Synthetic) -> None:
        super().__init__(works, given)
        self._source = source

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        return list(self._source.vectors(len(texts)))


async def many_tenants(tenants: int) -> list[str]:
    """The table of so many small tenants."""
    async with AsyncExitStack() as used:
        postgres = await used.enter_async_context(started(PostgresServer))
        settings = await used.enter_async_context(postgres.fresh_schema("memory"))
        session = await used.enter_async_context(postgres.session(settings, "memory"))
        patient = settings.model_copy(update={"command_timeout": _PATIENT})
        database = await used.enter_async_context(Database.open(patient, "memory", plan_anew=True))
        model = await used.enter_async_context(LocalEmbedder.open(MemorySettings().threads))
        say(f"growth: {tenants:,} tenants of {EACH} items")
        names = [f"t{number}" for number in range(tenants)]
        began = perf_counter()
        await drop_indexes(session)
        source = Synthetic(2)
        await fill_tenants(session, names, "ann", EACH, source)
        await build_indexes(session)
        filled = perf_counter() - began
        rows, indexes = await space(session)
        given = GivenVectors()
        texts = source.texts(_QUESTIONS, 6)
        given.of = dict(zip(texts, source.vectors(_QUESTIONS), strict=True))
        memory = MemorySettings(stage_seconds=30)
        handlers, _ = assemble(database, _Drawn(model, given, source), NoGraph(), memory, lambda: None)
        times = []
        for text, number in zip(texts, np.random.default_rng(4).choice(tenants, _QUESTIONS), strict=True):
            call = Call(Principal(tenant=names[number], user="ann"), "orchestrator")
            began = perf_counter()
            answer = await handlers.recall(call, Recall(query=text))
            times.append(1_000 * (perf_counter() - began))
            assert not answer.degraded, answer.degraded
        added = Synthetic(11).texts(_ADDED)
        began = perf_counter()
        for start in range(0, _ADDED, 100):
            items = tuple(RememberItem(text=text) for text in added[start : start + 100])
            await handlers.remember(Call(Principal(tenant="t0", user="ann"), "gateway"), Remember(items=items))
        rate = _ADDED / (perf_counter() - began)
        megabytes = megabytes_of(postgres.pid)
    p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[18]
    return [
        "| tenants | items of each | recall of a random one, p50 ms | p95 ms | filled in, s "
        "| items stored a second beside them, without the model | rows, MB | indexes, MB | Postgres, MB |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| {tenants:,} | {EACH} | {p50:.1f} | {p95:.1f} | {filled:,.0f} "
        f"| {rate:,.0f} | {rows / 1e6:,.0f} | {indexes / 1e6:,.0f} | {megabytes:,.0f} |",
    ]


async def measured(items: int, tenants: int) -> list[str]:
    """The lines of one large tenant, on pgvector, and of many small ones; 0 leaves either out."""
    lines = await table((items,), _QUESTIONS, ("pgvector",)) if items else []
    if lines and tenants:  # which take half an hour more
        say("growth: one tenant\n" + "\n".join(lines))
    return [*lines, *([""] if items and tenants else []), *(await many_tenants(tenants) if tenants else [])]


async def section(quick: bool) -> list[str]:
    """Its lines."""
    return await measured(2_000, 200) if quick else await measured(ITEMS, TENANTS)


def main() -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=ITEMS, help="of the one large tenant; 0 for none (1000000)")
    parser.add_argument("--tenants", type=int, default=TENANTS, help=f"of {EACH} items each; 0 for none (100000)")
    chosen = parser.parse_args()
    print("\n".join(asyncio.run(measured(chosen.items, chosen.tenants))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
