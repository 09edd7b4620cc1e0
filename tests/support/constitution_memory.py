"""Helpers of the tests of the constitutional nodes' vectors: a graph that holds nodes, an embedder that obeys, a clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from phronesis_contracts import NotFound, Principal, ServiceError, Unavailable
from phronesis_contracts.constitution.maintenance import EmbeddingRefused
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged, NodeNews, Operation
from phronesis_memory.constitution.handlers import Parts, assemble_constitution
from phronesis_memory.constitution.pgvector import PgNodeVectors
from phronesis_memory.constitution.weaviate import WeaviateNodeVectors
from phronesis_memory.indexes import make_pgvector_nodes
from phronesis_memory.settings import MemorySettings, WeaviateSettings
from phronesis_memory.values import Vector
from phronesis_memory.vectors.weaviate_index import Weaviate
from phronesis_postgres import Database
from tests.support.personas import Persona

from .memory import WordEmbedder
from .servers import PostgresServer, VectorServer

BEGAN = datetime(2026, 1, 7, 12, 0, tzinfo=UTC)
"""A Wednesday."""


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.at = BEGAN

    def __call__(self) -> datetime:
        return self.at

    def forward(self, **by: float) -> None:
        """Let time pass."""
        self.at += timedelta(**by)


class ObedientEmbedder(WordEmbedder):
    """Vectors of words, but those that a test sets for texts with a certain word; fails as often as it is told."""

    def __init__(self, dimension: int = 384, model: str = "words") -> None:
        super().__init__(model=model)
        self.dimension = dimension
        self.calls = 0
        self.failures: list[ServiceError] = []
        self.set: dict[str, Vector] = {}
        self.refused = ""
        self.begun = asyncio.Event()
        """Set by the first call for texts."""
        self.open = asyncio.Event()
        """Calls for texts end while it is set, as it is unless a test clears it."""
        self.open.set()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions, which are not counted."""
        return [self._vector(text) for text in texts]

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts."""
        self.calls += 1
        self.texts.extend(texts)
        self.begun.set()
        await self.open.wait()
        self._answer()
        if self.failures:
            raise self.failures.pop(0)
        if self.refused and any(self.refused in text for text in texts):
            raise EmbeddingRefused("refused")
        return [next((v for word, v in self.set.items() if word in text), self._vector(text)) for text in texts]


def unit(dimension: int = 384, **places: float) -> Vector:
    """A vector of length 1 by some of its places (`p0=0.9, p1=0.3`); the last place makes up the length."""
    vector = np.zeros(dimension, np.float32)
    for place, value in places.items():
        vector[int(place[1:])] = value
    vector[-1] = np.sqrt(max(0.0, 1 - float(vector @ vector)))
    return vector


@dataclass
class HeldGraph:
    """A constitutional graph in memory, by tenant and id."""

    nodes: dict[tuple[str, str], ConstitutionNode] = field(default_factory=dict)
    links: dict[tuple[str, str], ConstitutionLink] = field(default_factory=dict)
    asked: int = 0
    down: bool = False
    clock: Clock = field(default_factory=Clock)

    def put(self, tenant: str, type: str, id: str, title: str = "T", **fields: Any) -> ConstitutionChanged:
        """Write a node; its news."""
        old = self.nodes.get((tenant, id))
        kept = {} if old is None else old.model_dump(mode="json")
        version = 1 if old is None else (old.version or 1) + 1
        status = fields.pop("status", kept.get("status", "todo" if type == "task" else "active"))
        node = ConstitutionNode.model_validate(
            {
                **{name: value for name, value in kept.items() if name not in fields},
                **{name: value for name, value in fields.items() if value is not None},
                "id": id, "type": type, "layer": TYPES[type].layer, "title": title, "status": status, "version": version,
                "createdAt": kept.get("createdAt", self.clock()), "updatedAt": self.clock() + timedelta(microseconds=version),
            }
        )  # fmt: skip
        self.nodes[tenant, id] = node
        operation = Operation.CREATE if old is None else Operation.UPDATE
        return self._news(node, operation, ("title", *fields))

    def drop(self, tenant: str, id: str) -> ConstitutionChanged:
        """Delete a node with its relationships; its news."""
        node = self.nodes.pop((tenant, id))
        self.links = {key: link for key, link in self.links.items() if id not in (link.from_id, link.to_id)}
        return self._news(node.model_copy(update={"version": (node.version or 1) + 1}), Operation.DELETE, ())

    def _news(self, node: ConstitutionNode, operation: Operation, changed: tuple[str, ...]) -> ConstitutionChanged:
        one = NodeNews(
            id=node.id, type=node.type, layer=node.layer, operation=operation, version=node.version or 1, changed=changed
        )
        return ConstitutionChanged(nodes=(one,), actor="ann")

    async def read(self, tenant: str, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        """Nodes by id."""
        self._answer()
        return {id: self.nodes[tenant, id] for id in ids if (tenant, id) in self.nodes}

    async def walk(self, tenant: str, after: str, limit: int) -> tuple[ConstitutionNode, ...]:
        """Nodes in the order of ids."""
        self._answer()
        ids = sorted(id for whose, id in self.nodes if whose == tenant and id > after)
        return tuple(self.nodes[tenant, id] for id in ids[:limit])

    async def walk_links(self, tenant: str, after: ConstitutionLink | None, limit: int) -> tuple[ConstitutionLink, ...]:
        """Relationships in order."""
        self._answer()
        mine = [link for (whose, _), link in self.links.items() if whose == tenant]
        order = sorted(mine, key=lambda link: (link.from_id, link.id))
        behind = [link for link in order if after is None or (link.from_id, link.id) > (after.from_id, after.id)]
        return tuple(behind[:limit])

    async def changed_since(self, tenant: str, at: datetime) -> Mapping[str, int]:
        """Versions of what changed."""
        self._answer()
        mine = [node for (whose, _), node in self.nodes.items() if whose == tenant]
        return {node.id: node.version or 1 for node in mine if node.updated_at and node.updated_at >= at}

    async def count_changes(self, tenant: str) -> int:
        """The versions of all nodes."""
        self._answer()
        return sum(node.version or 1 for (whose, _), node in self.nodes.items() if whose == tenant)

    async def restore(
        self,
        who: Principal,
        restore_id: str,
        nodes: Sequence[ConstitutionNode],
        links: Sequence[ConstitutionLink],
        *,
        last: bool,
    ) -> tuple[int, int, int]:
        """Parts of a restore; the graph is as they say after the last one."""
        self._answer()
        held = self._parts.setdefault(restore_id, ([], []))
        held[0].extend(nodes)
        held[1].extend(links)
        if not last:
            return len(nodes), len(links), 0
        wanted = {node.id for node in held[0]}
        gone = [key for key in self.nodes if key[0] == who.tenant and key[1] not in wanted]
        self.nodes = {key: node for key, node in self.nodes.items() if key not in gone}
        self.nodes |= {(who.tenant, node.id): node for node in held[0]}
        self.links |= {(who.tenant, link.id): link for link in held[1]}
        return len(nodes), len(links), len(gone)

    _parts: dict[str, tuple[list[ConstitutionNode], list[ConstitutionLink]]] = field(default_factory=dict)

    def _answer(self) -> None:
        self.asked += 1
        if self.down:
            raise Unavailable("the graph is down")


@dataclass
class HeldBucket:
    """A bucket in memory."""

    held: dict[str, bytes] = field(default_factory=dict)

    async def put(self, name: str, data: bytes) -> None:
        """Store."""
        self.held[name] = data

    async def get(self, name: str) -> bytes:
        """Read."""
        if name not in self.held:
            raise NotFound("no such object")
        return self.held[name]

    async def delete(self, name: str) -> None:
        """Remove."""
        self.held.pop(name, None)

    async def names(self) -> list[str]:
        """Every name."""
        return list(self.held)


@dataclass(frozen=True)
class Constitution:
    """The parts, with what they stand on."""

    parts: Parts
    database: Database
    embedder: ObedientEmbedder
    graph: HeldGraph
    bucket: HeldBucket
    clock: Clock
    index: PgNodeVectors

    async def hear(self, tenant: str, *events: ConstitutionChanged) -> None:
        """Follow news and embed what is due, all of it."""
        for event in events:
            await self.parts.following.follow(tenant, event)
        await self.embed()

    async def embed(self) -> int:
        """Embed what is due; how many batches that took."""
        batches = 0
        while await self.parts.embedding.step():
            batches += 1
        return batches

    async def tick(self) -> None:
        """Look at the schedule, and embed what is due."""
        await self.parts.schedule.look(self.clock())
        await self.embed()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For the length of a block, embed by itself."""
        self.parts.embedding.start()
        try:
            yield
        finally:
            await self.parts.embedding.stop()


@asynccontextmanager
async def open_constitution(
    postgres: PostgresServer,
    weaviate: VectorServer | None,
    embedder: ObedientEmbedder | None = None,
    *,
    connection: WeaviateSettings | None = None,
    **settings: Any,
) -> AsyncIterator[Constitution]:
    """The parts on a database of their own, and on Weaviate where the tests run on it."""
    used, clock = embedder or ObedientEmbedder(), Clock()
    graph, bucket, chosen = HeldGraph(clock=clock), HeldBucket(), MemorySettings(**settings)
    async with AsyncExitStack() as stack:
        where = await stack.enter_async_context(postgres.fresh_schema("memory"))
        database = await stack.enter_async_context(Database.open(where, "memory"))
        index = make_pgvector_nodes(database, used.model, used.dimension, chosen)
        if weaviate is not None:
            opened = await stack.enter_async_context(Weaviate.open(connection or weaviate.settings))
            outside = WeaviateNodeVectors(opened, database, used.model, used.dimension)
            await stack.enter_async_context(outside.sweeping())
            index = outside
        parts = assemble_constitution(database, used, graph, bucket, chosen, index, clock)
        yield Constitution(parts, database, used, graph, bucket, clock, index)


def admin(tenant: str) -> Principal:
    """Somebody who may keep the vectors."""
    return Principal(tenant=tenant, user="ann", **Persona.ADMIN.rights)
