"""The dialogue agent's turns as a whole: every medium by its own tool, every door to the one agent, and what a turn leaves."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support import pictures
from tests.support.bus import eventually
from tests.support.documents import pdf
from tests.support.people import Person, Town
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.any_store, pytest.mark.timeout(300)]

VOICE = Path(__file__).resolve().parents[2] / "examples" / "portfolio_voice.ogg"
READERS = ("vision.caption", "audio.transcribe", "document.extract_text")
FILES = {
    "vision.caption": ("quay.png", "image/png", "Harbour dues rise in May"),
    "audio.transcribe": ("voice.ogg", "audio/ogg", "geological disposal facility begins in September"),
    "document.extract_text": ("quay.pdf", "application/pdf", "The quay at Ramsvik is closed in winter."),
}
"""For each tool a file that it reads: its name, its type, and words in it."""


async def _spans(person: Person, turn: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await person.http.get(f"/api/v1/turns/{turn}/trace")).json()["spans"]
    return found


def _count(spans: list[dict[str, Any]], *names: str) -> dict[str, int]:
    held = Counter(span["name"] for span in spans)
    return {name: held[name] for name in names}


async def _runs(person: Person, turn: str) -> int:
    """How often the agent was run for a turn; the span of a run ends a moment after the turn."""
    run = "invoke_agent dialogue"

    async def ended() -> bool:
        return _count(await _spans(person, turn), run)[run] > 0

    await eventually(ended)
    return _count(await _spans(person, turn), run)[run]


def _content(tool: str) -> bytes:
    words = FILES[tool][2]
    match tool:
        case "vision.caption":
            return pictures.encoded(pictures.drawn([words]))
        case "audio.transcribe":
            return VOICE.read_bytes()
        case _:
            return pdf([[words]])


@pytest.mark.verify
@pytest.mark.req("D-159", "D-004", "D-021", "D-026", "D-027")
@pytest.mark.parametrize("tool", READERS)
async def test_a_medium_with_words_and_without_is_read_once_by_its_own_tool(somebody: Person, tool: str) -> None:
    name, type, words = FILES[tool]
    medium = await somebody.uploaded(name, _content(tool), type)
    for text in ("What does this tell?", ""):
        reply = await somebody.reply(text, media=[medium])
        spans = await _spans(somebody, reply["turn_id"])
        served = [f"serve media.v1.{reader}" for reader in READERS]
        assert _count(spans, *served) == dict.fromkeys(served, 0) | {f"serve media.v1.{tool}": 1}
        asked = (await somebody.messages(reply["conversation_id"]))[0]
        assert (asked["text"], asked["attached"]) == (text, [name])
        [source] = [one for one in reply["sources"] if one["id"] == medium]
        assert words in " ".join(source["snippet"].split())
        assert reply["degraded"] == []


@pytest.mark.req("D-011", "D-013")
async def test_every_door_leads_to_one_run_of_the_agent(stack: RunningStack, somebody: Person) -> None:
    url = stack.data.url.read_text().strip()
    waited = (await somebody.reply("Hello!"))["turn_id"]
    handed = (await somebody.accepted("Hello!"))["turn_id"]
    await somebody.ended(handed)
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {somebody.key}"}, timeout=60)
    async with http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as mcp:
        tools = {tool.name: set(tool.input_schema["properties"]) for tool in (await mcp.list_tools()).tools}
        asked = (await mcp.call_tool("ask", {"message": "Hello!"})).structured_content["turn_id"]
    assert {turn["turn_id"] for turn in await somebody.turns()} == {waited, handed, asked}
    for turn in (waited, handed, asked):
        assert await _runs(somebody, turn) == 1
    # No other door takes a message of a conversation.
    paths = (await somebody.http.get("/openapi.json")).json()["paths"]
    taking = {path for path, item in paths.items() if "MessageGiven" in json.dumps(item.get("post", {}).get("requestBody", {}))}
    assert taking == {"/api/v1/conversations/messages", "/api/v1/turns"}
    assert {name for name, given in tools.items() if "message" in given} == {"ask"}


@pytest.mark.verify
@pytest.mark.req("D-065")
async def test_the_decision_is_logged_with_the_trace_and_the_turn(stack: RunningStack, somebody: Person) -> None:
    wanted = {}
    for text, decision in (("Hello!", "respond_directly"), ("Who built the pier at Hamnes?", "query_memory")):
        turn = (await somebody.reply(text))["turn_id"]
        trace = (await somebody.http.get(f"/api/v1/turns/{turn}/trace")).json()["trace_id"]
        wanted[turn] = (trace, f"the router decided: {decision}")
    lines = (await asyncio.to_thread(stack.data.log("orchestrator").read_text)).splitlines()
    told = [json.loads(line) for line in lines if "the router decided" in line]
    assert {line["turn_id"]: (line["trace_id"], line["event"]) for line in told if line["turn_id"] in wanted} == wanted


@pytest.mark.req("D-132")
async def test_the_news_of_an_ended_turn_becomes_an_episode(everybody: Town) -> None:
    somebody = await everybody.someone()
    reply = await somebody.reply("My boat lies at the jetty of Gullholmen.")
    end = monotonic() + 20
    asked = {"query": "jetty of Gullholmen", "kinds": ["episode"]}
    while not (found := (await somebody.tool("recall", asked)).json()["items"]):
        assert monotonic() < end, "no episode was recorded"
        await asyncio.sleep(0.1)
    told = f"User: My boat lies at the jetty of Gullholmen.\nAssistant: {reply['user_response']}"
    assert [(item["external_id"], item["text"]) for item in found] == [(f"turn:{reply['turn_id']}", told)]
