"""A provider that fails: every way of it, and what becomes of the call."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from phronesis_bus import envelope
from phronesis_bus.tracing import Tracing
from phronesis_contracts import ModelRateLimited, ModelUnavailable
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.client import ChatClient
from phronesis_orchestrator.models.language_model import LanguageModel
from phronesis_orchestrator.models.limits import CallLimits
from phronesis_orchestrator.models.reasoner import CallFailed
from tests.support.bus import eventually
from tests.support.chat import KEY, MEMORY, REPLY, a_turn, limits_of, quick, reasoning
from tests.support.groq_server import Fault, GroqServer, groq_server


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


@pytest.mark.req("D-142")
@pytest.mark.parametrize("provider", ["groq", "openai"])
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 429},
        {"status": 429, "headers": {"retry-after": "0.05"}},
        {"status": 500},
        {"status": 503, "headers": {"retry-after": "nonsense"}},
        {"body": "<html>a proxy</html>"},
        {"body": '{"choices": "none"}'},
        {"cut": True},
    ],
    ids=str,
)
async def test_a_failure_that_may_pass_is_tried_again_and_every_try_counts(
    server: GroqServer, provider: str, fault: dict[str, Any]
) -> None:
    server.fail("final", Fault(**fault, times=2))
    async with reasoning(server, provider) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
    assert answer.value is not None
    assert answer.spent.model_calls == 3


@pytest.mark.req("D-142")
async def test_three_tries_are_all(server: GroqServer) -> None:
    server.fail("final", Fault(status=500, times=9))
    async with reasoning(server) as model:
        with pytest.raises(CallFailed) as raised:
            await model.compose(a_turn(), None, MEMORY)
    assert type(raised.value.error) is ModelUnavailable
    assert raised.value.spent == CallUsage(model_calls=3)
    assert len(server.calls) == 3


@pytest.mark.req("D-142")
async def test_a_wait_longer_than_the_time_left_is_not_begun(server: GroqServer) -> None:
    server.fail("final", Fault(status=429, headers={"retry-after": "60"}))
    async with reasoning(server) as model:
        began = time.monotonic()
        with pytest.raises(CallFailed) as raised:
            await model.compose(a_turn(), None, MEMORY)
    assert time.monotonic() - began < 30
    assert type(raised.value.error) is ModelRateLimited
    assert raised.value.error.retry_after == 60
    assert len(server.calls) == 1


@pytest.mark.req("D-147")
async def test_a_stall_ends_at_the_limit(server: GroqServer) -> None:
    server.fail("router", Fault(stall=30))
    async with reasoning(server, seconds=0.4) as model:
        with pytest.raises(CallFailed, match="model_unavailable"):
            await model.route(a_turn())


@pytest.mark.req("D-147")
async def test_the_deadline_of_the_turn_is_kept_where_it_comes_sooner(server: GroqServer) -> None:
    server.fail("router", Fault(stall=30))
    token = envelope.deadline.set(time.time() + 0.4)
    try:
        async with reasoning(server) as model, asyncio.timeout(2):
            with pytest.raises(CallFailed, match="model_unavailable"):
                await model.route(a_turn())
    finally:
        envelope.deadline.reset(token)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
async def test_a_misconfiguration_fails_at_once_and_names_no_key(
    server: GroqServer, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail("router", Fault(status=status, error={"message": f"Invalid API Key {KEY}", "code": "invalid_api_key"}))
    async with reasoning(server) as model:
        with pytest.raises(CallFailed) as raised:
            await model.route(a_turn())
    assert len(server.calls) == 1
    assert KEY not in raised.value.error.detail + caplog.text
    assert [record.levelname for record in caplog.records if "set up wrongly" in record.message] == ["ERROR"]


@pytest.mark.req("D-142")
@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.localhost"])
async def test_a_provider_that_cannot_be_reached_costs_no_call(host: str) -> None:
    """Nobody listens, or the name is unknown (or known, where nobody listens)."""
    async with groq_server() as gone:
        pass
    client = ChatClient("groq", KEY, f"http://{host}:{gone.port}")
    limits = CallLimits("m", 5, 100, "low")
    model = LanguageModel(client, Tracing("orchestrator"), limits_of(limits), 4_000, quick)
    with pytest.raises(CallFailed) as raised:
        await model.route(a_turn())
    await model.close()
    assert (raised.value.error.detail, raised.value.spent) == ("the language model cannot be reached", CallUsage())


@pytest.mark.req("D-142")
async def test_what_failed_calls_used_is_counted_where_the_provider_told_it(server: GroqServer) -> None:
    told = {"prompt_tokens": 70, "completion_tokens": 3}
    server.fail("final", Fault(body=json.dumps({"choices": "none", "usage": told}), times=2))
    async with reasoning(server) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
        server.fail("final", Fault(status=500, body=json.dumps({"error": {"code": "x"}, "usage": told}), times=3))
        with pytest.raises(CallFailed) as raised:
            await model.compose(a_turn(), None, MEMORY)
    assert (answer.spent.model_calls, answer.spent.input_tokens > 140) == (3, True)
    assert raised.value.spent == CallUsage(model_calls=3, input_tokens=210, output_tokens=9)


@pytest.mark.parametrize("told", [None, "many", [], {"prompt_tokens": -5}, {"prompt_tokens": "7"}, {"prompt_tokens": 10**30}])
async def test_a_usage_that_cannot_be_believed_costs_no_answer(server: GroqServer, told: object) -> None:
    completion = {"choices": [{"message": {"content": json.dumps(REPLY)}}], "usage": told}
    server.fail("final", Fault(body=json.dumps(completion)))
    async with reasoning(server) as model:
        answer = await model.compose(a_turn(), None, MEMORY)
    assert answer.value is not None
    assert answer.spent == CallUsage(model_calls=1)


async def test_a_call_that_is_cancelled_closes_its_connection(server: GroqServer) -> None:
    server.fail("final", Fault(stall=30))
    async with reasoning(server, seconds=30) as model:
        call = asyncio.create_task(model.compose(a_turn(), None, MEMORY))
        await eventually(lambda: len(server.calls) == 1)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await eventually(lambda: server.left == 1)


async def test_a_pool_whose_slots_leaked_is_replaced(server: GroqServer) -> None:
    """Cancelled calls can leave slots taken for ever (httpcore #1093); here all are taken on purpose."""
    client = ChatClient("groq", KEY, server.groq_url)
    leaked = client._pool
    full = httpx.AsyncClient(limits=httpx.Limits(max_connections=1), timeout=5)
    client._pool.client._client = full
    async with full.stream("GET", f"{server.groq_url}/calls"):
        limits = limits_of(CallLimits("m", 8, 100, "low"))
        model = LanguageModel(client, Tracing("orchestrator"), limits, 4_000, quick)
        answer = await model.route(a_turn())
    await model.close()
    assert answer.value is not None
    assert answer.spent.model_calls == 1
    assert client._pool is not leaked


async def test_cancelled_calls_leave_the_pool_whole(server: GroqServer) -> None:
    server.fail("any", Fault(stall=30, times=40))
    async with reasoning(server) as model:
        calls = [asyncio.create_task(model.route(a_turn())) for _ in range(40)]
        await eventually(lambda: len(server.calls) == 40)
        for call in calls:
            call.cancel()
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        answers = await asyncio.gather(*(model.route(a_turn()) for _ in range(40)))
    assert all(answer.value for answer in answers)
