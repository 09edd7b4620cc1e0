"""Helpers of the memory service's tests: an embedder made of words, and handlers on a real database."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np

from phronesis_bus import Call
from phronesis_contracts import Principal, Unavailable
from phronesis_contracts.twin import Neighbour, Node
from phronesis_memory.app import assemble
from phronesis_memory.items.handlers import ItemHandlers
from phronesis_memory.ports import VectorIndex
from phronesis_memory.profiles.handlers import ProfileHandlers
from phronesis_memory.profiles.store import PostgresProfiles
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Vector, VectorEntry
from phronesis_memory.vectors.weaviate_index import WeaviateIndex
from phronesis_memory.words.analysis import stems
from phronesis_postgres import Database
from tests.support.personas import Persona

from .servers import PostgresServer, VectorServer


class WordEmbedder:
    """An embedder whose vectors say which words a text has: texts that share words are near, others are not.

    Args:
        same: words that count as another one, so that texts can be near without sharing a word.
    """

    dimension = 384
    floor: float | None = 0.28

    def __init__(self, same: dict[str, str] | None = None, model: str = "words") -> None:
        self.model = model
        self.down = False
        self.calls = 0
        self.queries: list[str] = []
        self.texts: list[str] = []
        self._same = same or {}

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions."""
        self._answer()
        self.calls += 1
        self.queries.extend(texts)
        return [self._vector(text) for text in texts]

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts."""
        self._answer()
        self.texts.extend(texts)
        return [self._vector(text) for text in texts]

    def _answer(self) -> None:
        if self.down:
            raise Unavailable("the model is down")

    def _vector(self, text: str) -> Vector:
        vector = np.zeros(self.dimension, np.float32)
        for word in stems(text):
            vector[zlib.crc32(self._same.get(word, word).encode()) % (self.dimension - 1)] += 1
        if not vector.any():
            vector[-1] = 1
        return vector / np.float32(np.linalg.norm(vector))


@dataclass
class ScriptedGraph:
    """A graph that holds links and nodes by tenant."""

    links: list[tuple[str, str]] = field(default_factory=list)
    known: dict[tuple[str, str], Node] = field(default_factory=dict)
    down: bool = False
    asked: list[tuple[str, ...]] = field(default_factory=list)
    """Ids and keys of all questions."""
    expanded: list[tuple[str, ...]] = field(default_factory=list)
    """Ids of those for neighbours. Questions for changed nodes come when the news of them does, in whatever test that is."""

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        """Neighbours, nearest first."""
        self._answer(ids)
        self.expanded.append(tuple(ids))
        found = dict.fromkeys(ids, 0)
        edge = list(ids)
        for hop in range(1, hops + 1):
            near = [b if a in edge else a for a, b in self.links if a in edge or b in edge]
            edge = [id for id in near if id not in found]
            found |= dict.fromkeys(edge, hop)
        return tuple(Neighbour(id=id, type="MemoryUnit", hop=hop) for id, hop in found.items())[:limit]

    async def nodes(self, tenant: str, keys: Sequence[str]) -> tuple[Node, ...]:
        """The nodes that exist."""
        self._answer(keys)
        return tuple(self.known[tenant, key] for key in keys if (tenant, key) in self.known)

    def _answer(self, asked: Sequence[str]) -> None:
        if self.down:
            raise Unavailable("the graph is down")
        self.asked.append(tuple(asked))


@dataclass(frozen=True)
class Memory:
    """The service's handlers, with what they stand on."""

    handlers: ItemHandlers
    profiles: ProfileHandlers
    database: Database
    embedder: WordEmbedder
    graph: ScriptedGraph
    vectors: VectorIndex

    async def entries(self, tenant: str) -> list[VectorEntry]:
        """What the vector index holds of a tenant."""
        return [entry async for batch in self.vectors.scan(500) for entry in batch if entry.tenant == tenant]


@asynccontextmanager
async def open_index(
    weaviate: VectorServer | None, database: Database, embedder: WordEmbedder
) -> AsyncIterator[VectorIndex | None]:
    """The vector index of production's stores; `None` where the tests run on the embedded ones."""
    if weaviate is None:
        yield None
        return
    async with WeaviateIndex.open(weaviate.settings, database, embedder.model, embedder.dimension) as index:
        yield index


@asynccontextmanager
async def open_memory(
    postgres: PostgresServer, weaviate: VectorServer | None, embedder: WordEmbedder | None = None, **settings: Any
) -> AsyncIterator[Memory]:
    """The handlers on a database of their own."""
    used, graph = embedder or WordEmbedder(), ScriptedGraph()
    async with (
        postgres.fresh_schema("memory") as where,
        Database.open(where, "memory") as database,
        open_index(weaviate, database, used) as index,
    ):
        chosen = MemorySettings(stage_seconds=5, **settings)
        handlers, vectors = assemble(database, used, graph, chosen, lambda: None, index)
        yield Memory(handlers, ProfileHandlers(PostgresProfiles(database, lambda: None)), database, used, graph, vectors)


def someone(tenant: str | None = None, user: str | None = None) -> Principal:
    """A caller whom no other test knows."""
    return Principal(tenant=tenant or f"t{uuid4().hex[:12]}", user=user or f"u{uuid4().hex[:12]}", **Persona.MAESTRO.rights)


def calling(who: Principal, key: str | None = None) -> Call:
    """A call of the orchestrator for `who`."""
    return Call(who, "orchestrator", key)
