"""What the ledger needs of the store."""

from __future__ import annotations

from typing import Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.ledger import GetUsage, Limits, LimitState, SetLimit, UsageSums
from phronesis_contracts.traces import ModelCalled

from .spent import Charged, Spend


class Accounts(Protocol):
    """The ledger and the limits, inside one tenant at a time."""

    async def spent(self, turn: Charged, spend: Spend) -> None:
        """Enter a call that has no result in the journal; it is not bound to the fence, since the money is gone."""
        ...

    async def bearing(self, who: Principal, agent: str) -> tuple[LimitState, ...]:
        """The limits that a call of this user to this agent counts for, with what is used of each."""
        ...

    async def usage(self, who: Principal, query: GetUsage) -> UsageSums:
        """Sums of the ledger, of `query.user` where one is stated."""
        ...

    async def limits(self, who: Principal, user: str | None) -> Limits:
        """The tenant's limits; those that bear on one user where one is stated."""
        ...

    async def set_limit(self, call: Call, limit: SetLimit) -> Limits:
        """Set or remove a limit, in one transaction with its audit entry; all limits, as they are then."""
        ...

    async def calls_of(self, tenant: str, turn_id: str) -> tuple[ModelCalled, ...]:
        """The calls that made one turn's answer, in their order; what was learnt from it later is not among them."""
        ...
