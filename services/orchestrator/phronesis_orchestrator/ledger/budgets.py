"""The limits on model calls, their prices, and the entries that they leave in the ledger."""

from __future__ import annotations

import time
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from phronesis_contracts import BudgetExceeded, Message
from phronesis_contracts.ledger import Limit, LimitState

from .usage import Accounts, CallUsage, ChargedTurn, LedgerEntry

if TYPE_CHECKING:
    from ..models.reasoner import Answer, CallFailed


FRESH = 2.0
"""Seconds for which what the store said stands, as long as no limit is near."""
NEAR = 0.8
"""The share of a limit from which on the store is asked before each call."""
_PAYERS = 2_000
"""Users, each with an agent, whose sums are cached."""
Payer = tuple[str, str, str]


@dataclass
class CachedLimits:
    """What the store said, and what this process has used since it was asked."""

    at: float
    limits: tuple[LimitState, ...] = ()
    tokens: int = 0
    usd: float = 0.0


@dataclass
class Budgets:
    """Holds model calls to the limits. Calls in flight may go over one by what they use; none is begun above it.

    Args:
        clock: seconds that only grow.
    """

    accounts: Accounts
    clock: Callable[[], float] = time.monotonic
    _cached: OrderedDict[Payer, CachedLimits] = field(default_factory=OrderedDict)
    _reading: list[tuple[Payer, CachedLimits]] = field(default_factory=list)

    async def admit(self, turn: ChargedTurn) -> None:
        """Let a model call of this turn be made.

        Raises:
            BudgetExceeded: a limit is reached.
            ServiceError: the ledger cannot be read; what protects fails closed.
        """
        payer = _payer(turn)
        cached = self._cached.get(payer)
        if cached is None or self.clock() - cached.at >= FRESH or _limit_state(cached, NEAR):
            cached = await self._read(payer, turn)
        if (limit := _limit_state(cached, 1.0)) is not None:
            raise BudgetExceeded(describe_limit(limit))

    async def _read(self, payer: Payer, turn: ChargedTurn) -> CachedLimits:
        """Ask the store. What is used meanwhile is counted on top of its answer, which may not hold it."""
        cached = CachedLimits(self.clock())
        reading = (payer, cached)
        self._reading.append(reading)
        try:
            cached.limits = await self.accounts.bearing(turn.who, turn.agent)
        finally:
            self._reading.remove(reading)
        self._cached[payer] = cached
        self._cached.move_to_end(payer)
        if len(self._cached) > _PAYERS:
            self._cached.popitem(last=False)
        return cached

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        try:
            await self.accounts.spent(turn, spend)
        finally:  # after the store has it: a sum that is read from now on holds it
            self.used(turn, spend)

    def used(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        for payer, cached in (*self._cached.items(), *self._reading):
            if payer[0] == turn.who.tenant:
                cached.tokens += spend.tokens
                cached.usd += spend.cost_usd or 0.0

    def forget(self, tenant: str) -> None:
        """Ask the store anew about a tenant, whose limits changed."""
        for payer in [payer for payer in self._cached if payer[0] == tenant]:
            del self._cached[payer]


def describe_limit(limit: Limit) -> str:
    most = [f"{limit.tokens} tokens"] if limit.tokens is not None else []
    most += [f"{limit.usd:g} US dollars"] if limit.usd is not None else []
    whose = " of this user" if limit.user else " of the tenant"
    return f"the limit of {' and '.join(most)} a {limit.window}{whose}{f' for {limit.agent}' if limit.agent else ''} is reached"


def _payer(turn: ChargedTurn) -> Payer:
    return turn.who.tenant, turn.who.user, turn.agent


def _limit_state(cached: CachedLimits, share: float) -> LimitState | None:
    return next((limit for limit in cached.limits if _is_over(limit, cached, share)), None)


def _is_over(limit: LimitState, cached: CachedLimits, share: float) -> bool:
    pairs: Iterable[tuple[float | None, float]] = (
        (limit.tokens, limit.used_tokens + cached.tokens),
        (limit.usd, limit.used_usd + cached.usd),
    )
    return any(most is not None and used >= share * most for most, used in pairs)


class Price(Message):
    """US dollars for a million tokens of one model."""

    input: float
    output: float
    cached: float | None = None
    """Input that the provider read from its cache; what other input costs where it is not stated."""


@cache
def _prices() -> dict[str, dict[str, Price]]:
    listed = tomllib.loads((files(__package__) / "prices.toml").read_text())
    return {name: {model: Price(**price) for model, price in models.items()} for name, models in listed.items()}


def price_call(provider: str, model: str, spent: CallUsage) -> float | None:
    """What calls to one model cost, in US dollars; `None` where its price is not known.

    Args:
        provider: `groq`, or another name of the list.
        spent: the tokens of the calls.
    """
    price = _prices().get(provider, {}).get(model)
    if price is None:
        return None
    cached = min(spent.cached_tokens, spent.input_tokens)
    read = price.input if price.cached is None else price.cached
    return ((spent.input_tokens - cached) * price.input + cached * read + spent.output_tokens * price.output) / 1_000_000


def sum_costs(costs: list[float | None]) -> float | None:
    """Several costs; `None` where one of them is not known, or there is none."""
    known = [each for each in costs if each is not None]
    return round(sum(known), 9) if costs and len(known) == len(costs) else None


class Ledger(Protocol):
    """What a turn asks before a model call, and tells after it."""

    async def admit(self, turn: ChargedTurn) -> None:
        """Let a model call be made. Raises `BudgetExceeded`."""

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Enter a call that has no result in the journal."""

    def used(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Count a call that the journal's transaction has entered."""


class NoLedger:
    """A ledger without limits that stores nothing: for steps that stand alone."""

    async def admit(self, turn: ChargedTurn) -> None:
        pass

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        pass

    def used(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        pass


NO_LEDGER = NoLedger()


def make_entry(step: str, made: Answer[Any] | CallFailed, began: float) -> LedgerEntry | None:
    """The entry for a call; `None` where no model was asked. `began`: `perf_counter` when it began."""
    if made.asked is None or not made.spent.model_calls:
        return None
    error, fault = getattr(made, "error", None), getattr(made, "fault", None)
    outcome = error.code if error is not None else "fault" if fault is not None else "ok"
    return LedgerEntry(step, made.asked, made.spent, made.cost_usd, round((perf_counter() - began) * 1000), outcome)
