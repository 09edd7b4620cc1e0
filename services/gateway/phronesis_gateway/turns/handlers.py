"""The routes of messages and turns, of the analysts' endpoint, of event streams with their tickets, and of background tasks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Header, Path, Query, Request, Security
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictBool, field_validator, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import Response

from phronesis_bus import Bus, Watch, ask
from phronesis_contracts import BadRequest, Principal, TurnEnded, Unavailable
from phronesis_contracts.answers import TURN_REPLAY, TURN_TRACE, Replayed, ReplayTurn, TraceOfTurn
from phronesis_contracts.media import MediaKind
from phronesis_contracts.orchestrator import (
    MAX_TEXT,
    TURN_CANCEL,
    TURN_LIST,
    TURN_RATE,
    TURN_RETRY,
    ListTurns,
    RateTurn,
    Reply,
    TaskBudget,
    Turn,
    TurnProgress,
    TurnRef,
    TurnStatus,
)
from phronesis_contracts.orchestrator import Turns as TurnList
from phronesis_contracts.tasks import (
    DEFAULT_AGENT,
    MAX_COMMENT,
    MAX_GOAL,
    MAX_SCHEDULES,
    SCHEDULE_ADD,
    SCHEDULE_CHANGE,
    SCHEDULE_GET,
    SCHEDULE_LIST,
    SCHEDULE_REMOVE,
    TASK_ANSWER,
    TASK_CANCEL,
    TASK_GET,
    TASK_LIST,
    TASK_OUTCOME,
    TRIGGER_ADD,
    AddSchedule,
    AddTrigger,
    AnswerTask,
    ChangeSchedule,
    ListSchedules,
    ListTasks,
    Schedule,
    ScheduleRef,
    Schedules,
    SubmitTask,
    Task,
    TaskOutcome,
    TaskRef,
    Tasks,
)

from ..auth.authentication import (
    BEARER,
    Authenticator,
    Caller,
    IdempotencyKey,
    OpenStreams,
    authenticated_route,
    scope_idempotency_key,
)
from ..auth.keys import READ
from ..auth.tickets import Tickets
from ..http.requests import AcceptedTurn, FeedbackGiven, Given, MessageGiven, ReplayGiven, only_one_of, require_field
from ..http.responses import ID_FORM, PROBLEMS, error_response, json_response, refusals, route_responses, turn_problem_response
from .events import Analysed, Events, EventStream, analysis_with_turn, parse_last_event_id
from .reports import MEDIA_TYPES, ReportFormat, chosen_format, report_response
from .submission import SubmittedTurn, TraceCollector, TurnRefused, TurnService, TurnTrace
from .typesetting import Typesetter

TurnId = Annotated[str, Path(description="The turn's id."), ID_FORM]
MESSAGES = "/api/v1/conversations/messages"
TURNS = "/api/v1/turns"


def turns_router(authenticator: Authenticator, bus: Bus, turns: TurnService, traces: TraceCollector, wait: float) -> APIRouter:
    """The routes. `wait`: seconds that the messages endpoint waits for a turn's end."""
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["turns"])

    @routes.post(MESSAGES, responses=route_responses(Reply) | route_responses(AcceptedTurn, 202) | refusals(402, 404))
    async def send_message(message: MessageGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Send a message and wait for the reply.

        Where the turn does not end in time the answer is a 202 with its id, and the turn goes on.
        """
        try:
            async with turns.submitted(who, message, key) as turn:
                ended = await turns.ended(who, turn, wait)
                return ended_response(ended) if ended else await accepted_response(turns, who, turn)
        except TurnRefused as refused:
            return turn_problem_response(refused.problem)

    @routes.api_route(MESSAGES, methods=["GET", "DELETE"], include_in_schema=False)
    async def no_such_method() -> Response:
        # Else this would be about the conversation with the id `messages`.
        raise HTTPException(405, headers={"Allow": "POST"})

    @routes.post(TURNS, status_code=202, responses=route_responses(AcceptedTurn, 202) | refusals(402, 404))
    async def submit_turn(message: MessageGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Send a message without waiting.

        The answer is a 202 once the turn is stored: it will end exactly once. Watch it by its events, or look it up.
        """
        try:
            async with turns.submitted(who, message, key) as turn:
                return await accepted_response(turns, who, turn)
        except TurnRefused as refused:
            return turn_problem_response(refused.problem)

    @routes.get(TURNS, responses=route_responses(TurnList) | refusals(404))
    async def list_turns(
        who: Caller,
        conversation_id: Annotated[str | None, Query(max_length=64, description="Only turns of this conversation.")] = None,
        status: Annotated[TurnStatus | None, Query(description="Only turns with this status.")] = None,
        agent: Annotated[str | None, Query(max_length=64, description="Only turns of this agent.")] = None,
        since: Annotated[AwareDatetime | None, Query(description="Only turns whose message was taken then or later.")] = None,
        until: Annotated[AwareDatetime | None, Query(description="Only turns whose message was taken before that.")] = None,
        before: Annotated[
            str | None, Query(max_length=64, description="Only turns ahead of this one, by id: the last one of a page.")
        ] = None,
        helpful: Annotated[
            bool | None, Query(description="Only turns whose user said that the answer was of help, or that it was not.")
        ] = None,
        user: Annotated[
            str | None, Query(max_length=200, description="Whose turns: yours by default. Others', or `*`, for administrators.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=200, description="Turns at most.")] = 20,
    ) -> Response:
        """List your turns.

        The caller's, newest first, without their replies. For an administrator those of another user too, or of everybody.
        """
        wanted = ListTurns(
            conversation_id=conversation_id,
            status=status,
            agent=agent,
            since=since,
            until=until,
            before=before,
            helpful=helpful,
            user=user,
            limit=limit,
        )
        return json_response(await ask(bus, who, TURN_LIST, wanted))

    @routes.get(TURNS + "/{id}", responses=route_responses(Turn))
    async def get_turn(
        id: TurnId,
        who: Caller,
        include: Annotated[Literal["trace"] | None, Query(description="`trace` for the trace of its answer.")] = None,
    ) -> Response:
        """Get a turn.

        Where it is, with its reply or its problem once it has ended. With `include=trace` the trace of its answer too.
        """
        turn = await turns.state(who, id)
        if include == "trace":
            trace = await ask(bus, who, TURN_TRACE, TraceOfTurn(turn_id=id))
            turn = turn.model_copy(update={"trace": trace})
        return json_response(turn)

    @routes.delete(TURNS + "/{id}", responses=route_responses(Turn) | refusals(409))
    async def cancel_turn(id: TurnId, who: Caller) -> Response:
        """Cancel a turn.

        One that has ended answers 409, with its end in `turn`.
        """
        try:
            return json_response(await ask(bus, who, TURN_CANCEL, TurnRef(turn_id=id)))
        except TurnEnded as error:
            return error_response(error, turn=(await turns.state(who, id)).model_dump(mode="json"))

    @routes.post(TURNS + "/{id}/retry", status_code=202, responses=route_responses(Turn, 202) | refusals(402))
    async def retry_turn(id: TurnId, who: Caller, key: IdempotencyKey) -> Response:
        """Try a failed or parked turn again.

        A new turn is made of the same message, linked to the old one by `retry_of`.
        """
        turn = await ask(bus, who, TURN_RETRY, TurnRef(turn_id=id), key=scope_idempotency_key(who, key))
        return json_response(turn, 202, _location(turn.turn_id))

    @routes.put(TURNS + "/{id}/feedback", responses=route_responses(Turn) | refusals(409))
    async def rate_turn(id: TurnId, given: FeedbackGiven, who: Caller) -> Response:
        """Say whether an answer was of help.

        With a remark, if you like. What you said before about this turn is replaced. It is kept with the turn and goes with it;
        your tenant's administrators can read it. A turn that has not ended is a 409.
        """
        return json_response(await ask(bus, who, TURN_RATE, RateTurn(turn_id=id, **given.model_dump())))

    @routes.delete(TURNS + "/{id}/feedback", responses=route_responses(Turn) | refusals(409))
    async def unrate_turn(id: TurnId, who: Caller) -> Response:
        """Take back what you said about an answer.

        A second time changes nothing.
        """
        return json_response(await ask(bus, who, TURN_RATE, RateTurn(turn_id=id)))

    @routes.post(TURNS + "/{id}/replay", responses=route_responses(Replayed) | refusals(402, 409))
    async def replay_turn(id: TurnId, given: ReplayGiven, who: Caller) -> Response:
        """Run a turn again on its record.

        An ended turn is answered once more from the tool results that were recorded, with the same or other instructions, and
        the difference is shown. Nothing is written; the model calls are paid for. 409 where it cannot be.
        """
        return json_response(
            await ask(bus, who, TURN_REPLAY, ReplayTurn(turn_id=id, with_instructions=given.with_instructions))
        )

    @routes.get(TURNS + "/{id}/trace", responses=route_responses(TurnTrace))
    async def get_trace(id: TurnId, who: Caller) -> Response:
        """Get the spans of a turn.

        Those that the services still remember; services that did not answer stand in `missing`.
        """
        turn = await turns.state(who, id)
        return json_response(await traces.of(who, id, turn.trace_id))

    return routes


async def accepted_response(turns: TurnService, who: Principal, turn: SubmittedTurn) -> Response:
    """202: where an accepted turn is, and where to look for it."""
    return json_response(await turns.accepted(who, turn), 202, _location(turn.turn_id))


def ended_response(turn: Turn) -> Response:
    """The reply of an ended turn, or why it has none."""
    if turn.reply is not None:
        return json_response(turn.reply)
    more = {"turn_id": turn.turn_id, "conversation_id": turn.conversation_id, "instance": f"{TURNS}/{turn.turn_id}"}
    if turn.problem is not None:
        return turn_problem_response(turn.problem, **more)
    return error_response(TurnEnded(f"the turn ended without a reply: it is {turn.status}"), **more)


def _location(turn: str) -> dict[str, str]:
    return {"Location": f"{TURNS}/{turn}"}


CHAT = "/api/v1/chat/message"
_NAMES = {"currentMessageText": "query"}
"""Fields of a message as this endpoint names them."""


class ChatGiven(Given):
    """A question to an analyst."""

    query: str = Field(min_length=1, max_length=MAX_TEXT, json_schema_extra={"format": "not-blank"})
    """The question, up to 100,000 characters."""
    conversation_id: str | None = Field(default=None, min_length=1, max_length=64)
    """The conversation to go on with; a new one is begun without it."""
    agent: str = Field(default="noor", min_length=1, max_length=64, json_schema_extra={"format": "analyst"})
    """The analyst to ask, `noor` or `maestro`."""

    @field_validator("query")
    @classmethod
    def _not_blank(cls, query: str) -> str:
        if not query.strip():
            raise ValueError("a question has words")
        return query


def chat_router(authenticator: Authenticator, turns: TurnService, wait: float) -> APIRouter:
    """The route. `wait`: seconds that the endpoint waits for a turn's end."""
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["chat"])

    @routes.post(CHAT, responses=route_responses(Analysed) | route_responses(AcceptedTurn, 202) | refusals(402, 404))
    async def ask_analyst(chat: ChatGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Ask an analyst and wait for the answer.

        With data, insights and charts. Where the turn does not end in time the answer is a 202 with its id, and the turn goes
        on.
        """
        given = {"conversation_id": chat.conversation_id, "current_message_text": chat.query, "agent": chat.agent}
        message = MessageGiven(**{name: value for name, value in given.items() if value is not None})
        try:
            async with turns.submitted(who, message, key) as turn:
                found = await turns.ended(who, turn, wait)
                return _analysis_response(found) if found else await accepted_response(turns, who, turn)
        except TurnRefused as refused:
            problem = refused.problem
            return turn_problem_response(problem.model_copy(update={"field": _NAMES.get(problem.field or "", problem.field)}))

    return routes


def _analysis_response(turn: Turn) -> Response:
    if turn.reply is None:
        return ended_response(turn)
    if turn.reply.analysis is not None:
        return Response(analysis_with_turn(turn.reply, turn.reply.analysis).sent(), media_type="application/json")
    if "instructions" in turn.reply.degraded:
        raise Unavailable("the agent's instructions could not be had", retry_after=1)
    raise BadRequest("this agent gives no analysis; send it messages by /api/v1/conversations/messages", field="agent")


_TURN_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: `accepted`, `phase`, `waiting` (for an approval), `live` and `restart` (provisional text), "
        "`ended`, `text` (or `executive_summary` and `analysis`), `done`.",
        "content": {"text/event-stream": {}},
    }
}


class TicketMade(BaseModel):
    """A ticket for one turn's events."""

    ticket: str
    """The ticket itself."""
    url: str
    """Address that opens the stream, with the ticket in it."""
    expires_at: int
    """When the ticket ends, in seconds since the epoch."""


def events_router(
    authenticator: Authenticator,
    turns: TurnService,
    watch: Watch[TurnProgress],
    streams: OpenStreams,
    tickets: Tickets,
    seconds: float,
) -> APIRouter:
    """The routes. `seconds`: how long a stream may be open."""
    routes = APIRouter(responses=PROBLEMS, tags=["events"])
    keyed_routes = APIRouter(route_class=authenticated_route(authenticator, READ))

    @routes.get("/api/v1/turns/{id}/events", status_code=200, response_class=EventStream, responses=_TURN_EVENTS)
    async def watch_turn(
        request: Request,
        id: TurnId,
        authorization: Annotated[object, Security(BEARER)],
        ticket: Annotated[str | None, Query(max_length=1_024, description="In place of a key, for browsers.")] = None,
        last_event_id: Annotated[
            str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{0,19}$", description="Id of the last event received.")
        ] = None,
    ) -> Response:
        """Watch a turn.

        Its progress, then the reply's text and its end; of an analyst the summary and the whole answer.

        Reconnect with the id of the last event. What is made from the turn's end (`ended`, `text`, `executive_summary`,
        `analysis`, `done`) has the id of the last progress event, so a reader that comes back with it gets them all again; a
        `text` event says that it is part `k` of `n`.

        Agents whose profile allows it show their reply while a model writes it: `live` events hold pieces of it, with the
        attempt and the offset in characters. They are provisional: `restart` says to drop them, and `text` takes their place.
        """
        who = (
            await authenticator.by_ticket(ticket, id) if ticket is not None else await authenticator.by_headers(request.headers)
        )
        assert who.key is not None
        seen = parse_last_event_id(last_event_id)
        await turns.state(who, id)
        holder = who.key
        return EventStream(Events(turns, watch, who, id, seen).stream(), seconds, lambda: streams.opened(holder))

    @keyed_routes.post("/api/v1/turns/{id}/ticket", status_code=201, responses=route_responses(TicketMade, 201))
    async def make_ticket(id: TurnId, who: Caller) -> Response:
        """Make a ticket to watch a turn with.

        A browser's `EventSource` cannot send a key; the ticket goes in the address instead. It opens this turn's events
        alone, once, within a minute: to connect again, make another one.
        """
        await turns.state(who, id)
        assert who.key is not None
        ticket = tickets.make(who.key, id, who.user if who.acted_by else None)
        url = f"/api/v1/turns/{id}/events?ticket={ticket.text}"
        return json_response(TicketMade(ticket=ticket.text, url=url, expires_at=ticket.expires_at), 201)

    routes.include_router(keyed_routes)
    return routes


TaskId = Annotated[str, Path(description="The task's id, which is that of its turn."), ID_FORM]
TASKS = "/api/v1/tasks"
_TASK_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: `accepted`, `phase` (`plan`, `wave_started`, `step_finished`, `wave_finished`, `plan_adjusted`,"
        " `task_ended` among them), `ended`, `executive_summary` and `analysis`, `done`.",
        "content": {"text/event-stream": {}},
    }
}


_REPORTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The report as a file.", "content": {media: {} for media in MEDIA_TYPES.values()}}
}


class TaskGiven(Given):
    """A goal to work on in the background, and what may be used for it."""

    goal: str = Field(min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    """What to find out or to do, up to 4,000 characters."""
    agent: str = Field(default=DEFAULT_AGENT, min_length=1, max_length=64, json_schema_extra={"format": "agent"})
    """The agent whose tools and texts are used."""
    budget: TaskBudget = TaskBudget()
    """What the task may use."""
    dry_run: StrictBool = Field(default=False, alias="dry_run")
    """Whether it ends with its plan: nothing is done, saved or learnt; model calls are paid for."""


class TaskAnswerGiven(Given):
    """The answer to what a task asks."""

    answer: str = Field(min_length=1, max_length=4_000, pattern=r"\S")
    """In your own words, or one of the choices."""


class OutcomeGiven(Given):
    """What you say of a task's result."""

    accepted: StrictBool
    """Whether the result is what was asked for."""
    comment: str = Field(default="", max_length=MAX_COMMENT)
    """Why, up to 1,000 characters."""


def tasks_router(
    authenticator: Authenticator, bus: Bus, turns: TurnService, watch: Watch[TurnProgress], streams: OpenStreams, seconds: float
) -> APIRouter:
    """The routes. `seconds`: how long a stream may be open."""
    typesetter = Typesetter()
    routes = APIRouter(responses=PROBLEMS, tags=["tasks"])
    keyed_routes = APIRouter(route_class=authenticated_route(authenticator))

    @keyed_routes.post(TASKS, status_code=202, responses=route_responses(AcceptedTurn, 202) | refusals(402, 404))
    async def submit_task(task: TaskGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Start a background task.

        The answer is a 202 once it is stored: it will end exactly once. Its id is that of its turn.
        A dry run ends with its plan: what each step would do stands in `progress.calls`.
        """
        order = SubmitTask(goal=task.goal, agent=task.agent, budget=task.budget, dry_run=task.dry_run)
        try:
            async with turns.ordered(who, order, key) as turn:
                return json_response(await turns.accepted(who, turn), 202, {"Location": f"{TASKS}/{turn.turn_id}"})
        except TurnRefused as refused:
            return turn_problem_response(refused.problem)

    @keyed_routes.get(TASKS, responses=route_responses(Tasks))
    async def list_tasks(
        who: Caller,
        status: Annotated[TurnStatus | None, Query(description="Only tasks with this status.")] = None,
        limit: Annotated[int, Query(ge=1, le=100, description="Tasks at most.")] = 20,
    ) -> Response:
        """List your tasks.

        The caller's, newest first, without their reports.
        """
        return json_response(await ask(bus, who, TASK_LIST, ListTasks(status=status, limit=limit)))

    @keyed_routes.get(TASKS + "/{id}", responses=route_responses(Task))
    async def get_task(id: TaskId, who: Caller) -> Response:
        """Get a task.

        Its plan with what became of each step, its score, and its report once it has ended.
        """
        return json_response(await ask(bus, who, TASK_GET, TaskRef(task_id=id)))

    @keyed_routes.get(TASKS + "/{id}/report", response_class=Response, responses=_REPORTS | refusals(409))
    async def get_report(
        id: TaskId,
        who: Caller,
        format: Annotated[
            ReportFormat | None, Query(description="The form; without it the one that `Accept` prefers, else Markdown.")
        ] = None,
        accept: Annotated[str, Header(max_length=1_024, description="Media types of the forms, the best by weight.")] = "",
    ) -> Response:
        """Get a task's report as a file.

        As Markdown, as one HTML page that needs nothing else, or as a PDF. 409 while the task goes on, and for a PDF of more
        than 200 pages; 404 for a task that ended without a report.
        """
        task = await ask(bus, who, TASK_GET, TaskRef(task_id=id))
        return await report_response(who, task, format or chosen_format(accept), typesetter)

    @keyed_routes.delete(TASKS + "/{id}", responses=route_responses(Task) | refusals(409))
    async def cancel_task(id: TaskId, who: Caller) -> Response:
        """Cancel a task.

        What runs of it is stopped. One that has ended answers 409.
        """
        return json_response(await ask(bus, who, TASK_CANCEL, TaskRef(task_id=id)))

    @keyed_routes.post(TASKS + "/{id}/answer", responses=route_responses(Task) | refusals(409))
    async def answer_task(id: TaskId, given: TaskAnswerGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Answer what a task asks.

        The task goes on. One that asks nothing answers 409.
        """
        answer = AnswerTask(task_id=id, answer=given.answer)
        return json_response(await ask(bus, who, TASK_ANSWER, answer, key=scope_idempotency_key(who, key)))

    @keyed_routes.post(TASKS + "/{id}/outcome", responses=route_responses(Task) | refusals(409))
    async def set_task_outcome(id: TaskId, given: OutcomeGiven, who: Caller) -> Response:
        """Accept or reject a task's result.

        Only what was accepted is learnt from; a rejection lowers the strategies that the task used. You may say otherwise
        later, and the same again changes nothing. A task that has not ended answers 409, and so does one without a report that
        you accept. Where memory is away the answer is a 503: your word is kept, and is learnt from when you send it again.
        """
        said = TaskOutcome(task_id=id, accepted=given.accepted, comment=given.comment)
        return json_response(await ask(bus, who, TASK_OUTCOME, said))

    @routes.get(TASKS + "/{id}/events", status_code=200, response_class=EventStream, responses=_TASK_EVENTS)
    async def watch_task(
        request: Request,
        id: TaskId,
        authorization: Annotated[object, Security(BEARER)],
        ticket: Annotated[str | None, Query(max_length=1_024, description="In place of a key, for browsers.")] = None,
        last_event_id: Annotated[
            str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{0,19}$", description="Id of the last event received.")
        ] = None,
    ) -> Response:
        """Watch a task.

        As a turn is watched; 404 for a turn that is no task.
        """
        who = (
            await authenticator.by_ticket(ticket, id) if ticket is not None else await authenticator.by_headers(request.headers)
        )
        assert who.key is not None
        seen, holder = parse_last_event_id(last_event_id), who.key
        await ask(bus, who, TASK_GET, TaskRef(task_id=id))
        return EventStream(Events(turns, watch, who, id, seen).stream(), seconds, lambda: streams.opened(holder))

    routes.include_router(keyed_routes)
    return routes


SCHEDULES = "/api/v1/schedules"
ScheduleId = Annotated[str, Path(description="The schedule's id."), ID_FORM]
_CHANGES = {"goal": None, "cron": "cron", "time_zone": "time-zone", "agent": "agent", "budget": None, "enabled": None}
_AS_ANSWERED = ConfigDict(alias_generator=None)
"""Fields have the names that they have in answers."""
_WITHOUT_ZONE = {"not": {"required": ["time_zone"], "properties": {"time_zone": {"type": "string"}}}}
_EXPRESSION = "Minute, hour, day of the month, month and day of the week, as in `0 8 * * 1`."


class NodeTriggerGiven(Given):
    """Nodes of the constitutional graph that were made or changed."""

    model_config = _AS_ANSWERED | ConfigDict(
        json_schema_extra={"anyOf": [require_field("property"), {"properties": {"value": {"type": "null"}}}]}
    )
    event: Literal["node_changed"]
    """What happens."""
    type: str | None = Field(default=None, min_length=1, max_length=64, json_schema_extra={"format": "node-type"})
    """Only nodes of this type, such as `task`."""
    property: str | None = Field(default=None, min_length=1, max_length=100)
    """Only where this property of the node was changed."""
    value: str | None = Field(default=None, max_length=500)
    """Only where the property has this value now."""

    @model_validator(mode="after")
    def _value_of_property(self) -> Self:
        if self.value is not None and self.property is None:
            raise ValueError("a value belongs to a property")
        return self


class FileTriggerGiven(Given):
    """Files that you upload."""

    model_config = _AS_ANSWERED
    event: Literal["file_arrived"]
    """What happens."""
    type: MediaKind | None = None
    """Only files of this kind."""


class ScheduleGiven(Given):
    """A goal to work on at the times of a cron expression, or whenever an event happens."""

    model_config = _AS_ANSWERED | ConfigDict(
        json_schema_extra={"anyOf": [only_one_of("cron", "on"), only_one_of("on", "cron", "object") | _WITHOUT_ZONE]}
    )
    goal: str = Field(min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    """What to find out or to do at each run, up to 4,000 characters. `{node}` and `{file}` stand for the ids of an event."""
    cron: str | None = Field(
        default=None, min_length=9, max_length=200, description=_EXPRESSION, json_schema_extra={"format": "cron"}
    )
    on: Annotated[NodeTriggerGiven | FileTriggerGiven, Field(discriminator="event")] | None = None
    """The events that start runs, in place of `cron`."""
    time_zone: str = Field(default="UTC", min_length=1, max_length=64, json_schema_extra={"format": "time-zone"})
    """The IANA name of the time zone that the expression is meant in."""
    agent: str = Field(default=DEFAULT_AGENT, min_length=1, max_length=64, json_schema_extra={"format": "agent"})
    """The agent whose tools and texts are used."""
    budget: TaskBudget = TaskBudget()
    """What each run may use."""
    enabled: StrictBool = True
    """Whether it starts runs."""

    @model_validator(mode="after")
    def _times_or_events(self) -> Self:
        if (self.cron is None) == (self.on is None):
            raise ValueError("give `cron` or `on`")
        if self.on is not None and "time_zone" in self.model_fields_set:
            raise ValueError("`time_zone` belongs to `cron`")
        return self


class ScheduleChanged(Given):
    """New values for a schedule, one at least; what is left out stays as it is."""

    model_config = _AS_ANSWERED | ConfigDict(json_schema_extra={"anyOf": [require_field(*each) for each in _CHANGES.items()]})
    goal: str | None = Field(default=None, min_length=1, max_length=MAX_GOAL, pattern=r"\S")
    """What to find out or to do at each run."""
    cron: Annotated[str, Field(min_length=9, max_length=200, json_schema_extra={"format": "cron"})] | None = Field(
        default=None, description=_EXPRESSION
    )
    time_zone: Annotated[str, Field(min_length=1, max_length=64, json_schema_extra={"format": "time-zone"})] | None = None
    """The IANA name of the time zone that the expression is meant in."""
    agent: Annotated[str, Field(min_length=1, max_length=64, json_schema_extra={"format": "agent"})] | None = None
    """The agent whose tools and texts are used."""
    budget: TaskBudget | None = None
    """What each run may use."""
    enabled: StrictBool | None = None
    """`false` pauses it, `true` resumes it with the rights of the key that asks."""


def schedules_router(authenticator: Authenticator, bus: Bus) -> APIRouter:
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["tasks"])

    @routes.post(SCHEDULES, status_code=201, responses=route_responses(Schedule, 201))
    async def add_schedule(schedule: ScheduleGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Make a schedule.

        At each of its times, or at each of its events, a background task is started that acts for you, with the rights that
        your key was last seen to have. Where the last one has not ended, a time starts none; events start 12 within an hour at
        most.
        """
        given, scoped = schedule.model_dump(), scope_idempotency_key(who, key)
        if schedule.on is None:
            made = await ask(bus, who, SCHEDULE_ADD, AddSchedule.model_validate(given), key=scoped)
        else:
            made = await ask(bus, who, TRIGGER_ADD, AddTrigger.model_validate(given), key=scoped)
        return json_response(made, 201, {"Location": f"{SCHEDULES}/{made.schedule_id}"})

    @routes.get(SCHEDULES, responses=route_responses(Schedules))
    async def list_schedules(
        who: Caller, limit: Annotated[int, Query(ge=1, le=MAX_SCHEDULES, description="Schedules at most.")] = MAX_SCHEDULES
    ) -> Response:
        """List your schedules.

        The caller's, oldest first, with the next times of each.
        """
        return json_response(await ask(bus, who, SCHEDULE_LIST, ListSchedules(limit=limit)))

    @routes.get(SCHEDULES + "/{id}", responses=route_responses(Schedule))
    async def get_schedule(id: ScheduleId, who: Caller) -> Response:
        """Get a schedule.

        With the next times, the last run, and why it is paused, where that was not your doing.
        """
        return json_response(await ask(bus, who, SCHEDULE_GET, ScheduleRef(schedule_id=id)))

    @routes.patch(SCHEDULES + "/{id}", responses=route_responses(Schedule))
    async def change_schedule(change: ScheduleChanged, id: ScheduleId, who: Caller, key: IdempotencyKey) -> Response:
        """Change, pause or resume a schedule.

        It acts with the key that changed it last.
        """
        stated = change.model_dump(exclude_none=True)
        if not stated:
            raise BadRequest("say what is to be changed")
        wanted = ChangeSchedule(schedule_id=id, **stated)
        return json_response(await ask(bus, who, SCHEDULE_CHANGE, wanted, key=scope_idempotency_key(who, key)))

    @routes.delete(SCHEDULES + "/{id}", responses=route_responses(Schedule))
    async def remove_schedule(id: ScheduleId, who: Caller) -> Response:
        """Remove a schedule.

        A run that it has started goes on.
        """
        return json_response(await ask(bus, who, SCHEDULE_REMOVE, ScheduleRef(schedule_id=id)))

    return routes
