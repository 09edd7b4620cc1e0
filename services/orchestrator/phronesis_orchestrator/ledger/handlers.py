"""What the ledger answers: what was used, and the limits."""

from __future__ import annotations

from collections.abc import Callable

from phronesis_bus import Bus, Call, serve
from phronesis_contracts import BadRequest
from phronesis_contracts.ledger import (
    LIMITS_GET_TOOL,
    LIMITS_SET_TOOL,
    USAGE_GET_TOOL,
    GetUsage,
    Limits,
    ListLimits,
    SetLimit,
    UsageSums,
)

from .budgets import Budgets
from .store import PostgresLedger


class LedgerHandlers:
    def __init__(self, ledger: PostgresLedger, budgets: Budgets, wake: Callable[[], None]) -> None:
        self._ledger, self._budgets, self._wake = ledger, budgets, wake

    async def usage(self, call: Call, request: GetUsage) -> UsageSums:
        """Sums of the tenant for an admin, of the caller for everybody else."""
        if request.since and request.until and request.since > request.until:
            raise BadRequest("`since` is after `until`", field="since")
        mine = request if call.who.administers else request.model_copy(update={"user": call.who.user})
        return await self._ledger.usage(call.who, mine)

    async def limits(self, call: Call, request: ListLimits) -> Limits:
        """All limits for an admin, those that bear on the caller for everybody else."""
        return await self._ledger.limits(call.who, None if call.who.administers else call.who.user)

    async def set_limit(self, call: Call, request: SetLimit) -> Limits:
        """Set or remove a limit; it holds here at once, and in other processes within seconds."""
        limits = await self._ledger.set_limit(call, request)
        self._budgets.forget(call.who.tenant)
        self._wake()
        return limits


async def serve_ledger(bus: Bus, ledger: PostgresLedger, budgets: Budgets, wake: Callable[[], None]) -> None:
    handlers = LedgerHandlers(ledger, budgets, wake)
    await serve(bus, USAGE_GET_TOOL, handlers.usage)
    await serve(bus, LIMITS_GET_TOOL, handlers.limits)
    await serve(bus, LIMITS_SET_TOOL, handlers.set_limit)
