"""A task that the version before began goes on where its journal stands, row by row as that version wrote them."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.orchestrator import SubmitTurn
from phronesis_contracts.tasks import StepState, TaskState
from phronesis_orchestrator.turns.turn import with_goal

from .stage import ScriptedPlanner, TaskStage

_SPENT = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0, "model_calls": 0}


def _step(id: str, wave: int, *depends: str) -> dict[str, Any]:
    return {
        **{"id": id, "description": f"Do {id}", "tool": "survey_twin", "arguments": {"type": id}},
        **{"depends": list(depends), "wave": wave, "optional": False},
    }


BEFORE: dict[str, dict[str, Any]] = {
    "task.begun": {"at": "2126-11-27T10:00:00+00:00"},
    "task.recall": {"strategies": [], "tools": ["survey_twin"]},
    "task.plan": {
        "value": {"title": "T", "kind": "", "steps": [_step("a", 1), _step("b", 2, "a")]},
        **{"why": "", "spent": _SPENT, "cost_usd": None},
    },
    "task.step.a": {
        "answer": {"rows": [{"group": "a", "value": 1}], "total": 1, "shown": 1, "statement": "MATCH"},
        "ms": 12,
    },
}
"""The journal of a task in its second wave."""


async def test_a_task_in_its_second_wave_does_what_is_left_of_its_old_plan() -> None:
    task = TaskStage(ScriptedPlanner([]))
    task.journal.results = {name: dict(result) for name, result in BEFORE.items()}
    answer = await task.run()
    assert task.made == ["b"], "what is in the journal is not made again"
    assert [(one.id, one.state) for one in task.state.steps] == [("a", StepState.DONE), ("b", StepState.DONE)]
    assert task.planner.times("decompose") == 0
    assert answer.text.startswith("# Done")


def test_a_state_and_an_order_of_the_version_before_are_read() -> None:
    state = TaskState.model_validate({"waves": 1, "steps": [{"id": "a", "wave": 1, "description": "Do a", "state": "running"}]})
    order = {"idempotency_key": "k", "text": "Look", "agent": "nova", "task": {"budget": {"seconds": 60, "tool_calls": 5}}}
    request = with_goal(SubmitTurn.model_validate(order))
    assert (state.calls, state.effects, request.text) == ((), (), "Look")
    assert request.task is not None
    assert (request.task.schedule, request.task.dry_run_of) == (None, None)
