"""The light model draws statements from ended turns, against a server that speaks Groq's HTTP."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from phronesis.contracts import Principal
from phronesis.contracts.facts import Origin
from phronesis.orchestrator.learning.domain import EndedTurn, statements_of
from phronesis.orchestrator.learning.ports import Drawer
from tests.support.chat import AGENT, reasoning
from tests.support.groq_server import Fault, groq_server

OWN = AGENT.model_copy(update={"prompts": {**AGENT.prompts, "learn": "Draw, in JSON: {{history}}"}})
SAID = "I prefer short answers"


async def test_a_batch_of_turns_takes_one_call_and_its_texts_are_data() -> None:
    who = Principal(tenant="acme", user="ann")
    batch = [EndedTurn(f"t{n}", "c", who, f"{SAID} {n}", f"{SAID} {n}", "Noted.", datetime.now(UTC), 1) for n in range(3)]
    one = {"turn": 2, "kind": "preference", "subject": "user", "predicate": "prefers", "object": "short answers"}
    told = {**one, "text": "The user prefers short answers.", "negated": False, "quote": f"{SAID} 1", "confidence": 0.9}
    async with groq_server() as server:
        server.fail("learn", Fault(content=json.dumps({"statements": [told]})))
        async with reasoning(server) as model:
            assert isinstance(model, Drawer)
            answer = await model.draw(OWN, batch)
        (call,) = server.calls
    assert answer.value is not None
    (drawn,) = statements_of(answer.value, batch)["t1"]
    assert (drawn.object, drawn.origin, call.purpose, call.model) == (
        "short answers",
        Origin.USER,
        "learn",
        "openai/gpt-oss-20b",
    )
    system, data = (call.request or {})["messages"]
    assert SAID not in system["content"]
    assert all(turn.said in data["content"] for turn in batch)
