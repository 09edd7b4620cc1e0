"""What the orchestrator answers of background tasks: read, listed, cancelled."""

from __future__ import annotations

from typing import Protocol

from phronesis_bus import Bus, Call, serve
from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import Turn, TurnRef
from phronesis_contracts.tasks import TASK_CANCEL, TASK_GET, TASK_LIST, ListTasks, Task, TaskRef, Tasks

from .ports import TaskStore


class TaskQueries(TaskStore, Protocol):
    """Tasks as their owner sees them, too."""

    async def get(self, who: Principal, task_id: str) -> Task:
        """One task of the caller. Raises `NotFound`, also for a turn that is no task."""

    async def list(self, who: Principal, query: ListTasks) -> Tasks:
        """The caller's tasks, newest first."""


class Canceller(Protocol):
    async def cancel(self, call: Call, request: TurnRef) -> Turn:
        """Cancel a turn. Raises `NotFound`, `TurnEnded`."""


class TaskHandlers:
    """The handlers of tasks. `turns`: cancels the turn of a task, and stops it where it runs."""

    def __init__(self, tasks: TaskQueries, turns: Canceller) -> None:
        self._tasks = tasks
        self._turns = turns

    async def get(self, call: Call, request: TaskRef) -> Task:
        return await self._tasks.get(call.who, request.task_id)

    async def list(self, call: Call, request: ListTasks) -> Tasks:
        return await self._tasks.list(call.who, request)

    async def cancel(self, call: Call, request: TaskRef) -> Task:
        await self._tasks.get(call.who, request.task_id)
        await self._turns.cancel(call, TurnRef(turn_id=request.task_id))
        return await self._tasks.get(call.who, request.task_id)


async def serve_tasks(bus: Bus, tasks: TaskQueries, turns: Canceller) -> None:
    handlers = TaskHandlers(tasks, turns)
    await serve(bus, TASK_GET, handlers.get)
    await serve(bus, TASK_LIST, handlers.list)
    await serve(bus, TASK_CANCEL, handlers.cancel)
