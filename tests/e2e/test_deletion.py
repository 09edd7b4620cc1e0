"""A deleted conversation leaves nothing: no row, no node, no object, in no service."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.commands import command
from tests.support.bus import eventually
from tests.support.documents import pdf
from tests.support.freezing import frozen
from tests.support.people import Person
from tests.support.remains import remains
from tests.support.stack import RunningStack

pytestmark = pytest.mark.timeout(180)

CONVERSATIONS = "/api/v1/conversations"


async def deleted(person: Person, conversation: str) -> dict[str, Any]:
    """Delete a conversation, and return what is told once that is complete."""
    answer = await person.http.delete(f"{CONVERSATIONS}/{conversation}")
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()

    async def complete() -> bool:
        found.update((await person.http.get(answer.headers["location"])).json())
        return bool(found["state"] == "complete")

    await eventually(complete, within=90)
    return found


async def clean(stack: RunningStack, marker: str, person: Person) -> None:
    """Return when nothing is left of `marker`; fail with what is when that takes too long."""
    left: dict[str, int] = {}
    for _ in range(40):
        left = await remains(stack, marker, person.tenant)
        if not left:
            return
        await asyncio.sleep(0.25)
    assert left == {}


async def learnt(person: Person, query: str, count: int) -> None:
    """Return when memory has kept this many turns about `query`."""

    async def kept() -> bool:
        answer = await person.tool("recall", {"query": query, "kinds": ["episode"]})
        return len(answer.json()["items"]) >= count

    await eventually(kept, within=60)


async def test_nothing_is_left_of_a_deleted_conversation_in_any_store(stack: RunningStack, somebody: Person) -> None:
    marker = f"kingfisher{uuid4().hex[:12]}"
    page = [[f"The {marker} station was built in 1931 by the water board."]]
    media = await somebody.uploaded("notes.pdf", pdf(page))
    shared = await somebody.uploaded("kept.pdf", pdf([["The okapi lives in the forest of Ituri."]]))
    first = await somebody.reply(f"When was the {marker} station built?", media=[media, shared])
    conversation = first["conversation_id"]
    await somebody.reply(f"And who built the {marker} station?", conversation)
    kept = await somebody.reply("Where does the okapi live?", media=[shared])
    item = {"text": f"The {marker} is blue.", "title": marker, "kind": "concept", "external_id": marker}
    stored = await somebody.tool("remember", {"items": [item | {"sources": [conversation]}]})
    assert stored.status_code == 200, stored.text
    await learnt(somebody, marker, 2)
    before = await remains(stack, marker, somebody.tenant)
    assert {"orchestrator.messages", "orchestrator.turns", "memory.items", "media"} <= set(before)

    deletion = await deleted(somebody, conversation)
    await clean(stack, marker, somebody)
    removed = deletion["removed"]
    assert (removed["orchestrator"]["messages"], removed["orchestrator"]["turns"]) == (4, 2)
    assert (removed["memory"]["items"], removed["media"]["media"]) == (5, 1)  # two of them passages of the documents
    assert (await somebody.http.get(f"/api/v1/media/{media}")).status_code == 404
    assert (await somebody.http.get(f"/api/v1/media/{shared}")).status_code == 200
    listed = (await somebody.http.get(CONVERSATIONS)).json()["conversations"]
    assert [one["conversation_id"] for one in listed] == [kept["conversation_id"]]
    assert (await somebody.submit("Still there?", conversation)).status_code == 404


@pytest.mark.verify
@pytest.mark.stores
async def test_a_turn_that_runs_while_its_conversation_is_deleted_leaves_nothing(stack: RunningStack, somebody: Person) -> None:
    marker = f"kingfisher{uuid4().hex[:12]}"
    conversation = (await somebody.reply(f"Tell me of the {marker}."))["conversation_id"]
    with frozen(stack.process("memory")):
        running, waiting = [
            (await somebody.accepted(f"What do you know of the {marker}?", conversation))["turn_id"] for _ in range(2)
        ]

        async def claimed() -> bool:
            return bool((await somebody.turn(running))["status"] == "running")

        await eventually(claimed)
        answers = await asyncio.gather(*(somebody.http.delete(f"{CONVERSATIONS}/{conversation}") for _ in range(3)))
        assert len({answer.json()["deletion_id"] for answer in answers}) == 1
        assert answers[0].json()["state"] == "pending"
        for turn in (running, waiting):
            assert (await somebody.http.get(f"/api/v1/turns/{turn}")).status_code == 404
    await deleted(somebody, conversation)
    await clean(stack, marker, somebody)


@pytest.mark.verify
@pytest.mark.stores
async def test_nothing_is_left_of_a_deleted_profile(stack: RunningStack, somebody: Person) -> None:
    marker = f"kingfisher{uuid4().hex[:12]}"
    profile = "/api/v1/profile"
    await somebody.http.put(profile, json={"profile": {"bird": marker, "name": "Ann"}})
    patched = await somebody.http.patch(profile, json={"profile": {"name": "Berit"}})
    assert patched.json()["profile"] == {"bird": marker, "name": "Berit"}
    await somebody.http.delete(profile)
    await clean(stack, marker, somebody)


@pytest.mark.verify
async def test_the_command_deletes_and_waits(stack: RunningStack) -> None:
    marker = f"kingfisher{uuid4().hex[:12]}"
    code, out, err = await command(stack, "remember", f"The {marker} is blue.", "--external-id", marker)
    assert code == 0, err
    code, out, err = await command(stack, "forget", marker, "--yes")
    assert (code, err.strip()) == (0, "1 forgotten")
    code, out, err = await command(stack, "ask", f"What is the {marker}?", "--json")
    assert code == 0, err
    conversation = json.loads(out)["conversation_id"]
    code, out, err = await command(stack, "conversations", "delete", conversation, "--wait", "--yes", "--json")
    assert (code, json.loads(out)["state"]) == (0, "complete"), err
    code, _, err = await command(stack, "conversations", "show", conversation)
    assert (code, "not_found" in err) == (3, True)
