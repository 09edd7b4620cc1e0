"""Recall over many items: how long it takes, and how much of the exact answer the index gives.

    python -m bench.recall DSN 10000 100000

Each size gets a tenant of its own in the migrated schema `memory` at DSN: `count` items of one owner, a tenth as many of
each of three other owners and of the tenant itself. Texts are words of a skewed vocabulary, vectors lie in clusters, and
a question's vector is given, so that the embedding model costs nothing here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import numpy as np
import numpy.typing as npt
from pydantic import SecretStr

from phronesis.bus import Call
from phronesis.contracts import Principal
from phronesis.contracts.graph import Neighbour, Node
from phronesis.contracts.memory import SHARED, Recall
from phronesis.memory.adapters.pgvector import PgVector
from phronesis.memory.adapters.texts import PostgresTexts
from phronesis.memory.app import assemble
from phronesis.memory.domain.analysis import term, words
from phronesis.memory.domain.values import Audience, Vector
from phronesis.memory.ports import VectorIndex
from phronesis.memory.settings import MemorySettings
from phronesis.postgres import Database, PostgresSettings
from phronesis.postgres.roles import role_of

DIMENSION = 384
MODEL = "synthetic"
_VOCABULARY = 20_000
_LENGTH = 40
_CLUSTERS = 500
_SPREAD = 1.0
"""Noise beside a cluster's centre, as long as the centre: neighbours in a cluster have a cosine near 0.5, as MiniLM's do."""
_BATCH = 2_000


@dataclass(frozen=True)
class RecallFigures:
    """What was measured for one size."""

    items: int
    p50_ms: float
    p95_ms: float
    recall_at_10: float
    """Share of the exact ten nearest, inside the filter, that the index finds."""
    vector_p95_ms: float
    text_p95_ms: float
    fill_s: float


class GivenVectors:
    """An embedder that is told the vectors of its questions."""

    model = MODEL
    dimension = DIMENSION
    floor: float | None = None

    def __init__(self) -> None:
        self.of: dict[str, Vector] = {}

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors that were given."""
        return [self.of[text] for text in texts]

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors that were given."""
        return [self.of[text] for text in texts]


class Synthetic:
    """A seeded source of texts and vectors."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._names = np.array([f"w{n}" for n in range(_VOCABULARY)])
        weights = 1 / np.arange(1, _VOCABULARY + 1) ** 1.05
        self._weights = weights / weights.sum()
        self._centres = self._unit(self._rng.normal(size=(_CLUSTERS, DIMENSION)))

    def texts(self, count: int, length: int = _LENGTH) -> list[str]:
        """Texts of `length` words; few words are common, most are rare."""
        drawn = self._rng.choice(_VOCABULARY, size=(count, length), p=self._weights)
        return [" ".join(row) for row in self._names[drawn]]

    def vectors(self, count: int) -> npt.NDArray[np.float32]:
        """Vectors of length 1 around the clusters' centres."""
        centres = self._centres[self._rng.integers(_CLUSTERS, size=count)]
        noise = self._unit(self._rng.normal(size=(count, DIMENSION)))
        return self._unit(centres + _SPREAD * noise).astype(np.float32)

    @staticmethod
    def _unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        unit: npt.NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


async def fill(connection: asyncpg.Connection, tenant: str, owner: str, count: int, source: Synthetic) -> None:
    """Put `count` facts of `owner` into the store, with their words and vectors. Much faster than remembering them."""
    seen: Counter[int] = Counter()
    total = 0
    async with connection.transaction():
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            texts = source.texts(size)
            total += await _copy(connection, tenant, owner, texts, source.vectors(size), seen)
        await connection.execute(
            "INSERT INTO scopes (tenant, owner, kind, items, words) VALUES ($1, $2, 'fact', $3, $4)",
            tenant,
            owner,
            count,
            total,
        )
        await connection.copy_records_to_table("words", records=list(seen.items()), columns=("term", "items"))


async def _copy(
    connection: asyncpg.Connection,
    tenant: str,
    owner: str,
    texts: list[str],
    vectors: npt.NDArray[np.float32],
    seen: Counter[int],
) -> int:
    ids = [str(uuid4()) for _ in texts]
    rows, total = [], 0
    for id, text in zip(ids, texts, strict=True):
        found = words(text)
        terms = {term(tenant, owner, "fact", stem): count for stem, count in found.counts.items()}
        seen.update(terms.keys())
        total += found.length
        rows.append((id, tenant, owner, "fact", "", found.length, list(terms), bytes(terms.values())))
    await connection.copy_records_to_table(
        "items",
        records=[(id, tenant, owner, "fact", text, b"", 1) for id, text in zip(ids, texts, strict=True)],
        columns=("id", "tenant", "owner", "kind", "body", "content_hash", "version"),
    )
    columns = ("item_id", "tenant", "owner", "kind", "family", "length", "terms", "counts")
    await connection.copy_records_to_table("texts", records=rows, columns=columns)
    await connection.execute(
        "INSERT INTO vectors (item_id, tenant, owner, kind, family, model, dimension, embedding)"
        " SELECT id, $2, $3, 'fact', '', $4, $5, embedding::halfvec FROM unnest($1::uuid[], $6::text[]) AS e (id, embedding)",
        ids,
        tenant,
        owner,
        MODEL,
        DIMENSION,
        ["[" + ",".join([f"{x:.5f}" for x in row]) + "]" for row in vectors.tolist()],
    )
    return total


async def build_index(connection: asyncpg.Connection) -> None:
    """Build the HNSW index of all rows at once, which takes a fraction of adding them one by one."""
    await connection.execute("SET maintenance_work_mem = '512MB'; SET statement_timeout = 0", timeout=60)
    await connection.execute(
        "CREATE INDEX vectors_384 ON vectors USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WHERE dimension = 384",
        timeout=1_200,
    )
    for table in ("items", "texts", "vectors", "words", "scopes"):
        await connection.execute(f"VACUUM ANALYZE {table}", timeout=600)


async def measure(
    database: Database, session: asyncpg.Connection, count: int, *, questions: int = 200, seed: int = 1
) -> RecallFigures:
    """Fill a tenant with `count` items for one owner by a session of the tables' owner, and ask `questions` as the service."""
    tenant, owner = f"bench-{uuid4().hex[:8]}", "ann"
    source = Synthetic(seed)
    began = time.perf_counter()
    await session.execute("DROP INDEX IF EXISTS vectors_384", timeout=60)
    for name, size in ((owner, count), (SHARED, count // 10), *((f"other{n}", count // 10) for n in range(3))):
        await fill(session, tenant, name, size, source)
    await build_index(session)
    filled = time.perf_counter() - began
    embedder = GivenVectors()
    texts = source.texts(questions, 6)
    embedder.of = dict(zip(texts, source.vectors(questions), strict=True))
    return await _ask(database, Principal(tenant=tenant, user=owner), embedder, count, filled)


async def _ask(database: Database, who: Principal, embedder: GivenVectors, count: int, filled: float) -> RecallFigures:
    settings = MemorySettings()
    handlers, vectors = assemble(database, embedder, _NoGraph(), settings, lambda: None)
    texts, audience, most = PostgresTexts(database), Audience.of(who), settings.candidates

    async def recall(question: str) -> object:
        return await handlers.recall(Call(who, "orchestrator"), Recall(query=question))

    questions = list(embedder.of)
    await _timed(questions[:20], recall)  # connections, statements and caches of a service that has run for a while
    whole = await _timed(questions, recall)
    near = await _timed(questions, lambda q: vectors.search(audience, [embedder.of[q]], most))
    worded = await _timed(questions, lambda q: texts.search(audience, [q], most))
    return RecallFigures(
        items=count,
        p50_ms=round(statistics.median(whole), 2),
        p95_ms=_p95(whole),
        recall_at_10=round(await _recall_at_10(database, vectors, audience, embedder), 4),
        vector_p95_ms=_p95(near),
        text_p95_ms=_p95(worded),
        fill_s=round(filled, 1),
    )


async def _timed(questions: Sequence[str], answer: Callable[[str], Awaitable[object]]) -> list[float]:
    taken: list[float] = []
    for question in questions:
        began = time.perf_counter()
        await answer(question)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def _recall_at_10(database: Database, vectors: VectorIndex, audience: Audience, embedder: GivenVectors) -> float:
    """The share of the exact ten nearest inside the filter that a search with the service's own limits finds."""
    exact = PgVector(database, MODEL, DIMENSION, exact_rows=10**9)
    shares: list[float] = []
    for vector in embedder.of.values():
        true = {hit.id for hit in (await exact.search(audience, [vector], 10))[0]}
        found = {hit.id for hit in (await vectors.search(audience, [vector], 10))[0]}
        shares.append(len(true & found) / len(true))
    return statistics.mean(shares)


def _p95(taken: Sequence[float]) -> float:
    return round(statistics.quantiles(taken, n=20)[18], 2)


class _NoGraph:
    """Recall asks no graph."""

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        return ()

    async def nodes(self, tenant: str, keys: Sequence[str]) -> tuple[Node, ...]:
        return ()


async def main(dsn: str, sizes: Sequence[int]) -> None:
    """Print the figures of each size as one line of JSON."""
    session = await asyncpg.connect(dsn, server_settings={"search_path": "memory,public"})
    place = urlsplit(dsn)
    role = SecretStr(urlunsplit(place._replace(netloc=f"{role_of('memory')}@{place.netloc.rpartition('@')[2]}")))
    async with Database.open(PostgresSettings(dsn=role, command_timeout=600), "memory") as database:
        for size in sizes:
            print(json.dumps(asdict(await measure(database, session, size))), flush=True)
    await session.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dsn")
    parser.add_argument("sizes", nargs="+", type=int)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.dsn, arguments.sizes))
