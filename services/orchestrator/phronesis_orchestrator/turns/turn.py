"""A turn: new, accepted, claimed and ended, and how long it may take."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from pydantic import BaseModel, ConfigDict

from phronesis_contracts import (
    BadRequest,
    Busy,
    ExpiredWaiting,
    Label,
    NotFound,
    Principal,
    ServiceError,
    TimedOut,
    Unavailable,
)
from phronesis_contracts.orchestrator import (
    Directive,
    Problem,
    Reply,
    StartingEvent,
    SubmitTurn,
    ToolOutcome,
    TurnStatus,
)
from phronesis_contracts.tasks import MAX_GOAL

from ..understanding.plan import Focus

_CONVERSATIONS = UUID("0f4f7f0a-1f1c-5a43-8b55-0c5d3f3c2a10")


class LostClaim(Exception):
    """The fence is no longer mine: the turn was cancelled, or another worker has it. Nothing more may be written."""


class AlreadyBegun(Exception):
    """A step that may be begun once was begun by an earlier attempt, and nobody knows what came of it."""


class Deferred(Exception):
    """What the turn needs does not answer: the attempt is over, and the turn goes on later where its journal stands.

    It is no `ServiceError`, so that no loop takes it for the failure of the call itself.
    """

    def __init__(self, error: ServiceError, *, progressed: bool = False) -> None:
        super().__init__(error.code)
        self.error = error
        self.progressed = progressed
        """Whether the attempt added something to the journal."""


class Wait(BaseModel):
    """A turn that was put back: what it waits for, and how often in a row that did not answer."""

    model_config = ConfigDict(frozen=True)

    service: str
    """The service or store."""
    code: str
    """How it failed."""
    tries: int = 1


_PASSING = frozenset({TimedOut.code, Busy.code})
_MOST_TIMEOUTS = 6
"""Times in a row that a turn is put back since an answer was late: a call that is always late is mended by no retry."""


def may_pass(error: ServiceError) -> bool:
    """Whether it says that a service or a store is away or has too much to do, which may be otherwise in a moment.

    An error of something else, such as a page that cannot be fetched, says of no time after which a repeat may succeed.
    """
    away = error.code == Unavailable.code and error.retry_after is not None
    return error.dependency is not None and (away or error.code in _PASSING)


def wait_after(error: ServiceError, before: Wait | None, *, progressed: bool) -> Wait | None:
    """The wait that a turn is put back for; `None` where it is not, since no retry would mend it.

    Args:
        before: what the turn waited for before this attempt.
        progressed: whether the attempt added something to the journal, so that the count begins anew.
    """
    if error.dependency is None or not may_pass(error):
        return None
    again = before is not None and not progressed and (before.service, before.code) == (error.dependency, error.code)
    tries = before.tries + 1 if before is not None and again else 1
    if error.code == TimedOut.code and tries > _MOST_TIMEOUTS:
        return None
    return Wait(service=error.dependency, code=error.code, tries=tries)


def retry_delay(wait: Wait, error: ServiceError, first: float, longest: float) -> float:
    """Seconds until a turn is tried again, not before a service that has too much to do asks for it.

    They are drawn evenly below a limit that doubles, so that those who failed together do not come back together.

    Args:
        first: the limit of the first wait.
        longest: the greatest limit.
    """
    drawn = random.uniform(0, min(longest, first * 2 ** min(wait.tries - 1, 30)))
    asked = error.retry_after or 0.0 if error.code == Busy.code else 0.0
    return min(longest, asked + drawn)


def new_conversation_id(turn_id: str) -> str:
    """The id of the conversation that a turn begins; the same for every repeat of the turn."""
    return str(uuid5(_CONVERSATIONS, turn_id))


def parse_uuid(text: str, what: str, *, field: str | None = None) -> UUID:
    """The UUID in `text`; whatever is none is as unknown as an id that nobody has."""
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound(f"no such {what}", field=field) from error


@dataclass(frozen=True)
class NewTurn:
    id: str
    who: Principal
    request: SubmitTurn
    fingerprint: str
    expiry: float
    """Seconds from now."""
    traceparent: str | None
    correlation_id: str | None


@dataclass(frozen=True)
class Offer:
    """A free slot, for a turn that is being accepted."""

    worker: str
    """Name of the worker."""
    lease: float
    """Seconds that a claim lasts."""


@dataclass(frozen=True)
class Claim:
    """A turn that this worker runs, under a fence and a lease."""

    turn_id: str
    conversation_id: str
    who: Principal
    agent: str
    request: SubmitTurn
    fence: int
    attempts: int
    idle_claims: int
    expired: bool
    key_revoked: bool
    created_at: datetime
    traceparent: str | None
    correlation_id: str | None
    wait: Wait | None = None
    """What it was put back for when it was tried last."""

    @property
    def dry(self) -> bool:
        """Whether nothing is to be done, kept as said, or learnt from."""
        return self.request.task is not None and self.request.task.dry_run_of is not None


@dataclass(frozen=True)
class Accepted:
    """A turn's row is committed; `status` is where it is by now."""

    turn_id: str
    conversation_id: str
    status: TurnStatus
    claim: Claim | None = None
    """The claim of the worker that offered a slot, which has to run the turn; `None` where it is queued."""


@dataclass(frozen=True)
class Completed:
    """The good end of a turn: what is said, and the stance for the next turn with its reason."""

    reply: Reply
    user_text: str
    """The user's own words, as the history shows them."""
    directive: Directive
    reasoning: str
    tools: tuple[ToolOutcome, ...] = ()
    """What came of its tool calls, in their order."""
    tier: str | None = None
    recalled: tuple[str, ...] = ()
    """Ids of what memory put before the turn."""
    focus: Focus | None = None
    """What the conversation is about from now on; as before where it is `None`."""
    attached: tuple[str, ...] = ()
    """Names of the files that were attached to the message."""
    labels: tuple[Label, ...] = ()
    """Where the texts come from that the reply may rest on; not known where there is none, since a turn has a message."""


@dataclass(frozen=True)
class Failed:
    status: TurnStatus
    problem: Problem
    tools: tuple[ToolOutcome, ...] = ()
    tier: str | None = None
    labels: tuple[Label, ...] = ()
    """Where the texts come from that were before the turn; not known where there is none."""


def problem_from_error(error: ServiceError) -> Problem:
    """An error as the end of a turn states it."""
    return Problem.model_validate(error.body())


def expired_problem(wait: Wait | None) -> Problem:
    """The problem of a turn that expired, which names what it waited for."""
    if wait is None:
        return problem_from_error(TimedOut("the turn did not end before it expired"))
    error = ExpiredWaiting(f"the turn expired while it waited for {wait.service}, which did not answer")
    return problem_from_error(error).model_copy(update={"waiting_for": wait.service})


ENDING = 90.0
"""Seconds beyond the budget in which a task's report is written and saved."""


def attempt_limit(claim: Claim, turn_limit: float) -> float:
    """Seconds that one attempt may take: a task's own budget with time for its report; else `turn_limit`."""
    order = claim.request.task
    return order.budget.seconds + ENDING if order is not None else turn_limit


def expiry_seconds(request: SubmitTurn, expiry: float) -> float:
    """Seconds from acceptance after which a turn that has not ended fails; a task's budget is added to them."""
    return expiry + request.task.budget.seconds + ENDING if request.task is not None else expiry


def with_goal(request: SubmitTurn) -> SubmitTurn:
    """A message with its goal as the text, wherever that stands."""
    goal = request.task.dry_run_of if request.task is not None else None
    return request if goal is None else request.model_copy(update={"text": goal})


PLACEHOLDERS: Mapping[str, str] = {"node_changed": "{node}", "file_arrived": "{file}"}
"""What stands in a goal for the ids of an event, by the event."""


def starting_event(request: SubmitTurn) -> StartingEvent | None:
    """The event that started a task; `None` where none did."""
    run = request.task.schedule if request.task is not None else None
    return run.event if run is not None else None


def goal_ids(request: SubmitTurn) -> dict[str, str]:
    """The ids that an event put into the goal, with what stands for each in its owner's words."""
    event = starting_event(request)
    place = PLACEHOLDERS[event.event] if event is not None else ""
    return {thing.id: place for thing in event.things} if event is not None and place in request.text else {}


def fill_goal(request: SubmitTurn, ids: Mapping[str, str] | None = None) -> str:
    """The text of a turn with the ids of its event. `ids`: what to write in place of some; all as they are without it."""
    event = starting_event(request)
    if event is None:
        return request.text
    written = ", ".join((ids or {}).get(thing.id, thing.id) for thing in event.things)
    return request.text.replace(PLACEHOLDERS[event.event], written)


def hash_request(request: SubmitTurn) -> str:
    """Hash of a message: a turn without a later field has the one that it had before there was that field."""
    later: dict[str, Any] = {name: True for name in ("task", "client") if getattr(request, name) is None}
    if request.task is not None:
        later["task"] = {name: True for name in ("schedule", "dry_run_of") if getattr(request.task, name) is None}
        if request.task.schedule is not None and request.task.schedule.event is None:
            later["task"]["schedule"] = {"event"}
    return hashlib.sha256(request.model_dump_json(exclude=later).encode()).hexdigest()


def check_task_order(request: SubmitTurn) -> None:
    """Hold a turn to what a task may be.

    Raises:
        BadRequest: it stands in a conversation that it would block, or carries media or what a client adds, or its goal is too
            long.
    """
    if request.task is None:
        return
    if request.task.schedule is not None:
        raise BadRequest("only a schedule starts its runs", field="task")
    if request.client is not None:
        raise BadRequest("a background task takes no tools and no form of a client's", field="client")
    if request.conversation_id is not None:
        raise BadRequest("a background task has a conversation of its own", field="conversation_id")
    if request.media:
        raise BadRequest("a background task takes no media", field="currentMessageMedia")
    if not request.text.strip():
        raise BadRequest("a task needs a goal", field="goal")
    if len(request.text) > MAX_GOAL:
        raise BadRequest(f"a goal has at most {MAX_GOAL} characters", field="goal")
