"""Memories that end by themselves, on a real Postgres and vector index: by expiry, with retention, and with their user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from phronesis_contracts import BadRequest, NotFound, Nothing, Principal
from phronesis_contracts.deletions import Aged, DropAged
from phronesis_contracts.memories import BuildContext, GetMemory, ListMemories, UpdateMemory
from phronesis_contracts.memory import ITEMS_FORGOTTEN, ItemsForgotten, Profile, Recall, Remember, RememberItem
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus
from phronesis_memory.items.drafts import draft_from_turn
from phronesis_memory.items.store import PostgresKnowledge
from phronesis_memory.memories.ending import Ending
from phronesis_memory.vectors.pgvector import PgVector
from phronesis_postgres import EVERY_TENANT
from tests.stores.test_memories import Memories, memories  # noqa: F401  # the fixture
from tests.support.memory import calling, someone

SOON = datetime.now(UTC) + timedelta(days=1)
_NEWS = "SELECT body FROM outbox WHERE tenant = $1 AND subject = $2"
_PAST = "UPDATE items SET expires_at = now() - interval '1 second' WHERE tenant = $1 AND owner = $2 AND id = $3::text::uuid"


@pytest.fixture
def ending(memories: Memories) -> Ending:  # noqa: F811
    return Ending(memories.memory.database, memories.memory.vectors, lambda: None)


@pytest.fixture
async def swept(ending: Ending) -> Ending:
    """An ending with nothing to expire at the start."""
    while await ending.expire():
        pass
    return ending


async def expired(memories: Memories, who: Principal, id: str) -> None:  # noqa: F811
    """Let the time of a memory be over."""
    async with memories.memory.database.transaction(who.tenant) as connection:
        assert await connection.execute(_PAST, who.tenant, who.user, id) == "UPDATE 1"


async def tables_that_name(memories: Memories, who: Principal) -> set[str]:  # noqa: F811
    """The tables of the schema in which a row of the tenant names the user, or an owner that is theirs."""
    found: set[str] = set()
    async with memories.memory.database.connection(EVERY_TENANT) as connection:
        tables = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename NOT LIKE '%yoyo%'"
        )
        for table in (row["tablename"] for row in tables):
            both = "strpos(to_jsonb(t)::text, $1) > 0 AND strpos(to_jsonb(t)::text, $2) > 0"
            if await connection.fetchval(f"SELECT true FROM {table} AS t WHERE {both} LIMIT 1", who.user, who.tenant):
                found.add(table)
    return found


async def test_an_expired_memory_is_returned_by_no_read_before_it_is_swept(memories: Memories) -> None:  # noqa: F811
    who = someone()
    said = {"text": "the alarm code is 4711", "speaker": "Ada", "external_id": "code", "expires_at": SOON}
    [gone] = await memories.add(who, said, conversation="c1")
    [beside] = await memories.add(who, {"text": "the alarm is loud", "speaker": "Bo"}, conversation="c1")
    await memories.update(who, gone, text="the alarm code is 0815")
    told = await memories.handlers.get(calling(who), GetMemory(id=gone))
    assert (told.expires_at, told.text) == (SOON, "the alarm code is 0815")
    await expired(memories, who, gone)
    page = await memories.handlers.list(calling(who), ListMemories())
    block = await memories.handlers.context(calling(who), BuildContext(query="alarm code"))
    recalled = await memories.memory.handlers.recall(calling(who), Recall(query="alarm code", kinds=("message",)))
    retrieved = await memories.search(who, "alarm code", as_of=told.created_at)
    assert [one.id for one in page.memories] == [beside]
    assert [one.id for one in block.memories] == [beside]
    assert [one.id for one in recalled.items] == [beside]
    assert (await memories.search(who, "alarm code", limit=1), retrieved) == (["the alarm is loud"], [])
    for name in (gone, "code"):
        for ask in (memories.handlers.get, memories.handlers.history):
            with pytest.raises(NotFound):
                await ask(calling(who), GetMemory(id=name))
        with pytest.raises(NotFound):
            await memories.update(who, name, text="another")


async def test_a_note_that_was_remembered_is_not_recalled_once_it_has_expired(memories: Memories) -> None:  # noqa: F811
    who = someone()
    item = RememberItem(kind="note", text="the boat is called Wanderer")
    done = await memories.memory.handlers.remember(calling(who), Remember(items=(item,)))
    await memories.handlers.update(calling(who), UpdateMemory(id=done.items[0].id, expires_at=SOON))
    asked = Recall(query="what is the boat called")
    assert len((await memories.memory.handlers.recall(calling(who), asked)).items) == 1
    await expired(memories, who, done.items[0].id)
    assert (await memories.memory.handlers.recall(calling(who), asked)).items == ()


async def test_a_sweep_deletes_what_has_expired_everywhere_and_nothing_else(memories: Memories, swept: Ending) -> None:  # noqa: F811
    who = someone()
    [gone, kept] = await memories.add(
        who, {"text": "the alarm code is 4711", "expires_at": SOON}, {"text": "the alarm is loud", "expires_at": SOON}
    )
    await memories.update(who, gone, metadata={"n": 1})
    await expired(memories, who, gone)
    assert (await swept.expire(), await swept.expire()) == (True, False)
    async with memories.memory.database.connection(who.tenant) as connection:
        left = [str(row["id"]) for row in await connection.fetch("SELECT id FROM items WHERE tenant = $1", who.tenant)]
        versions = await connection.fetchval("SELECT count(*) FROM item_versions WHERE item_id = $1", gone)
        words = await connection.fetchval("SELECT items FROM scopes WHERE tenant = $1 AND owner = $2", who.tenant, who.user)
        told = [row["body"] for row in await connection.fetch(_NEWS, who.tenant, ITEMS_FORGOTTEN.on(who.tenant))]
    assert (left, versions, words) == ([kept], 0, 1)
    assert [entry.id for entry in await memories.memory.entries(who.tenant)] == [kept]
    assert [ItemsForgotten.model_validate_json(body).ids for body in told] == [(gone,)]


async def test_a_fact_that_rests_on_an_expired_memory_alone_goes_with_it(memories: Memories, swept: Ending) -> None:  # noqa: F811
    who = someone()
    [gone, kept] = await memories.add(who, {"text": "I live in Leeds", "expires_at": SOON}, "I live in Leeds, yes")
    facts = {"alone": (gone,), "both": (gone, kept)}
    async with memories.memory.database.transaction(who.tenant) as connection:
        for value, sources in facts.items():
            id = uuid4()
            await connection.execute(
                "INSERT INTO facts (id, tenant, owner, slot, value, kind, subject, predicate, object, body, negated,"
                " valid_from) VALUES ($1, $2, $3, $4, $4, 'statement', 'user', 'lives in', 'Leeds', $4, false, now())",
                id,
                who.tenant,
                who.user,
                value,
            )
            for source in sources:
                await connection.execute(
                    "INSERT INTO fact_sources (fact_id, source, said_at, origin, confidence) VALUES ($1, $2, now(), 'user', 1)",
                    id,
                    f"memory:{source}/0",
                )
    await expired(memories, who, gone)
    assert await swept.expire()
    async with memories.memory.database.connection(who.tenant) as connection:
        left = await connection.fetch(
            "SELECT value, source FROM facts JOIN fact_sources ON fact_id = id WHERE tenant = $1", who.tenant
        )
    assert [(row["value"], row["source"]) for row in left] == [("both", f"memory:{kept}/0")]


async def test_tenants_expire_in_turn(memories: Memories, swept: Ending) -> None:  # noqa: F811
    first, second = sorted((someone(), someone()), key=lambda who: who.tenant)
    many = someone(tenant=first.tenant)
    for who in (first, many, second):
        [id] = await memories.add(who, {"text": "gone", "expires_at": SOON})
        await expired(memories, who, id)
    left = []
    for _ in range(2):
        assert await swept.expire()
        async with memories.memory.database.connection(EVERY_TENANT) as connection:
            left.append(
                [
                    await connection.fetchval("SELECT count(*) FROM items WHERE tenant = $1", tenant)
                    for tenant in (first.tenant, second.tenant)
                ]
            )
    assert (sorted(map(sum, left)), left[-1]) == ([1, 2], [1, 0])


async def test_a_time_of_expiry_can_be_set_moved_and_taken_away(memories: Memories) -> None:  # noqa: F811
    who = someone()
    [id] = await memories.add(who, "the alarm code is 4711")
    before = (await memories.handlers.get(calling(who), GetMemory(id=id))).updated_at

    async def change(**more: Any) -> datetime | None:
        return (await memories.handlers.update(calling(who), UpdateMemory(id=id, **more))).expires_at

    assert await change(expires_at=SOON) == SOON
    assert await change(metadata={"n": 1}) == SOON
    assert await change(expires_at="never") is None
    history = await memories.handlers.history(calling(who), GetMemory(id=id))
    assert (len(history.versions), history.memory.updated_at > before) == (1, True)
    with pytest.raises(BadRequest) as refused:
        await change(expires_at=datetime.now(UTC) - timedelta(days=1))
    assert refused.value.field == "expires_at"


async def test_the_same_memory_with_another_time_of_expiry_is_updated(memories: Memories) -> None:  # noqa: F811
    who = someone()
    for expires_at in (SOON, SOON + timedelta(days=1), None):
        [id] = await memories.add(who, {"text": "tea", "external_id": "x", "expires_at": expires_at})
        assert (await memories.handlers.get(calling(who), GetMemory(id=id))).expires_at == expires_at


async def test_a_memory_that_was_changed_while_it_waited_is_embedded_once(memories: Memories) -> None:  # noqa: F811
    who = someone()
    while await memories.embedder.step():
        pass
    [one, other] = await memories.add(who, "the oven is hot", {"text": "the yard", "external_id": "y"}, wait=False)
    await memories.update(who, one, text="the oven is cold")
    await memories.add(who, {"text": "the yard is wet", "external_id": "y"}, wait=True)
    before = len(memories.memory.embedder.texts)
    assert await memories.embedder.step() is False
    assert len(memories.memory.embedder.texts) == before
    assert {entry.id for entry in await memories.memory.entries(who.tenant)} == {one, other}


async def test_old_messages_and_episodes_go_each_by_its_own_limit(memories: Memories, ending: Ending) -> None:  # noqa: F811
    who = someone()
    other = someone()
    for one in (who, other):
        await memories.add(one, {"text": "old", "speaker": "Ada"}, {"text": "new", "speaker": "Ada"}, "an old note")
        async with memories.memory.database.transaction(one.tenant) as connection:
            await connection.execute("UPDATE items SET created_at = now() - interval '9 days' WHERE body LIKE '%old%'")
    dropped = DropAged(what=Aged.MESSAGES, before=datetime.now(UTC) - timedelta(days=8))
    assert (await ending.drop_aged(calling(who), dropped)).model_dump() == {"removed": {"messages": 1}, "done": True}
    assert (await ending.drop_aged(calling(who), dropped)).removed == {}
    held = [
        sorted(m.text for m in (await memories.handlers.list(calling(one), ListMemories())).memories) for one in (who, other)
    ]
    assert held == [["an old note", "new"], ["an old note", "new", "old"]]


async def test_nothing_is_left_of_a_user_who_was_erased_and_all_of_others(memories: Memories, ending: Ending) -> None:  # noqa: F811
    ada = someone()
    bo, namesake = someone(tenant=ada.tenant), someone(user=ada.user)
    for who in (ada, bo, namesake):
        await memories.add(who, {"text": "the cellar key", "speaker": "Ada"}, "a note", conversation="c1")
        await memories.update(who, (await memories.add(who, "one"))[0], text="two")
        await memories.memory.profiles.put(calling(who), Profile(profile={"town": "Leeds"}))
    in_another_store = set() if isinstance(memories.memory.vectors, PgVector) else {"vectors"}
    held = (await ending.held(calling(ada), Nothing())).held
    assert held == {"message_items": 2, "note_items": 1, "profiles": 1, "scopes": 2, "vectors": 3}
    others = [await ending.held(calling(who), Nothing()) for who in (bo, namesake)]
    steps = [await ending.erase(calling(ada), Nothing())]
    while not steps[-1].done:
        steps.append(await ending.erase(calling(ada), Nothing()))
    assert [step.removed for step in steps] == [{"items": 3}, {"profiles": 1, "scopes": 2}]
    assert (await ending.held(calling(ada), Nothing())).held == {}
    assert [await ending.held(calling(who), Nothing()) for who in (bo, namesake)] == others
    assert await tables_that_name(memories, bo) == {"items", "profiles", "scopes", "texts", "vectors"} - in_another_store
    assert await tables_that_name(memories, ada) == set()
    again = await ending.erase(calling(ada), Nothing())
    assert (again.done, again.removed) == (True, {})


async def test_late_news_of_an_erased_user_brings_nothing_back(memories: Memories, ending: Ending) -> None:  # noqa: F811
    who = someone()
    knowledge = PostgresKnowledge(memories.memory.database, memories.memory.vectors, lambda: None)
    before = datetime.now(UTC)
    await ending.erase(calling(who), Nothing())

    async def keep(at: datetime) -> None:
        news = TurnEndedNews(
            turn_id=uuid4().hex,
            conversation_id=uuid4().hex,
            user=who.user,
            agent="dialogue",
            status=TurnStatus.COMPLETED,
            user_text="hello",
            reply_text="hi",
            at=at,
        )
        [ready] = await memories.handlers._drafting.complete([draft_from_turn(news)], {})
        await knowledge.record(who.tenant, who.user, ready)

    await keep(before)
    assert (await ending.held(calling(who), Nothing())).held == {}
    await keep(datetime.now(UTC) + timedelta(seconds=5))
    assert (await ending.held(calling(who), Nothing())).held["episode_items"] == 1
