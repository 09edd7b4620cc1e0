"""Approvals: what agents want to do and a person has to allow first."""

from __future__ import annotations

from uuid import uuid4

from phronesis.request import Request
from phronesis_contracts.approvals import AnswerApproval, Approval, ApprovalStatus, Decision

from .parts import checked, each, segment

APPROVALS = "/api/v1/approvals"


def list_approvals(status: ApprovalStatus | None = None, limit: int = 20) -> Request[tuple[Approval, ...]]:
    """The caller's approvals, newest first; an admin's are those of the tenant."""
    params: dict[str, str | int] = {"limit": limit}
    if status is not None:
        params["status"] = status.value
    return Request("GET", APPROVALS, each(Approval, "approvals"), params=params, reads=True)


def get_approval(approval_id: str) -> Request[Approval]:
    """One approval: which call waits, with what, and why a person is asked."""
    return Request("GET", f"{APPROVALS}/{segment(approval_id, 'approval_id')}", Approval.model_validate, reads=True)


def answer_approval(approval_id: str, decision: Decision | str, note: str = "") -> Request[Approval]:
    """Approve or refuse the call, and let its turn go on. The same answer again is harmless.

    Args:
        approval_id: the approval.
        decision: `approve` or `refuse`.
        note: at most 1000 characters said with it; of a refusal the agent is told it.

    Raises:
        ApprovalAnswered: it was answered otherwise, ran out, or its turn was cancelled.
    """
    answer = checked(AnswerApproval, {"approval_id": approval_id, "decision": decision, "note": note})
    body = answer.model_dump(mode="json", include={"decision", "note"})
    path = f"{APPROVALS}/{segment(approval_id, 'approval_id')}"
    return Request("POST", path, Approval.model_validate, json=body, key=uuid4().hex)
