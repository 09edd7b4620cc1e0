"""Real turns with the small model that `phronesis up --model local` serves: every one ends with a reply."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from phronesis_local import model
from phronesis_local.parts import SERVICES
from tests.support.bus import eventually
from tests.support.people import Person, town
from tests.support.production import SERVERS
from tests.support.stack import RunningStack, running

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3_000)]
CONVERSATIONS = {
    "dialogue": ("What is the name of the person who asks you this?",),
    "noor": ("How many projects are there?",),
}
_LONGEST = 850.0
"""Seconds of one turn: an attempt may take so long with a local model."""


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[RunningStack, Person]]:
    if model.find(model.default_python()) is None:
        pytest.fail("the local model is not installed: run `make model`")
    parts, environment = (*SERVERS, model.NAME, *SERVICES), {"PHRONESIS_MODEL": "local"}
    async with AsyncExitStack() as opened:
        stack = await opened.enter_async_context(running(tmp_path_factory.mktemp("model") / "data", parts, environment))
        url, key = stack.data.url.read_text().strip(), stack.data.key.read_text().strip()
        people = await opened.enter_async_context(town(url, key))
        await people.ready()
        yield stack, await people.someone(role="admin")


async def ended(person: Person, text: str, conversation: str | None, agent: str) -> dict[str, Any]:
    submitted = await person.submit(text, conversation, agent=agent)
    assert submitted.status_code == 202, submitted.text
    return await person.ended(submitted.json()["turn_id"], _LONGEST)


@pytest.mark.parametrize("agent", list(CONVERSATIONS))
async def test_every_turn_ends_with_a_reply(served: tuple[RunningStack, Person], agent: str) -> None:
    _, person = served
    conversation = None
    for text in CONVERSATIONS[agent]:
        turn = await ended(person, text, conversation, agent)
        assert (turn["status"], turn["problem"]) == ("completed", None)
        assert turn["reply"]["user_response"].strip()
        assert turn["reply"]["usage"]["model_calls"] > 0
        assert turn["reply"]["reasoner"] == ("extractive" if "model" in turn["reply"]["degraded"] else "openai")
        conversation = turn["conversation_id"]


async def test_what_the_endpoint_can_do_is_told(served: tuple[RunningStack, Person]) -> None:
    _, person = served
    found = (await person.http.post("/api/v1/tools/models.get", json={}, timeout=60)).json()
    assert (found["reasoner"], found["profile"]) == ("openai", "local")
    assert found["models"][0]["structured"] == "json_object_with_schema"


async def test_a_model_that_is_killed_in_the_middle_of_a_turn_costs_no_turn(served: tuple[RunningStack, Person]) -> None:
    stack, person = served
    submitted = await person.submit("What is the weather like in spring?", agent="dialogue")
    id = submitted.json()["turn_id"]

    async def is_claimed() -> bool:
        return bool((await person.turn(id))["status"] != "queued")

    await eventually(is_claimed)
    stack.process(model.NAME).kill()
    turn = await person.ended(id, _LONGEST)
    assert (turn["status"], bool(turn["reply"]["user_response"].strip())) == ("completed", True)
