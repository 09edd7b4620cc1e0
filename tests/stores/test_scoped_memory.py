"""Memories by scope on the real stores: each is found in its own room, and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import numpy as np
import pytest
from pydantic import SecretStr

from phronesis_bus import News
from phronesis_contracts import UNKNOWN, BadRequest, Forbidden, KeyReused, Label, OriginKind, Principal, Unavailable
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.memory import (
    KNOWLEDGE_STORED,
    Forget,
    ItemKind,
    KeepMemory,
    Recall,
    RecallMemory,
    Remember,
    RememberItem,
    Retrieve,
    Scope,
)
from phronesis_contracts.orchestrator import Audited
from phronesis_memory.app import assemble_scopes
from phronesis_memory.indexes import make_pgvector_index
from phronesis_memory.items.drafts import Drafter
from phronesis_memory.rebuild import rebuild_links, rebuild_vectors
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Vector, owner_of_scope
from phronesis_postgres import EVERY_TENANT, Database, PostgresSettings
from tests.support.memory import WordEmbedder, calling
from tests.support.personas import Persona
from tests.support.scopes import Scopes, minister, open_scopes, person, some_tenant
from tests.support.servers import PostgresServer, VectorServer

OKAPI = "The okapi lives in the forest."
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename !~ '^_?yoyo_'"
LOGGER = "phronesis_memory.items.scopes"


@pytest.fixture
async def scopes(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Scopes]:
    async with open_scopes(postgres, weaviate) as opened:
        yield opened


async def fill(scopes: Scopes, tenant: str, **more: str | None) -> Principal:
    """A memory in every scope; who kept them."""
    who = minister(tenant, **more)
    for scope in Scope:
        await scopes.keep(who, scope, f"The {scope} okapi.", "okapi")
    return who


async def rows(scopes: Scopes, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
    async with scopes.memory.database.connection(EVERY_TENANT) as connection:
        return [tuple(row.values()) for row in await connection.fetch(statement, *arguments)]


@pytest.mark.req("N-092", "N-094", "N-223", "NC-045")
async def test_a_scope_holds_its_own_memories_alone(scopes: Scopes) -> None:
    who = await fill(scopes, some_tenant())
    for scope in Scope:
        found = await scopes.recall(who, scope, "okapi")
        [snippet] = found.snippets
        assert (snippet.key, snippet.content, snippet.confidence) == ("okapi", f"The {scope} okapi.", 1.0)
        assert (found.scope, found.degraded) == (scope, ())


@pytest.mark.req("N-084", "N-085", "N-086", "N-222")
async def test_noor_recalls_four_scopes_and_is_refused_two(scopes: Scopes, caplog: pytest.LogCaptureFixture) -> None:
    tenant = some_tenant()
    kept = await fill(scopes, tenant)
    noor = kept.model_copy(update=Persona.NOOR.rights)
    for scope in (Scope.PERSONAL, Scope.DEPARTMENTAL, Scope.MINISTRY, Scope.GLOBAL):
        assert await scopes.found(noor, scope, "okapi") == [f"The {scope} okapi."]
    for scope in (Scope.CSUITE, Scope.SECRETS):
        caplog.clear()
        with pytest.raises(Forbidden, match=scope):
            await scopes.recall(noor, scope, "okapi")
        [record] = [record for record in caplog.records if record.name == LOGGER]
        assert record.levelno == logging.WARNING
        assert "blocked" in record.getMessage()
        assert str(scope) in record.getMessage()


@pytest.mark.req("N-087", "NC-035")
@pytest.mark.parametrize("scope", ["admin", "", "Global", "scope:secrets", "SECRETS", "csuite ", "*"])
async def test_an_unknown_scope_is_refused_with_the_list_of_those_allowed(scopes: Scopes, scope: str) -> None:
    with pytest.raises(BadRequest, match=r"allowed: departmental, global, ministry, personal$") as raised:
        await scopes.recall(person(some_tenant()), scope, "okapi")
    assert raised.value.field == "scope"


@pytest.mark.req("N-089")
async def test_a_barred_scope_is_refused_before_any_store_or_model_is_asked(
    postgres: PostgresServer, weaviate: VectorServer | None
) -> None:
    embedder = WordEmbedder()
    embedder.down = True
    async with open_scopes(postgres, weaviate, embedder) as scopes:
        noor = person(some_tenant())
        for scope, refusal in (("csuite", Forbidden), ("nothing", BadRequest)):
            with pytest.raises(refusal):
                await scopes.recall(noor, scope, "okapi")


@pytest.mark.req("N-082", "N-093", "N-225")
async def test_a_personal_memory_is_found_by_its_user_alone(scopes: Scopes) -> None:
    tenant = some_tenant()
    ann, bob = minister(tenant), minister(tenant)
    await scopes.keep(ann, Scope.PERSONAL, "Ann likes the okapi.")
    await scopes.keep(bob, Scope.PERSONAL, "Bob likes the okapi.")
    assert await scopes.found(ann, "personal", "okapi") == ["Ann likes the okapi."]
    assert await scopes.found(bob, "personal", "okapi") == ["Bob likes the okapi."]
    assert await scopes.found(person(tenant, Persona.ADMIN), "personal", "okapi") == []


@pytest.mark.req("NC-037")
async def test_a_shared_memory_is_found_by_users_who_did_not_keep_it(scopes: Scopes) -> None:
    tenant = some_tenant()
    await fill(scopes, tenant)
    noor = person(tenant)
    assert [await scopes.found(noor, scope, "okapi") for scope in ("personal", "departmental", "ministry", "global")] == [
        [], ["The departmental okapi."], ["The ministry okapi."], ["The global okapi."]
    ]  # fmt: skip


@pytest.mark.req("NC-036")
@pytest.mark.parametrize("exact_rows", [10_000, 0], ids=["exact", "hnsw"])
async def test_twenty_nearer_memories_of_another_scope_hide_nothing(
    postgres: PostgresServer, weaviate: VectorServer | None, exact_rows: int
) -> None:
    async with open_scopes(postgres, weaviate, exact_rows=exact_rows) as scopes:
        await _not_hidden(scopes)


async def _not_hidden(scopes: Scopes) -> None:
    who = minister(some_tenant())
    for _ in range(20):
        await scopes.keep(who, Scope.MINISTRY, "okapi okapi")
    await scopes.keep(who, Scope.DEPARTMENTAL, "Far off, among many other things, there may once have been an okapi.")
    found = await scopes.recall(who, "departmental", "okapi")
    assert ([one.content for one in found.snippets], found.scope) == (
        ["Far off, among many other things, there may once have been an okapi."], Scope.DEPARTMENTAL
    )  # fmt: skip


@pytest.mark.req("N-081", "N-095", "N-046", "NC-045")
async def test_the_best_come_first_with_their_cosines_and_five_unless_more_are_asked_for(scopes: Scopes) -> None:
    who = minister(some_tenant())
    words = ["forest", "lake", "river", "hill", "town", "road", "tree", "stone", "moon"]
    for number in range(10):
        await scopes.keep(who, Scope.GLOBAL, " ".join(["okapi", *words[:number]]), confidence=number / 10)
    found = (await scopes.recall(who, "global", "okapi", limit=50)).snippets
    assert [one.score for one in found] == pytest.approx([(1 + number) ** -0.5 for number in range(10)], abs=2e-3)
    assert [one.confidence for one in found] == [number / 10 for number in range(10)]
    five = RecallMemory(scope="global", query_summary="okapi")
    assert (await scopes.handlers.recall_memory(calling(who), five)).snippets == found[:5]
    assert (await scopes.recall(who, "global", "okapi", limit=3)).snippets == found[:3]


@pytest.mark.req("N-097", "N-099", "NC-044")
async def test_a_department_without_memories_falls_back_to_the_tenants(
    scopes: Scopes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    tenant = some_tenant()
    who = minister(tenant)
    await scopes.keep(who, Scope.GLOBAL, "One okapi.")
    await scopes.keep(who, Scope.GLOBAL, "Two okapis.")
    found = await scopes.recall(person(tenant), "departmental", "okapi")
    assert ({one.content for one in found.snippets}, found.scope) == ({"One okapi.", "Two okapis."}, Scope.GLOBAL)
    said = [record for record in caplog.records if record.name == LOGGER]
    assert [(record.levelname, "falling back" in record.getMessage()) for record in said] == [("INFO", True), ("INFO", False)]
    assert said[1].getMessage() == "2 memories of the scope global"

    caplog.clear()
    await scopes.keep(who, Scope.DEPARTMENTAL, "Something else altogether.")
    found = await scopes.recall(person(tenant), "departmental", "okapi")
    assert ([one.content for one in found.snippets], found.scope) == (["Something else altogether."], Scope.DEPARTMENTAL)
    assert [record for record in caplog.records if "falling back" in record.getMessage()] == []


@pytest.mark.req("N-098", "N-102", "NC-043")
@pytest.mark.parametrize("scope", ["personal", "ministry", "csuite", "secrets"])
async def test_no_other_scope_falls_back(scopes: Scopes, scope: str, caplog: pytest.LogCaptureFixture) -> None:
    who = minister(some_tenant())
    await scopes.keep(who, Scope.GLOBAL, OKAPI)
    caplog.clear()
    found = await scopes.recall(who, scope, "okapi")
    assert (found.snippets, found.scope, found.degraded) == ((), scope, ())
    [record] = [record for record in caplog.records if record.name == LOGGER]
    assert (record.levelname, record.getMessage()) == ("WARNING", f"no memories of the scope {scope}")


@pytest.mark.parametrize("other", ["health", "Health ", " Health", "Healthy", "Heal", "%48ealth", "Health:Care", "*", None])
async def test_another_department_has_other_memories(scopes: Scopes, other: str | None) -> None:
    tenant = some_tenant()
    await scopes.keep(minister(tenant, department="Health", ministry="Health"), Scope.DEPARTMENTAL, OKAPI)
    await scopes.keep(minister(tenant, department="Health", ministry="Health"), Scope.MINISTRY, OKAPI)
    stranger = person(tenant, department=other, ministry=other)
    assert [await scopes.found(stranger, scope, "okapi") for scope in ("departmental", "ministry")] == [[], []]


async def test_a_department_may_have_any_name(scopes: Scopes) -> None:
    tenant, names = some_tenant(), ["وزارة", "a'b\"c\\d", "x\ny", "é", "e\u0301", "ministry:x", "😀" * 200]
    for name in names:
        await scopes.keep(minister(tenant, department=name), Scope.DEPARTMENTAL, f"okapi of {name}")
    for name in names:
        assert await scopes.found(person(tenant, department=name), "departmental", "okapi") == [f"okapi of {name}"]


@pytest.mark.parametrize("name", [None, "", "  "])
async def test_without_a_department_nothing_can_be_kept_in_one(scopes: Scopes, name: str | None) -> None:
    who = minister(some_tenant(), department=name, ministry=name)
    for scope in (Scope.DEPARTMENTAL, Scope.MINISTRY):
        with pytest.raises(BadRequest):
            await scopes.keep(who, scope, OKAPI)
        with pytest.raises(BadRequest):
            await scopes.forget(who, scope, "okapi")


async def test_the_same_key_again_replaces_a_memory_and_says_so(scopes: Scopes) -> None:
    who = minister(some_tenant())
    first = await scopes.keep(who, Scope.SECRETS, "An okapi.", "animal", confidence=0.5)
    same = await scopes.keep(who, Scope.SECRETS, "An okapi.", "animal", confidence=0.5)
    surer = await scopes.keep(who, Scope.SECRETS, "An okapi.", "animal", confidence=0.9)
    other = await scopes.keep(who, Scope.SECRETS, "A heron.", "animal")
    beside = await scopes.keep(who, Scope.CSUITE, "A heron.", "animal")
    assert [first.status, same.status, surer.status, other.status] == ["created", "unchanged", "updated", "updated"]
    assert {first.id, same.id, surer.id, other.id} == {first.id}
    assert beside.id != first.id
    assert await scopes.found(who, "secrets", "okapi") == ["A heron."]


async def test_a_write_is_done_once_for_its_key(scopes: Scopes) -> None:
    who, key = minister(some_tenant()), uuid4().hex
    keep = KeepMemory(scope=Scope.CSUITE, key="animal", content=OKAPI)
    first = await scopes.handlers.keep_memory(calling(who, key), keep)
    await scopes.forget(who, Scope.CSUITE, "animal")
    assert await scopes.handlers.keep_memory(calling(who, key), keep) == first
    assert await scopes.found(who, "csuite", "okapi") == []
    with pytest.raises(KeyReused):
        await scopes.handlers.keep_memory(calling(who, key), keep.model_copy(update={"content": "A heron."}))


async def test_each_write_is_audited_with_its_transaction_and_no_content(scopes: Scopes) -> None:
    tenant = some_tenant()
    who = minister(tenant)
    kept = await scopes.keep(who, Scope.SECRETS, OKAPI, "animal")
    await scopes.keep(who, Scope.SECRETS, OKAPI, "animal")
    await scopes.forget(who, Scope.SECRETS, "animal")
    await scopes.forget(who, Scope.SECRETS, "animal")
    news = await rows(scopes, "SELECT subject, body FROM outbox WHERE tenant = $1 ORDER BY id", tenant)
    entries = [Audited.model_validate_json(body) for subject, body in news if subject.endswith(".audited")]
    assert len(entries) == len(news)
    assert [(one.who, one.role, one.action, one.outcome, one.arguments) for one in entries] == [
        (who.user, Persona.MAESTRO.text, "keep_memory", "done", {"scope": "secrets", "id": kept.id}),
        (who.user, Persona.MAESTRO.text, "forget_memory", "done", {"scope": "secrets", "id": kept.id}),
    ]


async def test_what_is_forgotten_is_in_no_table_and_no_index(scopes: Scopes) -> None:
    tenant, secret = some_tenant(), f"zq{uuid4().hex}"
    who = minister(tenant)
    kept = await scopes.keep(who, Scope.SECRETS, f"The {secret} opens the vault. " * 40, secret)
    assert await scopes.forget(who, Scope.SECRETS, "another") is None
    assert await scopes.forget(who, Scope.CSUITE, secret) is None
    assert await scopes.forget(minister(some_tenant()), Scope.SECRETS, secret) is None
    assert await scopes.forget(who, Scope.SECRETS, secret) == kept.id
    assert await scopes.found(who, "secrets", f"{secret} vault") == []
    assert await scopes.memory.entries(tenant) == []
    for (table,) in await rows(scopes, _TABLES):
        found = await rows(scopes, f"SELECT t::text FROM {table} AS t")
        assert [row for (row,) in found if secret in row] == [], table
    for table in ("items", "texts", "vectors", "vector_changes"):
        assert await rows(scopes, f"SELECT 1 FROM {table} WHERE tenant = $1", tenant) == [], table


@pytest.mark.req("N-225", "X-C08")
async def test_no_other_handler_reaches_what_is_in_a_room(scopes: Scopes) -> None:
    tenant = some_tenant()
    kept = await fill(scopes, tenant)
    ids = [str(id) for (id,) in await rows(scopes, "SELECT id FROM items WHERE tenant = $1", tenant)]
    scopes.memory.graph.links += [("seed", id) for id in ids]
    handlers = scopes.memory.handlers
    for who in (kept, person(tenant), person(tenant, Persona.CURATOR)):
        call = calling(who)
        [seed] = (await handlers.remember(call, Remember(items=(RememberItem(text="My own okapi."),)))).items
        scopes.memory.graph.links += [(seed.id, id) for id in ids]
        found = await handlers.recall(call, Recall(query="The secrets okapi", limit=100, kinds=tuple(ItemKind)))
        assert [item.text for item in found.items] == ["My own okapi."]
        context = await handlers.retrieve(call, Retrieve(key_phrases=("okapi", "secrets", "csuite"), budget_tokens=32_000))
        texts = [item.text for item in (*context.memory_units, *context.concepts)]
        assert texts == ["My own okapi."]
        assert (await handlers.forget(call, Forget(ids=(*ids, "okapi")))).ids == ()
        await handlers.forget(call, Forget(ids=(seed.id,)))
    gone = ConversationDeleted(conversation_id="okapi", user=kept.user, deletion_id=uuid4().hex)
    await handlers.on_conversation_deleted(News(tenant, "1", 1), gone)
    assert sorted(ids) == sorted(str(id) for (id,) in await rows(scopes, "SELECT id FROM items WHERE tenant = $1", tenant))


@pytest.mark.parametrize("other", [None, Scope.CSUITE], ids=["no room", "another room"])
async def test_a_statement_that_forgets_its_owner_reaches_no_other_room(scopes: Scopes, other: Scope | None) -> None:
    """The second lock: the table's own policy."""
    tenant = some_tenant()
    who = await fill(scopes, tenant)
    expected = []
    async with scopes.memory.database.transaction(tenant) as connection:
        if other is not None:
            room = owner_of_scope(who, other)
            await connection.execute("SELECT set_config('phronesis.room', $1, true)", room)
            expected = [room]
        assert [row["owner"] for row in await connection.fetch("SELECT owner FROM items")] == expected
        assert await connection.execute("UPDATE items SET body = 'x'") == f"UPDATE {len(expected)}"
        assert await connection.execute("DELETE FROM items") == f"DELETE {len(expected)}"
    async with scopes.memory.database.connection(tenant) as connection:
        assert await connection.fetch("SELECT owner FROM items") == []


async def test_nothing_of_a_room_is_announced_to_the_graph_even_by_a_rebuild(scopes: Scopes) -> None:
    tenant = some_tenant()
    who = await fill(scopes, tenant)
    await scopes.memory.handlers.remember(calling(who), Remember(items=(RememberItem(text="An okapi."),)))
    statement = "SELECT body FROM outbox WHERE subject = $1"
    before = len(await rows(scopes, statement, KNOWLEDGE_STORED.on(tenant)))
    told: list[tuple[str, int, int]] = []
    assert await rebuild_links(scopes.memory.database, lambda *said: told.append(said)) == 1
    assert told == [("links", 0, 1), ("links", 1, 1)]
    news = await rows(scopes, statement, KNOWLEDGE_STORED.on(tenant))
    assert (before, len(news)) == (1, 2)
    assert not any(b"scope:" in body for (body,) in news)


async def test_a_rebuild_makes_the_vectors_of_rooms_anew(scopes: Scopes) -> None:
    who = await fill(scopes, some_tenant())
    await fill(scopes, some_tenant(), department="Transport")
    before = [await scopes.recall(who, scope, "okapi") for scope in Scope]
    await scopes.memory.vectors.clear()
    assert [await scopes.found(who, scope, "okapi") for scope in Scope] == [[]] * 6
    drafting = Drafter(scopes.memory.embedder)
    assert await rebuild_vectors(scopes.memory.database, scopes.memory.vectors, drafting, lambda *said: None) == 12
    assert [await scopes.recall(who, scope, "okapi") for scope in Scope] == before


class Directionless(WordEmbedder):
    """A model that answers with zeros (NC-038)."""

    def _vector(self, text: str) -> Vector:
        return np.zeros(self.dimension, np.float32)


@pytest.mark.req("N-101", "NC-038")
@pytest.mark.parametrize("model", [WordEmbedder, Directionless])
async def test_without_a_vector_of_the_question_the_answer_is_empty_and_says_so(
    scopes: Scopes, model: type[WordEmbedder], caplog: pytest.LogCaptureFixture
) -> None:
    who, embedder = await fill(scopes, some_tenant()), model()
    embedder.down = model is WordEmbedder
    handlers = assemble_scopes(scopes.memory.database, embedder, MemorySettings(), lambda: None, scopes.memory.vectors)
    found = await handlers.recall_memory(calling(who), RecallMemory(scope="departmental", query_summary="okapi"))
    assert (found.snippets, found.scope, found.degraded) == ((), Scope.DEPARTMENTAL, ("vector",))
    [record] = [record for record in caplog.records if record.name == LOGGER and record.levelno >= logging.WARNING]
    assert record.levelno == logging.ERROR
    with pytest.raises(Unavailable):
        await handlers.keep_memory(calling(who), KeepMemory(scope=Scope.GLOBAL, key="k", content="okapi"))


@pytest.mark.req("N-103", "NC-039")
async def test_a_recall_reads_in_transactions_that_cannot_write(scopes: Scopes, monkeypatch: pytest.MonkeyPatch) -> None:
    who = await fill(scopes, some_tenant())
    database = scopes.memory.database

    def refused(tenant: str) -> None:
        raise AssertionError("a recall opens a transaction to write")

    monkeypatch.setattr(database, "transaction", refused)
    assert await scopes.found(who, "secrets", "okapi") == ["The secrets okapi."]
    with pytest.raises(Unavailable) as raised:
        async with database.connection(who.tenant) as connection:
            await connection.execute("DELETE FROM items")
    assert isinstance(raised.value.__cause__, asyncpg.ReadOnlySQLTransactionError)


@pytest.mark.req("N-100", "NC-041", "NC-042")
async def test_while_the_store_is_away_the_answer_is_empty_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = PostgresSettings(dsn=SecretStr("postgresql://nobody@127.0.0.1:9/nothing"))
    embedder = WordEmbedder()
    async with Database.open(nowhere, "memory") as database:
        index = make_pgvector_index(database, embedder.model, embedder.dimension, MemorySettings())
        handlers = assemble_scopes(database, embedder, MemorySettings(), lambda: None, index)
        found = await handlers.recall_memory(
            calling(person(some_tenant())), RecallMemory(scope="ministry", query_summary="okapi")
        )
    assert (found.snippets, found.scope, found.degraded) == ((), Scope.MINISTRY, ("memory",))
    [record] = [record for record in caplog.records if record.name == LOGGER]
    assert record.levelno == logging.ERROR


async def test_a_shared_memory_is_another_persons_text_to_all_but_the_one_who_kept_it(scopes: Scopes) -> None:
    tenant = some_tenant()
    who = await fill(scopes, tenant)
    other = minister(tenant).model_copy(update={"user": "bea"})
    for reader, labels in ((other, (Label(kind=OriginKind.PERSON, id=who.user), *UNKNOWN)), (who, UNKNOWN)):
        [snippet] = (await scopes.recall(reader, Scope.GLOBAL, "okapi")).snippets
        assert set(snippet.labels) == set(labels), "the helper calls as an agent does, and states no labels"
