"""Forgetting on a real Postgres: items go with their words and vectors, by the user's wish or with their conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import News
from phronesis_contracts import BadRequest, KeyReused, NotFound, Nothing, Principal
from phronesis_contracts.deletions import ConversationDeleted, Purged
from phronesis_contracts.memory import (
    ITEMS_FORGOTTEN,
    MEMORY_PURGED,
    DeleteProfile,
    Forget,
    Forgotten,
    ItemKind,
    ItemsForgotten,
    Profile,
    ProfileChanged,
    Recall,
    Remember,
    RememberItem,
    UpdateProfile,
)
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus
from phronesis_postgres import EVERY_TENANT
from tests.support.memory import Memory, calling, open_memory, someone
from tests.support.postgres_text import holding
from tests.support.servers import PostgresServer, VectorServer


@pytest.fixture(scope="module")
async def memory(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Memory]:
    async with open_memory(postgres, weaviate) as opened:
        yield opened


async def remembered(memory: Memory, who: Principal, *items: RememberItem) -> list[str]:
    return [item.id for item in (await memory.handlers.remember(calling(who), Remember(items=items))).items]


async def ended(memory: Memory, who: Principal, conversation: str, text: str, turn: str | None = None) -> str:
    id = turn or str(uuid4())
    event = TurnEndedNews(
        turn_id=id, conversation_id=conversation, user=who.user, agent="dialogue", status=TurnStatus.COMPLETED, user_text=text
    )
    await memory.handlers.on_turn_ended(News(who.tenant, "1", 1), event)
    return id


async def deleted(memory: Memory, who: Principal, conversation: str, **more: Any) -> ConversationDeleted:
    event = ConversationDeleted(deletion_id=str(uuid4()), conversation_id=conversation, user=who.user, **more)
    await memory.handlers.on_conversation_deleted(News(who.tenant, "1", 1), event)
    return event


async def texts(memory: Memory, who: Principal) -> list[str]:
    return [body for (body,) in await rows(memory, "SELECT body FROM items WHERE tenant = $1 ORDER BY body", who.tenant)]


async def rows(memory: Memory, statement: str, *arguments: Any) -> list[Any]:
    async with memory.database.transaction(EVERY_TENANT) as connection:
        return [tuple(row) for row in await connection.fetch(statement, *arguments)]


async def news(memory: Memory, who: Principal, subject: str) -> list[bytes]:
    found = await rows(memory, "SELECT body FROM outbox WHERE subject = $1 ORDER BY id", subject)
    return [body for (body,) in found]


async def test_a_deleted_conversation_takes_its_episodes_with_words_vectors_and_news(memory: Memory) -> None:
    who, gone, kept, marker = someone(), str(uuid4()), str(uuid4()), f"heron{uuid4().hex}"
    for n in range(3):
        await ended(memory, who, gone, f"{marker} {n}")
    await ended(memory, who, kept, "the okapi")
    event = await deleted(memory, who, gone)
    assert await texts(memory, who) == ["User: the okapi\nAssistant: "]
    assert await holding(memory.database, marker) == {}
    assert len(await memory.entries(who.tenant)) == 1
    assert await rows(memory, "SELECT items FROM scopes WHERE tenant = $1", who.tenant) == [(1,)]
    (report,) = await news(memory, who, MEMORY_PURGED.on(who.tenant))
    assert Purged.model_validate_json(report) == Purged(deletion_id=event.deletion_id, removed={"items": 3, "sources": 3})
    # The graph knows no episodes; it is told nonetheless, so that its report comes.
    (forgotten,) = await news(memory, who, ITEMS_FORGOTTEN.on(who.tenant))
    assert ItemsForgotten.model_validate_json(forgotten) == ItemsForgotten(owner=who.user, deletion_id=event.deletion_id)


async def test_a_turn_that_ends_after_the_deletion_of_its_conversation_leaves_nothing(memory: Memory) -> None:
    who, conversation = someone(), str(uuid4())
    await deleted(memory, who, conversation)
    await ended(memory, who, conversation, "late")
    assert await texts(memory, who) == []
    assert await rows(memory, "SELECT count(*) FROM sources WHERE conversation_id = $1", conversation) == [(0,)]


async def test_ends_and_the_deletion_in_any_order_at_the_same_moment_leave_nothing(memory: Memory) -> None:
    who, conversation = someone(), str(uuid4())
    work = [ended(memory, who, conversation, f"text {n}") for n in range(6)]
    await asyncio.gather(*work[:3], deleted(memory, who, conversation), *work[3:])
    assert await texts(memory, who) == []


async def test_a_deletion_that_comes_again_reports_once(memory: Memory) -> None:
    who, conversation = someone(), str(uuid4())
    await ended(memory, who, conversation, "text")
    event = await deleted(memory, who, conversation)
    await memory.handlers.on_conversation_deleted(News(who.tenant, "2", 2), event)
    assert len(await news(memory, who, MEMORY_PURGED.on(who.tenant))) == 1


async def test_the_parts_behind_the_first_are_no_deletions_of_their_own(memory: Memory) -> None:
    who, conversation = someone(), str(uuid4())
    await deleted(memory, who, conversation, part=2, parts=2)
    assert await news(memory, who, MEMORY_PURGED.on(who.tenant)) == []


async def test_an_item_of_several_conversations_stays_until_the_last_of_them_is_gone(memory: Memory) -> None:
    who, one, two = someone(), str(uuid4()), str(uuid4())
    both = RememberItem(text="learnt twice", sources=(one, two, one))
    only = RememberItem(text="learnt in one", sources=(one,))
    own = RememberItem(text="told by hand")
    ids = await remembered(memory, who, both, only, own)
    await deleted(memory, who, one)
    assert await texts(memory, who) == ["learnt twice", "told by hand"]
    await deleted(memory, who, two)
    assert await texts(memory, who) == ["told by hand"]
    told = [ItemsForgotten.model_validate_json(body) for body in await news(memory, who, ITEMS_FORGOTTEN.on(who.tenant))]
    assert [message.ids for message in told] == [(ids[1],), (ids[0],)]


async def test_an_item_that_is_replaced_has_the_sources_it_is_replaced_with(memory: Memory) -> None:
    who, one, two = someone(), str(uuid4()), str(uuid4())
    await remembered(memory, who, RememberItem(text="a", external_id="x", sources=(one,)))
    await remembered(memory, who, RememberItem(text="a", external_id="x", sources=(two,)))
    await deleted(memory, who, one)
    assert await texts(memory, who) == ["a"]
    await deleted(memory, who, two)
    assert await texts(memory, who) == []


async def test_nothing_is_remembered_from_a_deleted_conversation(memory: Memory) -> None:
    who, conversation = someone(), str(uuid4())
    await deleted(memory, who, conversation)
    with pytest.raises(NotFound) as refused:
        await remembered(memory, who, RememberItem(text="a"), RememberItem(text="b", sources=(conversation,)))
    assert (refused.value.field, await texts(memory, who)) == ("items.1.sources", [])


@pytest.mark.req("D-143")
async def test_a_deletion_touches_no_other_user(memory: Memory) -> None:
    ann, conversation = someone(), str(uuid4())
    bob = someone(ann.tenant)
    await ended(memory, bob, conversation, "bob's")
    await deleted(memory, ann, conversation)
    await ended(memory, bob, conversation, "bob's again")
    assert set(await texts(memory, ann)) == {"User: bob's\nAssistant: ", "User: bob's again\nAssistant: "}


async def test_items_are_forgotten_by_id_and_by_external_id(memory: Memory) -> None:
    who, marker = someone(), f"heron{uuid4().hex}"
    items = [RememberItem(text=f"{marker} {n}", external_id=f"{marker}{n}") for n in range(3)]
    ids = await remembered(memory, who, *items, RememberItem(text="stays"))
    done = await memory.handlers.forget(calling(who), Forget(ids=(ids[0], f"{marker}1", f"{marker}2", "none", ids[0])))
    assert (done.count, set(done.ids)) == (3, set(ids[:3]))
    assert await texts(memory, who) == ["stays"]
    assert await holding(memory.database, marker) == {}
    (told,) = await news(memory, who, ITEMS_FORGOTTEN.on(who.tenant))
    assert set(ItemsForgotten.model_validate_json(told).ids) == set(ids[:3])
    found = await memory.handlers.recall(calling(who), Recall(query=marker))
    assert [item.text for item in found.items if marker in item.text] == []


@pytest.mark.req("D-143")
async def test_what_is_anothers_is_not_forgotten(memory: Memory) -> None:
    ann = someone()
    bob = someone(ann.tenant)
    (id,) = await remembered(memory, ann, RememberItem(text="ann's", external_id="x"))
    assert await memory.handlers.forget(calling(bob), Forget(ids=(id, "x"))) == Forgotten(count=0)
    assert await texts(memory, ann) == ["ann's"]


async def test_a_repeat_of_the_same_key_forgets_once_and_gives_the_first_result(memory: Memory) -> None:
    who, key = someone(), uuid4().hex
    (id,) = await remembered(memory, who, RememberItem(text="a", external_id="x"))
    first = await memory.handlers.forget(calling(who, key), Forget(ids=("x",)))
    await remembered(memory, who, RememberItem(text="a", external_id="x"))
    assert await memory.handlers.forget(calling(who, key), Forget(ids=("x",))) == first == Forgotten(count=1, ids=(id,))
    assert await texts(memory, who) == ["a"]
    with pytest.raises(KeyReused):
        await memory.handlers.forget(calling(who, key), Forget(ids=("y",)))


async def test_a_forgotten_episode_is_not_made_again_by_late_news(memory: Memory) -> None:
    who, conversation = someone(), str(uuid4())
    turn = await ended(memory, who, conversation, "the okapi")
    await memory.handlers.forget(calling(who), Forget(ids=(f"turn:{turn}",)))
    await ended(memory, who, conversation, "the okapi", turn)
    await ended(memory, who, conversation, "the zebra")
    assert await texts(memory, who) == ["User: the zebra\nAssistant: "]


async def test_an_id_with_nul_is_a_bad_request(memory: Memory) -> None:
    with pytest.raises(BadRequest) as refused:
        await memory.handlers.forget(calling(someone()), Forget(ids=("a", "a\x00b")))
    assert refused.value.field == "ids.1"


async def test_the_kept_result_of_a_write_holds_no_name_that_the_caller_gave(memory: Memory) -> None:
    who, key, marker = someone(), uuid4().hex, f"heron{uuid4().hex}"
    request = Remember(items=(RememberItem(text="a", external_id=marker),))
    first = await memory.handlers.remember(calling(who, key), request)
    assert "writes" not in await holding(memory.database, marker)
    again = await memory.handlers.remember(calling(who, key), request)
    assert again == first
    assert again.items[0].external_id == marker


async def test_a_profile_is_corrected_and_each_change_has_a_version_of_its_own(memory: Memory) -> None:
    who = someone()
    put = await memory.profiles.put(calling(who), Profile(profile={"name": "Ann", "likes": {"tea": 1, "milk": 1}}))
    patch = UpdateProfile(patch={"likes": {"milk": None}, "age": 30}, version=put.version)
    changed = await memory.profiles.update(calling(who), patch)
    assert changed.profile == {"name": "Ann", "likes": {"tea": 1}, "age": 30}
    assert changed == await memory.profiles.get(calling(who), Nothing())
    assert (changed.version or 0) > (put.version or 0)


async def test_a_change_of_a_version_that_has_passed_is_refused_and_changes_nothing(memory: Memory) -> None:
    who = someone()
    first = await memory.profiles.put(calling(who), Profile(profile={"a": 1}, version=0))
    second = await memory.profiles.update(calling(who), UpdateProfile(patch={"b": 2}, version=first.version))
    for late in (
        memory.profiles.update(calling(who), UpdateProfile(patch={"c": 3}, version=first.version)),
        memory.profiles.put(calling(who), Profile(profile={}, version=first.version)),
        memory.profiles.put(calling(who), Profile(profile={}, version=0)),
        memory.profiles.delete(calling(who), DeleteProfile(version=first.version)),
    ):
        with pytest.raises(ProfileChanged) as refused:
            await late
        assert (refused.value.status, refused.value.field) == (412, "version")
    assert await memory.profiles.get(calling(who), Nothing()) == second


async def test_of_changes_of_one_version_at_the_same_moment_one_takes_effect(memory: Memory) -> None:
    who = someone()
    changes = [memory.profiles.update(calling(who), UpdateProfile(patch={f"n{n}": n}, version=0)) for n in range(8)]
    results = await asyncio.gather(*changes, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Profile"] + ["ProfileChanged"] * 7


async def test_changes_without_a_version_at_the_same_moment_all_take_effect(memory: Memory) -> None:
    who = someone()
    await asyncio.gather(*(memory.profiles.update(calling(who), UpdateProfile(patch={f"n{n}": n})) for n in range(8)))
    assert (await memory.profiles.get(calling(who), Nothing())).profile == {f"n{n}": n for n in range(8)}


async def test_nothing_of_a_deleted_profile_is_left_in_any_table(memory: Memory) -> None:
    who, key, marker = someone(), uuid4().hex, f"heron{uuid4().hex}"
    put = await memory.profiles.put(calling(who, key), Profile(profile={marker: marker}))
    patch = UpdateProfile(patch={"b": marker})
    await memory.profiles.update(calling(who, f"{key}2"), patch)
    gone = await memory.profiles.delete(calling(who, f"{key}3"), DeleteProfile())
    assert gone == Profile(version=0)
    assert await holding(memory.database, marker) == {}
    # A repeat of an earlier key changes nothing, and no version comes twice.
    assert await memory.profiles.update(calling(who, f"{key}2"), patch) == Profile(version=0)
    assert ((await memory.profiles.put(calling(who), Profile(profile={}))).version or 0) > (put.version or 0)


async def test_a_profile_that_outgrows_its_limit_by_a_correction_stays_as_it_is(memory: Memory) -> None:
    who = someone()
    stored = await memory.profiles.put(calling(who), Profile(profile={"a": "x" * 30_000}))
    with pytest.raises(BadRequest) as refused:
        await memory.profiles.update(calling(who), UpdateProfile(patch={"b": "x" * 3_000}))
    assert (refused.value.status, refused.value.field) == (413, "patch")
    assert await memory.profiles.get(calling(who), Nothing()) == stored


async def test_episodes_are_kept_with_the_conversation_they_are_of(memory: Memory) -> None:
    who, conversation = someone(), str(uuid4())
    await ended(memory, who, conversation, "the okapi")
    found = await memory.handlers.recall(calling(who), Recall(query="okapi", kinds=(ItemKind.EPISODE,)))
    known = await rows(memory, "SELECT item_id::text, conversation_id FROM sources WHERE conversation_id = $1", conversation)
    assert known == [(found.items[0].id, conversation)]
