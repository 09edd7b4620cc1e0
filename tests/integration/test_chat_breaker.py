"""The circuit breaker of a model's endpoint: when it opens, what a turn does meanwhile, and how it closes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from phronesis_contracts import ModelUnavailable
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.models.calls import RetryPolicy
from phronesis_orchestrator.models.language_model import LanguageModel
from phronesis_orchestrator.models.limits import Breaker, CallLimits
from phronesis_orchestrator.models.reasoner import CallFailed
from phronesis_orchestrator.turns.turn import Completed
from tests.support.chat import AGENT, MEMORY, a_turn, reasoning
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.unit.orchestrator.fakes import FakeConversations, FakeNeighbours, Stage, claim

_LIGHT = CallLimits("openai/gpt-oss-20b", seconds=5, max_tokens=500, effort="low")
_LARGE = CallLimits("openai/gpt-oss-120b", seconds=5, max_tokens=500, effort="low")


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    now: float = 0.0

    def patience(self) -> Callable[[str], RetryPolicy]:
        return lambda model: RetryPolicy(Breaker(model, clock=lambda: self.now), backoff=0.01)


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


@pytest.fixture
async def clock() -> Clock:
    return Clock()


@pytest.fixture
async def model(server: GroqServer, clock: Clock) -> AsyncIterator[LanguageModel]:
    async with reasoning(server, router=_LIGHT, final=_LARGE, patience=clock.patience()) as opened:
        yield opened


async def opened(server: GroqServer, model: LanguageModel, status: int = 500) -> None:
    """Let the light model fail until its breaker is open."""
    server.fail("router", Fault(status=status, times=5))
    for _ in range(2):
        with pytest.raises(CallFailed):
            await model.route(a_turn())


async def test_after_five_failures_in_a_row_no_call_is_made_for_a_while(
    server: GroqServer, model: LanguageModel, clock: Clock
) -> None:
    await opened(server, model)
    assert len(server.calls) == 5
    with pytest.raises(CallFailed) as raised:
        await model.route(a_turn())
    assert (len(server.calls), raised.value.error.retry_after) == (5, 15.0)
    clock.now = 15.1
    assert (await model.route(a_turn())).value is not None


async def test_each_models_endpoint_has_a_breaker_of_its_own(server: GroqServer, model: LanguageModel) -> None:
    await opened(server, model)
    assert (await model.compose(a_turn(), None, MEMORY)).value is not None


async def test_a_probe_that_fails_opens_it_again_at_once(server: GroqServer, model: LanguageModel, clock: Clock) -> None:
    await opened(server, model)
    clock.now = 15.1
    server.fail("router", Fault(status=500))
    with pytest.raises(CallFailed):
        await model.route(a_turn())
    assert len(server.calls) == 6
    clock.now = 30.0
    with pytest.raises(CallFailed):
        await model.route(a_turn())
    assert len(server.calls) == 6


async def test_a_success_between_failures_begins_the_count_anew(server: GroqServer, model: LanguageModel) -> None:
    for _ in range(4):
        server.fail("router", Fault(status=500, times=2))
        assert (await model.route(a_turn())).value is not None
    assert len(server.calls) == 12


async def test_being_asked_too_often_counts_once_for_each_call_that_came_to_nothing(
    server: GroqServer, model: LanguageModel
) -> None:
    server.fail("router", Fault(status=429, times=99))
    for _ in range(5):
        with pytest.raises(CallFailed, match="model_rate_limited"):
            await model.route(a_turn())
    assert len(server.calls) == 15
    with pytest.raises(CallFailed, match="model_unavailable"):
        await model.route(a_turn())
    assert len(server.calls) == 15


@pytest.mark.req("D-134")
async def test_an_open_breaker_is_a_fallback_at_once_and_the_turn_has_its_reply(
    server: GroqServer, model: LanguageModel
) -> None:
    await opened(server, model)
    stage = Stage(model, neighbours=FakeNeighbours(profiles={"dialogue": AGENT}))  # type: ignore[arg-type]
    end = await stage.run(claim())
    assert isinstance(end, Completed)
    assert (end.reply.degraded, end.reply.usage.model_calls) == (("router",), 1)


@pytest.mark.req("D-142", "D-123")
async def test_with_both_breakers_open_the_rules_answer_and_nobody_is_called(server: GroqServer, clock: Clock) -> None:
    async with reasoning(server, patience=clock.patience()) as one_endpoint:
        await opened(server, one_endpoint)
        asked = len(server.calls)
        before = FakeConversations(Directive.FOCUSED_ANALYST)
        stage = Stage(one_endpoint, neighbours=FakeNeighbours(profiles={"dialogue": AGENT}), conversations=before)  # type: ignore[arg-type]
        end = await stage.run(claim())
    assert isinstance(end, Completed)
    assert (end.reply.reasoner, end.reply.degraded, len(server.calls)) == ("extractive", ("router", "model"), asked)


async def test_it_says_when_it_opens_and_when_it_closes(
    server: GroqServer, model: LanguageModel, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "phronesis_orchestrator.models.limits")
    await opened(server, model)
    clock.now = 15.1
    await model.route(a_turn())
    said = [record.getMessage() for record in caplog.records if record.funcName == "leave"]
    assert said == [
        "openai/gpt-oss-20b failed 5 times in a row; no calls for 15 s",
        "openai/gpt-oss-20b answers again; calls go through",
    ]


def test_while_one_call_probes_others_are_refused_and_a_probe_that_says_nothing_leaves_the_place_to_the_next() -> None:
    now = 0.0
    breaker = Breaker(failures=1, clock=lambda: now)
    breaker.leave(breaker.enter(), healthy=False)
    now = 15.1
    probe = breaker.enter()
    with pytest.raises(ModelUnavailable):
        breaker.enter()
    breaker.leave(probe, healthy=None)
    breaker.leave(breaker.enter(), healthy=True)
    breaker.enter()


def test_the_late_end_of_a_call_from_before_it_opened_changes_nothing() -> None:
    now = 0.0
    breaker = Breaker(failures=1, clock=lambda: now)
    early, late = breaker.enter(), breaker.enter()
    breaker.leave(early, healthy=False)
    breaker.leave(late, healthy=True)
    with pytest.raises(ModelUnavailable):
        breaker.enter()
    now = 15.1
    breaker.leave(breaker.enter(), healthy=True)
    breaker.leave(late, healthy=False)
    breaker.enter()
