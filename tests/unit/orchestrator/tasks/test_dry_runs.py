"""Dry runs: the plan and its calls with what the policy says of them, and nothing else happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phronesis_contracts import Risk
from phronesis_contracts.tasks import NoPlan, StepState
from phronesis_contracts.tools import Effect
from phronesis_orchestrator.outside_tools.schemas import CALLED, OFFERED
from phronesis_orchestrator.tasks.ports import Plan, Step

from .stage import NOVA, ScriptedPlanner, TaskStage, plan, step
from .test_outside import OUT, TOOL, accepted

MIXED = Plan(
    title="The plan",
    steps=(
        step("look", 1),
        Step(
            id="keep",
            description="Keep it",
            tool="keep_memory",
            arguments={"scope": "personal", "key": "k", "content": "c"},
            wave=2,
            depends=("look",),
        ),
        Step(id="remove", description="Remove it", tool="node.delete.v1", arguments={"id": "goal-1"}, wave=2),
        Step(id="think", description="Think about it", wave=3),
    ),
)


def stage(made: Plan, **more: object) -> TaskStage:
    agent = NOVA.model_copy(update={"tools": ("survey_twin", "keep_memory", "node.delete.v1")})
    task = TaskStage(ScriptedPlanner([made]), agent=agent, dry_run=True)
    return replace(task, **more) if more else task


async def test_a_dry_run_tells_each_call_with_its_arguments_and_whether_a_person_would_be_asked() -> None:
    task = stage(MIXED)
    answer = await task.run()
    calls = {call.step: call for call in task.state.calls}
    assert [(call.step, call.tool, call.approval) for call in task.state.calls] == [
        ("look", "survey_twin", "no"),
        ("keep", "keep_memory", "maybe"),
        ("remove", "node.delete.v1", "yes"),
        ("think", None, "maybe"),
    ]
    assert (calls["look"].arguments, calls["remove"].arguments) == ({"type": "look"}, {"id": "goal-1"})
    assert calls["remove"].reason == "HIGH — node.delete.v1 is irreversible"
    assert [calls[id].effect for id in ("look", "keep")] == [Effect.READ, Effect.MESSAGE]
    assert "Nothing was done" in answer.text
    assert '`node.delete.v1` with `{"id": "goal-1"}`. You would be asked first: HIGH' in answer.text


async def test_a_dry_run_calls_no_tool_saves_no_report_and_learns_nothing() -> None:
    task = stage(MIXED)
    await task.run()
    assert (task.made, task.remembered, task.strategies.log, task.store.log, task.store.counted) == ([], [], [], [], 0)
    assert {name for name in task.journal.results if not name.startswith("task.plan")} == {"task.begun", "task.recall"}
    assert [one.state for one in task.state.steps] == [StepState.PENDING] * 4
    assert (task.planner.times("write"), task.planner.times("criticise"), task.state.report) == (0, 0, None)


async def test_a_call_of_another_server_may_be_asked_about_and_a_dangerous_one_is() -> None:
    for risk, approval in ((Risk.READ, "maybe"), (Risk.HIGH, "yes")):
        outside = Plan(steps=(Step(id="look", description="Look", tool=TOOL, arguments={"word": "a"}, wave=1),))
        task = TaskStage(ScriptedPlanner([outside]), agent=OUT, dry_run=True)
        task.neighbours.owners |= {OFFERED.rpc.subject: accepted(risk)}
        await task.run()
        assert [call.approval for call in task.state.calls] == [approval]
        assert CALLED not in [subject for subject, _, _ in task.neighbours.questions]


async def test_a_goal_without_a_plan_ends_a_dry_run_as_it_ends_a_task() -> None:
    task = TaskStage(goal="Sing a song", dry_run=True)
    with pytest.raises(NoPlan):
        await task.run()


async def test_whoever_takes_a_dry_run_over_tells_the_same_plan() -> None:
    task = stage(plan("a b", "c"))
    await task.run()
    first = task.state.calls
    again = replace(task, planner=ScriptedPlanner([]))
    await again.run()
    assert again.state.calls == first


async def test_a_call_that_draws_on_a_step_before_it_is_judged_without_its_value() -> None:
    drawn = {"id": {"$of": "look", "path": "statement"}}
    remove = Step(id="remove", description="Remove it", tool="node.delete.v1", arguments=drawn, wave=2, depends=("look",))
    task = stage(Plan(steps=(step("look", 1), remove)))
    await task.run()
    assert [(call.arguments, call.approval) for call in task.state.calls] == [({"type": "look"}, "no"), (drawn, "yes")]
