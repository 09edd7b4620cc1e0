"""Approvals: calls that an agent wants to make and that a person has to allow first."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from .errors import Conflict, Forbidden
from .messages import Message, Rpc
from .origins import Label, OriginKind
from .tools import Effect

MAX_NOTE = 1_000
"""Characters of what a person says with an answer."""


class ApprovalAnswered(Conflict):
    """The approval is not open any more: it was answered otherwise, ran out, or its turn was cancelled."""

    code = "approval_answered"


class ApprovalRefused(Forbidden):
    """A person refused the call; the agent is told so, and goes on without it."""

    code = "approval_refused"


class ApprovalExpired(Conflict):
    """Nobody answered in time: the turn ends with it."""

    code = "approval_expired"


class ApprovalStatus(StrEnum):
    """Where an approval is. It leaves `pending` once."""

    PENDING = "pending"
    GRANTED = "granted"
    REFUSED = "refused"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Decision(StrEnum):
    """What a person answers."""

    APPROVE = "approve"
    REFUSE = "refuse"


class ApprovalScope(StrEnum):
    """What an approval is given for."""

    ONCE = "once"
    """The very call."""
    CONVERSATION = "conversation"
    """Calls of the tool in this conversation that are asked about because of the same kinds of origins."""
    RULE = "rule"
    """The same in every conversation of the user, until they take the rule back. No irreversible call can have one."""


class Ruling(StrEnum):
    """What the policy says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    """A person has to allow it first."""
    REFUSE = "refuse"


class ActionRule(Message):
    """What becomes of calls with one effect that depend on texts of one origin."""

    origin: OriginKind
    effect: Effect
    ruling: Ruling


class ActionPolicy(Message):
    """What agents of a tenant may do because of untrusted texts."""

    version: int = 0
    """Counted up by each change; 0 is the policy that the system comes with."""
    rules: tuple[ActionRule, ...] = Field(default=(), max_length=100)
    """Where none fits, what depends on untrusted text waits for a person, and the rest runs as its risk says."""
    egress: tuple[str, ...] = Field(default=(), max_length=200)
    """Hosts that agents may send data to without asking: `example.org`, or `*.example.org` with all below it."""
    approval_seconds: float = Field(default=7 * 24 * 3600.0, ge=60, le=90 * 24 * 3600)
    """Seconds that an approval waits for its answer."""

    def ruling(self, origin: OriginKind, effect: Effect) -> Ruling:
        """What becomes of a call with an effect that depends on a text of this origin."""
        if effect is Effect.READ:
            return Ruling.ALLOW
        stated = next((rule.ruling for rule in self.rules if rule.origin is origin and rule.effect is effect), None)
        return stated or (Ruling.ALLOW if Label(kind=origin).trusted else Ruling.ASK)


class Approval(Message):
    """One call that waits for a person, or did."""

    approval_id: str
    """Its id."""
    turn_id: str
    """The turn that waits for it."""
    conversation_id: str
    """The conversation of that turn."""
    user: str
    """Whose turn it is."""
    agent: str
    """The agent that wants to make the call."""
    tool: str
    """The tool that is to be called."""
    action: str = ""
    """Which of the tool's actions it is, where the arguments decide how much is at stake."""
    arguments: dict[str, Any]
    """What the tool is to be called with, secrets masked."""
    arguments_sha256: str
    """Hash of the exact arguments: nothing else will be called."""
    risk: str
    """`read`, `low`, `medium` or `high`."""
    irreversible: bool
    """Whether the call cannot be undone."""
    reason: str
    """Why a person is asked."""
    effect: Effect = Effect.WRITE
    """What the call does beyond its answer."""
    because: tuple[Label, ...] = ()
    """The untrusted texts that the agent had read when it wanted to make the call; none where its risk alone is the reason."""
    status: ApprovalStatus
    """Where it is; only one that is `pending` can be answered."""
    created_at: datetime
    """When the agent asked."""
    expires_at: datetime
    """When it runs out unanswered, and its turn ends."""
    answered_at: datetime | None = None
    """When somebody answered; absent until then."""
    answered_by: str | None = None
    """The user who answered; absent until then."""
    note: str = ""
    """What was said with the answer."""


class ApprovalRef(Message):
    """One approval by id."""

    approval_id: str


class ListApprovals(Message):
    """The caller's approvals, newest first; an admin's are those of the tenant."""

    status: ApprovalStatus | None = None
    limit: int = Field(default=20, ge=1, le=200)


class Approvals(Message):
    """A list of approvals."""

    approvals: tuple[Approval, ...]
    """The approvals, the newest first."""


class AnswerApproval(Message):
    """A person's answer. The turn's user gives it, or an admin of the tenant."""

    approval_id: str
    decision: Decision
    scope: ApprovalScope = ApprovalScope.ONCE
    """What it is given for; of a refusal always the very call."""
    note: str = Field(default="", max_length=MAX_NOTE)
    """Said with it; of a refusal the agent is told it."""


# No tools: models and agents have no way to see or answer them.
APPROVAL_GET = Rpc("orchestrator.v1.approval.get", ApprovalRef, Approval)
APPROVAL_LIST = Rpc("orchestrator.v1.approval.list", ListApprovals, Approvals)
APPROVAL_ANSWER = Rpc("orchestrator.v1.approval.answer", AnswerApproval, Approval)
