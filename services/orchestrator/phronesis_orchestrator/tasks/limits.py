"""How long a background task may take, and what an order for one may not be."""

from __future__ import annotations

from phronesis_contracts import BadRequest
from phronesis_contracts.orchestrator import SubmitTurn
from phronesis_contracts.tasks import MAX_GOAL

from ..domain import Claim

ENDING = 90.0
"""Seconds beyond the budget in which a task's report is written and saved."""


def limit_of(claim: Claim, turn_limit: float) -> float:
    """Seconds that one attempt may take: a task's own budget with time for its report; else `turn_limit`."""
    order = claim.request.task
    return order.budget.seconds + ENDING if order is not None else turn_limit


def expiry_of(request: SubmitTurn, expiry: float) -> float:
    """Seconds from acceptance after which a turn that has not ended fails; a task's budget is added to them."""
    return expiry + request.task.budget.seconds + ENDING if request.task is not None else expiry


def check_order(request: SubmitTurn) -> None:
    """Hold a turn to what a task may be.

    Raises:
        BadRequest: it stands in a conversation that it would block, or carries media, or its goal is too long.
    """
    if request.task is None:
        return
    if request.conversation_id is not None:
        raise BadRequest("a background task has a conversation of its own", field="conversation_id")
    if request.media:
        raise BadRequest("a background task takes no media", field="currentMessageMedia")
    if not request.text.strip():
        raise BadRequest("a task needs a goal", field="goal")
    if len(request.text) > MAX_GOAL:
        raise BadRequest(f"a goal has at most {MAX_GOAL} characters", field="goal")
