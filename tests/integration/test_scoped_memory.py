"""Memories by scope over the bus: refusals are entered, whoever makes them, and a slow recall holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Bus, News, ask, connect, follow
from phronesis_contracts import BadRequest, Forbidden, Nothing, Rpc
from phronesis_contracts.memory import (
    FORGET_MEMORY,
    KEEP_MEMORY,
    KNOWLEDGE_STORED,
    RECALL_MEMORY,
    RECALLED,
    ForgetMemory,
    KeepMemory,
    KnowledgeStored,
    RecallMemory,
    Scope,
)
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED, HEALTH
from phronesis_memory.app import build
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Vector
from phronesis_postgres import Database
from tests.support.bus import eventually
from tests.support.memory import WordEmbedder, open_index
from tests.support.personas import Persona
from tests.support.scopes import person, some_tenant
from tests.support.servers import NatsServer, PostgresServer, VectorServer

RECALL = RecallMemory(scope="secrets", query_summary="okapi")
KEEP = KeepMemory(scope=Scope.SECRETS, key="animal", content="An okapi.")
FORGET = ForgetMemory(scope=Scope.SECRETS, key="animal")


class Held(WordEmbedder):
    """An embedder that answers nothing about herons until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go, self.holds = asyncio.Event(), asyncio.Event()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions."""
        if "heron" in texts:
            self.holds.set()
            await self.let_go.wait()
        return await super().embed_queries(texts)


@dataclass
class World:
    """The service, and what its neighbours have heard."""

    gateway: Bus
    embedder: Held
    audits: list[tuple[str, Audited]] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)

    def entered(self, tenant: str) -> list[tuple[str, str, str, str | None, object]]:
        """Who did what with which outcome."""
        return [(e.who, e.action, e.outcome, e.code, e.arguments.get("scope")) for t, e in self.audits if t == tenant]


@pytest.fixture
async def world(nats_server: NatsServer, postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[World]:
    embedder = Held()
    async with (
        postgres.fresh_schema("memory") as where,
        Database.open(where, "memory") as database,
        open_index(weaviate, database, embedder) as index,
        connect("gateway", nats_server.settings("gateway")) as gateway,
        connect("graph", nats_server.settings("graph")) as graph,
        connect("orchestrator", nats_server.settings("orchestrator")) as orchestrator,
        connect("memory", nats_server.settings("memory")) as memory,
    ):
        world = World(gateway, embedder)

        async def on_audited(news: News, event: Audited) -> None:
            world.audits.append((news.tenant, event))

        async def on_stored(news: News, event: KnowledgeStored) -> None:
            world.stored.append(news.tenant)

        await follow(orchestrator, AUDITED["memory"], on_audited)
        await follow(graph, KNOWLEDGE_STORED, on_stored)
        await build(memory, database, embedder, MemorySettings(stage_seconds=10), index)
        yield world
        await memory.stop()


@pytest.mark.req("N-083", "N-085", "N-222")
async def test_every_refusal_of_noor_is_entered(world: World) -> None:
    noor = person(some_tenant())
    asked: list[tuple[Rpc[Any, Any], Any]] = [(RECALL_MEMORY, RECALL), (KEEP_MEMORY, KEEP), (FORGET_MEMORY, FORGET)]
    for rpc, request in asked:
        with pytest.raises(Forbidden):
            await ask(world.gateway, noor, rpc, request, key=uuid4().hex)
    await eventually(lambda: len(world.entered(noor.tenant)) == 3)
    assert world.entered(noor.tenant) == [
        (noor.user, action, "refused", "forbidden", "secrets") for action in ("recall_memory", "keep_memory", "forget_memory")
    ]


@pytest.mark.req("N-084", "N-222", "N-223")
@pytest.mark.parametrize("role", sorted(Persona))
async def test_a_role_reads_and_writes_what_the_table_says(world: World, role: Persona) -> None:
    tenant = some_tenant()
    who, may = person(tenant, role), {True: "ok", False: "forbidden"}
    for scope in Scope:
        said = []
        for rpc, request in (
            (KEEP_MEMORY, KEEP.model_copy(update={"scope": scope})),
            (RECALL_MEMORY, RECALL.model_copy(update={"scope": scope})),
            (FORGET_MEMORY, FORGET.model_copy(update={"scope": scope})),
        ):
            try:
                await ask(world.gateway, who, rpc, request, key=uuid4().hex)
                said.append("ok")
            except Forbidden:
                said.append("forbidden")
        writes = role in (Persona.MAESTRO, Persona.ADMIN)
        reads = writes or (role is Persona.NOOR and scope not in (Scope.CSUITE, Scope.SECRETS))
        assert said == [may[writes], may[reads], may[writes]], scope
    refused = (
        12 * (role not in (Persona.MAESTRO, Persona.ADMIN))
        + 6 * (role not in (*RECALLED, Persona.ADMIN))
        + 2 * (role is Persona.NOOR)
    )
    await eventually(lambda: len(world.entered(tenant)) == (refused or 12))
    assert {entry[2] for entry in world.entered(tenant)} == {"refused" if refused else "done"}
    assert tenant not in world.stored


@pytest.mark.req("N-087")
async def test_an_unknown_scope_is_bad_input_and_no_refusal(world: World) -> None:
    noor = person(some_tenant())
    with pytest.raises(BadRequest, match="allowed: departmental, global, ministry, personal"):
        await ask(world.gateway, noor, RECALL_MEMORY, RECALL.model_copy(update={"scope": "admin"}))


@pytest.mark.req("NC-040")
async def test_a_slow_recall_holds_nobody_up(world: World) -> None:
    noor = person(some_tenant())
    slow = asyncio.create_task(ask(world.gateway, noor, RECALL_MEMORY, RecallMemory(scope="personal", query_summary="heron")))
    await world.embedder.holds.wait()
    assert (await ask(world.gateway, noor, HEALTH["memory"], Nothing())).ready
    other = await ask(world.gateway, noor, RECALL_MEMORY, RecallMemory(scope="personal", query_summary="okapi"))
    assert (other.snippets, other.degraded, slow.done()) == ((), (), False)
    world.embedder.let_go.set()
    assert (await slow).degraded == ()
