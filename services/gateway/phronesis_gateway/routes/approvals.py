"""Approvals: what agents want to do and a person has to allow first."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from phronesis_bus import Bus, ask
from phronesis_contracts.approvals import (
    APPROVAL_ANSWER,
    APPROVAL_GET,
    APPROVAL_LIST,
    MAX_NOTE,
    AnswerApproval,
    Approval,
    ApprovalRef,
    Approvals,
    ApprovalStatus,
    Decision,
    ListApprovals,
)
from phronesis_gateway.answers import PROBLEMS, Id, answers, as_json
from phronesis_gateway.door import Caller, Door, IdempotencyKey, keyed, scoped

APPROVALS = "/api/v1/approvals"


class AnswerGiven(BaseModel):
    """A person's answer."""

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    note: str = Field(default="", max_length=MAX_NOTE)
    """Said with it; of a refusal the agent is told it."""


def router(door: Door, bus: Bus) -> APIRouter:
    """The routes. No other face has them: who calls by MCP or on the bus is a program, and answers nothing.

    Args:
        door: lets callers in.
        bus: the connected bus.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["approvals"])

    @routes.get(APPROVALS, responses=answers(Approvals))
    async def list_approvals(
        who: Caller,
        status: ApprovalStatus | None = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
    ) -> Response:
        """The caller's approvals, newest first; an admin's are those of the tenant."""
        return as_json(await ask(bus, who, APPROVAL_LIST, ListApprovals(status=status, limit=limit)))

    @routes.get(APPROVALS + "/{id}", responses=answers(Approval))
    async def get_approval(id: Id, who: Caller) -> Response:
        """One approval: which call waits, with what, and why a person is asked."""
        return as_json(await ask(bus, who, APPROVAL_GET, ApprovalRef(approval_id=id)))

    @routes.post(APPROVALS + "/{id}", responses=answers(Approval))
    async def answer_approval(id: Id, given: AnswerGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Approve or refuse the call: its turn goes on. The same answer again is harmless, another one is a 409."""
        answer = AnswerApproval(approval_id=id, decision=given.decision, note=given.note)
        return as_json(await ask(bus, who, APPROVAL_ANSWER, answer, key=scoped(who, key)))

    return routes
