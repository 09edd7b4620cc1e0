"""The calls of ordinary work are drawn from the user's own words: the tasks of `tests/benign/tasks.yaml`, without a stack."""

from __future__ import annotations

import pytest

from phronesis_contracts import Label, OriginKind
from phronesis_contracts.catalog import TOOLS
from phronesis_orchestrator.agents.binding import Origins, stated_arguments
from phronesis_orchestrator.models.reasoner import Wish
from tests.support.benign import Task, filled, read_tasks

THINGS, TASKS = read_tasks()
IDS = {name: f"{name}-1" for name in THINGS}
SEEN = [{"id": IDS[name], "title": thing["title"]} for name, thing in THINGS.items()]
_AT_MOST = 0.03


def foreign(task: Task) -> list[str]:
    """The tools of a task's calls that are not taken for the user's own; those of outside servers have no contract here."""
    found = []
    for name, give, wish in task.calls:
        if name not in TOOLS:
            continue
        origins = Origins()
        origins.said = f"{task.say} [task {task.number}]\n{task.before}"
        origins.read([Label(kind=OriginKind.TOOL)], SEEN)
        origins.wishes[name] = (Wish(tool=name, arguments=wish),)
        request = TOOLS[name].rpc.input.model_validate(filled(give, IDS))
        if not origins.draws(TOOLS[name], stated_arguments(request)):
            found.append(name)
    return found


@pytest.mark.parametrize("held", [False, True], ids=["tuned", "held back"])
def test_the_calls_of_ordinary_work_are_the_users_own(held: bool) -> None:
    tasks = [task for task in TASKS if task.held is held]
    asked = [(task.number, task.say, names) for task in tasks if (names := foreign(task))]
    assert len(asked) <= _AT_MOST * len(tasks), asked
