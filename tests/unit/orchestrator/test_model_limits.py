"""Limits of model calls: a profile, single ones in its place, and what follows from it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from phronesis_contracts.instructions import AgentProfile
from phronesis_orchestrator.models.limits import OPTIONAL_CALLS, PURPOSES, ModelProfile
from phronesis_orchestrator.models.templates import without_calls
from phronesis_orchestrator.settings import CognitionSettings, ModelSettings, OrchestratorSettings, with_profile

AGENT = AgentProfile(
    agent="nova", version="1", loop="tools", stages=(), prompts=dict.fromkeys(("tools", "intent", "reflect", "decompose"), "x")
)


def test_each_limit_can_be_set_alone_and_the_others_are_the_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRATOR_MODEL_PROFILE", "local")
    monkeypatch.setenv("ORCHESTRATOR_MODEL_SECONDS", '{"router": 33}')
    monkeypatch.setenv("ORCHESTRATOR_MODEL_OUTPUT_TOKENS", '{"final": 700, "learn": 100000}')
    monkeypatch.setenv("ORCHESTRATOR_MODEL_TRIES", '{"final": 5}')
    settings = ModelSettings()
    limits = settings.limits
    assert (limits["router"].seconds, limits["final"].seconds) == (33, 420)
    assert (limits["final"].max_tokens, limits["learn"].max_tokens) == (700, 16_000 // 4)
    assert (limits["final"].tries, limits["router"].tries, limits["decompose"].tries) == (5, 2, 1)
    assert (settings.calls_at_once, settings.optional_calls) == (1, frozenset({"understand"}))


def test_without_settings_the_limits_are_those_of_a_hosted_model() -> None:
    settings = ModelSettings()
    found = {purpose: settings.limits[purpose].seconds for purpose in ("router", "intent", "classify", "final", "reflect")}
    assert found == {"router": 8, "intent": 4, "classify": 12, "final": 20, "reflect": 8}
    assert (settings.calls_at_once, settings.optional_calls) == (100, OPTIONAL_CALLS)
    assert set(settings.limits) == set(PURPOSES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"model_seconds": {"routes": 3}},
        {"model_seconds": {"router": 0}},
        {"model_tries": {"router": 11}},
        {"model_output_tokens": {"router": 1}},
        {"model_optional_calls": ["final"]},
        {"model_concurrency": 0},
        {"context_tokens": 1_999},
    ],
    ids=str,
)
def test_a_limit_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ModelSettings(**wrong)  # type: ignore[arg-type]  # that is the point


def test_an_answer_takes_at_most_a_quarter_of_a_small_context() -> None:
    assert {one.max_tokens for one in ModelSettings(context_tokens=2_000).limits.values()} == {500}


def test_limits_that_nobody_set_follow_the_profile() -> None:
    followed = with_profile(OrchestratorSettings(), ModelProfile.LOCAL)
    kept = with_profile(OrchestratorSettings(turn_limit=100), ModelProfile.LOCAL)
    assert (followed.turn_limit, kept.turn_limit) == (840, 100)
    assert with_profile(CognitionSettings(), ModelProfile.LOCAL).preflight_limit == 180
    assert with_profile(CognitionSettings(), ModelProfile.HOSTED) == CognitionSettings()


def test_an_optional_call_that_is_not_made_has_no_prompt() -> None:
    assert set(without_calls(AGENT, {"intent"}).prompts) == {"tools", "intent", "decompose"}
    assert without_calls(AGENT, OPTIONAL_CALLS) is AGENT


def test_plans_and_reports_of_a_local_model_have_room_to_end() -> None:
    limits = ModelSettings(model_profile=ModelProfile.LOCAL).limits
    assert {purpose: limits[purpose].max_tokens for purpose in ("decompose", "task_report", "evaluate", "criticise")} == {
        "decompose": 1_024, "task_report": 1_024, "evaluate": 256, "criticise": 256,
    }  # fmt: skip
    assert {purpose: limits[purpose].seconds for purpose in ("decompose", "task_report", "evaluate", "criticise")} == {
        "decompose": 420, "task_report": 420, "evaluate": 180, "criticise": 180,
    }  # fmt: skip
