"""What a turn does with the ledger: it asks before a model call, prices it, and enters what it used."""

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
"""Users with an agent that sums are kept of."""
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
        accounts: the ledger.
        clock: seconds that only grow.
    """

    accounts: Accounts
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[Payer, CachedLimits] = field(default_factory=OrderedDict)
    _reading: list[tuple[Payer, CachedLimits]] = field(default_factory=list)

    async def admit(self, turn: ChargedTurn) -> None:
        """Let a model call of this turn be made.

        Raises:
            BudgetExceeded: a limit is reached.
            ServiceError: the ledger cannot be read; what protects fails closed.
        """
        payer = _payer(turn)
        kept = self._kept.get(payer)
        if kept is None or self.clock() - kept.at >= FRESH or _limit_state(kept, NEAR):
            kept = await self._read(payer, turn)
        if (limit := _limit_state(kept, 1.0)) is not None:
            raise BudgetExceeded(describe_limit(limit))

    async def _read(self, payer: Payer, turn: ChargedTurn) -> CachedLimits:
        """Ask the store. What is used meanwhile is counted on top of its answer, which may not hold it."""
        kept = CachedLimits(self.clock())
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

    def used(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Count a call that was made here, for everybody whom it may bring to a limit."""
        for payer, kept in (*self._kept.items(), *self._reading):
            if payer[0] == turn.who.tenant:
                kept.tokens += spend.tokens
                kept.usd += spend.cost_usd or 0.0

    def forget(self, tenant: str) -> None:
        """Ask the store anew about a tenant, whose limits changed."""
        for payer in [payer for payer in self._kept if payer[0] == tenant]:
            del self._kept[payer]


def describe_limit(limit: Limit) -> str:
    """A limit in words."""
    most = [f"{limit.tokens} tokens"] if limit.tokens is not None else []
    most += [f"{limit.usd:g} US dollars"] if limit.usd is not None else []
    whose = " of this user" if limit.user else " of the tenant"
    return f"the limit of {' and '.join(most)} a {limit.window}{whose}{f' for {limit.agent}' if limit.agent else ''} is reached"


def _payer(turn: ChargedTurn) -> Payer:
    return turn.who.tenant, turn.who.user, turn.agent


def _limit_state(kept: CachedLimits, share: float) -> LimitState | None:
    return next((limit for limit in kept.limits if _is_over(limit, kept, share)), None)


def _is_over(limit: LimitState, kept: CachedLimits, share: float) -> bool:
    pairs: Iterable[tuple[float | None, float]] = (
        (limit.tokens, limit.used_tokens + kept.tokens),
        (limit.usd, limit.used_usd + kept.usd),
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
        model: the model's name there.
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


class Books(Protocol):
    """The books of running turns."""

    async def admit(self, turn: ChargedTurn) -> None:
        """Let a model call be made. Raises `BudgetExceeded`."""
        ...

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Enter a call that has no result in the journal."""
        ...

    def used(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Count a call that the journal's transaction has entered."""
        ...


class Ledger:
    """The books on the store.

    Args:
        accounts: the ledger.
        budgets: the limits.
    """

    def __init__(self, accounts: Accounts, budgets: Budgets) -> None:
        self._accounts = accounts
        self._budgets = budgets

    async def admit(self, turn: ChargedTurn) -> None:
        """Let a model call be made. Raises `BudgetExceeded`."""
        await self._budgets.admit(turn)

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Enter a call that has no result in the journal."""
        try:
            await self._accounts.spent(turn, spend)
        finally:  # after the store has it: a sum that is read from now on holds it
            self._budgets.used(turn, spend)

    def used(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Count a call that the journal's transaction has entered."""
        self._budgets.used(turn, spend)


class NoBooks:
    """Books without limits that keep nothing: for steps that stand alone."""

    async def admit(self, turn: ChargedTurn) -> None:
        """Let every call be made."""

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Keep nothing."""

    def used(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Count nothing."""


NO_BOOKS = NoBooks()


def make_entry(step: str, made: Answer[Any] | CallFailed, began: float) -> LedgerEntry | None:
    """The entry for a call; `None` where no model was asked.

    Args:
        step: the journalled step.
        made: what came of it.
        began: `perf_counter` when it began.
    """
    if made.asked is None or not made.spent.model_calls:
        return None
    error, fault = getattr(made, "error", None), getattr(made, "fault", None)
    outcome = error.code if error is not None else "fault" if fault is not None else "ok"
    return LedgerEntry(step, made.asked, made.spent, made.cost_usd, round((perf_counter() - began) * 1000), outcome)
