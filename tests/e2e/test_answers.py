"""Questions and their answers: from the portfolio, from the conversation, from a document; by HTTP, by command and by bus."""

from __future__ import annotations

import json
import re
from uuid import uuid4

import pytest

from phronesis_bus import BusSettings, connect, tell
from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import TURN, SubmitTurn, turn_id
from phronesis_local.keys import password_file, signing_key_file
from tests.support.bus import eventually
from tests.support.documents import pdf
from tests.support.people import Person, Town
from tests.support.sample_portfolio import PROGRAMME, programme
from tests.support.stack import RunningStack

from .commands import command

pytestmark = [pytest.mark.any_store, pytest.mark.timeout(300)]

QUESTION = "What is the Geological Disposal Facility programme for?"
BROKEN = b"%PDF-1.4\n" + b"this is no page of anything\n" * 20
"""It looks like a PDF, and no reader can read it."""


def words(text: str) -> set[str]:
    """The longer words of a text."""
    return set(re.findall(r"[a-z]{5,}", text.lower()))


@pytest.mark.usefixtures("portfolio")
async def test_the_command_answers_from_the_project_in_json_alone(stack: RunningStack) -> None:
    code, out, err = await command(stack, "ask", "--json", QUESTION)
    assert code == 0, err
    reply = json.loads(out)
    assert reply["sources"][0]["title"] == PROGRAMME
    assert reply["reasoner"] == "extractive"
    assert reply["degraded"] == []
    told = words(str(programme().properties["aims"])) - words(QUESTION) - words(PROGRAMME)
    assert len(words(reply["user_response"]) & told) >= 5


@pytest.mark.req("D-012", "D-018")
@pytest.mark.usefixtures("portfolio")
async def test_a_follow_up_is_about_the_same_project(everybody: Town) -> None:
    owner = everybody.owner
    first = await owner.reply(QUESTION)
    question = "And how was its delivery confidence rated?"
    second = await owner.reply(question, first["conversation_id"])
    assert second["conversation_id"] == first["conversation_id"]
    assert second["sources"][0]["title"] == PROGRAMME
    assert f"**{programme().properties['rating']}**" in second["user_response"]


@pytest.mark.req("D-010", "D-113", "D-114", "D-130", "X-C09")
async def test_a_reply_is_one_document_and_what_the_conversation_keeps(somebody: Person) -> None:
    reply = await somebody.reply("Hello there!")
    assert set(reply) == {
        *("conversation_id", "turn_id", "user_response", "next_agent_directive"),
        *("reasoner", "degraded", "sources", "usage", "analysis", "tool_calls"),
    }
    kept = await somebody.messages(reply["conversation_id"])
    assert [(one["role"], one["text"], one["turn_id"]) for one in kept] == [
        ("user", "Hello there!", reply["turn_id"]),
        ("assistant", reply["user_response"], reply["turn_id"]),
    ]
    assert (await somebody.turn(reply["turn_id"]))["reply"] == reply


@pytest.mark.req("D-014", "D-016")
async def test_a_turn_with_a_document_is_answered_from_it(somebody: Person) -> None:
    pages = [["Review of the lighthouse at Skarvholm."], ["The lantern room of Skarvholm is to be rebuilt in October 2031."]]
    media = await somebody.uploaded("lighthouse.pdf", pdf(pages))
    reply = await somebody.reply("According to the attached note, when is the lantern room rebuilt?", media=[media])
    assert "October 2031" in reply["user_response"]
    assert reply["sources"][0] | {"score": 1, "snippet": ""} == {
        "id": media,
        "type": "document",
        "title": "lighthouse.pdf, page 2",
        "score": 1,
        "snippet": "",
    }
    assert reply["degraded"] == []


@pytest.mark.req("D-014")
async def test_a_turn_of_a_document_alone_is_answered_from_it(somebody: Person) -> None:
    media = await somebody.uploaded("bridge.pdf", pdf([["The bridge at Tverrfoss carries forty lorries a day in winter."]]))
    reply = await somebody.reply("", media=[media])
    assert "forty lorries" in reply["user_response"]
    assert reply["sources"][0]["title"] == "bridge.pdf, page 1"


@pytest.mark.req("D-033")
async def test_an_attachment_that_cannot_be_read_leaves_a_note(somebody: Person) -> None:
    media = await somebody.uploaded("broken.pdf", BROKEN)
    reply = await somebody.reply("What does the attached file say about the harbour dues?", media=[media])
    assert reply["degraded"] == ["media"]
    assert media in reply["user_response"] or "could not be read" in reply["user_response"]
    assert [one for one in reply["sources"] if one["type"] == "document"] == []


@pytest.mark.req("D-033")
async def test_a_turn_of_nothing_but_what_cannot_be_read_is_an_error(somebody: Person) -> None:
    media = await somebody.uploaded("broken.pdf", BROKEN)
    answer = await somebody.say("", media=[media])
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media")
    assert answer.json()["field"] == "currentMessageMedia"
    assert (await somebody.turn(answer.json()["turn_id"]))["status"] == "failed"


async def test_a_turn_that_came_by_the_bus_is_read_by_http(stack: RunningStack, somebody: Person) -> None:
    settings = BusSettings(
        url=f"nats://127.0.0.1:{stack.part('nats').port}",
        password_file=password_file(stack.data, "gateway"),
        signing_key_file=signing_key_file(stack.data, "gateway"),
        trust_dir=stack.data.trust,
    )
    who = Principal(tenant=somebody.tenant, user=somebody.user, key=somebody.key_id)
    key = uuid4().hex
    async with connect("gateway", settings) as bus:
        for _ in range(2):  # a message that comes twice is one turn
            await tell(bus, who, TURN, SubmitTurn(idempotency_key=key, text="Hello from the bus!"))

        async def is_there() -> bool:
            return bool(await somebody.turns())

        await eventually(is_there, within=20)
    id = turn_id(who.tenant, who.user, key)
    assert (await somebody.ended(id))["status"] == "completed"
    assert [one["turn_id"] for one in await somebody.turns()] == [id]
