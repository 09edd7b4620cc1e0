"""What a model call leaves behind: its step, its span, its log lines; and what it must not."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator

import pytest

from phronesis_bus.settings import TelemetrySettings
from phronesis_bus.tracing import Tracing
from phronesis_contracts import Unavailable
from phronesis_contracts.service import TraceRef
from phronesis_orchestrator.models.client import ChatClient, ChatRequest
from phronesis_orchestrator.models.reasoner import CallFailed, current_call
from tests.support.bus import eventually
from tests.support.chat import AGENT, KEY, MEMORY, a_turn, reasoning
from tests.support.collector import collecting
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.offline import only_loopback


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


async def test_a_call_says_which_step_it_is(server: GroqServer) -> None:
    token = current_call.set("turn-1/route")
    try:
        async with reasoning(server) as model:
            await model.route(a_turn())
    finally:
        current_call.reset(token)
    assert server.steps() == ["turn-1/route"]


async def test_every_call_has_a_span_with_its_tokens_and_without_its_words(server: GroqServer) -> None:
    tracing = Tracing("orchestrator")
    async with reasoning(server, tracing=tracing) as model:
        with tracing.span("turn") as span:
            answer = await model.compose(a_turn("a-very-private-word"), None, MEMORY)
            trace_id = f"{span.get_span_context().trace_id:032x}"
    spans = [span for span in tracing.recent.of(TraceRef(trace_id=trace_id)).spans if span.name != "turn"]
    assert [span.name for span in spans] == ["chat openai/gpt-oss-20b"]
    assert spans[0].attributes["gen_ai.operation.name"] == "chat"
    assert spans[0].attributes["gen_ai.usage.input_tokens"] == answer.spent.input_tokens
    assert "a-very-private-word" not in str(spans)


async def test_what_was_said_is_exported_where_that_is_switched_on_and_nowhere_else(server: GroqServer) -> None:
    async with collecting() as collector:
        for on in (True, False):
            settings = TelemetrySettings(exporter_otlp_endpoint=collector.url, capture_message_content=on)
            tracing = Tracing("orchestrator", settings)
            async with reasoning(server, tracing=tracing) as model:
                await model.compose(a_turn(f"captured-{on}"), None, None)
            await tracing.close()
        await eventually(lambda: len(collector.spans) == 2)
        content = {"gen_ai.input.messages", "gen_ai.output.messages"}
        assert [content & set(span.attributes) for span in collector.spans] == [content, set()]
        assert (b"captured-True" in collector.raw, b"captured-False" in collector.raw) == (True, False)


async def test_each_try_is_counted_with_what_came_of_it_and_the_call_with_its_cost(server: GroqServer) -> None:
    tracing = Tracing("orchestrator")
    server.fail("final", Fault(status=500))
    async with reasoning(server, tracing=tracing) as model:
        answer = await model.compose(a_turn("How much?"), None, None)
    spent = answer.spent
    paid = (spent.input_tokens * 0.075 + spent.output_tokens * 0.30) / 1e6
    assert (spent.model_calls, answer.cost_usd) == (2, pytest.approx(paid))
    text = (await tracing.metrics.text()).decode()
    names = 'gen_ai_operation_name="chat",gen_ai_provider_name="groq",gen_ai_request_model="openai/gpt-oss-20b"'
    for failed in ("500", ""):
        name = f'gen_ai_client_operation_duration_seconds_count{{error_type="{failed}",{names},purpose="final"}}'
        assert f"{name} 1.0" in text
    assert f'{names},gen_ai_token_type="input",purpose="final"}} {spent.input_tokens}.0' in text
    assert 'phronesis_model_cost_usd_total{model="openai/gpt-oss-20b",purpose="final"}' in text


async def test_a_breaker_that_is_open_is_shown(server: GroqServer) -> None:
    tracing = Tracing("orchestrator")
    server.fail("final", Fault(status=500, times=6))
    async with reasoning(server, tracing=tracing) as model:
        for _ in range(2):
            with pytest.raises(CallFailed):
                await model.compose(a_turn("Hello?"), None, None)
        assert 'phronesis_model_breaker_open{model="openai/gpt-oss-20b"} 1.0' in (await tracing.metrics.text()).decode()


@pytest.mark.req("D-055", "D-154")
async def test_no_words_of_a_turn_are_logged_above_debug_level(server: GroqServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    routed = {"decision": "query_memory", "key_phrases": ["heat"], "thought_process": "a-private-thought"}
    server.fail("router", Fault(content=json.dumps(routed)))
    server.fail("final", Fault(content='{"user_response": "a-private-reply'))
    async with reasoning(server) as model:
        await model.route(a_turn("a-private-question"))
        await model.compose(a_turn("a-private-question"), None, MEMORY)
    private = [(record.levelname, record.name) for record in caplog.records if "a-private" in record.getMessage()]
    assert private == [("DEBUG", "phronesis_orchestrator.models.parsing")]


async def test_without_instructions_no_model_is_asked(server: GroqServer) -> None:
    async with reasoning(server) as model:
        with pytest.raises(Unavailable, match="instructions"):
            await model.route(a_turn(agent=None))
        unknown = AGENT.model_copy(update={"prompts": {**AGENT.prompts, "router": "{{passwords}}"}})
        with pytest.raises(Unavailable, match="prompt"):
            await model.route(a_turn(agent=unknown))
    assert not server.calls


@pytest.mark.req("D-059")
async def test_no_test_can_reach_a_provider() -> None:
    client = ChatClient("groq", KEY)
    with pytest.raises(pytest.fail.Exception, match=r"tests asked other hosts: api\.groq\.com"):
        await _asked_inside_the_guard(client)
    await client.close()


async def _asked_inside_the_guard(client: ChatClient) -> None:
    with only_loopback():
        with pytest.raises(pytest.fail.Exception, match=r"a test asked api\.groq\.com"):
            await client.send(ChatRequest("m", [{"role": "user", "content": "hello"}]), 5)
