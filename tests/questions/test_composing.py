"""Requests for something to be written: answered by a model and marked as such, and declined with the reason without one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from phronesis_orchestrator.models.reasoner import RULES
from tests.questions.asking import Asker
from tests.questions.composing import COMPOSED
from tests.support.chat import reasoning
from tests.support.groq_answers import blocks
from tests.support.groq_server import Fault, groq_server

MARKS = (
    "(Written by the language model; nothing of this is read from your data.)",
    "(Vom Sprachmodell geschrieben; nichts davon ist aus Ihren Daten gelesen.)",
)


def writing(purpose: str, request: dict[str, Any]) -> Fault | None:
    """A model that answers whatever it is asked: an analyst's at once, in mode F."""
    text = f"Here you are: {blocks(request).get('message', '')[:30]}"
    if purpose == "classify":
        return Fault(content=json.dumps({"mode": "F", "intent": "a text", "answer": text, "analysis": [], "confidence": 0.8}))
    if purpose == "final":
        return Fault(content=json.dumps({"user_response": text, "next_agent_directive": "creative_collaborator"}))
    return None


@pytest.mark.parametrize("agent", ["dialogue", "noor"])
async def test_none_of_a_hundred_ordinary_requests_is_declined_where_there_is_a_model(asker: Asker, agent: str) -> None:
    said: dict[str, str] = {}
    async with groq_server() as server, reasoning(server, budget=6_000) as model:
        server.says = writing
        asking = asker.of(agent, reasoner=model)
        for text in COMPOSED:
            said[text] = await asking.say(text)
    assert len(said) == 100
    assert {text: told for text, told in said.items() if not told.startswith("Here you are: ")} == {}
    assert {text: told for text, told in said.items() if not told.endswith(MARKS)} == {}


async def test_without_a_model_they_are_declined_with_that_reason(asker: Asker) -> None:
    assert asker.reasoner is RULES
    said = {text: await asker.say(text) for text in COMPOSED}
    reasons = ("I need a language model", "Sprachmodell")
    assert {text: told for text, told in said.items() if not any(reason in told for reason in reasons)} == {}


async def test_where_the_model_fails_that_is_the_reason(asker: Asker) -> None:
    async with groq_server() as server, reasoning(server, budget=6_000) as model:
        server.fail("any", Fault(status=500, times=50))
        told = await asker.of("dialogue", reasoner=model).say("Write a short poem about bridges")
    assert told == "I need the language model to draft something, and it did not answer this time. Please ask again later."
