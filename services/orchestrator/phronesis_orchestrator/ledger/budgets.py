"""The limits as they are held before each model call: a sum kept in the process, and corrected from the store."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from phronesis_contracts import BudgetExceeded
from phronesis_contracts.ledger import Limit, LimitState

from .ports import Accounts
from .spent import Charged, Spend

FRESH = 2.0
"""Seconds for which what the store said stands, as long as no limit is near."""
NEAR = 0.8
"""The share of a limit from which on the store is asked before each call."""
_PAYERS = 2_000
"""Users with an agent that sums are kept of."""
Payer = tuple[str, str, str]


@dataclass
class Kept:
    """What the store said, and what this process has used since it was asked."""

    at: float
    limits: tuple[LimitState, ...] = ()
    tokens: int = 0
    usd: float = 0.0


@dataclass
class Budgets:
    """Holds model calls to the limits. Calls in flight may go over one by what they use; none is begun above it.

    Args:
        accounts: the ledger.
        clock: seconds that only grow.
    """

    accounts: Accounts
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[Payer, Kept] = field(default_factory=OrderedDict)
    _reading: list[tuple[Payer, Kept]] = field(default_factory=list)

    async def admit(self, turn: Charged) -> None:
        """Let a model call of this turn be made.

        Raises:
            BudgetExceeded: a limit is reached.
            ServiceError: the ledger cannot be read; what protects fails closed.
        """
        payer = _payer(turn)
        kept = self._kept.get(payer)
        if kept is None or self.clock() - kept.at >= FRESH or _reached(kept, NEAR):
            kept = await self._read(payer, turn)
        if (limit := _reached(kept, 1.0)) is not None:
            raise BudgetExceeded(told(limit))

    async def _read(self, payer: Payer, turn: Charged) -> Kept:
        """Ask the store. What is used meanwhile is counted on top of its answer, which may not hold it."""
        kept = Kept(self.clock())
        reading = (payer, kept)
        self._reading.append(reading)
        try:
            kept.limits = await self.accounts.bearing(turn.who, turn.agent)
        finally:
            self._reading.remove(reading)
        self._kept[payer] = kept
        self._kept.move_to_end(payer)
        if len(self._kept) > _PAYERS:
            self._kept.popitem(last=False)
        return kept

    def used(self, turn: Charged, spend: Spend) -> None:
        """Count a call that was made here, for everybody whom it may bring to a limit."""
        for payer, kept in (*self._kept.items(), *self._reading):
            if payer[0] == turn.who.tenant:
                kept.tokens += spend.tokens
                kept.usd += spend.cost_usd or 0.0

    def forget(self, tenant: str) -> None:
        """Ask the store anew about a tenant, whose limits changed."""
        for payer in [payer for payer in self._kept if payer[0] == tenant]:
            del self._kept[payer]


def told(limit: Limit) -> str:
    """A limit in words."""
    most = [f"{limit.tokens} tokens"] if limit.tokens is not None else []
    most += [f"{limit.usd:g} US dollars"] if limit.usd is not None else []
    whose = " of this user" if limit.user else " of the tenant"
    return f"the limit of {' and '.join(most)} a {limit.window}{whose}{f' for {limit.agent}' if limit.agent else ''} is reached"


def _payer(turn: Charged) -> Payer:
    return turn.who.tenant, turn.who.user, turn.agent


def _reached(kept: Kept, share: float) -> LimitState | None:
    return next((limit for limit in kept.limits if _over(limit, kept, share)), None)


def _over(limit: LimitState, kept: Kept, share: float) -> bool:
    pairs: Iterable[tuple[float | None, float]] = (
        (limit.tokens, limit.used_tokens + kept.tokens),
        (limit.usd, limit.used_usd + kept.usd),
    )
    return any(most is not None and used >= share * most for most, used in pairs)
