"""Background tasks: handed in, looked at, watched and cancelled."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Security
from pydantic import Field
from starlette.responses import Response

from phronesis_bus import Bus, Watch, ask
from phronesis_contracts.orchestrator import TurnProgress, TurnStatus
from phronesis_contracts.tasks import (
    DEFAULT_AGENT,
    MAX_GOAL,
    TASK_CANCEL,
    TASK_GET,
    TASK_LIST,
    ListTasks,
    SubmitTask,
    Task,
    TaskBudget,
    TaskRef,
    Tasks,
)
from phronesis_gateway.answers import PROBLEMS, Id, answers, as_json
from phronesis_gateway.door import BEARER, Caller, Door, IdempotencyKey, keyed
from phronesis_gateway.event_stream import EventStream
from phronesis_gateway.events import Events, last_seen
from phronesis_gateway.limits import Streams
from phronesis_gateway.messages import AcceptedTurn, Given
from phronesis_gateway.problems import turn_problem
from phronesis_gateway.submission import Refused, Turns

TASKS = "/api/v1/tasks"
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: `accepted`, `phase` (`plan`, `wave_started`, `step_finished`, `wave_finished`, `plan_adjusted`,"
        " `task_ended` among them), `ended`, `executive_summary` and `analysis`, `done`.",
        "content": {"text/event-stream": {}},
    }
}


class TaskGiven(Given):
    """A goal to work on in the background, and what may be used for it."""

    goal: str = Field(min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    agent: str = Field(default=DEFAULT_AGENT, min_length=1, max_length=64, json_schema_extra={"format": "agent"})
    budget: TaskBudget = TaskBudget()


def router(door: Door, bus: Bus, turns: Turns, watch: Watch[TurnProgress], streams: Streams, seconds: float) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        turns: hands tasks in, as the turns that they are.
        watch: hears and reads the progress of turns.
        streams: counts open streams.
        seconds: how long a stream may be open.
    """
    routes = APIRouter(responses=PROBLEMS, tags=["tasks"])
    keyed_routes = APIRouter(route_class=keyed(door))

    @keyed_routes.post(TASKS, status_code=202, responses=answers(AcceptedTurn, 202))
    async def submit_task(task: TaskGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Hand a task in. 202 means that it is stored and will end exactly once; its id is that of its turn."""
        order = SubmitTask(goal=task.goal, agent=task.agent, budget=task.budget)
        try:
            async with turns.ordered(who, order, key) as turn:
                return as_json(await turns.accepted(who, turn), 202, {"Location": f"{TASKS}/{turn.turn_id}"})
        except Refused as refused:
            return turn_problem(refused.problem)

    @keyed_routes.get(TASKS, responses=answers(Tasks))
    async def list_tasks(
        who: Caller, status: TurnStatus | None = None, limit: Annotated[int, Query(ge=1, le=100)] = 20
    ) -> Response:
        """The caller's tasks, newest first, without their reports."""
        return as_json(await ask(bus, who, TASK_LIST, ListTasks(status=status, limit=limit)))

    @keyed_routes.get(TASKS + "/{id}", responses=answers(Task))
    async def get_task(id: Id, who: Caller) -> Response:
        """How far a task is: its plan with what became of each step, its score, and its report."""
        return as_json(await ask(bus, who, TASK_GET, TaskRef(task_id=id)))

    @keyed_routes.delete(TASKS + "/{id}", responses=answers(Task))
    async def cancel_task(id: Id, who: Caller) -> Response:
        """Cancel a task: what runs of it is stopped. One that has ended answers 409."""
        return as_json(await ask(bus, who, TASK_CANCEL, TaskRef(task_id=id)))

    @routes.get(TASKS + "/{id}/events", responses=_EVENTS)
    async def watch_task(
        request: Request,
        id: Id,
        authorization: Annotated[object, Security(BEARER)],
        ticket: Annotated[str | None, Query(max_length=1_024, description="In place of a key, for browsers.")] = None,
        last_event_id: Annotated[
            str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{0,19}$", description="Id of the last event received.")
        ] = None,
    ) -> Response:
        """Watch a task, as a turn is watched; 404 for a turn that is no task."""
        who = await door.by_ticket(ticket, id) if ticket is not None else await door.by_headers(request.headers)
        assert who.key is not None
        seen, holder = last_seen(last_event_id), who.key
        await ask(bus, who, TASK_GET, TaskRef(task_id=id))
        return EventStream(Events(turns, watch, who, id, seen).stream(), seconds, lambda: streams.opened(holder))

    routes.include_router(keyed_routes)
    return routes
