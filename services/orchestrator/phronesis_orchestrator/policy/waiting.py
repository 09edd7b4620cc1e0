"""A turn that waits for a person: on disk, with the one call that it waits for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID, uuid5

from phronesis_bus import masked
from phronesis_contracts import Message, Principal
from phronesis_contracts.approvals import (
    AnswerApproval,
    Approval,
    ApprovalRef,
    Approvals,
    ApprovalStatus,
    ListApprovals,
)
from phronesis_contracts.orchestrator import Audited, TurnProgress

from ..domain import Claim
from .rules import Verdict

LIFETIME = 7 * 24 * 3600.0
"""Seconds that an approval waits for its answer (DESIGN 4.5)."""
LEFT = 60.0
"""Seconds that a turn has at least from its answer on, however late it asked."""
_APPROVALS = UUID("9b7a1a52-1c0c-5d38-8f0e-6d2f4f3a7c11")
_LONGEST, _MOST = 10_000, 500
"""Characters of a text, and members of a list, that a person is shown of the arguments."""


@dataclass(frozen=True)
class Asked:
    """What a person is asked."""

    approval_id: str
    step: str
    verdict: Verdict
    arguments: dict[str, Any]
    """As a person is shown them: secrets masked."""
    digest: str
    """Hash of the exact call."""


@dataclass(frozen=True)
class Answered:
    """What is kept of an approval, as the call that it was for finds it."""

    status: ApprovalStatus
    digest: str
    note: str


@dataclass(frozen=True)
class Over:
    """A turn that ended since nobody answered."""

    who: Principal
    turn_id: str
    conversation_id: str


class Waiting(Exception):
    """The turn goes no further without a person: the attempt ends, and the turn waits on disk. It is no failure.

    Args:
        asked: what the person is asked.
    """

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.approval_id)
        self.asked = asked

    @property
    def approval_id(self) -> str:
        """Id of the approval."""
        return self.asked.approval_id


class Asking(Protocol):
    """What a turn in hand needs of the store of approvals."""

    async def answered(self, claim: Claim, approval_id: str) -> Answered | None:
        """The approval of a call; `None` where nobody was asked yet. Raises `Unavailable`."""
        ...

    async def record(self, claim: Claim, entry: Audited) -> None:
        """Enter a call, or its refusal, in the audit trail. Raises `Unavailable`."""
        ...


class Pausing(Asking, Protocol):
    """What runs a turn needs of it."""

    async def wait(self, claim: Claim, asked: Asked) -> None:
        """Write down what a person is asked and let the turn wait, in one transaction. Raises `LostClaim`."""
        ...


class Waits(Pausing, Protocol):
    """The store of approvals, and of the turns that wait for them."""

    async def approval(self, who: Principal, ref: ApprovalRef) -> Approval:
        """An approval of the caller, or for an admin, of the tenant. Raises `NotFound`."""
        ...

    async def approvals(self, who: Principal, query: ListApprovals) -> Approvals:
        """The same as a list, newest first."""
        ...

    async def answer(self, who: Principal, answer: AnswerApproval) -> Approval:
        """Answer, and put the turn back into the queue, in one transaction. Raises `NotFound`, `ApprovalAnswered`."""
        ...

    async def expire(self, limit: int) -> list[Over]:
        """End up to `limit` turns whose approvals ran out."""
        ...


def asked(turn_id: str, step: str, verdict: Verdict, request: Message) -> Asked:
    """What a person is asked about a call. A turn's step always has the same approval, whoever runs the turn."""
    shown: dict[str, Any] = masked(arguments_of(request), longest=_LONGEST, most=_MOST)
    return Asked(approval_of(turn_id, step), step, verdict, shown, digest(verdict.tool, request))


def approval_of(turn_id: str, step: str) -> str:
    """Id of the approval of a turn's step."""
    return str(uuid5(_APPROVALS, f"{turn_id}/{step}"))


def arguments_of(request: Message) -> dict[str, Any]:
    """The arguments of a call as JSON."""
    return request.model_dump(mode="json", by_alias=True)


def digest(tool: str, request: Message) -> str:
    """SHA-256 of a call, by which the one that was approved is known again."""
    said = json.dumps([tool, arguments_of(request)], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


async def paused(
    turns: Pausing, show: Callable[[Claim, TurnProgress], Awaitable[None]], claim: Claim, waiting: Waiting
) -> None:
    """Let a turn wait on disk, and show what it waits for. Raises `LostClaim`."""
    question = waiting.asked
    await turns.wait(claim, question)
    detail = {"approval_id": question.approval_id, "tool": question.verdict.tool, "reason": question.verdict.reason}
    line = TurnProgress(turn_id=claim.turn_id, kind="waiting", conversation_id=claim.conversation_id, detail=detail)
    await show(claim, line)
