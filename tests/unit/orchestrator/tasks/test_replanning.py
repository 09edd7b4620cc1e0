"""The boundaries between waves: when one is looked at, what comes of it, and that a new plan is had once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from phronesis_contracts import TimedOut, Unavailable
from phronesis_orchestrator.tasks import decisions
from phronesis_orchestrator.tasks.ports import Plan, Strategy

from .stage import BROKEN, KEEP, REVISE, ScriptedPlanner, TaskStage, plan, step


def stage_of(first: Plan, verdicts: list[Any], *more: Any, **answers: Any) -> tuple[TaskStage, ScriptedPlanner]:
    planner = ScriptedPlanner([first, *more], verdicts)
    return TaskStage(planner, answers=answers), planner


@pytest.mark.req("V-024", "V-C05", "V-C06")
@pytest.mark.parametrize(
    ("waves", "answers", "times"),
    [(("a b", "c"), {}, 0), (("a b c", "d"), {}, 1), (("a b", "c"), {"b": BROKEN}, 1), (("a", "b", "c", "d"), {}, 1)],
)
async def test_a_boundary_is_looked_at_after_a_failure_or_three_results_of_the_whole_task(
    waves: tuple[str, ...], answers: dict[str, Any], times: int
) -> None:
    stage, planner = stage_of(plan(*waves), [KEEP] * 3, **answers)
    await stage.run()
    assert planner.times("evaluate") == times


@pytest.mark.req("V-022")
async def test_each_boundary_with_a_successor_is_come_to_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    own = decisions.Replanner.replan_between_waves

    async def spied(self: Any, last: int, *given: Any) -> Any:
        seen.append(last)
        return await own(self, last, *given)

    monkeypatch.setattr(decisions.Replanner, "replan_between_waves", spied)
    stage, _ = stage_of(plan("a", "b", "c"), [KEEP])
    await stage.run()
    assert seen == [1, 2]


@pytest.mark.req("V-023")
async def test_a_failure_in_a_wave_is_looked_at_when_the_wave_has_ended() -> None:
    stage, planner = stage_of(plan("a b", "c"), [KEEP], a=BROKEN)
    asked_at: list[int] = []

    async def keep() -> Any:
        asked_at.append(len(stage.made))
        return KEEP

    planner.verdicts = [keep]
    await stage.run()
    assert asked_at == [2]


@pytest.mark.req("V-025")
async def test_the_evaluation_knows_goal_results_failures_and_what_remains() -> None:
    stage, planner = stage_of(plan("a b", "c"), [KEEP], b=BROKEN)
    await stage.run()
    known = planner.known("evaluate")
    assert (known.goal, [one.step.id for one in known.worked], [one.step.id for one in known.failed]) == (
        "Do it all",
        ["a"],
        ["b"],
    )
    assert [one.id for one in known.remaining] == ["c"]


@pytest.mark.req("V-027")
async def test_the_decomposer_is_told_what_worked_and_what_failed() -> None:
    stage, planner = stage_of(plan("a b", "c"), [REVISE], plan("x"), b=BROKEN)
    await stage.run()
    known = planner.known("decompose", 1)
    assert ([one.step.id for one in known.worked], [one.step.id for one in known.failed], known.goal) == (
        ["a"],
        ["b"],
        "Do it all",
    )


@pytest.mark.req("V-028")
async def test_a_new_plan_leaves_what_is_done_alone_even_where_it_takes_its_names() -> None:
    stage, _ = stage_of(plan("a b", "c"), [REVISE], plan("a c"), b=BROKEN)
    await stage.run()
    assert stage.made == ["a", "b", "a", "c"]
    assert [one.id for one in stage.state.steps] == ["a", "b", "a.2", "c.2"]


@pytest.mark.req("V-029")
async def test_a_verdict_to_keep_leaves_the_plan_as_it_is() -> None:
    stage, planner = stage_of(plan("a", "b"), [KEEP], a=BROKEN)
    await stage.run()
    assert (stage.made, planner.times("decompose"), stage.state.replanned) == (["a", "b"], 1, False)


@pytest.mark.req("V-030")
async def test_three_waves_with_failures_have_one_new_plan() -> None:
    stage, planner = stage_of(plan("a", "b"), [REVISE, REVISE, REVISE], plan("x", "y", "z"), a=BROKEN, x=BROKEN, y=BROKEN)
    await stage.run()
    assert (planner.times("decompose"), planner.times("evaluate"), stage.made) == (2, 1, ["a", "x", "y", "z"])


@pytest.mark.req("V-030", "V-C07")
async def test_a_new_plan_that_is_no_good_uses_the_one_there_is_too() -> None:
    stage, planner = stage_of(plan("a", "b", "c"), [REVISE, REVISE], Plan(steps=()), a=BROKEN, b=BROKEN)
    await stage.run()
    assert (planner.times("decompose"), stage.made) == (2, ["a", "b", "c"])


@pytest.mark.req("V-030", "V-C07")
async def test_a_task_is_evaluated_three_times_at_most() -> None:
    stage, planner = stage_of(plan("a", "b", "c", "d", "e"), [KEEP] * 9, a=BROKEN, b=BROKEN, c=BROKEN, d=BROKEN)
    await stage.run()
    assert (planner.times("evaluate"), stage.state.evaluations) == (3, 3)


@pytest.mark.req("V-031", "V-T04")
async def test_a_takeover_grants_no_second_new_plan() -> None:
    stage, planner = stage_of(plan("a", "b"), [REVISE, REVISE], plan("x", "y"), a=BROKEN, x=BROKEN)
    await stage.run()
    again = TaskStage(planner, journal=stage.journal, answers=stage.answers)
    del stage.journal.results["task.step.y"]
    await again.run()
    assert (planner.times("decompose"), again.made, again.state.replanned) == (2, ["y"], True)


@pytest.mark.req("V-032", "V-035")
@pytest.mark.parametrize(
    "wrong",
    [ValueError("no verdict"), Unavailable("away"), TimedOut("slow"), None],
    ids=["broken", "away", "too slow", "unreadable"],
)
async def test_an_evaluation_that_fails_keeps_the_plan(wrong: Any) -> None:
    stage, planner = stage_of(plan("a", "b"), [wrong], a=BROKEN)
    await stage.run()
    assert (stage.made, planner.times("decompose"), stage.state.stopped) == (["a", "b"], 1, None)


@pytest.mark.req("V-032")
async def test_a_decomposer_that_fails_keeps_the_plan() -> None:
    stage, _ = stage_of(plan("a", "b"), [REVISE], ValueError("no plan"), a=BROKEN)
    await stage.run()
    assert (stage.made, stage.state.replanned, stage.state.adjusted) == (["a", "b"], True, False)


CYCLE = Plan(steps=(step("x", 1, depends=("y",)), step("y", 2, depends=("x",))))


@pytest.mark.req("V-033")
@pytest.mark.parametrize(
    "bad",
    [Plan(steps=()), CYCLE, Plan(steps=(step("x", 1, tool="rm"),)), Plan(steps=(step("x", 1, depends=("nowhere",)),))],
    ids=["empty", "cyclic", "unknown tool", "unknown step"],
)
async def test_a_new_plan_that_is_no_good_keeps_the_old_one(bad: Plan) -> None:
    stage, _ = stage_of(plan("a", "b"), [REVISE], bad, a=BROKEN)
    await stage.run()
    assert stage.made == ["a", "b"]


@pytest.mark.req("V-034")
async def test_a_failure_in_the_last_wave_is_not_looked_at() -> None:
    stage, planner = stage_of(plan("a", "b"), [], b=BROKEN)
    await stage.run()
    assert planner.times("evaluate") == 0


@pytest.mark.req("V-037")
@pytest.mark.parametrize(("verdict", "lines"), [(REVISE, 1), (KEEP, 0)])
async def test_the_log_says_that_a_plan_is_adjusted_only_where_it_is(
    verdict: Any, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stage, _ = stage_of(plan("a", "b"), [verdict], plan("x"), a=BROKEN)
    await stage.run()
    assert sum("Adjusting plan" in record.getMessage() for record in caplog.records) == lines


@pytest.mark.req("V-037")
async def test_a_new_plan_that_is_the_old_one_adjusts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage, _ = stage_of(plan("a", "b"), [REVISE], plan("b"), a=BROKEN)
    await stage.run()
    assert "Adjusting plan" not in caplog.text


@pytest.mark.req("V-039")
async def test_a_plan_of_seven_waves_that_wave_two_shows_to_be_wrong_is_not_gone_on_with() -> None:
    stage, _ = stage_of(plan("a", "b", "c", "d", "e", "f", "g"), [REVISE], plan("x", "y"), b=BROKEN)
    await stage.run()
    assert stage.made == ["a", "b", "x", "y"]


@pytest.mark.req("V-040")
async def test_a_plan_is_made_with_the_strategies_that_worked() -> None:
    stage, planner = stage_of(plan("a"), [])
    stage.strategies.found = (Strategy("s1", "like it", "first a", ("survey_twin",)),)
    await stage.run()
    assert planner.known("decompose").strategies == stage.strategies.found
    assert stage.state.strategies == ("s1",)
