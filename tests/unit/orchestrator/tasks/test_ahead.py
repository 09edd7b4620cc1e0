"""Before a task is planned, its agent looks ahead once, with what it knows of the tools and of earlier tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phronesis_contracts import Unavailable
from phronesis_orchestrator.agents.cognition.thought import ToolRecord
from phronesis_orchestrator.models.reasoner import LookAhead
from phronesis_orchestrator.settings import CognitionSettings
from phronesis_orchestrator.tasks.ports import Strategy
from tests.support.cognition import FakeExperience

from .stage import NOVA, PROMPTS, MemoryStrategies, TaskStage, ThinkingPlanner, plan

AHEAD = NOVA.model_copy(update={"stages": ("preflight",), "prompts": PROMPTS | {"preflight": "x"}})
ASKED = CognitionSettings(task_look_ahead=True, strategy_holdout=0)
WORKED = Strategy("s-1", "Do it", "1. Do a", ("survey_twin",), "find_entities")


@pytest.mark.req("V-092", "V-096", "V-097")
async def test_the_plan_is_made_with_what_was_thought_ahead() -> None:
    stage = TaskStage(ThinkingPlanner([plan("a")]), agent=AHEAD, thinking=ASKED)
    await stage.run()
    assert stage.planner.known("decompose").ahead == "KNOW: -\nNEED: -\nAPPROACH: -\nRISK: The first source is often wrong."


async def test_a_task_is_planned_at_once_where_no_operator_asks_for_a_look_ahead() -> None:
    stage = TaskStage(ThinkingPlanner([plan("a")]), agent=AHEAD)
    await stage.run()
    assert (stage.planner.shown, stage.planner.known("decompose").ahead) == ([], "")


@pytest.mark.req("V-018")
async def test_a_look_ahead_is_shown_what_worked_and_how_often_the_tools_did() -> None:
    records = FakeExperience(records=(ToolRecord("survey_twin", 10, 4),))
    stage = TaskStage(
        ThinkingPlanner([plan("a")]), agent=AHEAD, experience=records, strategies=MemoryStrategies((WORKED,)), thinking=ASKED
    )
    await stage.run()
    assert stage.planner.shown == [
        '{"what": "an approach that worked", "goal": "Do it", "approach": "1. Do a", "tools": ["survey_twin"], '
        '"avoid": "find_entities", "from": ["unknown"]}\nREASONING CONTEXT\n- Reliability: survey_twin: 40% success (10 uses)'
    ]


@pytest.mark.req("V-095")
async def test_an_agent_without_the_stage_plans_at_once() -> None:
    stage = TaskStage(ThinkingPlanner([plan("a")]), agent=AHEAD.model_copy(update={"stages": ()}), thinking=ASKED)
    await stage.run()
    assert (stage.planner.shown, stage.planner.known("decompose").ahead) == ([], "")


@pytest.mark.req("V-100", "V-172")
@pytest.mark.parametrize("thought", [Unavailable("down"), LookAhead()])
async def test_a_look_ahead_that_fails_costs_the_task_nothing_but_itself(thought: object) -> None:
    stage = TaskStage(ThinkingPlanner([plan("a")], thoughts=[thought]), agent=AHEAD, thinking=ASKED)
    await stage.run()
    assert (stage.made, stage.planner.known("decompose").ahead) == (["a"], "")
    assert "preflight" in stage.running.degraded


@pytest.mark.req("V-102")
async def test_whoever_takes_a_task_over_does_not_look_ahead_again() -> None:
    stage = TaskStage(ThinkingPlanner([plan("a")]), agent=AHEAD, thinking=ASKED)
    await stage.run()
    again = replace(stage, planner=ThinkingPlanner([], thoughts=[]))
    await again.run()
    assert (again.planner.shown, again.made) == ([], ["a"])


@pytest.mark.req("V-022")
async def test_an_agent_without_a_prompt_for_it_keeps_every_plan_as_it_was_made() -> None:
    prompts = {name: text for name, text in PROMPTS.items() if name != "evaluate"}
    agent = NOVA.model_copy(update={"prompts": prompts})
    stage = TaskStage(ThinkingPlanner([plan("a b c", "d")]), agent=agent, answers={"a": Unavailable("down")})
    await stage.run()
    assert (stage.planner.times("evaluate"), stage.state.replanned, stage.made[-1]) == (0, False, "d")


@pytest.mark.parametrize(("shown", "given"), [(2, (WORKED,)), (0, ())])
async def test_a_task_is_planned_with_as_many_strategies_as_an_operator_lets_it_have(
    shown: int, given: tuple[Strategy, ...]
) -> None:
    thinking = CognitionSettings(strategies=shown)
    stage = TaskStage(ThinkingPlanner([plan("a")]), strategies=MemoryStrategies((WORKED,)), thinking=thinking)
    await stage.run()
    assert stage.planner.known("decompose").strategies == given
