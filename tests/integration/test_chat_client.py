"""A client's tools and forms, as the language model's endpoint is asked for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from phronesis_contracts.orchestrator import AnswerForm, ClientRequest, ClientTool
from phronesis_instructions.library.content import read_agents
from phronesis_orchestrator.agents.client import parse_formed, parse_move
from phronesis_orchestrator.models.reasoner import CallFailed, FormedAnswer, Move, ToolCall, TurnContext
from tests.support.chat import AGENT, a_turn, reasoning
from tests.support.endpoints import HOSTED
from tests.support.groq_server import Fault, GroqServer, groq_server

SPEAKER = AGENT.model_copy(update={"prompts": dict(next(one for one in read_agents() if one.agent == "dialogue").prompts)})
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
CLIENT = ClientRequest(tools=(ClientTool(name="get_weather", parameters=SCHEMA), ClientTool(name="look")))


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


def turn() -> TurnContext:
    return a_turn(agent=SPEAKER)


async def asked(server: GroqServer, client: ClientRequest, **changes: Any) -> dict[str, Any]:
    """The request that a model is sent for a client."""
    async with reasoning(server, **changes) as model:
        await model.serve_client(turn(), client, None, lambda said, calls: parse_move(client, said, calls))
    found = server.calls[-1].request
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, {"tool_choice": "auto"}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"tool_choice": "call", "tool": "look"}, {"tool_choice": {"type": "function", "function": {"name": "look"}}}),
        ({"parallel": False}, {"tool_choice": "auto", "parallel_tool_calls": False}),
    ],
)
async def test_the_choice_of_the_client_reaches_the_model(
    server: GroqServer, changes: dict[str, Any], options: dict[str, Any]
) -> None:
    server.fail("client", Fault(calls=[("look", {})]))
    request = await asked(server, CLIENT.model_copy(update=changes))
    assert [tool["function"]["name"] for tool in request["tools"]] == ["get_weather", "look"]
    assert {name: request[name] for name in ("tool_choice", "parallel_tool_calls") if name in request} == options


async def test_calls_come_back_as_the_model_wrote_them(server: GroqServer) -> None:
    server.fail("client", Fault(calls=[("get_weather", {"n": 1}), ("look", {})]))
    async with reasoning(server) as model:
        answer = await model.serve_client(turn(), CLIENT, None, lambda said, calls: parse_move(CLIENT, said, calls))
    assert answer.value == Move(
        calls=(ToolCall(name="get_weather", arguments='{"n": 1}'), ToolCall(name="look", arguments="{}"))
    )


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (AnswerForm(name="figure", schema=SCHEMA, strict=True), "json_schema"),
        (AnswerForm(name="figure", schema=SCHEMA), "json_object"),
        (AnswerForm(), "json_object"),
    ],
)
async def test_the_endpoint_is_held_to_a_schema_that_its_strict_mode_takes(
    server: GroqServer, form: AnswerForm, kind: str
) -> None:
    server.fail("form", Fault(content='{"n": 9}'))
    async with reasoning(server) as model:
        answer = await model.form(turn(), form, "There are nine.", lambda said, calls: parse_formed(form, said))
    assert answer.value == FormedAnswer(text='{"n": 9}')
    request = server.calls[-1].request or {}
    assert request["response_format"]["type"] == kind
    if kind == "json_schema":
        assert request["response_format"]["json_schema"] == {"name": "figure", "strict": True, "schema": SCHEMA}


async def test_an_endpoint_that_takes_no_tools_is_known_to_take_none_after_the_first_call() -> None:
    async with groq_server(endpoint=replace(HOSTED, tools=False)) as server, reasoning(server) as model:
        assert not model.refuses_tools(SPEAKER)
        with pytest.raises(CallFailed, match="model_unavailable"):
            await model.serve_client(turn(), CLIENT, None, lambda said, calls: parse_move(CLIENT, said, calls))
        assert model.refuses_tools(SPEAKER)
        assert len(server.calls) == 0
