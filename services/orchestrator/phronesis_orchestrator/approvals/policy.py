"""What may be done with a tool call, by rules alone, and what a turn waits for when a person is asked.

A model's words, media, memories and what tools returned reach these rules only as the arguments of a call, and a line of the
table is chosen by exact values of typed arguments. So no text can raise what is allowed; only a person's approval of the very
call can.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID, uuid5

from phronesis_bus import mask
from phronesis_contracts import Forbidden, Message, Principal, Risk, ServiceError, labels_for_row
from phronesis_contracts.approvals import ActionPolicy, ApprovalExpired, ApprovalRefused, ApprovalStatus, Ruling
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.orchestrator import Audited, TurnProgress
from phronesis_contracts.origins import Label, OriginKind
from phronesis_contracts.tools import Effect

from ..turns.turn import Claim
from .egress import call_host

SAFE_READONLY = frozenset({"memory_query"})
"""Tools that read the caller's own memory alone: no narrowing of an agent's tools removes them."""


@dataclass(frozen=True)
class RiskRow:
    """One line of the table. Raises `ValueError`: a reading call is said to be irreversible."""

    tool: str
    risk: Risk
    irreversible: bool = False
    action: str = ""
    """What the call does, where one of the tool's arguments decides that."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Arguments and the very values that make it this line; every call of the tool where it is empty."""

    def __post_init__(self) -> None:
        if self.risk is Risk.READ and self.irreversible:
            raise ValueError(f"{self.tool}: what only reads changes nothing")

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments is this line's: the values have to be equal, and of one type."""
        return all(name in arguments and _same(arguments[name], value) for name, value in self.where.items())


RiskTable = Mapping[str, tuple[RiskRow, ...]]
"""The lines of each tool: the first one that fits a call counts."""


def build_table(rows: Iterable[RiskRow]) -> RiskTable:
    """Rows by tool, those that name arguments first."""
    ordered = sorted(rows, key=lambda row: (row.tool, not row.where))
    found: dict[str, tuple[RiskRow, ...]] = {}
    for row in ordered:
        found[row.tool] = (*found.get(row.tool, ()), row)
    return found


def narrow_tools(tools: Iterable[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """An agent's tools narrowed to those that are wanted for a message, in the agent's order; what is safe stays."""
    kept = frozenset(wanted) | SAFE_READONLY
    return tuple(name for name in tools if name in kept)


def _same(given: Any, value: Any) -> bool:
    # True equals 1 in Python; a number is no flag here.
    return type(given) is type(value) and bool(given == value)


ROWS: tuple[RiskRow, ...] = (
    *(RiskRow(tool.name, tool.risk, tool.irreversible) for tool in TOOLS.values() if tool.name not in SAFE_READONLY),
    *(RiskRow(name, Risk.READ) for name in SAFE_READONLY),
    # The owner holds a statement that is said to read to that; whatever else it is may change or remove anything.
    RiskRow("query_graph", Risk.READ, action="read", where={"read_only": True}),
    RiskRow("backup.restore.v1", Risk.READ, action="list", where={"operation": "list"}),
    RiskRow("backup.restore.v1", Risk.READ, action="verify", where={"operation": "verify"}),
    RiskRow("backup.restore.v1", Risk.LOW, action="backup", where={"operation": "backup"}),
    RiskRow("backup.restore.v1", Risk.HIGH, irreversible=True, action="restore", where={"operation": "restore"}),
    RiskRow("retrieval.tuning.v1", Risk.READ, action="tell", where={"values": {}}),
)
TABLE: RiskTable = build_table(ROWS)


@dataclass(frozen=True)
class Verdict:
    """The ruling on one call, and what it rests on."""

    ruling: Ruling
    tool: str
    action: str
    risk: Risk
    irreversible: bool
    breaks: tuple[str, ...] = ()
    """Guardrails and principles that the call names, to break them: a person has to allow that, and no text of theirs does."""
    effect: Effect = Effect.READ
    because: tuple[Label, ...] = ()
    """The untrusted texts that it may depend on; none where it is the user's own wish."""
    read: tuple[Label, ...] = ()
    """The untrusted texts that the turn had read when it wanted to make the call, whatever it depends on."""
    gives_away: str = ""
    """The host that nobody named, and that would be sent what the user did not say."""

    @property
    def recorded(self) -> bool:
        """Whether the call is entered in the audit trail before it is made."""
        return self.risk >= Risk.MEDIUM or bool(self.breaks or self.read or self.gives_away)

    @property
    def reason(self) -> str:
        """The risk as a person and a model are told it."""
        what = " ".join(filter(None, (self.tool, self.action)))
        if self.ruling is Ruling.REFUSE:
            return f"{self.risk.name} — {what} is in no table of risks"
        if self.breaks:
            return f"{self.risk.name} — {what} goes against {', '.join(self.breaks)} and needs a person's approval"
        if self.because:
            named = ", ".join(dict.fromkeys(_describe(label) for label in self.because))
            return f"{self.risk.name} — {what} was not asked for in your own words, and may come from {named}"
        if self.gives_away:
            return f"{self.risk.name} — {what} would send what you did not say to {self.gives_away}"
        if self.irreversible:
            return f"{self.risk.name} — {what} is irreversible"
        if self.ruling is Ruling.ASK:
            return f"{self.risk.name} — {what} needs a person's approval"
        return f"{self.risk.name} — {what}"


_OF_KIND = {
    OriginKind.PERSON: "a text of somebody else",
    OriginKind.DOCUMENT: "a document",
    OriginKind.PICTURE: "a picture",
    OriginKind.RECORDING: "a recording",
    OriginKind.TOOL: "what a tool gave",
    OriginKind.OUTSIDE: "an outside server",
    OriginKind.WEB: "a page of the web",
    OriginKind.CLIENT: "the program that sent the message",
}
_LONGEST_NAME = 80


def _describe(label: Label) -> str:
    named = " ".join((label.name or label.id).split())[:_LONGEST_NAME]
    kind = _OF_KIND.get(label.kind, "a text of unknown origin")
    return f"{kind} ({named})" if named else kind


def find_row(tool: str, arguments: Mapping[str, Any], table: RiskTable) -> RiskRow | None:
    """The line of the table that a call is; `None` where there is none."""
    return next((row for row in table.get(tool, ()) if row.fits(arguments)), None)


def judge(tool: str, arguments: Mapping[str, Any], table: RiskTable = TABLE) -> Verdict:
    """The ruling on a call: reading and low risk run, medium runs and is recorded, high and irreversible need a person.

    Args:
        table: the risks; a tool, or an action, that has no line in it is taken for the worst and refused.
    """
    row = find_row(tool, arguments, table)
    if row is None:
        return Verdict(Ruling.REFUSE, tool, "", Risk.HIGH, irreversible=True)
    return Verdict(_ruling(row), tool, row.action, row.risk, row.irreversible)


def _ruling(row: RiskRow) -> Ruling:
    return Ruling.ASK if row.irreversible or row.risk >= Risk.HIGH else Ruling.ALLOW


LoadPolicy = Callable[[str], Awaitable[ActionPolicy]]
"""Reads the policy of a tenant; it never fails, and holds to the one that the system comes with where it cannot be read."""


async def load_default(tenant: str) -> ActionPolicy:
    """The policy that the system comes with, whose tenant it is."""
    return ActionPolicy()


LIFETIME = ActionPolicy().approval_seconds
"""Seconds that an approval waits for its answer, where the tenant's policy says nothing else."""
LEFT = 60.0
"""Seconds that a turn has at least from its answer on, however late it asked."""
_APPROVALS = UUID("9b7a1a52-1c0c-5d38-8f0e-6d2f4f3a7c11")
_LONGEST, _MOST = 10_000, 500
"""Characters of a text, and members of a list, that a person is shown of the arguments."""


@dataclass(frozen=True)
class ApprovalRequest:
    approval_id: str
    step: str
    verdict: Verdict
    arguments: dict[str, Any]
    """As a person is shown them: secrets masked."""
    digest: str
    """Hash of the exact call."""
    effect: Effect = Effect.WRITE
    because: tuple[Label, ...] = ()
    """The untrusted texts that the call depends on; none where its risk alone is the reason."""
    host: str = ""
    """The hosts of all addresses in the arguments, as `call_host` says them."""
    seconds: float = LIFETIME
    """Seconds that it waits for its answer."""

    @property
    def grantable(self) -> bool:
        """Whether the answer may cover later calls too."""
        return bool(self.because) and may_be_granted(self.verdict)


@dataclass(frozen=True)
class ApprovalAnswer:
    """What is kept of an approval, as the call that it was for finds it."""

    status: ApprovalStatus
    digest: str
    note: str


class Paused(Exception):
    """The turn goes no further for now: the attempt ends, and the turn waits on disk. It is no failure."""

    patience = 0
    """Of several the one with the least is waited for first."""

    async def begin(self, approvals: ApprovalWaits, claim: Claim) -> None:
        """Write down what is waited for and let the turn wait, in one transaction. Raises `LostClaim`."""
        raise NotImplementedError

    @property
    def detail(self) -> dict[str, Any]:
        """What it waits for, as the line of progress tells it."""
        raise NotImplementedError


class Waiting(Paused):
    """The turn goes no further without a person's approval."""

    def __init__(self, asked: ApprovalRequest) -> None:
        super().__init__(asked.approval_id)
        self.asked = asked

    async def begin(self, approvals: ApprovalWaits, claim: Claim) -> None:
        await approvals.wait(claim, self.asked)

    @property
    def detail(self) -> dict[str, Any]:
        verdict = self.asked.verdict
        return {"approval_id": self.asked.approval_id, "tool": verdict.tool, "reason": verdict.reason}

    @property
    def approval_id(self) -> str:
        return self.asked.approval_id


class ApprovalAnswers(Protocol):
    """What a turn in hand needs of the store of approvals."""

    async def answered(self, claim: Claim, approval_id: str) -> ApprovalAnswer | None:
        """The approval of a call; `None` where nobody was asked yet. Raises `Unavailable`."""

    async def granted(self, claim: Claim, tool: str, kinds: frozenset[OriginKind], host: str) -> bool:
        """Whether an earlier consent of the turn's user covers a call. Ask only where `may_be_granted`. Raises `Unavailable`.

        Args:
            tool: the tool that is to be called.
            kinds: kinds of all untrusted texts that the call depends on; no consent covers a call without any.
            host: `call_host` of the arguments.
        """

    async def record(self, claim: Claim, entry: Audited) -> None:
        """Enter a call, or its refusal, in the audit trail. Raises `Unavailable`."""


class ApprovalWaits(ApprovalAnswers, Protocol):
    """What runs a turn needs of it."""

    async def wait(self, claim: Claim, asked: ApprovalRequest) -> None:
        """Write down what a person is asked and let the turn wait, in one transaction. Raises `LostClaim`."""


def may_be_granted(verdict: Verdict) -> bool:
    """Whether an earlier consent may cover a call: never one that is irreversible, of high risk, or against a rule."""
    return not (verdict.irreversible or verdict.risk >= Risk.HIGH or verdict.breaks)


def request_approval(
    turn_id: str,
    step: str,
    verdict: Verdict,
    request: Message,
    *,
    effect: Effect = Effect.WRITE,
    because: tuple[Label, ...] = (),
    seconds: float = LIFETIME,
) -> ApprovalRequest:
    """What a person is asked about a call. A turn's step always has the same approval, whoever runs the turn.

    Args:
        effect: what the call does beyond its answer.
        because: the untrusted texts that it depends on.
        seconds: how long the approval waits for its answer.
    """
    arguments = call_arguments(request)
    shown: dict[str, Any] = mask(arguments, longest=_LONGEST, most=_MOST)
    id, digest = make_approval_id(turn_id, step), call_digest(verdict.tool, request)
    return ApprovalRequest(id, step, verdict, shown, digest, effect, because, call_host(arguments), seconds)


def describe_call(request: Message, effect: Effect, because: tuple[Label, ...]) -> dict[str, Any]:
    """A call with an effect as the audit trail keeps it: what it does, its arguments with secrets masked, and their origins."""
    return {"effect": effect.value, "arguments": mask(call_arguments(request)), "because": labels_for_row(because)}


def make_approval_id(turn_id: str, step: str) -> str:
    return str(uuid5(_APPROVALS, f"{turn_id}/{step}"))


def call_arguments(request: Message) -> dict[str, Any]:
    return request.model_dump(mode="json", by_alias=True)


def call_digest(tool: str, request: Message) -> str:
    """SHA-256 of a call, by which the one that was approved is known again."""
    said = json.dumps([tool, call_arguments(request)], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


async def pause_turn(
    turns: ApprovalWaits, show: Callable[[Principal, TurnProgress], Awaitable[None]], claim: Claim, paused: Paused
) -> None:
    """Let a turn wait on disk, and show what it waits for. Raises `LostClaim`."""
    await paused.begin(turns, claim)
    line = TurnProgress(turn_id=claim.turn_id, kind="waiting", conversation_id=claim.conversation_id, detail=paused.detail)
    await show(claim.who, line)


class NotAllowed(Forbidden):
    """The policy refuses a call, whoever asks for it."""

    code = "not_allowed"


def missing_approval(found: ApprovalAnswer) -> ServiceError:
    """Why a call that a person was asked about is not made."""
    if found.status is ApprovalStatus.EXPIRED:
        return ApprovalExpired("nobody approved this call in time")
    said = f"; what they say with it: {found.note}" if found.note else ""
    return ApprovalRefused(f"a person refused this call{said}")
