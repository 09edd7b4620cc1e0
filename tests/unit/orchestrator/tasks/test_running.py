"""Waves: their order, what a failure does, and what a takeover finds."""

from __future__ import annotations

import asyncio

import pytest

from phronesis_contracts.tasks import NoPlan, StepState
from phronesis_orchestrator.tasks.ports import Criticism, Plan, WrittenReport
from phronesis_orchestrator.turns.turn import LostClaim

from .stage import BROKEN, KEEP, REVISE, ScriptedPlanner, TaskStage, never, plan, step


def states(stage: TaskStage) -> dict[str, StepState]:
    return {one.id: one.state for one in stage.state.steps}


@pytest.mark.req("V-019")
async def test_no_step_begins_before_the_wave_before_has_ended() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a b", "c", "d")], [KEEP, KEEP]))
    await stage.run()
    told = [
        (name, detail.get("wave") or detail.get("step")) for name, detail in stage.events if "wave" in name or "step" in name
    ]
    assert [one for one in told if one[0] != "step_finished"] == [
        ("wave_started", 1),
        ("wave_finished", 1),
        ("wave_started", 2),
        ("wave_finished", 2),
        ("wave_started", 3),
        ("wave_finished", 3),
    ]
    assert stage.made == ["a", "b", "c", "d"]


@pytest.mark.req("V-020")
async def test_a_failed_step_stops_none_of_its_wave() -> None:
    ended = asyncio.Event()

    async def slow() -> None:
        await ended.wait()

    async def failing() -> None:
        ended.set()
        raise BROKEN

    stage = TaskStage(ScriptedPlanner([plan("a b c")]), answers={"a": slow, "b": failing, "c": slow})
    await stage.run()
    assert states(stage) == {"a": StepState.DONE, "b": StepState.FAILED, "c": StepState.DONE}


async def test_what_a_failed_step_was_needed_for_is_left_out() -> None:
    steps = (step("a", 1), step("b", 2, depends=("a",)), step("c", 2))
    stage = TaskStage(ScriptedPlanner([Plan(steps=steps)], [KEEP]), answers={"a": BROKEN})
    await stage.run()
    assert states(stage) == {"a": StepState.FAILED, "b": StepState.SKIPPED, "c": StepState.DONE}


@pytest.mark.req("V-021")
async def test_what_remains_is_what_runs_next() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a", "b", "c"), plan("x")], [REVISE]), answers={"a": BROKEN})
    await stage.run()
    assert stage.made == ["a", "x"]


@pytest.mark.req("V-171")
async def test_progress_is_told_in_order() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a", "b"), plan("x")], [REVISE]), answers={"a": BROKEN})
    await stage.run()
    assert stage.told == [
        "task_started",
        "plan",
        "wave_started",
        "step_finished",
        "wave_finished",
        "plan_adjusted",
        "wave_started",
        "step_finished",
        "wave_finished",
        "task_ended",
    ]


@pytest.mark.req("V-T04")
async def test_a_task_that_is_taken_over_makes_no_step_again() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a b", "c")], [KEEP]))
    begun = asyncio.Event()

    async def endless() -> None:
        begun.set()
        await never()

    stage.answers["c"] = endless
    attempt = asyncio.create_task(stage.run())
    await begun.wait()
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    del stage.answers["c"]
    answered = await stage.run()
    assert stage.made == ["a", "b", "c"]
    assert stage.planner is not None
    assert [purpose for purpose, _ in stage.planner.asked] == ["decompose", "write", "criticise"]
    assert "All done." in answered.text


@pytest.mark.parametrize("at", range(1, 40))
async def test_wherever_it_is_killed_the_task_ends_the_same(at: int) -> None:
    """The journal is gone behind any of its writes, as it is for a worker that was killed."""
    stage = TaskStage(ScriptedPlanner([plan("a b", "c", "d"), plan("x y")], [REVISE]), answers={"b": BROKEN})
    kept, writes = stage.journal.result, 0

    async def dying(*given: object, **more: object) -> None:
        nonlocal writes
        writes += 1
        if writes == at:
            raise LostClaim("killed")
        await kept(*given, **more)  # type: ignore[arg-type]

    stage.journal.result = dying  # type: ignore[method-assign]
    planner = stage.planner
    assert planner is not None
    scripts = planner.plans[:], planner.verdicts[:]
    try:
        answered = await stage.run()
    except LostClaim:
        done = stage.journal.results
        planner.plans = [
            one for one, name in zip(scripts[0], ("task.plan.call", "task.replan.call"), strict=True) if name not in done
        ]
        planner.verdicts = [] if "task.evaluate.1.call" in done else scripts[1]
        planner.reports = planner.reports or [WrittenReport(title="Done", text="All done.", used=("a",))]
        planner.scores = planner.scores or [Criticism(score=0.9)]
        answered = await stage.run()
    assert "All done." in answered.text
    assert [one.id for one in stage.state.steps] == ["a", "b", "x", "y"]
    written = [name for name in stage.journal.results if name.startswith("task.step.")]
    assert sorted(written) == ["task.step.a", "task.step.b", "task.step.x", "task.step.y"]


@pytest.mark.req("V-041")
async def test_a_task_whose_plan_cannot_be_worked_off_ends_typed() -> None:
    stage = TaskStage(ScriptedPlanner([Plan(steps=(step("a", 1, tool="launch_missiles"),))]))
    with pytest.raises(NoPlan):
        await stage.run()
    assert stage.made == []
