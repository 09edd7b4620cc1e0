"""Weaviate behind the memory service: killed, away, silent or refusing, it costs no write and loses no vector."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np
import pytest

from phronesis_bus import Metrics, News
from phronesis_contracts import Unavailable
from phronesis_contracts.deletions import ConversationDeleted, Purged
from phronesis_contracts.memory import Forget, ItemKind, Recall, RememberItem
from phronesis_local.loopback import free_port
from phronesis_local.settings import Stores
from phronesis_memory.settings import WeaviateSettings
from phronesis_memory.values import Audience, Vector, VectorEntry
from phronesis_memory.vectors.changes import ItemChanges
from phronesis_memory.vectors.sync import VectorDepth
from phronesis_postgres import EVERY_TENANT, PostgresSettings
from tests.support.bus import eventually
from tests.support.memory import calling, someone
from tests.support.production import STORES
from tests.support.production_servers import WeaviateServer
from tests.support.servers import PostgresServer
from tests.support.tcp_proxy import Mode, tcp_proxy
from tests.support.weaviate_memory import Service, driver, service

pytestmark = [
    pytest.mark.skipif(STORES is Stores.EMBEDDED, reason="the tests run on the embedded stores"),
    pytest.mark.timeout(300),
]
HOSPITAL = RememberItem(text="the hospital")
ALL = tuple(ItemKind)


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WeaviateServer]:
    """A server of this module's own, which its tests kill."""
    own = WeaviateServer(tmp_path_factory.mktemp("own-weaviate"))
    await own.start()
    yield own
    await own.stop()


@pytest.fixture
async def schema(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    async with postgres.fresh_schema("memory") as where:
        yield where


def _entry(tenant: str, seed: int, size: int = 384) -> VectorEntry:
    vector: Vector = np.random.default_rng(seed).normal(size=size).astype(np.float32)
    return VectorEntry(str(uuid4()), tenant, "ann", ItemKind.FACT, vector / np.float32(np.linalg.norm(vector)))


async def _found(memory: Service, tenant: str) -> set[str]:
    [hits] = await memory.index.search(Audience(tenant, ("ann",), ALL), [_entry(tenant, 0).vector], 5_000)
    return {hit.id for hit in hits}


async def _until_found(memory: Service, tenant: str, ids: set[str]) -> None:
    async def found() -> bool:
        try:
            return await _found(memory, tenant) == ids
        except Unavailable:
            return False

    await eventually(found, 120)


async def test_what_waits_for_an_index_that_is_away_is_counted(server: WeaviateServer, schema: PostgresSettings) -> None:
    nobody = WeaviateSettings(url=f"http://127.0.0.1:{free_port()}", grpc_url=f"http://127.0.0.1:{free_port()}")
    metrics = Metrics()
    async with service(schema, nobody, sweeps=False) as memory:
        await memory.remember(someone(), HOSPITAL)
        await VectorDepth(memory.database, metrics).look()
    async with service(schema, server.settings) as memory:
        assert b"phronesis_vectors_waiting 1.0" in await metrics.text()
        await eventually(partial(_told, memory), 60)
        await VectorDepth(memory.database, metrics).look()
    assert b"phronesis_vectors_waiting 0.0" in await metrics.text()


async def _told(memory: Service) -> bool:
    return await memory.count("vector_changes") == 0


@pytest.mark.req("D-073", "D-075")
async def test_the_class_has_id_and_type_of_each_item_and_none_of_its_words(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    who = someone()
    async with service(schema, server.settings) as memory:
        concept = RememberItem(text="a heron stands", title="Heron", kind=ItemKind.CONCEPT, external_id="heron")
        ids = await memory.remember(who, HOSPITAL, concept)
    async with driver(server.settings) as client:
        items = client.collections.use("UserKnowledgeItem")
        declared = {one.name for one in (await items.config.get()).properties}
        found = (await items.with_tenant(who.tenant).query.fetch_objects(limit=10)).objects
    assert declared == {"externalId", "entityType", "owner", "kind", "family", "passages"}
    kept = {one.properties["externalId"]: one.properties["entityType"] for one in found}
    assert kept == {ids[0]: "MemoryUnit", ids[1]: "Concept"}
    assert "heron" not in str(found).lower()


async def test_a_killed_server_that_is_back_has_everything_and_is_used_again_by_the_same_client(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    who = someone()
    async with service(schema, server.settings, sweeps=False) as memory:
        ids = await memory.remember(who, HOSPITAL)
        await server.kill()
        with pytest.raises(Unavailable):
            await memory.index.check()
        await server.start()
        await memory.index.check()
        assert await memory.near(who, "clinic") == set(ids)
        ids += await memory.remember(who, RememberItem(text="a clinic"))
        assert await memory.near(who, "clinic") == set(ids)


async def test_while_it_is_away_items_are_stored_and_found_by_words_and_later_by_meaning(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    who = someone()
    async with service(schema, server.settings) as memory:
        old = await memory.remember(who, RememberItem(text="an old hospital", external_id="old"))
        await server.kill()
        ids = await memory.remember(who, HOSPITAL)
        found = await memory.handlers.recall(calling(who), Recall(query="hospital"))
        assert ({item.id for item in found.items}, found.degraded) == ({*old, *ids}, ("vector",))
        await memory.handlers.forget(calling(who), Forget(ids=("old",)))
        await server.start()

        async def settled() -> bool:
            return await memory.count("vector_changes") == 0

        await eventually(settled, 60)
        assert await memory.near(who, "clinic") == set(ids)
        held = [entry.id async for batch in memory.index.scan(50) for entry in batch if entry.tenant == who.tenant]
        assert held == ids


async def test_of_several_writers_only_the_first_waits_for_a_store_that_is_silent(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    who, http, grpc = someone(), urlsplit(server.url), urlsplit(server.grpc_url)
    async with tcp_proxy(("127.0.0.1", http.port or 0)) as one, tcp_proxy(("127.0.0.1", grpc.port or 0)) as two:
        where = server.settings.model_copy(
            update={"url": f"http://127.0.0.1:{one.port}", "grpc_url": f"http://127.0.0.1:{two.port}"}
        )
        async with service(schema, where) as memory:
            await memory.remember(who, HOSPITAL)
            async with one.broken("stall"), two.broken("stall"):
                began = time.monotonic()
                for n in range(4):
                    await memory.remember(who, RememberItem(text=f"note {n}"))
                assert time.monotonic() - began < 10


@pytest.mark.parametrize("mode", ["refuse", "reset", "stall", "cut"])
async def test_whatever_breaks_the_connection_the_same_client_heals(
    schema: PostgresSettings, server: WeaviateServer, mode: Mode
) -> None:
    who, http, grpc = someone(), urlsplit(server.url), urlsplit(server.grpc_url)
    async with tcp_proxy(("127.0.0.1", http.port or 0)) as one, tcp_proxy(("127.0.0.1", grpc.port or 0)) as two:
        where = server.settings.model_copy(
            update={"url": f"http://127.0.0.1:{one.port}", "grpc_url": f"http://127.0.0.1:{two.port}"}
        )
        async with service(schema, where, sweeps=False) as memory:
            ids = await memory.remember(who, HOSPITAL)
            async with one.broken(mode), two.broken(mode):
                found = await asyncio.gather(
                    *(memory.handlers.recall(calling(who), Recall(query="hospital")) for _ in range(4))
                )
                assert {one.degraded for one in found} == {("vector",)}

            async def well() -> bool:
                return await memory.near(who, "clinic") == set(ids)

            await eventually(well, 20)
            await memory.index.check()


async def test_what_a_killed_service_left_behind_another_one_applies(schema: PostgresSettings, server: WeaviateServer) -> None:
    tenant = someone().tenant
    entry = _entry(tenant, 1)
    async with (
        service(schema, server.settings, sweeps=False) as memory,
        memory.database.transaction(EVERY_TENANT) as connection,
    ):
        await memory.index.upsert([entry], within=connection)  # committed, and never settled
    async with service(schema, server.settings) as memory:
        await _until_found(memory, tenant, {entry.id})


async def test_a_server_that_is_killed_in_the_middle_of_a_batch_costs_nothing(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    tenant = someone().tenant
    entries = [_entry(tenant, n) for n in range(3_000)]
    async with service(schema, server.settings) as memory:
        async with memory.database.transaction(EVERY_TENANT) as connection:
            await memory.index.upsert(entries, within=connection)

        async def begun() -> bool:
            return 0 < await memory.count("vector_changes") < len(entries)

        await eventually(begun, 30)
        await server.kill()
        assert await memory.count("vector_changes") > 0
        await server.start()
        await _until_found(memory, tenant, {entry.id for entry in entries})


async def test_a_server_that_is_killed_after_it_took_a_batch_finds_all_of_it(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    """Objects are on disk before their vectors are: without a flush, a tenth of this batch would be found no more."""
    tenant = someone().tenant
    entries = [_entry(tenant, n) for n in range(500)]
    async with service(schema, server.settings, sweeps=False) as memory:
        await memory.index.upsert(entries)
        await server.kill()
        await server.start()
        assert await _found(memory, tenant) == {entry.id for entry in entries}


async def test_what_the_store_refuses_holds_up_nothing_else_and_is_not_lost(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    tenant = someone().tenant
    entries, wrong = [_entry(tenant, n) for n in range(8)], replace(_entry(tenant, 9, 7), id=str(uuid4()))
    async with service(schema, server.settings, sweeps=False) as memory:
        await memory.index.upsert(entries[:1])
        async with memory.database.transaction(EVERY_TENANT) as connection:  # past the check of the length
            await ItemChanges().note(connection, [*entries[1:5], wrong, *entries[5:]])
        await memory.index.settle(tenant, [entry.id for entry in [*entries, wrong]])
        assert await _found(memory, tenant) == {entry.id for entry in entries}
        assert await memory.count("vector_changes WHERE embedding IS NOT NULL AND due > now()") == 1


async def test_a_tenant_that_was_deleted_and_is_made_again_is_empty_and_takes_items(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    tenant = someone().tenant
    async with service(schema, server.settings, sweeps=False) as memory:
        await memory.index.upsert([_entry(tenant, 1)])
        async with driver(server.settings) as client:
            await client.collections.use("UserKnowledgeItem").tenants.remove([tenant])
        assert await _found(memory, tenant) == set()
        entry = _entry(tenant, 2)
        await memory.index.upsert([entry])
        assert await _found(memory, tenant) == {entry.id}


async def test_collections_that_vanished_are_made_again(schema: PostgresSettings, server: WeaviateServer) -> None:
    who = someone()
    async with service(schema, server.settings) as memory:
        await memory.remember(who, RememberItem(text="gone"))
        async with driver(server.settings) as client:
            await client.collections.delete("UserKnowledgeItem")
        ids = await memory.remember(who, HOSPITAL)

        async def found() -> bool:
            return await memory.near(who, "clinic") == set(ids)

        await eventually(found, 60)


def _deleted(user: str) -> ConversationDeleted:
    return ConversationDeleted(deletion_id=str(uuid4()), conversation_id=str(uuid4()), user=user)


async def test_a_deletion_is_reported_only_when_its_vectors_are_gone(schema: PostgresSettings, server: WeaviateServer) -> None:
    who = someone()
    event = _deleted(who.user)
    async with service(schema, server.settings) as memory:
        await memory.remember(who, RememberItem(text="a secret", sources=(event.conversation_id,)))
        await server.kill()
        for delivery in (1, 2):
            await memory.handlers.on_conversation_deleted(News(who.tenant, "1", delivery), event)
        assert (await memory.reports(who), await memory.count("held_news")) == ([], 1)
        await server.start()

        async def reported() -> bool:
            return bool(await memory.reports(who))

        await eventually(reported, 60)
        report = Purged(deletion_id=event.deletion_id, removed={"items": 1, "sources": 1})
        assert (await memory.reports(who), await memory.count("held_news")) == ([report], 0)
    async with driver(server.settings) as client:
        left = await client.collections.use("UserKnowledgeItem").with_tenant(who.tenant).query.fetch_objects(limit=5)
    assert left.objects == []


async def test_a_deletion_whose_vectors_go_at_once_is_reported_at_once(
    schema: PostgresSettings, server: WeaviateServer
) -> None:
    who = someone()
    event = _deleted(who.user)
    async with service(schema, server.settings, sweeps=False) as memory:
        await memory.remember(who, RememberItem(text="a secret", sources=(event.conversation_id,)))
        await memory.handlers.on_conversation_deleted(News(who.tenant, "1", 1), event)
        assert await memory.reports(who) == [Purged(deletion_id=event.deletion_id, removed={"items": 1, "sources": 1})]
