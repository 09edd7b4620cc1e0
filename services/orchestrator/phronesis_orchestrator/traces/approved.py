"""What people answered when a turn asked them, for its replay: nobody is asked anew, and nothing is written."""

from __future__ import annotations

from collections.abc import Mapping

from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.traces import NotRecorded

from ..domain import Claim
from ..policy.waiting import Answered, Asked, approval_of

_NOBODY = Answered(ApprovalStatus.REFUSED, "", "")
"""Stands for an answer that there is not: it is no answer to any call, so the call is not allowed."""


class Approved:
    """The store of approvals as a replay finds it.

    Args:
        turn_id: of the replay.
        answers: of the turn that is replayed, by its steps.
    """

    def __init__(self, turn_id: str, answers: Mapping[str, Answered]) -> None:
        self._answers = {approval_of(turn_id, step): answer for step, answer in answers.items()}

    async def answered(self, claim: Claim, approval_id: str) -> Answered:
        """What the person said then; a call that nobody was asked about stays refused."""
        return self._answers.get(approval_id, _NOBODY)

    async def record(self, claim: Claim, entry: Audited) -> None:
        """Enter nothing: no call is made."""

    async def wait(self, claim: Claim, asked: Asked) -> None:
        """A replay waits for nobody."""
        raise NotRecorded("the turn that is replayed did not ask this")
