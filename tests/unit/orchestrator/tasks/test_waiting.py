"""Tasks that wait: the turn is let go, and goes on with the date or the answer, told as what it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from phronesis_contracts.orchestrator import TaskBudget
from phronesis_contracts.origins import Label, OriginKind
from phronesis_contracts.tasks import NoPlan, StepState
from phronesis_orchestrator.approvals.policy import Paused
from phronesis_orchestrator.tasks.background import ASK_TOOL, WAIT_TOOL, TaskPaused
from phronesis_orchestrator.tasks.decisions import BudgetMeter
from phronesis_orchestrator.tasks.ports import EndedWait, Plan, Step, WaitOrder
from phronesis_orchestrator.turns.turn import Claim

from .stage import ScriptedPlanner, TaskStage, step

LATER = datetime(2100, 1, 1, 8, tzinfo=UTC)


@dataclass
class MemoryWaits:
    """Waits in memory."""

    begun: list[WaitOrder] = field(default_factory=list)
    ended: dict[str, EndedWait] = field(default_factory=dict)

    async def found(self, claim: Claim, step: str) -> EndedWait | None:
        return self.ended.get(step)

    async def begin(self, claim: Claim, wait: WaitOrder) -> None:
        self.begun.append(wait)

    async def waited(self, claim: Claim) -> float:
        return 0.0


def ask(**given: Any) -> Step:
    return Step(id="ask", description="Ask", tool=ASK_TOOL.name, arguments={"question": "Which year?", **given}, wave=1)


def wait(**given: Any) -> Step:
    return Step(id="wait", description="Wait", tool=WAIT_TOOL.name, arguments=given, wave=1)


def stage(*steps: Step) -> TaskStage:
    task = TaskStage(ScriptedPlanner([Plan(steps=(*steps, step("then", 2)))]))
    task.waits = MemoryWaits()
    return task


async def paused(task: TaskStage) -> WaitOrder:
    """What a task comes to wait for."""
    with pytest.raises(TaskPaused) as caught:
        await task.run()
    await caught.value.begin(None, task.claim)  # type: ignore[arg-type]
    return task.waits.begun[-1]


async def resumed(task: TaskStage, answer: str | None, name: str = "task.step.ask") -> TaskStage:
    """The task taken over after its wait."""
    task.waits.ended[name] = EndedWait(LATER, answer)
    again = replace(task, planner=ScriptedPlanner([]))
    again.planner.scores, again.planner.reports = task.planner.scores, task.planner.reports
    again.waits = task.waits
    await again.run()
    return again


async def test_a_question_lets_the_task_wait_and_its_answer_is_what_the_step_gave() -> None:
    task = stage(ask(choices=["2021", "2022"], seconds=3600))
    order = await paused(task)
    assert (order.step, order.kind, order.question, order.choices) == (
        "task.step.ask",
        "person",
        "Which year?",
        ("2021", "2022"),
    )
    assert (order.due - datetime.now(UTC)).total_seconds() == pytest.approx(3600, abs=30)
    assert task.made == [], "what depends on nothing yet still comes in a later wave"
    again = await resumed(task, "2022")
    assert [(one.id, one.state) for one in again.state.steps] == [("ask", StepState.DONE), ("then", StepState.DONE)]
    assert again.planner.known("write").worked[0].outcome.answer == {"answer": "2022"}


async def test_a_question_that_nobody_answers_fails_its_step_and_the_task_goes_on() -> None:
    task = stage(ask())
    await paused(task)
    again = await resumed(task, None)
    assert [(one.id, one.state, one.code) for one in again.state.steps] == [
        ("ask", StepState.FAILED, "task.unanswered"),
        ("then", StepState.DONE, None),
    ]


async def test_a_date_lets_the_task_wait_and_one_that_has_passed_does_not() -> None:
    until = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)
    task = stage(wait(until=until.isoformat()))
    order = await paused(task)
    assert (order.kind, order.due) == ("date", until)
    again = await resumed(task, None, "task.step.wait")
    assert [one.state for one in again.state.steps] == [StepState.DONE, StepState.DONE]
    past = stage(wait(until="2020-05-04T08:00:00+02:00"))
    await past.run()
    assert [one.state for one in past.state.steps] == [StepState.DONE, StepState.DONE]
    assert past.waits.begun == []


@pytest.mark.parametrize("given", [{}, {"until": "2100-01-01T08:00:00"}, {"until": "soon"}, {"seconds": 0}])
async def test_a_plan_that_waits_for_no_date_is_not_begun(given: dict[str, Any]) -> None:
    task = stage(wait(**given))
    task.planner.plans *= 2
    with pytest.raises(NoPlan):
        await task.run()
    assert (task.made, task.waits.begun) == ([], [])


async def test_a_date_that_is_too_far_fails_its_step() -> None:
    task = stage(wait(until="2100-01-01T08:00:00Z"))
    await task.run()
    assert (task.state.steps[0].state, task.state.steps[0].code) == (StepState.FAILED, "bad_arguments")
    assert task.waits.begun == []


async def test_side_by_side_a_person_is_asked_before_a_date_is_waited_for() -> None:
    task = stage(wait(seconds=86_400), ask())
    assert (await paused(task)).kind == "person"


async def test_what_the_person_types_counts_as_their_own_words() -> None:
    task = stage(ask())
    await paused(task)
    again = await resumed(task, "Send it to quay.example")
    assert "quay.example" in again.running.origins.said


@pytest.mark.parametrize(("read", "heard"), [((), True), ((Label(kind=OriginKind.WEB, name="x.example"),), False)])
async def test_a_choice_counts_as_their_own_words_only_where_no_other_text_can_have_worded_it(
    read: tuple[Label, ...], heard: bool
) -> None:
    task = stage(ask(choices=["Send it to quay.example"]))
    await paused(task)
    task.waits.ended["task.step.ask"] = EndedWait(LATER, "Send it to quay.example")
    again = replace(task, planner=ScriptedPlanner([]))
    again.planner.scores, again.planner.reports, again.waits = task.planner.scores, task.planner.reports, task.waits
    again.labels = read
    await again.run()
    assert ("quay.example" in again.running.origins.said) is heard


async def test_a_dry_run_waits_for_nothing_and_asks_nobody() -> None:
    task = TaskStage(ScriptedPlanner([Plan(steps=(ask(), wait(seconds=9)))]), dry_run=True)
    task.waits = MemoryWaits()
    await task.run()
    assert [(call.tool, call.approval) for call in task.state.calls] == [(ASK_TOOL.name, "no"), (WAIT_TOOL.name, "no")]
    assert task.waits.begun == []


def test_the_time_of_a_budget_does_not_run_while_a_task_waits() -> None:
    begun, now = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
    meter = BudgetMeter(TaskBudget(seconds=600), None, begun, lambda: now, waited=2 * 86_400 - 100)  # type: ignore[arg-type]
    assert meter.left == 500


def test_a_pause_is_no_failure_of_a_service() -> None:
    assert issubclass(TaskPaused, Paused)
