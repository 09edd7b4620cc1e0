"""What a model call leaves behind: its step, its span, its log lines; and what it must not."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator

import pytest

from phronesis.bus.tracing import Tracing
from phronesis.contracts import Unavailable
from phronesis.contracts.service import TraceRef
from phronesis.orchestrator.adapters.chat_client import ChatCall, ChatClient
from phronesis.orchestrator.reasoner import step
from tests.support.chat import AGENT, KEY, MEMORY, a_turn, reasoning
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.offline import only_loopback


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


async def test_a_call_says_which_step_it_is(server: GroqServer) -> None:
    token = step.set("turn-1/route")
    try:
        async with reasoning(server) as model:
            await model.route(a_turn())
    finally:
        step.reset(token)
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
    assert private == [("DEBUG", "phronesis.orchestrator.answers")]


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
            await client.send(ChatCall("m", [{"role": "user", "content": "hello"}]), 5)
