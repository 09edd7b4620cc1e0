"""The section of growth: what a tenant of a million items, and a hundred thousand tenants of ten, cost in time and in space.

    python -m bench.growth --items 1000000 --tenants 100000      the sizes of the report; printed
    python -m bench.growth --items 100000 --weaviate             on Weaviate too

Rows are loaded with vectors that are made beforehand. A question's time includes embedding it by the local model, one
question at a time; its answer is looked up by a vector that is given, so that neighbours are distributed as real ones are.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

import asyncpg
import numpy as np

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.memory import Recall, Remember, RememberItem
from phronesis_embedding import LocalEmbedder
from phronesis_memory.app import assemble
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Vector
from phronesis_memory.vectors.weaviate_index import WeaviateIndex
from phronesis_postgres import Database
from tests.support.production_servers import WeaviateServer
from tests.support.servers import PostgresServer

from . import recall
from .filling import build_index, fill_tenants
from .pairs import started
from .processes import megabytes_of
from .progress import say
from .recall import NoGraph
from .synthetic import DIMENSION, MODEL, GivenVectors, Synthetic

SIZES, TENANTS, EACH = (10_000, 100_000, 1_000_000), 100_000, 10
_QUESTIONS, _ADDED = 200, 1_000
_TABLES = ("items", "texts", "vectors", "words")


class Embedding(GivenVectors):
    """An embedder that takes the local model's time, and answers with the vectors that it was told."""

    def __init__(self, model: LocalEmbedder) -> None:
        super().__init__()
        self._model = model
        self._source = Synthetic(5)

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The given vectors, after the model has made its own."""
        await self._model.embed_queries(texts)
        return [self.of[text] for text in texts]

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors drawn at once, so that what storing takes is seen without the model."""
        return list(self._source.vectors(len(texts)))


@dataclass(frozen=True)
class Space:
    """What a database takes."""

    tables: int
    """Bytes of rows, with their long values."""
    indexes: int


@asynccontextmanager
async def _memory() -> AsyncIterator[tuple[PostgresServer, Database, asyncpg.Connection]]:
    async with AsyncExitStack() as used:
        postgres = await used.enter_async_context(started(PostgresServer))
        settings = await used.enter_async_context(postgres.fresh_schema("memory"))
        session = await used.enter_async_context(postgres.session(settings, "memory"))
        patient = settings.model_copy(update={"command_timeout": 3_600.0})
        yield postgres, await used.enter_async_context(Database.open(patient, "memory")), session


async def one_tenant(model: LocalEmbedder, items: int, with_weaviate: bool) -> list[str]:
    """Rows of the table of sizes: a tenant of so many items, on pgvector and perhaps on Weaviate."""
    rows = []
    async with _memory() as (postgres, database, session), AsyncExitStack() as used:
        others = {}
        if with_weaviate:
            weaviate = await used.enter_async_context(started(WeaviateServer))
            index = await used.enter_async_context(WeaviateIndex.open(weaviate.settings, database, MODEL, DIMENSION))
            others["Weaviate"] = index
        embedder = Embedding(model)
        found = await recall.measure(database, session, others, items, questions=_QUESTIONS, embedder=embedder)
        space = await _space(session)
        for row in found.figures:
            server = postgres.pid if row.index == "pgvector" else weaviate.pid
            added = await _added(database, embedder) if row.index == "pgvector" else None
            rows.append(
                f"| {items:,} | {row.index} | {row.p50_ms:.1f} | {row.p95_ms:.1f} | {row.recall_at_10:.3f} "
                f"| {found.fill_s[row.index]:,.0f} | {'—' if added is None else f'{added:,.0f}'} "
                f"| {_megabytes(space.tables)} | {_megabytes(space.indexes)} | {megabytes_of(server):,.0f} |"
            )
    return rows


async def _added(database: Database, embedder: Embedding) -> float:
    """Items stored a second beside all that is there, without the time of the model."""
    handlers, _ = assemble(database, embedder, NoGraph(), MemorySettings(), lambda: None)
    call = Call(Principal(tenant="growing", user="ann"), "gateway")
    texts = Synthetic(11).texts(_ADDED)
    began = perf_counter()
    for start in range(0, _ADDED, 100):
        await handlers.remember(call, Remember(items=tuple(RememberItem(text=text) for text in texts[start : start + 100])))
    return _ADDED / (perf_counter() - began)


async def many_tenants(model: LocalEmbedder, tenants: int) -> list[str]:
    """The table of many small tenants."""
    async with _memory() as (postgres, database, session):
        say(f"growth: {tenants:,} tenants of {EACH} items")
        await session.execute("DROP INDEX IF EXISTS vectors_384", timeout=60)
        began = perf_counter()
        names = [f"t{number}" for number in range(tenants)]
        await fill_tenants(session, names, "ann", EACH, Synthetic(2))
        filled = perf_counter() - began
        await build_index(session)
        space = await _space(session)
        embedder = Embedding(model)
        source = Synthetic(3)
        texts = source.texts(_QUESTIONS, 6)
        embedder.of = dict(zip(texts, source.vectors(_QUESTIONS), strict=True))
        handlers, _ = assemble(database, embedder, NoGraph(), MemorySettings(), lambda: None)
        drawn = np.random.default_rng(4).choice(tenants, _QUESTIONS)
        times = []
        for text, number in zip(texts, drawn, strict=True):
            began = perf_counter()
            answer = await handlers.recall(
                Call(Principal(tenant=names[number], user="ann"), "orchestrator"), Recall(query=text)
            )
            times.append(1_000 * (perf_counter() - began))
            assert not answer.degraded, answer.degraded
        added = await _added(database, embedder)
        server = megabytes_of(postgres.pid)
    cut = quantiles(times, n=20)
    return [
        "| tenants | items of each | recall of a random one, p50 ms | p95 ms | filled in, s | items stored a second | rows, MB "
        "| indexes, MB | Postgres, MB |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| {tenants:,} | {EACH} | {median(times):.1f} | {cut[18]:.1f} | {filled:,.0f} | {added:,.0f} "
        f"| {_megabytes(space.tables)} | {_megabytes(space.indexes)} | {server:,.0f} |",
    ]


async def _space(session: asyncpg.Connection) -> Space:
    row = await session.fetchrow(
        "SELECT sum(pg_table_size(name::regclass)) AS tables, sum(pg_indexes_size(name::regclass)) AS indexes"
        " FROM unnest($1::text[]) AS name",
        list(_TABLES),
    )
    return Space(int(row["tables"]), int(row["indexes"]))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}"


async def measured(sizes: Sequence[int], tenants: int, with_weaviate: bool) -> list[str]:
    """The lines of both tables."""
    lines = [
        "Rows are loaded with vectors made beforehand. A recall embeds its question by the local model; storing is measured",
        "without it, in batches of 100 beside all that is there.",
        "",
        "| items of one tenant | index | recall p50, ms | p95, ms (at most 20 at 100,000, 35 at 1,000,000) "
        "| recall@10 (at least 0.98) | filled and indexed in, s | items stored a second | rows, MB | indexes, MB "
        "| its server, MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    async with LocalEmbedder.open(MemorySettings().threads) as model:
        for items in sizes:
            say(f"growth: {items:,} items of one tenant")
            lines += await one_tenant(model, items, with_weaviate)
        if tenants:
            lines += ["", *await many_tenants(model, tenants)]
    return lines


async def section(quick: bool) -> list[str]:
    """Its lines."""
    return await measured((2_000,), 200, False) if quick else await measured(SIZES, TENANTS, False)


def main() -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, nargs="+", default=SIZES, help="of one tenant, for each run")
    parser.add_argument("--tenants", type=int, default=0, help=f"with {EACH} items each; none by default")
    parser.add_argument("--weaviate", action="store_true", help="recall on Weaviate too")
    chosen = parser.parse_args()
    print("\n".join(asyncio.run(measured(chosen.items, chosen.tenants, chosen.weaviate))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
