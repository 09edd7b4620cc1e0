"""Graph and memory together on a broker: written, found, archived, gone, restored; and nothing is lost while memory is away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from phronesis_bus import Blobs, Bus, ask
from phronesis_bus.topology import BACKUPS
from phronesis_contracts import Forbidden, Nothing, Principal, ServiceError, Unavailable
from phronesis_contracts.constitution import lists, maintenance, writes
from phronesis_contracts.constitution.maintenance import (
    BACKUP_RESTORE,
    EMBEDDINGS,
    REGENERATE,
    AskEmbeddings,
    BackupOrRestore,
    Regenerate,
)
from phronesis_contracts.constitution.registry import Lifecycle
from phronesis_contracts.constitution.writes import DeleteConstitutionNode, Relate, UpdateAnyNode
from phronesis_contracts.service import HEALTH
from phronesis_graph.app import build as build_graph
from phronesis_graph.bolt.driver import Bolt
from phronesis_memory.app import build
from phronesis_memory.constitution.graph import BusConstitutionGraph
from phronesis_memory.constitution.handlers import assemble_constitution
from phronesis_memory.constitution.pgvector import PgNodeVectors
from phronesis_memory.constitution.ports import NodeFilter
from phronesis_memory.embedding.remote import RemoteEmbedder
from phronesis_memory.indexes import make_pgvector_index, open_nodes
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Vector
from phronesis_postgres import EVERY_TENANT, Database
from tests.faults.embedding_server import DIMENSION, FLOOR, embedding_server
from tests.support.bus import connected, eventually, somebody
from tests.support.constitution_memory import ObedientEmbedder
from tests.support.graph import settings
from tests.support.memory import open_index
from tests.support.personas import Persona
from tests.support.servers import GraphServer, NatsServer, PostgresServer, VectorServer
from tests.support.tcp_proxy import tcp_proxy


@dataclass
class World:
    """Who asks, and what memory was opened on."""

    nats: NatsServer
    gateway: Bus
    database: Database
    embedder: Any
    weaviate: VectorServer | None
    vectors: Any = None

    @asynccontextmanager
    async def memory(self, **changes: Any) -> AsyncIterator[None]:
        """The memory service, for the length of a block."""
        async with (
            connected(self.nats, "memory", **changes) as (bus,),
            open_index(self.weaviate, self.database, self.embedder) as index,
        ):
            chosen = MemorySettings()
            used = index or make_pgvector_index(self.database, self.embedder.model, self.embedder.dimension, chosen)
            await build(bus, self.database, self.embedder, chosen, used)
            graph, bucket = BusConstitutionGraph(bus), Blobs(bus, BACKUPS)
            # Beside those of the service, and on the same stores: what a search of it would see.
            async with open_nodes(used, self.database, self.embedder.model, self.embedder.dimension, chosen) as nodes:
                self.vectors = assemble_constitution(self.database, self.embedder, graph, bucket, chosen, nodes).vectors
                try:
                    yield
                finally:  # a test that fails says why: its stores are closed when nobody works on them any more
                    await bus.stop()

    async def create(self, who: Principal, type: str, id: str, title: str, **more: object) -> None:
        """Write a node."""
        tool = writes.CREATE[type]
        await ask(self.gateway, who, tool.rpc, tool.rpc.input(id=id, title=title, **more))

    async def found(self, who: Principal, words: str, lifecycle: Lifecycle | None = Lifecycle.ACTIVE) -> list[str]:
        """Nodes that are like these words."""
        [vector] = await self.embedder.embed_queries([words])
        hits = await self.vectors.nearest(who.tenant, vector, NodeFilter(lifecycle=lifecycle), 10)
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
        await ask(gateway, somebody(**Persona.MAESTRO.rights), lists.READ_NODES, lists.ReadNodes(ids=("none",)))
    except ServiceError:
        return False
    return True


@pytest.mark.req("O-308", "O-314", "O-316", "O-121", "O-122")
async def test_a_node_is_written_found_archived_gone_and_restored(world: World) -> None:
    who = somebody(**Persona.ADMIN.rights)
    async with world.memory():
        await world.create(who, "goal", "harvest", "kind harvest")
        await world.create(who, "value", "kindness", "kindness in everything for life")
        await ask(world.gateway, who, writes.RELATE, Relate(from_id="harvest", to_id="kindness", type="SERVES"))

        async def seen(*ids: str) -> bool:
            return await world.found(who, "goal kind harvest") == list(ids)

        await eventually(lambda: seen("harvest"))
        await eventually(lambda: _is(world.found(who, "kindness everything life"), ["kindness"]))
        await ask(world.gateway, who, writes.UPDATE_NODE, UpdateAnyNode(id="harvest", status="archived"))
        await eventually(lambda: seen())
        await eventually(lambda: _is(world.found(who, "goal kind harvest", None), ["harvest"]))
        await world.vectors.settled(who.tenant)
        [made] = (await ask(world.gateway, who, BACKUP_RESTORE, BackupOrRestore(operation="backup"))).backups
        assert (made.nodes, made.relationships, made.embeddings) == (2, 1, 2)
        await ask(world.gateway, who, writes.DELETE_NODE, DeleteConstitutionNode(id="harvest"))

        async def gone() -> bool:
            return await world.found(who, "goal kind harvest", None) == []

        await eventually(gone)
        world.embedder.down = True  # what is restored is found by the vectors of the backup, and by no new ones
        word = await ask(world.gateway, who, BACKUP_RESTORE, BackupOrRestore(operation="verify", backup_id=made.id))
        again = BackupOrRestore(operation="restore", backup_id=made.id, confirmation=word.confirmation)
        done = await ask(world.gateway, who, BACKUP_RESTORE, again)
        assert (done.restored_nodes, done.restored_relationships, done.restored_embeddings) == (1, 1, 2)
        await eventually(lambda: _is(world.found(who, "goal kind harvest", None), ["harvest"]))
        world.embedder.down = False


async def _is(found: Any, wanted: Sequence[str]) -> bool:
    return list(await found) == list(wanted)


@pytest.mark.req("O-308", "C-80")
async def test_a_node_is_found_soon_after_its_write_was_answered(world: World) -> None:
    who = somebody(**Persona.MAESTRO.rights)
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


async def _settles(world: World, tenant: str) -> bool:
    """Whether a strongly consistent search can be made now; it is refused where the index is too slow for it."""
    try:
        await world.vectors.settled(tenant)
    except Unavailable:
        return False
    return True


@pytest.mark.req("O-308")
async def test_strong_consistency_needs_no_waiting_by_the_caller(world: World) -> None:
    who = somebody(**Persona.MAESTRO.rights)
    async with world.memory():
        for n in range(5):
            await world.create(who, "goal", f"g{n}", f"orchard{n} wall{n}")
            await eventually(lambda: _settles(world, who.tenant), 60)
            assert await world.found(who, f"orchard{n} wall{n}") == [f"g{n}"]


@pytest.mark.req("O-359", "O-339")
async def test_what_is_written_while_memory_is_away_is_embedded_when_it_is_back(world: World) -> None:
    who = somebody(**Persona.ADMIN.rights)
    async with world.memory():
        await world.create(who, "goal", "first", "quince hedge")
    for n in range(20):
        await world.create(who, "goal", f"g{n}", f"orchard{n}")
    async with world.memory():

        async def all_current() -> bool:
            told = await ask(world.gateway, who, EMBEDDINGS, AskEmbeddings())
            return [one.states for one in told.counts] == [{"current": 21}]

        await eventually(all_current, within=120)  # what a stopping memory had taken comes again when its time is up


@pytest.mark.verify
@pytest.mark.req("O-359")
async def test_what_was_taken_when_memory_stopped_is_embedded_as_soon_as_it_is_back(world: World) -> None:
    who = somebody(**Persona.ADMIN.rights)
    world.embedder.open.clear()
    async with world.memory():
        await world.create(who, "goal", "first", "quince hedge")
        await world.embedder.begun.wait()
    world.embedder.open.set()
    async with world.memory():
        await eventually(lambda: _is(world.found(who, "goal quince hedge"), ["first"]))


@pytest.mark.verify
@pytest.mark.req("O-321", "O-355", "O-114")
async def test_with_the_embedder_away_writes_succeed_and_what_failed_is_made_good_by_an_order(world: World) -> None:
    who = somebody(**Persona.ADMIN.rights)
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
    who = somebody(**Persona.MAESTRO.rights)
    async with world.memory():
        with pytest.raises(Forbidden):
            await ask(world.gateway, who, maintenance.BACKUP_RESTORE, BackupOrRestore(operation="list"))
        with pytest.raises(Forbidden):
            await ask(world.gateway, who, REGENERATE, Regenerate())


class Watched(ObedientEmbedder):
    """An embedder that answers when it is let, and notes its questions with other steps."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self.let = asyncio.Event()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        self.steps.append("model")
        await self.let.wait()
        return await super().embed_queries(texts)


@pytest.mark.req("O-092", "O-338", "C-16")
async def test_memory_is_ready_when_model_and_index_have_answered_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.embedder = watched = Watched()
    warm = PgNodeVectors.warm

    async def noted(rows: PgNodeVectors) -> None:
        await warm(rows)
        watched.steps.append("index")

    monkeypatch.setattr(PgNodeVectors, "warm", noted)
    asked, over = partial(ask, world.gateway, somebody(), HEALTH["memory"], Nothing()), asyncio.Event()

    async def run() -> None:
        async with world.memory():
            watched.steps.append("ready")
            await over.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(run())
        await eventually(lambda: watched.steps == ["model"])
        with pytest.raises(Unavailable):
            await asked()
        watched.let.set()
        await eventually(lambda: "ready" in watched.steps)
        assert (watched.steps, (await asked()).ready) == (["model", "index", "ready"], True)
        over.set()


@pytest.mark.req("O-343", "C-89")
async def test_the_key_of_a_provider_is_told_to_the_provider_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    key, who = SecretStr("SENTINEL-of-the-provider"), somebody(**Persona.ADMIN.rights)
    caplog.set_level(logging.DEBUG)
    async with embedding_server() as port, tcp_proxy(("127.0.0.1", port)) as provider, tcp_proxy(_broker(world)) as broker:
        provider.heard, broker.heard = bytearray(), bytearray()
        url = f"http://127.0.0.1:{provider.port}/v1"
        async with (
            RemoteEmbedder.open(url, key, "words", DIMENSION, FLOOR) as world.embedder,
            world.memory(url=f"nats://127.0.0.1:{broker.port}"),
        ):
            await world.create(who, "goal", "a", "kind harvest")
            await eventually(lambda: _is(world.found(who, "goal kind harvest"), ["a"]))
            async with provider.broken("refuse"):
                await world.create(who, "goal", "b", "quince hedge")
                await eventually(lambda: "could not be embedded" in caplog.text)
            async with world.database.connection(EVERY_TENANT) as connection:
                tables = await connection.fetch(_READABLE)
                rows = [row for (name,) in tables for row in await connection.fetch(f'SELECT t::text FROM "{name}" t')]
    # What the drivers log holds the statements too, with their parameters.
    told = {"bus": broker.heard.decode(errors="replace"), "logs": caplog.text, "rows": str(rows)}
    assert key.get_secret_value().encode() in provider.heard
    assert [place for place, text in told.items() if "kind harvest" not in text] == []
    assert [place for place, text in told.items() if key.get_secret_value() in text] == []


_READABLE = """
    SELECT relname FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND has_table_privilege(oid, 'SELECT')"""


def _broker(world: World) -> tuple[str, int]:
    return "127.0.0.1", world.nats.port
