"""A turn that meets a service which does not answer waits for it, on a real broker and a real Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest

from phronesis_bus import Bus, Call, ask, serve
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.media import EXTRACT_TEXT, ExtractedText, MediaKind, TextRef
from phronesis_contracts.orchestrator import (
    CONVERSATION_GET,
    TURN_CANCEL,
    ConversationRef,
    TurnProgress,
    TurnRef,
    TurnStatus,
)
from phronesis_postgres import EVERY_TENANT, Database
from tests.support.servers import NatsServer, PostgresServer

from .test_orchestrator import Front, HeldReasoner, neighbours, opened, someone

QUICK = {"retry_first": 0.05, "retry_longest": 0.2}


async def return_texts(shelf: Bus) -> None:
    """Let the media service give the texts of attachments."""

    async def text(call: Call, request: TextRef) -> ExtractedText:
        about = {"kind": MediaKind.DOCUMENT, "type": "text/plain", "engine": "text", "name": "a.txt"}
        return ExtractedText(media_id="m", text="Phoenix moves the archive.", **about)

    await serve(shelf, EXTRACT_TEXT, text)


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
async def shelf(nats_server: NatsServer) -> AsyncIterator[Bus]:
    async with neighbours(nats_server) as shelf:
        yield shelf


def front(nats: NatsServer, database: Database, **settings: Any) -> AbstractAsyncContextManager[Front]:
    """One whose turns are tried again soon."""
    return opened(nats, database, HeldReasoner(), **QUICK, **settings)


async def seen_waiting(front: Front, turn: str) -> TurnProgress:
    """The first line that says what a turn waits for."""
    while (line := await front.line(turn, "phase")).phase != "waiting_for":
        pass
    return line


async def found_waiting(front: Front, who: Principal, turn: str) -> str:
    """What a turn's row says that it waits for."""
    async with asyncio.timeout(10):
        while True:
            with suppress(NotFound):  # not accepted yet
                if (found := await front.turn(who, turn)).waiting_for is not None:
                    return found.waiting_for


async def test_a_turn_waits_for_a_service_that_is_away_and_is_answered_when_it_is_back(
    nats_server: NatsServer, database: Database, shelf: Bus
) -> None:
    async with front(nats_server, database) as client:
        who = someone()
        id = await client.submit(who, "", media=("m",))
        line = await seen_waiting(client, id)
        assert (line.detail["waiting_for"], line.detail["code"]) == ("media", "unavailable")
        assert await found_waiting(client, who, id) == "media"
        await return_texts(shelf)
        turn = await client.ended(who, id)
    assert (turn.status, turn.waiting_for) == (TurnStatus.COMPLETED, None)


async def test_a_turn_that_waits_longer_than_five_claims_is_not_parked(
    nats_server: NatsServer, database: Database, shelf: Bus
) -> None:
    async with front(nats_server, database) as client:
        who = someone()
        id = await client.submit(who, "", media=("m",))
        while (await seen_waiting(client, id)).detail["tries"] < 7:
            pass
        await return_texts(shelf)
        turn = await client.ended(who, id)
    assert (turn.status, turn.attempts > 6) == (TurnStatus.COMPLETED, True)


async def test_a_turn_that_waits_in_vain_ends_with_what_it_waited_for(
    nats_server: NatsServer, database: Database, shelf: Bus
) -> None:
    async with front(nats_server, database, expiry=1.5) as client:
        who = someone()
        turn = await client.ended(who, await client.submit(who, "", media=("m",)))
    assert turn.problem is not None
    assert (turn.status, turn.problem.code, turn.problem.waiting_for) == (TurnStatus.FAILED, "expired_waiting", "media")


async def test_a_turn_that_waits_can_be_cancelled_and_stays_so(nats_server: NatsServer, database: Database, shelf: Bus) -> None:
    async with front(nats_server, database) as client:
        who = someone()
        id = await client.submit(who, "", media=("m",))
        await found_waiting(client, who, id)
        await ask(client.bus, who, TURN_CANCEL, TurnRef(turn_id=id))
        await return_texts(shelf)
        await client.ended(who, await client.submit(who, "later"))
        assert (await client.turn(who, id)).status is TurnStatus.CANCELLED


async def test_later_turns_of_the_conversation_wait_in_order_and_other_conversations_do_not(
    nats_server: NatsServer, database: Database, shelf: Bus
) -> None:
    async with front(nats_server, database) as client:
        who = someone()
        first = await client.submit(who, "", media=("m",))
        conversation = str((await client.line(first, "accepted")).conversation_id)
        second = await client.submit(who, "second", conversation)
        await found_waiting(client, who, first)
        await client.ended(who, await client.submit(who, "elsewhere"))
        assert (await client.turn(who, second)).status is TurnStatus.QUEUED
        await return_texts(shelf)
        await client.ended(who, second)
        found = await ask(client.bus, who, CONVERSATION_GET, ConversationRef(conversation_id=conversation))
    assert [m.text for m in found.messages if m.role == "user"] == ["", "second"]


async def test_a_turn_that_waits_takes_no_slot(nats_server: NatsServer, database: Database, shelf: Bus) -> None:
    async with front(nats_server, database, slots=1) as client:
        who = someone()
        waiting = [await client.submit(who, "", media=("m",)) for _ in range(5)]
        for id in waiting:
            await found_waiting(client, who, id)
        turn = await client.ended(who, await client.submit(who, "hello"))
        async with database.connection(EVERY_TENANT) as connection:
            parked = await connection.fetchval("SELECT count(*) FROM turns WHERE status = 'parked'")
    assert (turn.status, parked) == (TurnStatus.COMPLETED, 0)
