"""The light model puts older turns in short, against a server that speaks Groq's HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from phronesis_contracts import ServiceError
from phronesis_orchestrator.conversations.history import PastTurn, Summary
from phronesis_orchestrator.models.reasoner import ModelSummary, Summariser
from tests.support.chat import AGENT, a_turn, reasoning
from tests.support.groq_server import Fault, GroqServer, groq_server

OWN = AGENT.model_copy(update={"prompts": {**AGENT.prompts, "summarise": "Shorten, in JSON: {{history}}"}})
DROPPED = (PastTurn(1, "We go with Leeds.", "Noted."),)


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


@pytest.mark.parametrize("provider", ["groq", "openai"])
async def test_older_turns_are_put_in_short_by_one_call_of_the_light_model(server: GroqServer, provider: str) -> None:
    async with reasoning(server, provider) as model:
        assert isinstance(model, Summariser)
        answer = await model.summarise(a_turn(agent=OWN), Summary(text="Ann moves.", text_through=2), DROPPED)
    assert answer.value is not None
    assert "We go with Leeds." in answer.value.summary
    (call,) = server.calls
    assert (call.purpose, call.model, answer.spent.model_calls) == ("summarise", "openai/gpt-oss-20b", 1)
    request = call.request or {}
    assert request["response_format"]["json_schema"]["name"] == "summarise"
    assert "Ann moves." in request["messages"][1]["content"]


@pytest.mark.parametrize("said", ["", "[]", '{"summary": "  "}', '{"summary": 3}', '{"text": "x"}', "In short: nothing."])
async def test_what_is_no_summary_is_a_fault(server: GroqServer, said: str) -> None:
    server.fail("summarise", Fault(content=said))
    async with reasoning(server) as model:
        answer = await model.summarise(a_turn(agent=OWN), Summary(), DROPPED)
    assert answer.value is None
    assert answer.fault is not None


async def test_what_postgres_cannot_hold_is_taken_out(server: GroqServer) -> None:
    server.fail("summarise", Fault(content='{"summary": "a\\u0000b"}'))
    async with reasoning(server) as model:
        answer = await model.summarise(a_turn(agent=OWN), Summary(), DROPPED)
    assert answer.value == ModelSummary(summary="ab")


async def test_an_agent_without_the_prompt_is_an_error_that_the_stage_can_pass_over(server: GroqServer) -> None:
    async with reasoning(server) as model:
        with pytest.raises(ServiceError):
            await model.summarise(a_turn(), Summary(), DROPPED)
    assert list(server.calls) == []
