"""Why a call is not made, as the model and the audit trail are told it."""

from __future__ import annotations

from phronesis_contracts import Forbidden, ServiceError
from phronesis_contracts.approvals import ApprovalExpired, ApprovalRefused, ApprovalStatus

from .waiting import Answered


class NotAllowed(Forbidden):
    """The policy refuses a call, whoever asks for it."""

    code = "not_allowed"


def unapproved(found: Answered) -> ServiceError:
    """Why a call that a person was asked about is not made."""
    if found.status is ApprovalStatus.EXPIRED:
        return ApprovalExpired("nobody approved this call in time")
    said = f"; what they say with it: {found.note}" if found.note else ""
    return ApprovalRefused(f"a person refused this call{said}")
