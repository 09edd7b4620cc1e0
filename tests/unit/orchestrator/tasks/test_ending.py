"""How a task ends: its report and document, its critic, what is learnt of it, and what its budget forbids."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from phronesis_contracts import Unavailable
from phronesis_contracts.orchestrator import TaskBudget
from phronesis_contracts.tasks import NoPlan, StepState
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.tasks.ports import Criticism, Plan, Strategy, goal_signature

from .stage import BROKEN, KEEP, MemoryStrategies, ScriptedPlanner, TaskStage, never, plan, step

SOURCES = "\n\n## Sources\n\n1. Do a (survey_twin, a)"


def stage_with(score: Any, **answers: Any) -> TaskStage:
    return TaskStage(ScriptedPlanner([plan("a", "b")], [KEEP], scores=[score]), answers=answers)


@pytest.mark.req("V-043", "V-127", "V-C08")
async def test_a_template_is_kept_after_the_critic_and_before_the_strategy() -> None:
    stage = stage_with(Criticism(score=0.9))
    order: list[tuple[str, Any]] = []
    stage.store.log = stage.strategies.log = order
    await stage.run()
    assert stage.planner is not None
    assert [purpose for purpose, _ in stage.planner.asked][-1] == "criticise"
    await stage.judged(accepted=True)
    assert [name for name, _ in order] == ["template", "outcome", "record"]


@pytest.mark.req("V-121", "V-044", "V-C16")
@pytest.mark.parametrize(("score", "kept"), [(0.75, True), (0.749, False), (None, False), (float("nan"), False), (1.2, False)])
async def test_a_strategy_is_recorded_from_three_quarters_on(score: float | None, kept: bool) -> None:
    stage = stage_with(Criticism(score=score))
    await stage.run()
    await stage.judged(accepted=True)
    assert ("record" in [name for name, _ in stage.strategies.log]) is kept
    assert bool(stage.store.templates) is kept


@pytest.mark.req("V-122")
async def test_a_task_that_failed_is_no_strategy_however_good_its_score() -> None:
    stage = stage_with(Criticism(score=1.0), a=BROKEN, b=BROKEN)
    await stage.run()
    await stage.judged(accepted=True)
    assert [name for name, _ in stage.strategies.log] == ["outcome"]


@pytest.mark.req("V-046")
@pytest.mark.parametrize(("score", "kept"), [(Criticism(score=0.4), 0.4), (Unavailable("away"), None)])
async def test_a_finished_task_shows_its_score_or_that_it_has_none(score: Any, kept: float | None) -> None:
    stage = stage_with(score)
    await stage.run()
    assert (stage.state.score, stage.state.report is not None) == (kept, True)


@pytest.mark.req("V-047")
async def test_a_critic_that_fails_holds_nothing_back() -> None:
    stage = stage_with(RuntimeError("broken"))
    answered = await stage.run()
    assert answered.text == f"# Done\n\nAll done.{SOURCES}"
    await stage.judged(accepted=True)
    assert [name for name, _ in stage.strategies.log] == ["outcome"]


@pytest.mark.req("V-126", "V-C17")
async def test_a_strategy_says_what_was_used_in_order_and_what_to_avoid() -> None:
    stage = stage_with(Criticism(score=0.8), b=BROKEN)
    await stage.run()
    await stage.judged(accepted=True)
    [_, (_, told)] = stage.strategies.log
    assert (told.approach, told.tools_used, told.avoid) == ("1. Do a", ("survey_twin",), "Do b (unavailable)")
    assert (told.agent, told.score, told.succeeded) == ("nova", 0.8, True)


@pytest.mark.req("V-042", "V-T05")
async def test_templates_are_found_though_there_are_no_strategies_and_the_other_way_round() -> None:
    stage = stage_with(Criticism(score=0.9))
    await stage.run()
    await stage.judged(accepted=True)
    assert stage.store.templates == {goal_signature("Do it all", "nova"): stage.store.log[0][1]}
    alone = TaskStage(ScriptedPlanner([plan("a")]), strategies=MemoryStrategies((Strategy("s", "g", "a"),)))
    await alone.run()
    assert alone.planner is not None
    assert (alone.planner.known("decompose").template, len(alone.planner.known("decompose").strategies)) == (None, 1)


@pytest.mark.parametrize(("tools", "made"), [(("survey_twin",), ["look", "a"]), (("find_entities",), ["a"])])
async def test_a_step_that_only_looks_around_is_left_out_where_a_strategy_did_without_its_tool(
    tools: tuple[str, ...], made: list[str]
) -> None:
    looking = Plan(steps=(step("look", 1, optional=True), step("a", 2, depends=("look",))))
    stage = TaskStage(ScriptedPlanner([looking]), strategies=MemoryStrategies((Strategy("s", "g", "a", tools),)))
    await stage.run()
    assert stage.made == made


async def test_the_report_is_saved_once_as_a_document_of_the_caller() -> None:
    stage = stage_with(Criticism(score=0.9))
    await stage.run()
    await stage.run()
    [remembered] = stage.remembered
    item = remembered.items[0]
    assert (item.title, item.external_id, item.sources) == (
        "Done",
        f"task/{stage.claim.turn_id}",
        (stage.claim.conversation_id,),
    )
    assert item.text == f"# Done\n\nAll done.{SOURCES}\n\n---\n\nreasoner: scripted"
    assert stage.state.report is not None
    assert stage.state.report.document_id == "doc-1"


async def test_a_report_that_cannot_be_saved_is_told_all_the_same() -> None:
    stage = stage_with(Criticism(score=0.9))
    stage.neighbours.owners["memory.v1.remember"] = BROKEN
    answered = await stage.run()
    assert answered.text == f"# Done\n\nAll done.{SOURCES}"
    assert stage.running.degraded == ["document"]


async def test_tool_calls_beyond_the_budget_are_not_made() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a b c", "d")]), budget=TaskBudget(tool_calls=2))
    await stage.run()
    assert stage.made == ["a", "b"]
    assert {one.id: one.state for one in stage.state.steps}["c"] is StepState.SKIPPED
    assert stage.state.stopped is not None
    assert (stage.state.stopped.code, stage.state.stopped.field) == ("budget_exceeded", "budget.tool_calls")
    assert stage.state.report is not None


async def test_tokens_beyond_the_budget_end_the_task_with_what_there_is() -> None:
    planner = ScriptedPlanner([plan("a", "b")], spent=CallUsage(input_tokens=90, output_tokens=20, model_calls=1))
    stage = TaskStage(planner, budget=TaskBudget(tokens=100))
    await stage.run()
    assert (stage.made, [purpose for purpose, _ in planner.asked]) == ([], ["decompose"])
    assert stage.state.stopped is not None
    assert stage.state.stopped.field == "budget.tokens"


async def test_money_beyond_the_budget_ends_the_task_with_what_there_is() -> None:
    planner = ScriptedPlanner([plan("a", "b")], spent=CallUsage(model_calls=1), cost_usd=0.02)
    stage = TaskStage(planner, budget=TaskBudget(usd=0.01))
    await stage.run()
    assert stage.made == []
    assert stage.state.stopped is not None
    assert stage.state.stopped.field == "budget.usd"


async def test_time_beyond_the_budget_ends_the_task_with_what_there_is() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a", "b")]), budget=TaskBudget(seconds=60))
    begun = datetime.now(UTC) - timedelta(seconds=61)
    stage.journal.results["task.begun"] = {"at": begun.isoformat()}
    await stage.run()
    assert stage.made == []
    assert stage.state.stopped is not None
    assert stage.state.stopped.field == "budget.seconds"


async def test_a_budget_of_no_tokens_asks_no_model() -> None:
    stage = TaskStage(ScriptedPlanner(), budget=TaskBudget(tokens=0), answers={"a": never})
    with pytest.raises(NoPlan, match="budget is spent: tokens"):
        await stage.run()
    assert stage.planner is not None
    assert stage.planner.asked == []


@pytest.mark.parametrize(("held", "lines"), [(3, 1), (0, 0)])
async def test_the_log_says_that_proven_strategies_are_used_and_the_task_takes_two_at_most(
    held: int, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    found = tuple(Strategy(f"s{n}", "g", "a", ("survey_twin",)) for n in range(held))
    stage = TaskStage(ScriptedPlanner([plan("a")]), strategies=MemoryStrategies(found))
    await stage.run()
    assert sum("PROVEN STRATEGIES" in record.getMessage() for record in caplog.records) == lines
    assert len(stage.state.strategies) == min(held, 2)
