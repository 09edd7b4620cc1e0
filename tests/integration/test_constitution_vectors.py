"""Graph and memory together on a broker: written, found, archived, gone, restored; and nothing is lost while memory is away."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from phronesis.bus import Blobs, Bus, ask
from phronesis.bus.topology import BACKUPS
from phronesis.contracts import Forbidden, Principal, Role, ServiceError, Unavailable
from phronesis.contracts.constitution import keeping, lists, writes
from phronesis.contracts.constitution.keeping import (
    BACKUP_RESTORE,
    EMBEDDINGS,
    REGENERATE,
    AskEmbeddings,
    BackupOrRestore,
    Regenerate,
)
from phronesis.contracts.constitution.kinds import Lifecycle
from phronesis.contracts.constitution.writes import DeleteConstitutionNode, Relate, UpdateAnyNode
from phronesis.graph.adapters.bolt import Bolt
from phronesis.graph.app import build as build_graph
from phronesis.memory.adapters.constitution_graph import BusConstitution
from phronesis.memory.app import build
from phronesis.memory.constitution.ports import Chosen
from phronesis.memory.constitution.serving import assemble_constitution
from phronesis.memory.indexes import open_nodes, pgvector
from phronesis.memory.settings import MemorySettings
from phronesis.postgres import Database
from tests.support.bus import connected, eventually, somebody
from tests.support.constitution_memory import ObedientEmbedder
from tests.support.graph import settings
from tests.support.memory import open_index
from tests.support.servers import GraphServer, NatsServer, PostgresServer, VectorServer


@dataclass
class World:
    """Who asks, and what memory was opened on."""

    nats: NatsServer
    gateway: Bus
    database: Database
    embedder: ObedientEmbedder
    weaviate: VectorServer | None
    vectors: Any = None

    @asynccontextmanager
    async def memory(self) -> AsyncIterator[None]:
        """The memory service, for the length of a block."""
        async with (
            connected(self.nats, "memory") as (bus,),
            open_index(self.weaviate, self.database, self.embedder) as index,
        ):
            chosen = MemorySettings()
            used = index or pgvector(self.database, self.embedder.model, self.embedder.dimension, chosen)
            await build(bus, self.database, self.embedder, chosen, used)
            graph, bucket = BusConstitution(bus), Blobs(bus, BACKUPS)
            # Beside those of the service, and on the same stores: what a search of it would see.
            async with open_nodes(used, self.database, self.embedder.model, self.embedder.dimension, chosen) as (nodes, _):
                self.vectors = assemble_constitution(self.database, self.embedder, graph, bucket, chosen, nodes).vectors
                yield
                await bus.stop()

    async def create(self, who: Principal, type: str, id: str, title: str, **more: object) -> None:
        """Write a node."""
        tool = writes.CREATE[type]
        await ask(self.gateway, who, tool.rpc, tool.rpc.input(id=id, title=title, **more))

    async def found(self, who: Principal, words: str, lifecycle: Lifecycle | None = Lifecycle.ACTIVE) -> list[str]:
        """Nodes that are like these words."""
        [vector] = await self.embedder.embed_queries([words])
        hits = await self.vectors.nearest(who.tenant, vector, Chosen(lifecycle=lifecycle), 10)
        return [hit.id for hit in hits if hit.cosine > 0.5]


@pytest.fixture
async def world(
    nats_server: NatsServer,
    postgres: PostgresServer,
    weaviate: VectorServer | None,
    graph_server: GraphServer,
    tmp_path: Path,
) -> AsyncIterator[World]:
    how = settings(graph_server, tmp_path)
    async with (
        connected(nats_server, "graph", "gateway") as (graph, gateway),
        Bolt.open(how) as bolt,
        postgres.fresh_schema("memory") as where,
        Database.open(where, "memory") as database,
    ):
        await build_graph(graph, bolt, how.dialect)
        await eventually(lambda: _stands(gateway), 120)
        yield World(nats_server, gateway, database, ObedientEmbedder(), weaviate)
        await graph.stop()


async def _stands(gateway: Bus) -> bool:
    """Whether the graph's schema is declared, which takes its time on a server that is new."""
    try:
        await ask(gateway, somebody(role=Role.MAESTRO), lists.READ_NODES, lists.ReadNodes(ids=("none",)))
    except ServiceError:
        return False
    return True


@pytest.mark.req("O-308", "O-314", "O-316", "O-121", "O-122")
async def test_a_node_is_written_found_archived_gone_and_restored(world: World) -> None:
    who = somebody(role=Role.ADMIN)
    async with world.memory():
        await world.create(who, "goal", "harvest", "kind harvest")
        await world.create(who, "value", "kindness", "kindness above all")
        await ask(world.gateway, who, writes.RELATE, Relate(from_id="harvest", to_id="kindness", type="SERVES"))

        async def seen(*ids: str) -> bool:
            return await world.found(who, "goal kind harvest") == list(ids)

        await eventually(lambda: seen("harvest"))
        await ask(world.gateway, who, writes.UPDATE_NODE, UpdateAnyNode(id="harvest", status="archived"))
        await eventually(lambda: seen())
        assert await world.found(who, "goal kind harvest", None) == ["harvest"]
        calls = world.embedder.calls
        [made] = (await ask(world.gateway, who, BACKUP_RESTORE, BackupOrRestore(operation="backup"))).backups
        assert (made.nodes, made.relationships, made.embeddings) == (2, 1, 2)
        await ask(world.gateway, who, writes.DELETE_NODE, DeleteConstitutionNode(id="harvest"))

        async def gone() -> bool:
            return await world.found(who, "goal kind harvest", None) == []

        await eventually(gone)
        word = await ask(world.gateway, who, BACKUP_RESTORE, BackupOrRestore(operation="verify", backup_id=made.id))
        again = BackupOrRestore(operation="restore", backup_id=made.id, confirmation=word.confirmation)
        done = await ask(world.gateway, who, BACKUP_RESTORE, again)
        assert (done.restored_nodes, done.restored_relationships, done.restored_embeddings) == (1, 1, 2)
        await eventually(lambda: _is(world.found(who, "goal kind harvest", None), ["harvest"]))
        await world.vectors.settled(who.tenant)
        assert world.embedder.calls == calls


async def _is(found: Any, wanted: Sequence[str]) -> bool:
    return list(await found) == list(wanted)


@pytest.mark.req("O-308")
async def test_a_node_is_found_soon_after_its_write_was_answered(world: World) -> None:
    who = somebody(role=Role.MAESTRO)
    async with world.memory():
        await world.create(who, "goal", "first", "quince hedge")
        await eventually(lambda: _is(world.found(who, "goal quince hedge"), ["first"]))
        took = []
        for n in range(5):
            await world.create(who, "goal", f"g{n}", f"orchard{n} wall{n}")
            began = time.monotonic()
            await eventually(lambda n=n: _is(world.found(who, f"orchard{n} wall{n}"), [f"g{n}"]))  # type: ignore[misc]
            took.append(time.monotonic() - began)
        assert sorted(took)[2] < 2.0, took


@pytest.mark.req("O-308")
async def test_strong_consistency_needs_no_waiting_by_the_caller(world: World) -> None:
    who = somebody(role=Role.MAESTRO)
    async with world.memory():
        for n in range(5):
            await world.create(who, "goal", f"g{n}", f"orchard{n} wall{n}")
            await world.vectors.settled(who.tenant)
            assert await world.found(who, f"orchard{n} wall{n}") == [f"g{n}"]


@pytest.mark.req("O-359", "O-339")
async def test_what_is_written_while_memory_is_away_is_embedded_when_it_is_back(world: World) -> None:
    who = somebody(role=Role.ADMIN)
    async with world.memory():
        await world.create(who, "goal", "first", "quince hedge")
    for n in range(20):
        await world.create(who, "goal", f"g{n}", f"orchard{n}")
    async with world.memory():

        async def all_current() -> bool:
            told = await ask(world.gateway, who, EMBEDDINGS, AskEmbeddings())
            return [one.states for one in told.counts] == [{"current": 21}]

        await eventually(all_current)


@pytest.mark.req("O-321", "O-355")
async def test_with_the_embedder_away_writes_succeed_and_what_failed_is_made_good_by_an_order(world: World) -> None:
    who = somebody(role=Role.ADMIN)
    world.embedder.down = True
    async with world.memory():
        await world.create(who, "goal", "a", "kind harvest")
        with pytest.raises(Unavailable):
            await world.vectors.settled(who.tenant)
        world.embedder.down = False
        done = await ask(world.gateway, who, REGENERATE, Regenerate())
        assert (done.failed, done.removed) == (0, 0)
        assert await world.found(who, "goal kind harvest") == ["a"]


@pytest.mark.req("O-347")
async def test_only_an_admin_makes_backups_and_vectors(world: World) -> None:
    who = somebody(role=Role.MAESTRO)
    async with world.memory():
        with pytest.raises(Forbidden):
            await ask(world.gateway, who, keeping.BACKUP_RESTORE, BackupOrRestore(operation="list"))
        with pytest.raises(Forbidden):
            await ask(world.gateway, who, REGENERATE, Regenerate())
