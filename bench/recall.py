"""Recall over many items: how long it takes on each vector index, and how much of the exact answer the index gives.

    python -m bench.recall --items 1000000                      on both indexes, printed
    python -m bench.recall --items 1000000 --index pgvector     on one

Each size has a tenant of its own in a migrated schema `memory`: `count` items of one owner, a tenth as many of each of three
other owners and of the tenant itself. Texts are words of a skewed vocabulary, and vectors lie in clusters. The local model
embeds each question, and its vector is then the one that was drawn for it. Both indexes hold the same vectors and are asked the
same questions, turn about.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import asyncpg

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.memory import SHARED, Recall
from phronesis_contracts.twin import Neighbour, Node
from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.app import assemble
from phronesis_memory.ports import Embedder, VectorIndex
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Audience
from phronesis_memory.vectors.pgvector import PgVector
from phronesis_memory.vectors.weaviate_index import WeaviateIndex
from phronesis_memory.words.store import PostgresTexts
from phronesis_postgres import Database
from tests.support.production_servers import WeaviateServer
from tests.support.servers import PostgresServer

from .filling import build_indexes, copy_vectors, drop_indexes, fill
from .processes import megabytes_of
from .progress import say
from .stacks import started
from .synthetic import DIMENSION, MODEL, Embedding, GivenVectors, Synthetic

BOTH = ("pgvector", "Weaviate")

_OWNER = "ann"
_BLOCK = 20
"""Questions that one index is asked before it is the other's turn."""


@dataclass(frozen=True)
class RecallFigures:
    """What was measured for one size on one index."""

    items: int
    index: str
    p50_ms: float
    p95_ms: float
    vector_p50_ms: float
    vector_p95_ms: float
    recall_at_10: float
    """Share of the exact ten nearest, inside the filter, that the index finds."""


@dataclass(frozen=True)
class Measured:
    """One size: each index, and what they have in common."""

    figures: tuple[RecallFigures, ...]
    text_p95_ms: float
    fill_s: Mapping[str, float]
    rows: int
    """Bytes of the tables in Postgres, with their long values."""
    indexes: int
    """Bytes of their indexes."""


async def table(sizes: Sequence[int], questions: int, indexes: Sequence[str] = BOTH) -> list[str]:
    """The lines of recall over so many items, on servers of their own."""
    lines = [
        "| recall over items | index | p50 ms | p95 ms, the embedding included (aim 20 at 100,000, 35 at 1,000,000) "
        "| vectors alone, p50 | p95 | words alone, p95 | recall@10 against exact search inside the filter (at least 0.98) "
        "| filled in, s | its server's memory, MB | rows in Postgres, MB | indexes in Postgres, MB |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        say(f"recall: {size:,} items")
        async with AsyncExitStack() as used:
            postgres = await used.enter_async_context(started(PostgresServer))
            settings = await used.enter_async_context(postgres.fresh_schema("memory"))
            session = await used.enter_async_context(postgres.session(settings, "memory"))
            patient = settings.model_copy(update={"command_timeout": 600.0})
            database = await used.enter_async_context(Database.open(patient, "memory", plan_anew=True))
            others: dict[str, VectorIndex] = {}
            servers: dict[str, PostgresServer | WeaviateServer] = {"pgvector": postgres}
            if "Weaviate" in indexes:
                servers["Weaviate"] = weaviate = await used.enter_async_context(started(WeaviateServer))
                opened = WeaviateIndex.open(weaviate.settings, database, MODEL, DIMENSION)
                others["Weaviate"] = await used.enter_async_context(opened)
            model = await used.enter_async_context(LocalEmbedder.open(MemorySettings().threads))
            found = await measure(database, session, others, model, size, questions=questions)
            memory = {name: megabytes_of(server.pid) for name, server in servers.items()}
        lines += [_row(one, found, memory[one.index]) for one in found.figures]
    return lines


def _row(row: RecallFigures, found: Measured, megabytes: float) -> str:
    return (
        f"| {row.items:,} | {row.index} | {row.p50_ms:.1f} | {row.p95_ms:.1f} "
        f"| {row.vector_p50_ms:.1f} | {row.vector_p95_ms:.1f} | {found.text_p95_ms:.1f} "
        f"| {row.recall_at_10:.3f} | {found.fill_s[row.index]:.0f} | {megabytes:.0f} "
        f"| {found.rows / 1e6:,.0f} | {found.indexes / 1e6:,.0f} |"
    )


async def measure(
    database: Database,
    session: asyncpg.Connection,
    others: Mapping[str, VectorIndex],
    model: LocalEmbedder,
    count: int,
    *,
    questions: int = 200,
    seed: int = 1,
) -> Measured:
    """Fill a tenant by a session of the tables' owner, give the `others` its vectors, and ask as the service does.

    Args:
        database: the schema as the service reaches it.
        session: the schema as its owner does.
        others: indexes beside the one in the schema, by name.
        model: what embeds the questions.
        count: items of the owner.
        questions: how many there are.
        seed: of texts, vectors and questions.
    """
    who = Principal(tenant=f"bench-{uuid4().hex[:8]}", user=_OWNER)
    source, given = Synthetic(seed), GivenVectors()
    own = PgVector(database, MODEL, DIMENSION)
    took = {"pgvector": await _timed(partial(_filled, session, who.tenant, count, source))}
    for name, index in others.items():
        say(f"recall: the same vectors for {name}")
        took[name] = await _timed(partial(copy_vectors, own, index, who.tenant))
    texts = source.texts(questions, 6)
    given.of = dict(zip(texts, source.vectors(questions), strict=True))
    indexes = {"pgvector": None, **others}
    asking = {name: Asking(database, who, Embedding(model, given), given, index) for name, index in indexes.items()}
    await _asked(list(asking.values()), texts)
    exact = PgVector(database, MODEL, DIMENSION, exact_rows=10**9)
    figures = [await each.figures(count, name, exact) for name, each in asking.items()]
    worded = [await _timed(partial(asking["pgvector"].worded, text)) for text in texts]
    return Measured(tuple(figures), _p95(worded) * 1_000, took, *await space(session))


async def space(session: asyncpg.Connection) -> tuple[int, int]:
    """Bytes of the rows of all items, and of their indexes."""
    row = await session.fetchrow(
        "SELECT sum(pg_table_size(name::regclass))::bigint AS rows, sum(pg_indexes_size(name::regclass))::bigint AS indexes"
        " FROM unnest(ARRAY['items', 'texts', 'vectors', 'words']) AS name"
    )
    return row["rows"], row["indexes"]


async def _filled(session: asyncpg.Connection, tenant: str, count: int, source: Synthetic) -> None:
    await drop_indexes(session)
    for name, size in ((_OWNER, count), (SHARED, count // 10), *((f"other{n}", count // 10) for n in range(3))):
        await fill(session, tenant, name, size, source)
    await build_indexes(session)


class Asking:
    """The memory service on one index, and how long its answers took."""

    def __init__(
        self, database: Database, who: Principal, embedder: Embedder, given: GivenVectors, index: VectorIndex | None
    ) -> None:
        # A slow search is to be measured, not given up, and each question to be embedded.
        settings = MemorySettings(stage_seconds=30, query_cache_seconds=0)
        self._handlers, self._vectors = assemble(database, embedder, NoGraph(), settings, lambda: None, index)
        self._texts, self._audience, self._most = PostgresTexts(database), Audience.of(who), settings.candidates
        self._who, self._of = who, given.of
        self.whole: list[float] = []
        self.near: list[float] = []

    async def recall(self, question: str) -> None:
        """Ask the whole service."""
        answer = await self._handlers.recall(Call(self._who, "orchestrator"), Recall(query=question))
        assert not answer.degraded, answer.degraded

    async def nearest(self, question: str) -> None:
        """Ask the index alone."""
        await self._vectors.search(self._audience, [self._of[question]], self._most)

    async def worded(self, question: str) -> None:
        """Ask for the words alone."""
        await self._texts.search(self._audience, [question], self._most)

    async def figures(self, count: int, name: str, exact: VectorIndex) -> RecallFigures:
        """What it came to, with the share of the exact ten nearest that a search with the service's own limits finds."""
        shares: list[float] = []
        for vector in self._of.values():
            true = {hit.id for hit in (await exact.search(self._audience, [vector], 10))[0]}
            found = {hit.id for hit in (await self._vectors.search(self._audience, [vector], 10))[0]}
            shares.append(len(true & found) / len(true))
        p50, near50 = (statistics.median(taken) * 1_000 for taken in (self.whole, self.near))
        p95, near95 = (_p95(taken) * 1_000 for taken in (self.whole, self.near))
        return RecallFigures(count, name, p50, p95, near50, near95, statistics.mean(shares))


async def _asked(indexes: Sequence[Asking], texts: Sequence[str]) -> None:
    """Ask each index every question, in blocks turn about; the first block is asked once more before, and does not count."""
    for start in range(-_BLOCK, len(texts), _BLOCK):
        for index in indexes:
            for text in texts[max(start, 0) : max(start, 0) + _BLOCK]:
                whole = await _timed(partial(index.recall, text))
                near = await _timed(partial(index.nearest, text))
                if start >= 0:
                    index.whole.append(whole)
                    index.near.append(near)


async def _timed(work: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


def _p95(taken: Sequence[float]) -> float:
    return statistics.quantiles(taken, n=20)[18]


class NoGraph:
    """Recall asks no graph."""

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        return ()

    async def nodes(self, tenant: str, keys: Sequence[str]) -> tuple[Node, ...]:
        return ()


def main() -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--index", choices=BOTH, nargs="+", default=list(BOTH), help="pgvector is asked in any case")
    parser.add_argument("--questions", type=int, default=200)
    chosen = parser.parse_args()
    print("\n".join(asyncio.run(table(chosen.items, chosen.questions, chosen.index))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
