"""Background tasks."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from phronesis.models import Accepted
from phronesis.request import Request
from phronesis_contracts.orchestrator import TurnStatus
from phronesis_contracts.tasks import DEFAULT_AGENT, SubmitTask, Task, TaskBudget

from .parts import checked, each, segment


def submit_task(
    goal: str, agent: str = DEFAULT_AGENT, budget: TaskBudget | None = None, idempotency_key: str | None = None
) -> Request[Accepted]:
    """Hand in a task and return once it is accepted; its id is the `turn_id` of what comes back.

    Args:
        goal: what is to be done.
        agent: whose tools and texts it has.
        budget: what may be used; 15 minutes and 100 tool calls where nothing is stated.
        idempotency_key: the same key with the same task is the same task; one is made when absent.

    Raises:
        BadRequest: the goal is empty or too long.
        ServiceError: the task was refused.
    """
    order = checked(SubmitTask, {"goal": goal, "agent": agent, "budget": budget or TaskBudget()})
    body: dict[str, Any] = order.model_dump(mode="json")
    return Request("POST", "/api/v1/tasks", Accepted.model_validate, json=body, key=idempotency_key or uuid4().hex)


def get_task(task_id: str) -> Request[Task]:
    """How far a task is, with its report once there is one."""
    return Request("GET", f"/api/v1/tasks/{segment(task_id, 'task_id')}", Task.model_validate, reads=True)


def list_tasks(status: TurnStatus | None = None, limit: int = 20) -> Request[tuple[Task, ...]]:
    """The caller's tasks, newest first, without their reports."""
    params: dict[str, str | int] = {"limit": limit}
    if status is not None:
        params["status"] = status.value
    return Request("GET", "/api/v1/tasks", each(Task, "tasks"), params=params, reads=True)


def cancel_task(task_id: str) -> Request[Task]:
    """Cancel a task. Raises `TurnEnded` when it has its end already."""
    return Request("DELETE", f"/api/v1/tasks/{segment(task_id, 'task_id')}", Task.model_validate)
