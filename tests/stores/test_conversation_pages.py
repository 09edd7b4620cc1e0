"""Conversations read by pages and found by words, on a real Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import Conversation, ConversationPage, ConversationRef, ListConversations
from phronesis_orchestrator.conversations import store
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.turns.store import PostgresTurns
from phronesis_postgres import Database
from tests.stores.test_turns import claimed, completed, new
from tests.support.servers import PostgresServer

ANN = Principal(tenant="acme", user="ann")


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


async def talked(database: Database, *texts: str, who: Principal = ANN) -> str:
    """A conversation in which each of these texts was answered by `answer to` and the text."""
    turns, conversation = PostgresTurns(database), None
    for text in texts:
        conversation = (await turns.accept(new(who, conversation, text=text), 100)).conversation_id
        claim = await claimed(turns)
        await turns.end(claim, completed(claim))
    assert conversation is not None
    return conversation


async def read(database: Database, conversation: str, **more: Any) -> Conversation:
    return await PostgresConversations(database).get(ANN, ConversationRef(conversation_id=conversation, **more))


async def page(database: Database, text: str, who: Principal = ANN, **more: Any) -> ConversationPage:
    return await PostgresConversations(database).page(who, ListConversations(text=text, **more))


async def found(database: Database, text: str, who: Principal = ANN) -> list[str]:
    return [one.title for one in (await page(database, text, who)).conversations]


def said(part: Conversation) -> list[str]:
    return [message.text for message in part.messages]


async def test_a_page_brings_the_turns_of_its_messages_and_says_whether_there_are_earlier_ones(database: Database) -> None:
    conversation = await talked(database, "one", "two", "three")
    newest = await read(database, conversation, limit=4, turns=True)
    assert (said(newest), newest.more) == (["two", "answer to two", "three", "answer to three"], True)
    assert [turn.reply and turn.reply.user_response for turn in newest.turns] == ["answer to two", "answer to three"]
    first = await read(database, conversation, limit=4, turns=True, before=newest.messages[0].seq)
    assert (said(first), first.more, len(first.turns)) == (["one", "answer to one"], False, 1)
    assert (await read(database, conversation)).turns == ()


async def test_a_page_holds_no_more_than_one_answer_has_room_for(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = await talked(database, "one", "x" * 1000)
    monkeypatch.setattr(store, "_MESSAGE_BYTES", 1_300)
    monkeypatch.setattr(store, "_ANSWER_BYTES", 1_400)
    part = await read(database, conversation, turns=True)
    assert (said(part), part.more, part.turns) == (["answer to " + "x" * 1000], True, ())


async def test_a_conversation_is_found_by_the_words_of_one_message_and_shows_what_stands_around_them(
    database: Database,
) -> None:
    await talked(database, "Where is the blue boat?")
    await talked(database, "Is 100% enough?", "A boat, maybe")
    await talked(database, "Where is the blue boat?", who=Principal(tenant="acme", user="bo"))
    assert await found(database, "BOAT") == ["Is 100% enough?", "Where is the blue boat?"]
    assert await found(database, "boat blue") == ["Where is the blue boat?"]
    assert await found(database, "0%") == ["Is 100% enough?"]
    assert await found(database, "enough maybe") == []
    (one,) = (await page(database, "blue")).conversations
    assert one.excerpt == "answer to Where is the blue boat?"


async def test_a_search_looks_through_a_bounded_number_of_conversations_and_goes_on_behind_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOOKED", 2)
    for number in range(5):
        await talked(database, f"{'home' if number == 0 else 'work'} {number}")
    titles, cursor, pages = [], None, 0
    while True:
        part = await page(database, "home", cursor=cursor)
        titles += [one.title for one in part.conversations]
        cursor, pages = part.next, pages + 1
        if cursor is None:
            break
    assert (titles, pages) == (["home 0"], 3)
