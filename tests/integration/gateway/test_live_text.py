"""Provisional text at the gateway: passed on as it comes, taken back, and in the end the committed reply."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
from openai import AsyncOpenAI

from tests.integration.gateway.test_events import TURNS, Seen, watching
from tests.support.gateway import Holder, RunningGateway
from tests.support.scripted_orchestrator import ScriptedOrchestrator


@pytest.fixture(autouse=True)
def restored(orchestrator: ScriptedOrchestrator) -> Iterator[None]:
    """Others use the same orchestrator after these tests."""
    before = orchestrator.reply
    yield
    orchestrator.reply = before


@pytest.fixture
async def turn(api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator) -> str:
    """A turn of ann's that waits for its end."""
    text = f"shown {uuid4()}"
    orchestrator.slow.add(text)
    answer = await api.http.post(TURNS, json={"currentMessageText": text}, headers=ann.headers)
    id: str = answer.json()["turn_id"]
    return id


def told(events: list[Seen]) -> list[tuple[str, str]]:
    """The events about text, in short."""
    return [(one.kind, str(one.data.get("text", ""))) for one in events if one.kind in ("live", "restart", "text")]


async def test_pieces_come_before_the_end_and_the_reply_takes_their_place(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    orchestrator.reply = lambda said: "Hello there."
    async with watching(api, turn, ann.headers) as reader:
        await orchestrator.live(turn, "Hello ", 0)
        await orchestrator.live(turn, "there", 6)
        while (seen := await reader.next()) is not None and seen.kind != "live":
            continue
        assert seen is not None
        assert {name: seen.data[name] for name in ("attempt", "offset", "text")} == {
            "attempt": 1,
            "offset": 0,
            "text": "Hello ",
        }
        await orchestrator.end(turn)
        assert told(await reader.rest()) == [("live", "there"), ("text", "Hello there.")]


async def test_another_reply_than_the_one_shown_is_told_by_a_restart(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    """A worker that died left text behind, and the one that took over ended the turn without showing any."""
    orchestrator.reply = lambda said: "The committed reply."
    async with watching(api, turn, ann.headers) as reader:
        await orchestrator.live(turn, "Something else", 0)
        await orchestrator.end(turn)
        assert told(await reader.rest()) == [("live", "Something else"), ("restart", ""), ("text", "The committed reply.")]


async def test_a_new_attempt_takes_back_what_the_one_before_showed(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    orchestrator.reply = lambda said: "New."
    async with watching(api, turn, ann.headers) as reader:
        await orchestrator.live(turn, "Old", 0)
        await orchestrator.live(turn, "New", 0, attempt=2)
        await orchestrator.live(turn, "er", 3)  # the first worker was only asleep
        await orchestrator.end(turn)
        assert told(await reader.rest()) == [("live", "Old"), ("restart", ""), ("live", "New"), ("text", "New.")]


async def test_who_comes_back_gets_the_pieces_that_it_missed(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    orchestrator.reply = lambda said: "One, two."
    async with watching(api, turn, ann.headers) as reader:
        await orchestrator.live(turn, "One, ", 0)
        while (seen := await reader.next()) is not None and seen.kind != "live":
            continue
    assert seen is not None
    await orchestrator.live(turn, "two.", 5)
    await orchestrator.end(turn)
    async with watching(api, turn, ann.headers, last=seen.id) as reader:
        assert told(await reader.rest()) == [("live", "two."), ("text", "One, two.")]


@pytest.fixture
async def sdk(api: RunningGateway, ann: Holder) -> AsyncIterator[AsyncOpenAI]:
    """OpenAI's SDK with Ann's key."""
    async with AsyncOpenAI(base_url=f"{api.http.base_url}/v1", api_key=ann.secret, max_retries=0) as client:
        yield client


@pytest.mark.parametrize(
    ("pieces", "reply", "contents"),
    [
        (["Hello ", "there"], "Hello there.", ["Hello ", "there", "."]),
        (["Hello there."], "Hello there.", ["Hello there."]),
        (["Wrong"], "Right.", ["Wrong", "\n\n---\n\n", "Right."]),
        ([], "Right.", ["Right."]),
    ],
    ids=["goes on", "whole", "another", "nothing shown"],
)
async def test_a_chat_completion_streams_as_it_is_written(
    sdk: AsyncOpenAI,
    orchestrator: ScriptedOrchestrator,
    pieces: list[str],
    reply: str,
    contents: list[str],
) -> None:
    text = f"streamed {uuid4()}"
    orchestrator.slow.add(text)
    orchestrator.reply = lambda said: reply
    stream = await sdk.chat.completions.create(model="dialogue", messages=[{"role": "user", "content": text}], stream=True)
    turn = await orchestrator.arrived(text=text)
    found: list[str] = []
    restarts = 0
    offset = 0
    async for chunk in stream:
        assert chunk.choices
        delta = chunk.choices[0].delta
        if delta.role == "assistant":
            if not pieces:
                await orchestrator.end(turn)
        elif delta.content:
            found.append(delta.content)
            restarts += bool((chunk.model_extra or {}).get("phronesis", {}).get("restart"))
        if len(found) < len(pieces) and offset == sum(map(len, found)):
            await orchestrator.live(turn, pieces[len(found)], offset)
            offset += len(pieces[len(found)])
        elif pieces and found == pieces:
            await orchestrator.end(turn)
    assert (found, restarts) == (contents, int(len(contents) == 3 and contents[0] == "Wrong"))
