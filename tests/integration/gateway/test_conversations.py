"""Conversations over HTTP: listed, read, deleted."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.gateway import Holder, RunningGateway
from tests.support.scripted_orchestrator import ScriptedOrchestrator

CONVERSATIONS, DELETIONS, TURNS = "/api/v1/conversations", "/api/v1/deletions", "/api/v1/turns"
MESSAGES = f"{CONVERSATIONS}/messages"


async def talk(api: RunningGateway, who: Holder, text: str = "hello") -> str:
    answer = await api.http.post(MESSAGES, json={"currentMessageText": text}, headers=who.headers)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["conversation_id"])


async def get(api: RunningGateway, who: Holder, path: str, **params: Any) -> httpx.Response:
    return await api.http.get(path, params=params, headers=who.headers)


async def test_conversations_are_listed_page_by_page(api: RunningGateway, ann: Holder) -> None:
    ids = [await talk(api, ann) for _ in range(3)]
    first = (await get(api, ann, CONVERSATIONS, limit=2)).json()
    last = (await get(api, ann, CONVERSATIONS, limit=2, cursor=first["next"])).json()
    assert [one["conversation_id"] for one in [*first["conversations"], *last["conversations"]]] == ids[::-1]
    assert last["next"] is None


@pytest.mark.parametrize(
    ("params", "field"),
    [
        *(({"limit": limit}, "limit") for limit in ("0", "101", "-1", "1000000000", "NaN", "1e3", "")),
        ({"cursor": "no-cursor"}, "cursor"),
        ({"cursor": "x" * 201}, "cursor"),
    ],
)
async def test_a_limit_or_cursor_that_is_none_is_a_400_that_names_it(
    api: RunningGateway, ann: Holder, params: dict[str, str], field: str
) -> None:
    answer = await get(api, ann, CONVERSATIONS, **params)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_a_deletion_is_accepted_with_its_place_and_a_second_one_is_the_same(api: RunningGateway, ann: Holder) -> None:
    id = await talk(api, ann)
    first = await api.http.delete(f"{CONVERSATIONS}/{id}", headers=ann.headers)
    again = await api.http.delete(f"{CONVERSATIONS}/{id}", headers=ann.headers)
    assert (first.status_code, first.json()["conversation_id"]) == (202, id)
    assert first.headers["location"] == f"{DELETIONS}/{first.json()['deletion_id']}"
    assert (again.status_code, again.json()) == (202, first.json())
    assert (await get(api, ann, first.headers["location"])).json()["state"] == "complete"
    assert (await get(api, ann, f"{CONVERSATIONS}/{id}")).status_code == 404


@pytest.mark.req("D-143")
async def test_what_is_anothers_is_as_unknown_as_what_is_not_there(api: RunningGateway, ann: Holder) -> None:
    bob = await api.holder(tenant=ann.who.tenant)
    id = await talk(api, ann)
    answers = [await api.http.delete(f"{CONVERSATIONS}/{one}", headers=bob.headers) for one in (id, uuid4(), "messages-")]
    assert [answer.status_code for answer in answers] == [404] * 3
    deletion = (await api.http.delete(f"{CONVERSATIONS}/{id}", headers=ann.headers)).json()["deletion_id"]
    assert (await get(api, bob, f"{DELETIONS}/{deletion}")).status_code == 404
    assert (await get(api, bob, CONVERSATIONS)).json()["conversations"] == []


async def test_the_messages_route_is_no_conversation(api: RunningGateway, ann: Holder) -> None:
    for answer in (await get(api, ann, MESSAGES), await api.http.delete(MESSAGES, headers=ann.headers)):
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_whoever_waits_for_a_reply_hears_that_its_conversation_is_gone(
    api: RunningGateway, orchestrator: ScriptedOrchestrator, ann: Holder
) -> None:
    text = f"slow {uuid4()}"
    orchestrator.slow.add(text)
    waiting = asyncio.create_task(api.http.post(MESSAGES, json={"currentMessageText": text}, headers=ann.headers))
    turn = await orchestrator.arrived(text=text)
    # The row is there once the turn is told of.
    async with asyncio.timeout(5):
        while (state := await get(api, ann, f"{TURNS}/{turn}")).status_code != 200:
            pass
    watching = api.http.stream("GET", f"{TURNS}/{turn}/events", headers=ann.headers)
    async with watching as events:
        await api.http.delete(f"{CONVERSATIONS}/{state.json()['conversation_id']}", headers=ann.headers)
        async with asyncio.timeout(10):
            lines = [line async for line in events.aiter_lines()]
    assert "event: done" not in lines
    assert (await waiting).status_code == 404
    assert (await get(api, ann, f"{TURNS}/{turn}/events")).status_code == 404
