"""Approvals: calls that an agent wants to make and that a person has to allow first."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from .errors import Conflict, Forbidden, NotFound
from .messages import WRITTEN_AS_NUMBER, Event, Message, Rpc
from .origins import Label, OriginKind
from .tools import Effect

MAX_NOTE = 1_000
"""Characters of what a person says with an answer."""
MAX_RULES, MAX_HOSTS = 100, 200
"""Rules and hosts of one policy."""
MIN_SECONDS, MAX_SECONDS = 60.0, 90 * 24 * 3600.0
"""Seconds between which the lifetime of approvals lies."""


class ApprovalAnswered(Conflict):
    """The approval is not open any more: it was answered otherwise, ran out, or its turn was cancelled."""

    code = "approval_answered"


class ApprovalRefused(Forbidden):
    """A person refused the call; the agent is told so, and goes on without it."""

    code = "approval_refused"


class ApprovalExpired(Conflict):
    """Nobody answered in time: the call is not made; the agent is told so, and goes on without it."""

    code = "approval_expired"


class PolicyChanged(Conflict):
    """The tenant's policy is not of the version any more that the change was made for."""

    code = "policy_changed"


class UnknownGrant(NotFound):
    """The caller has no such grant."""

    code = "unknown_grant"


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
    """Where a text comes from that the call depends on."""
    effect: Effect
    """What the call does beyond its answer."""
    ruling: Ruling
    """Whether it is made, a person is asked first, or it is refused."""


class ActionPolicy(Message):
    """What agents of a tenant may do because of untrusted texts."""

    version: int = 0
    """Counted up by each change; 0 is the policy that the system comes with."""
    rules: tuple[ActionRule, ...] = Field(default=(), max_length=MAX_RULES)
    """Where none fits, what depends on untrusted text waits for a person, and the rest runs as its risk says."""
    egress: tuple[str, ...] = Field(default=(), max_length=MAX_HOSTS)
    """Hosts that agents may send data to without asking: `example.org`, or `*.example.org` with all below it."""
    approval_seconds: float = Field(default=7 * 24 * 3600.0, ge=MIN_SECONDS, le=MAX_SECONDS)
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
    host: str = ""
    """The hosts that the arguments name as addresses, with commas between them; empty where they name none."""
    scopes: tuple[ApprovalScope, ...] = (ApprovalScope.ONCE,)
    """What it may be given for."""
    scope: ApprovalScope = ApprovalScope.ONCE
    """What it was given for."""
    status: ApprovalStatus
    """Where it is; only one that is `pending` can be answered."""
    created_at: datetime
    """When the agent asked."""
    expires_at: datetime
    """When it runs out unanswered; its turn then goes on without the call."""
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


class Grant(Message):
    """A consent that covers later calls: of one tool, because of no other kinds of origins than these."""

    grant_id: str
    """Its id."""
    approval_id: str
    """The approval that it was given with."""
    user: str
    """Whose agents it lets make calls."""
    conversation_id: str | None = None
    """The conversation that it is for; absent where it is for all of the user's."""
    tool: str
    """The tool that may be called."""
    effect: Effect
    """What calls of the tool do beyond their answer."""
    kinds: tuple[OriginKind, ...]
    """Kinds of the untrusted texts that a call may depend on; one that depends on any other kind is asked about."""
    host: str = ""
    """The hosts that a call may name as addresses, with commas between them; all of them, and no others."""
    created_at: datetime
    """When it was given."""
    created_by: str
    """Who gave it."""
    revoked_at: datetime | None = None
    """When it was taken back; absent while it is in force."""
    revoked_by: str | None = None
    """Who took it back."""


class ListGrants(Message):
    """The caller's grants, newest first; an admin's are those of the tenant."""

    revoked: bool = False
    """Whether those that were taken back are listed too."""
    limit: int = Field(default=50, ge=1, le=200)


class Grants(Message):
    """A list of grants."""

    grants: tuple[Grant, ...]
    """The grants, the newest first."""


class GrantRef(Message):
    """One grant by id."""

    grant_id: str


class GetActionPolicy(Message):
    """The policy of the caller's tenant."""

    version: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """An earlier version; the one in force where it is left out."""


class PolicyVersion(Message):
    """A version of a tenant's policy, and who made it."""

    policy: ActionPolicy
    """What agents may do."""
    changed_at: datetime | None = None
    """When it was set; absent for the policy that the system comes with."""
    changed_by: str | None = None
    """Who set it; absent for the policy that the system comes with."""
    restores: int | None = None
    """The earlier version that it repeats; absent where it was stated anew."""


class SetActionPolicy(Message):
    """A policy in the place of the one in force, whole: what is left out is as the system comes with it."""

    replaces: Annotated[int, Field(ge=0, le=2**31 - 1), WRITTEN_AS_NUMBER]
    """The version that the change was made for; another one by now is a conflict."""
    rules: tuple[ActionRule, ...] = Field(default=(), max_length=MAX_RULES)
    """What becomes of calls, by the origin that they depend on and their effect; one rule for each pair."""
    egress: tuple[str, ...] = Field(default=(), max_length=MAX_HOSTS)
    """Hosts that agents may send data to without asking: `example.org`, or `*.example.org` with all below it."""
    approval_seconds: Annotated[float, Field(ge=MIN_SECONDS, le=MAX_SECONDS), WRITTEN_AS_NUMBER] = 7 * 24 * 3600.0
    """Seconds that an approval waits for its answer."""
    restores: Annotated[int, Field(ge=0, le=2**31 - 1), WRITTEN_AS_NUMBER] | None = None
    """An earlier version to go back to; nothing else is stated with it."""


class ListPolicyVersions(Message):
    """The versions of the tenant's policy, newest first."""

    limit: int = Field(default=20, ge=1, le=100)
    before: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Only versions that are lower."""


class PolicyVersions(Message):
    """Versions of a policy."""

    versions: tuple[PolicyVersion, ...]
    """The versions, the newest first. Version 0, which the system comes with, is not among them."""


class PolicySet(Message):
    """A tenant's policy was set."""

    version: int


# No tools: models and agents have no way to see or answer them.
APPROVAL_GET = Rpc("orchestrator.v1.approval.get", ApprovalRef, Approval)
APPROVAL_LIST = Rpc("orchestrator.v1.approval.list", ListApprovals, Approvals)
APPROVAL_ANSWER = Rpc("orchestrator.v1.approval.answer", AnswerApproval, Approval)
GRANT_LIST = Rpc("orchestrator.v1.approval_grant.list", ListGrants, Grants)
GRANT_REVOKE = Rpc("orchestrator.v1.approval_grant.revoke", GrantRef, Grant)
# No tools either: what holds agents back is neither read nor changed by one.
ACTION_POLICY_GET = Rpc("orchestrator.v1.action_policy.get", GetActionPolicy, PolicyVersion)
ACTION_POLICY_LIST = Rpc("orchestrator.v1.action_policy.list", ListPolicyVersions, PolicyVersions)
ACTION_POLICY_SET = Rpc("orchestrator.v1.action_policy.set", SetActionPolicy, PolicyVersion)
POLICY_SET = Event("orchestrator.v1.action_policy_set", PolicySet, hearers=("orchestrator",))
