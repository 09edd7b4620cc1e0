"""What a turn is made of while it runs: claims, steps, and the context of the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.orchestrator import Directive, Problem, Reply, SubmitTurn, ToolOutcome, TurnStatus

_CONVERSATIONS = UUID("0f4f7f0a-1f1c-5a43-8b55-0c5d3f3c2a10")


class LostClaim(Exception):
    """The fence is no longer mine: the turn was cancelled, or another worker has it. Nothing more may be written."""


class AlreadyBegun(Exception):
    """A step that may be begun once was begun by an earlier attempt, and nobody knows what came of it."""


def new_conversation_id(turn_id: str) -> str:
    """The id of the conversation that a turn begins; the same for every repeat of the turn."""
    return str(uuid5(_CONVERSATIONS, turn_id))


@dataclass(frozen=True)
class NewTurn:
    """A turn to accept."""

    id: str
    who: Principal
    request: SubmitTurn
    fingerprint: str
    expiry: float
    """Seconds from now."""
    traceparent: str | None
    correlation_id: str | None


@dataclass(frozen=True)
class Accepted:
    """A turn's row is committed; `status` is where it is by now."""

    turn_id: str
    conversation_id: str
    status: TurnStatus


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


@dataclass(frozen=True)
class Completed:
    """The good end of a turn: what is said, and the stance for the next turn with its reason."""

    reply: Reply
    user_text: str
    """The user's message as the history shows it."""
    directive: Directive
    reasoning: str
    tools: tuple[ToolOutcome, ...] = ()
    """What came of its tool calls, in their order."""
    tier: str | None = None
    recalled: tuple[str, ...] = ()
    """Ids of what memory put before the turn."""


@dataclass(frozen=True)
class Failed:
    """The end of a turn that has no reply."""

    status: TurnStatus
    problem: Problem
    tools: tuple[ToolOutcome, ...] = ()
    tier: str | None = None


def problem_of(error: ServiceError) -> Problem:
    """An error as the end of a turn states it."""
    return Problem.model_validate(error.body())
