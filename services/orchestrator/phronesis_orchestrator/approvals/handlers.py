"""All that the orchestrator answers about approvals, and the sweep that lets them run out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from phronesis_bus import Bus, Call, serve
from phronesis_contracts import Forbidden, ServiceError
from phronesis_contracts.approvals import (
    APPROVAL_ANSWER,
    APPROVAL_GET,
    APPROVAL_LIST,
    GRANT_LIST,
    GRANT_REVOKE,
    AnswerApproval,
    Approval,
    ApprovalRef,
    Approvals,
    Grant,
    GrantRef,
    Grants,
    ListApprovals,
    ListGrants,
)

from .store import PostgresApprovals

log = logging.getLogger(__name__)

SWEEP = 5.0
"""Seconds between two looks for approvals that ran out."""
_BATCH = 100
"""Turns that one look puts back."""


class ApprovalHandlers:
    """The handlers. `resumed`: called when a turn goes on, to wake a worker and the relay of news."""

    def __init__(self, approvals: PostgresApprovals, resumed: Callable[[], None]) -> None:
        self._approvals = approvals
        self._resumed = resumed

    async def approval(self, call: Call, request: ApprovalRef) -> Approval:
        return await self._approvals.approval(call.who, request)

    async def approvals(self, call: Call, request: ListApprovals) -> Approvals:
        return await self._approvals.approvals(call.who, request)

    async def answer(self, call: Call, request: AnswerApproval) -> Approval:
        """Take a person's answer: the turn goes on. Raises `Forbidden` where it is an outside system that answers."""
        if call.who.inbox is not None:
            raise Forbidden("an approval is answered by a person, and by no system on the bus")
        approval = await self._approvals.answer(call.who, request)
        self._resumed()
        return approval

    async def grants(self, call: Call, request: ListGrants) -> Grants:
        return await self._approvals.grants(call.who, request)

    async def revoke(self, call: Call, request: GrantRef) -> Grant:
        """Take a grant back. Raises `Forbidden` where it is an outside system that asks."""
        if call.who.inbox is not None:
            raise Forbidden("a grant is taken back by a person, and by no system on the bus")
        return await self._approvals.revoke(call.who, request)


async def serve_approvals(bus: Bus, approvals: PostgresApprovals, resumed: Callable[[], None]) -> None:
    """Wire them to the bus. `resumed`: called when a turn goes on, to wake a worker and the relay of news."""
    handlers = ApprovalHandlers(approvals, resumed)
    await serve(bus, APPROVAL_GET, handlers.approval)
    await serve(bus, APPROVAL_LIST, handlers.approvals)
    await serve(bus, APPROVAL_ANSWER, handlers.answer)
    await serve(bus, GRANT_LIST, handlers.grants)
    await serve(bus, GRANT_REVOKE, handlers.revoke)
    sweeping = asyncio.create_task(_sweep(approvals, resumed), name="approvals-sweep")

    async def stop() -> None:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)

    bus.on_stop(stop)


async def _sweep(approvals: PostgresApprovals, resumed: Callable[[], None]) -> None:
    while True:
        try:
            over = await approvals.expire(_BATCH)
        except ServiceError as error:
            log.warning("approvals could not be looked through: %s", error.code)
            over = 0
        except Exception:
            # The loop may not end: approvals would never run out.
            log.exception("looking through approvals failed")
            over = 0
        if over:
            resumed()
        if over < _BATCH:
            await asyncio.sleep(SWEEP)
