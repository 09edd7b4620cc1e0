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
    AnswerApproval,
    Approval,
    ApprovalRef,
    Approvals,
    ListApprovals,
)
from phronesis_contracts.orchestrator import TurnProgress

from ..turns.ports import ShowProgress
from .store import PostgresApprovals

log = logging.getLogger(__name__)

SWEEP = 5.0
"""Seconds between two looks for approvals that ran out."""
_BATCH = 100
"""Turns that one look ends."""


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


async def serve_approvals(bus: Bus, approvals: PostgresApprovals, progress: ShowProgress, resumed: Callable[[], None]) -> None:
    """Wire them to the bus. `resumed`: called when a turn goes on or ends, to wake a worker and the relay of news."""
    handlers = ApprovalHandlers(approvals, resumed)
    await serve(bus, APPROVAL_GET, handlers.approval)
    await serve(bus, APPROVAL_LIST, handlers.approvals)
    await serve(bus, APPROVAL_ANSWER, handlers.answer)
    sweeping = asyncio.create_task(_sweep(approvals, progress, resumed), name="approvals-sweep")

    async def stop() -> None:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)

    bus.on_stop(stop)


async def _sweep(approvals: PostgresApprovals, progress: ShowProgress, ended: Callable[[], None]) -> None:
    while True:
        try:
            over = await approvals.expire(_BATCH)
        except ServiceError as error:
            log.warning("approvals could not be looked through: %s", error.code)
            over = []
        except Exception:
            # The loop may not end: approvals would never run out.
            log.exception("looking through approvals failed")
            over = []
        if over:
            ended()
        for turn in over:
            line = TurnProgress(turn_id=turn.turn_id, kind="ended", conversation_id=turn.conversation_id)
            try:
                await progress(turn.who, line)
            except ServiceError as error:
                log.warning("the end of a turn could not be shown: %s", error.code)
        if len(over) < _BATCH:
            await asyncio.sleep(SWEEP)
