"""What an endpoint can do with a model, found out by asking it; against servers that refuse what real ones refuse."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from phronesis_bus import envelope
from phronesis_orchestrator.models.capabilities import Capabilities, CapabilityCache, Dialect
from phronesis_orchestrator.models.completions import TryFailed
from phronesis_orchestrator.models.language_model import EndpointProber
from phronesis_orchestrator.models.reasoner import CallFailed, Inquiry
from tests.support.chat import MEMORY, a_turn, reasoning
from tests.support.endpoints import GUIDED, HOSTED, LLAMA_CPP, ONLY_SCHEMAS, PLAIN, Endpoint
from tests.support.groq_server import Fault, GroqServer, groq_server

MODEL = "openai/gpt-oss-20b"


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


async def found(server: GroqServer, endpoint: Endpoint, model: str = MODEL) -> Capabilities:
    server.endpoint = endpoint
    async with reasoning(server, "openai") as opened:
        return await opened.capabilities.of(model)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        (HOSTED, Capabilities(Dialect.JSON_SCHEMA, json_object=True, tools=True, streaming=True)),
        (
            LLAMA_CPP,
            Capabilities(
                Dialect.JSON_OBJECT_WITH_SCHEMA, json_object=True, tools=True, streaming=True, limit_field="max_tokens"
            ),
        ),
        (
            GUIDED,
            Capabilities(Dialect.GUIDED_JSON, json_object=False, tools=True, streaming=True, context_tokens=4_096),
        ),
        (ONLY_SCHEMAS, Capabilities(Dialect.JSON_SCHEMA, json_object=False, tools=True, streaming=True)),
        (PLAIN, Capabilities(Dialect.TEXT, json_object=False, tools=False, streaming=False)),
    ],
    ids=["hosted", "llama_cpp", "guided", "only schemas", "plain"],
)
async def test_each_kind_of_endpoint_is_found_out(server: GroqServer, endpoint: Endpoint, expected: Capabilities) -> None:
    assert await found(server, endpoint) == expected


async def test_a_model_without_strict_schemas_is_asked_for_plain_json(server: GroqServer) -> None:
    assert (await found(server, HOSTED, "llama-3.1-8b")).structured is Dialect.JSON_OBJECT


@pytest.mark.parametrize("endpoint", [HOSTED, LLAMA_CPP, GUIDED, ONLY_SCHEMAS, PLAIN])
async def test_a_turn_is_routed_and_answered_by_every_kind_of_endpoint(server: GroqServer, endpoint: Endpoint) -> None:
    server.endpoint = endpoint
    async with reasoning(server, "openai") as model:
        routed, composed = await model.route(a_turn()), await model.compose(a_turn(), None, MEMORY)
    assert routed.value is not None
    assert composed.value is not None
    assert len(server.calls) == 2


async def test_an_endpoint_is_asked_once_for_all_calls_and_again_when_what_is_known_is_old(server: GroqServer) -> None:
    now = 0.0
    async with reasoning(server) as model:
        known = CapabilityCache(EndpointProber(model._client), lifetime=10, clock=lambda: now)
        await asyncio.gather(*(known.of(MODEL) for _ in range(5)))
        asked = len(server.probes)
        await known.of(MODEL)
        assert len(server.probes) == asked
        now = 10.5
        await known.of(MODEL)
        assert len(server.probes) == 2 * asked
        await known.close()


async def test_a_refusal_that_contradicts_what_is_known_is_looked_into_once(server: GroqServer) -> None:
    """The model behind an address was exchanged: the same call succeeds in the form that the new one takes."""
    async with reasoning(server, "openai") as model:
        await model.route(a_turn())
        server.endpoint = LLAMA_CPP
        answer = await model.route(a_turn())
        assert answer.value is not None
        assert [call.request["response_format"]["type"] for call in server.calls if call.request] == [
            "json_schema",
            "json_schema",
            "json_object",
        ]
        asked = len(server.probes)
        server.endpoint = replace(HOSTED, formats=frozenset(), refusal=(400, "no"))
        for _ in range(3):
            with pytest.raises(CallFailed):
                await model.route(a_turn())
        assert len(server.probes) == asked  # within the minute it is merely ill


async def test_an_endpoint_that_is_ill_is_not_taken_for_a_simple_one(server: GroqServer) -> None:
    server.fail("probe", Fault(status=500, times=3))
    async with reasoning(server, "openai") as model:
        with pytest.raises(TryFailed):
            await model.capabilities.of(MODEL)
        assert (await model.capabilities.of(MODEL)).structured is Dialect.JSON_SCHEMA


async def test_who_gives_up_waiting_leaves_the_finding_out_to_the_next(server: GroqServer) -> None:
    server.fail("probe", Fault(stall=0.4))
    async with reasoning(server, "openai") as model:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await model.capabilities.of(MODEL)
        await model.capabilities.of(MODEL)
    fields = [sorted(set(request) & {"stop", "response_format", "tools", "stream"}) for request in server.probes]
    assert fields.count(["stop"]) == 1


async def test_a_model_that_takes_no_tools_is_not_asked_with_them(server: GroqServer) -> None:
    server.endpoint = PLAIN
    async with reasoning(server, "openai") as model:
        with pytest.raises(CallFailed, match="model_unavailable"):
            await model.proceed(a_turn(), Inquiry("A", "list", ({"type": "function", "function": {"name": "x"}},), "0" * 16))
    assert len(server.calls) == 0


async def test_a_model_that_counts_more_tokens_than_we_do_gets_smaller_prompts_from_then_on(server: GroqServer) -> None:
    said = " ".join(f"word{at}" for at in range(4_000))
    server.fail("router", Fault(status=400, error={"code": "context_length_exceeded"}, times=2))
    async with reasoning(server, "openai") as model:
        first, second = await model.route(a_turn(said)), await model.route(a_turn(said))
    sizes = [len(str(call.request)) for call in server.calls]
    assert (first.value is not None, second.value is not None, first.spent.model_calls) == (True, True, 3)
    assert sizes[0] > sizes[1] > sizes[2]
    assert abs(sizes[3] - sizes[2]) < 500


async def test_calls_wait_for_one_another_where_the_endpoint_serves_one(server: GroqServer) -> None:
    server.fail("router", Fault(stall=0.05, times=9))
    at_once, most = 0, 0

    async with reasoning(server, "openai", concurrency=1) as model:
        send = model._client.send

        async def watched(*given: object) -> object:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            try:
                return await send(*given)  # type: ignore[arg-type]
            finally:
                at_once -= 1

        await model.capabilities.of(MODEL)
        model._client.send = watched  # type: ignore[method-assign, assignment]
        answers = await asyncio.gather(*(model.route(a_turn()) for _ in range(4)))
    assert (all(answer.value for answer in answers), most) == (True, 1)


async def test_a_call_leaves_the_rules_their_share_of_the_turns_time(server: GroqServer) -> None:
    server.fail("router", Fault(stall=30))
    token = envelope.deadline.set(time.time() + 30.5)
    try:
        async with asyncio.timeout(10), reasoning(server, seconds=60, reserve=30.0) as model:
            with pytest.raises(CallFailed, match="model_unavailable"):
                await model.route(a_turn())
    finally:
        envelope.deadline.reset(token)
