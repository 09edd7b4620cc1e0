"""The language model's answers, against a server that speaks Groq's and OpenAI's HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_bus.tracing import Tracing
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.agents.cognition.thought import Tier
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.language_model import build_language_model
from phronesis_orchestrator.models.limits import CallLimits
from phronesis_orchestrator.models.reasoner import ComposedReply, RouteDecision
from phronesis_orchestrator.settings import ModelSettings
from tests.support.chat import AGENT, KEY, MEMORY, REPLY, a_turn, reasoning
from tests.support.groq_server import Fault, GroqServer, groq_server


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


@pytest.mark.req("D-047", "D-062")
@pytest.mark.parametrize("provider", ["groq", "openai"])
async def test_both_sdks_route_and_answer(server: GroqServer, provider: str) -> None:
    async with reasoning(server, provider) as model:
        routed = await model.route(a_turn())
        composed = await model.compose(a_turn(), None, MEMORY)
    assert model.name == provider
    assert routed.value == RouteDecision(decision="query_memory", key_phrases=("heat network",), tier=Tier.SONNET)
    assert composed.value is not None
    assert composed.value.user_response == "Heat Networks: Pipes of hot water."
    assert composed.spent.model_calls == 1
    assert composed.spent.input_tokens > 0
    assert [call.purpose for call in server.calls] == ["router", "final"]


async def test_a_greeting_is_answered_directly(server: GroqServer) -> None:
    async with reasoning(server) as model:
        answer = await model.route(a_turn("hello there"))
    assert answer.value == RouteDecision(decision="respond_directly", direct_response="Hello!")


@pytest.mark.req("NC-004")
async def test_the_settings_factory_makes_a_model_that_answers(server: GroqServer) -> None:
    model = build_language_model("groq", KEY, Tracing("orchestrator"), ModelSettings(model_url=server.groq_url))
    answer = await model.compose(a_turn(), "A draft.", None)
    await model.close()
    assert answer.value is not None
    assert answer.value.user_response == "A draft."
    assert server.calls[0].model == "openai/gpt-oss-120b"


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        ("openai/gpt-oss-20b", ["openai/gpt-oss-20b"] * 2),
        ("qwen/qwen3-32b", ["qwen/qwen3-32b"] * 2),
        ("unheard/of", ["openai/gpt-oss-20b", "openai/gpt-oss-120b"]),
        (None, ["openai/gpt-oss-20b", "openai/gpt-oss-120b"]),
    ],
)
async def test_an_agents_calls_are_made_with_the_model_that_it_names_if_it_is_set_up(
    server: GroqServer, named: str | None, asked: list[str]
) -> None:
    settings = ModelSettings(model_url=server.groq_url, agent_models=("qwen/qwen3-32b",))
    model = build_language_model("groq", KEY, Tracing("orchestrator"), settings)
    turn = a_turn(agent=AGENT.model_copy(update={"model": named}))
    await model.route(turn)
    await model.compose(turn, "A draft.", None)
    await model.close()
    assert model.models == ("openai/gpt-oss-20b", "openai/gpt-oss-120b", "qwen/qwen3-32b")
    assert [call.model for call in server.calls] == asked


@pytest.mark.req("D-057", "D-T05")
async def test_a_model_that_keeps_to_schemas_is_sent_one_and_another_is_asked_for_json(server: GroqServer) -> None:
    async with reasoning(server) as model:
        await model.route(a_turn())
    other = CallLimits("llama-3.1-8b", seconds=5, max_tokens=500, effort="low")
    async with reasoning(server, router=other) as model:
        await model.route(a_turn())
    first, second = (call.request or {} for call in server.calls)
    assert first["response_format"]["json_schema"]["name"] == "router"
    assert first["reasoning_effort"] == "low"
    assert second["response_format"] == {"type": "json_object"}
    assert "reasoning_effort" not in second


@pytest.mark.parametrize(
    "said",
    [
        '{"decision": "query_memory", "key_phr',
        "Sure! I would query memory.",
        "[]",
        "",
        '```json\n{"decision": \n```',
        '{"decision": 1e400}',
    ],
)
@pytest.mark.req("D-134")
async def test_what_is_no_json_is_a_fault_with_the_words_said(server: GroqServer, said: str) -> None:
    server.fail("router", Fault(content=said))
    async with reasoning(server) as model:
        answer = await model.route(a_turn())
    assert answer.value is None
    assert answer.fault is not None
    assert answer.fault.said == said
    assert answer.spent.model_calls == 1


async def test_json_in_a_markdown_fence_is_taken(server: GroqServer) -> None:
    server.fail("final", Fault(content=f"```json\n{json.dumps(REPLY)}\n```"))
    async with reasoning(server) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
    assert answer.value == ComposedReply(
        user_response="Pipes.", next_agent_directive=Directive.FOCUSED_ANALYST, directive_reasoning="figures"
    )


@pytest.mark.req("D-133")
async def test_an_unknown_decision_is_a_fault_that_the_repair_call_shows_the_model(server: GroqServer) -> None:
    said = '{"decision": "run_cypher", "key_phrases": ["x"]}'
    server.fail("router", Fault(content=said))
    async with reasoning(server) as model:
        broken = await model.route(a_turn())
        assert broken.fault is not None
        repaired = await model.route(a_turn(), broken.fault)
    assert repaired.value is not None
    request = server.calls[1].request or {}
    assert [call.purpose for call in server.calls] == ["router", "repair"]
    assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant", "user"]
    assert request["messages"][2]["content"] == said
    assert "decision: Input should be 'respond_directly' or 'query_memory'" in request["messages"][3]["content"]


@pytest.mark.req("D-135")
@pytest.mark.parametrize(
    "phrases", ['"key_phrases": []', '"key_phrases": null', '"key_phrases": ["  "]', '"thought_process": "-"']
)
async def test_a_query_without_phrases_is_a_valid_decision(server: GroqServer, phrases: str) -> None:
    server.fail("router", Fault(content=f'{{"decision": "query_memory", {phrases}}}'))
    async with reasoning(server) as model:
        answer = await model.route(a_turn())
    assert answer.value == RouteDecision(decision="query_memory")


@pytest.mark.req("D-136", "D-C07")
@pytest.mark.parametrize(
    "draft", ['"direct_response": ""', '"direct_response": null', '"direct_response": " \\n"', '"key_phrases": []']
)
async def test_a_direct_decision_without_a_draft_is_valid(server: GroqServer, draft: str) -> None:
    server.fail("router", Fault(content=f'{{"decision": "respond_directly", {draft}}}'))
    async with reasoning(server) as model:
        answer = await model.route(a_turn())
    assert answer.value == RouteDecision(decision="respond_directly")


@pytest.mark.req("D-140", "D-115")
@pytest.mark.parametrize("reply", [{}, {"user_response": "  "}, {"user_response": None}, {"user_response": ["Pipes."]}])
async def test_a_final_answer_without_a_reply_is_a_fault(server: GroqServer, reply: dict[str, Any]) -> None:
    server.fail("final", Fault(content=json.dumps({"next_agent_directive": "focused_analyst", **reply})))
    async with reasoning(server) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
    assert answer.value is None
    assert answer.fault is not None
    assert answer.fault.wrong.startswith("user_response: ")


@pytest.mark.req("D-141", "D-161")
@pytest.mark.parametrize("directive", ["angry_pirate", None, 3, "", ["focused_analyst"]])
async def test_an_unknown_directive_costs_the_directive_alone(
    server: GroqServer, directive: object, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail("final", Fault(content=json.dumps({**REPLY, "next_agent_directive": directive})))
    async with reasoning(server) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
    assert answer.value == ComposedReply(user_response="Pipes.", next_agent_directive=None, directive_reasoning="figures")
    assert "no known directive" in caplog.text


@pytest.mark.req("D-161")
@pytest.mark.parametrize("directive", list(Directive))
async def test_each_directive_is_taken(server: GroqServer, directive: Directive) -> None:
    server.fail("final", Fault(content=json.dumps({**REPLY, "next_agent_directive": directive.value})))
    async with reasoning(server) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
    assert answer.value is not None
    assert answer.value.next_agent_directive is directive


@pytest.mark.parametrize("code", ["json_validate_failed", "tool_use_failed"])
async def test_what_the_provider_itself_refused_is_a_fault_to_repair(server: GroqServer, code: str) -> None:
    """A tool that was not offered, or broken JSON: Groq answers 400 with the words the model said."""
    error = {"message": "failed", "type": "invalid_request_error", "code": code, "failed_generation": '{"name": "delete_all"'}
    server.fail("router", Fault(status=400, error=error))
    async with reasoning(server) as model:
        answer = await model.route(a_turn())
    assert answer.fault is not None
    assert answer.fault.said == '{"name": "delete_all"'


async def test_half_a_surrogate_in_what_the_provider_refused_is_left_out(server: GroqServer) -> None:
    error = {"message": "failed", "code": "json_validate_failed", "failed_generation": '{"name": "\ud800delete_all"'}
    server.fail("router", Fault(status=400, error=error))
    async with reasoning(server) as model:
        answer = await model.route(a_turn())
    assert answer.fault is not None
    assert answer.fault.said == '{"name": "delete_all"'


async def test_a_completion_without_choices_is_a_fault(server: GroqServer) -> None:
    server.fail("final", Fault(without=("choices",)))
    async with reasoning(server) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
    assert answer.fault is not None
    assert answer.fault.wrong == "The answer is empty."


async def test_a_completion_without_usage_counts_its_call_alone(server: GroqServer) -> None:
    server.fail("final", Fault(without=("usage",)))
    async with reasoning(server) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
    assert answer.spent == CallUsage(model_calls=1)
