"""Background tasks work with the outside tools of their agent too, under the risks that an administrator set."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from phronesis_contracts import Risk, Unavailable
from phronesis_contracts.outside import AcceptedTool
from phronesis_contracts.tasks import StepState
from phronesis_orchestrator.outside_tools.schemas import CALLED, OFFERED, OfferedTool, OutsideResult, ToolOffers
from phronesis_orchestrator.tasks.ports import Plan, Step

from .stage import NOVA, ScriptedPlanner, TaskStage

OUT = NOVA.model_copy(update={"outside": ("crm",)})
TOOL = "outside.crm.look"
PLAN = Plan(steps=(Step(id="look", description="Look", tool=TOOL, arguments={"word": "a"}, wave=1),))


def accepted(risk: Risk = Risk.READ) -> ToolOffers:
    """One tool of the server."""
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    tool = AcceptedTool(
        name="look",
        description="Looks.",
        parameters=schema,
        pin="p",
        risk=risk,
        idempotent=True,
        accepted_by="root",
        accepted_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return ToolOffers(tools=(OfferedTool(server="crm", tool=tool),))


def stage(offered: Any) -> TaskStage:
    """A task whose plan calls it."""
    made = TaskStage(ScriptedPlanner([PLAN]), agent=OUT)
    made.neighbours.owners |= {OFFERED.rpc.subject: offered, CALLED: OutsideResult(text="found")}
    return made


async def test_a_task_calls_an_outside_tool() -> None:
    task = stage(accepted())
    await task.run()
    assert [(one.id, one.state) for one in task.state.steps] == [("look", StepState.DONE)]
    assert task.planner.known("write").worked[0].outcome.answer == {"text": "found", "truncated": False}


async def test_a_dangerous_outside_tool_is_not_called_where_no_person_can_be_asked() -> None:
    task = stage(accepted(Risk.HIGH))
    await task.run()
    assert [(one.state, one.code) for one in task.state.steps] == [(StepState.FAILED, "not_allowed")]
    assert CALLED not in [subject for subject, _, _ in task.neighbours.questions]


async def test_a_server_that_went_away_fails_the_steps_of_a_task_that_was_taken_over_and_not_the_task() -> None:
    task = stage(accepted())
    task.neighbours.owners[CALLED] = Unavailable("gone")
    await task.run()
    kept = {name: value for name, value in task.journal.results.items() if name in ("task.begun", "task.recall", "task.plan")}
    again = replace(task, planner=ScriptedPlanner([]))
    again.journal.results = kept
    again.neighbours.owners[OFFERED.rpc.subject] = ToolOffers()
    await again.run()
    assert [(one.id, one.state) for one in again.state.steps] == [("look", StepState.FAILED)]
