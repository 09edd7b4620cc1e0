"""What `phronesis trace` shows: each service that a turn went through, with its messages."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.documents import pdf
from tests.support.people import Person, Town
from tests.support.stack import RunningStack

from .commands import command, restarted

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]


async def spans(person: Person, turn: str, wanted: set[str]) -> set[tuple[str, str]]:
    """Service and name of every span of a turn, once those that are wanted are there: followers come after the end."""
    found: set[tuple[str, str]] = set()
    for _ in range(100):
        trace = (await person.http.get(f"/api/v1/turns/{turn}/trace")).json()
        assert trace["missing"] == []
        found = {(span["service"], span["name"]) for span in trace["spans"]}
        if wanted <= {service for service, _ in found}:
            break
        await asyncio.sleep(0.1)
    return found


async def test_a_question_goes_through_the_graph_and_a_document_through_media(everybody: Town, somebody: Person) -> None:
    await somebody.remember("Marsh Railway", "The Marsh Railway carries peat from Ulvmyr to the coast.")
    media = await somebody.uploaded("note.pdf", pdf([["The Marsh Railway closes every April for repairs."]]))
    turn = (await somebody.reply("What does the Marsh Railway bring from Ulvmyr?", media=[media]))["turn_id"]
    found = await spans(somebody, turn, {"gateway", "orchestrator", "memory", "graph", "media"})
    assert {
        ("gateway", "POST /api/v1/conversations/messages"),
        ("gateway", "tell orchestrator.v1.turn"),
        ("orchestrator", "take orchestrator.v1.turn"),
        ("memory", "serve memory.v1.retrieve"),
        ("graph", "serve graph.v1.expand"),
        ("media", "serve media.v1.document.extract_text"),
    } <= found


async def test_a_first_turn_after_a_start_asks_for_the_instructions(stack: RunningStack, everybody: Town) -> None:
    # The profile is kept for a minute by an orchestrator; a new one has to ask.
    await restarted(stack, everybody, "orchestrator")
    somebody = await everybody.someone()
    turn = (await somebody.reply("Hello again!"))["turn_id"]
    assert ("instructions", "serve instructions.v1.agent.get") in await spans(somebody, turn, {"instructions"})


async def test_the_command_prints_the_tree(stack: RunningStack, everybody: Town) -> None:
    reply = await everybody.owner.reply("Hello, tree!")
    code, out, err = await command(stack, "trace", reply["turn_id"])
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].startswith(f"turn {reply['turn_id']}  trace ")
    assert "POST /api/v1/conversations/messages" in lines[1]
    assert any("orchestrator" in line and "phase IV answer" in line for line in lines)
