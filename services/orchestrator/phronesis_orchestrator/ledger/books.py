"""What a running turn does with the ledger: it asks before a model call, and enters what the call used."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from .budgets import Budgets
from .ports import Accounts
from .spent import Charged, Spend

if TYPE_CHECKING:
    from ..reasoner import Answer, CallFailed


class Books(Protocol):
    """The books of running turns."""

    async def admit(self, turn: Charged) -> None:
        """Let a model call be made. Raises `BudgetExceeded`."""
        ...

    async def spent(self, turn: Charged, spend: Spend) -> None:
        """Enter a call that has no result in the journal."""
        ...

    def used(self, turn: Charged, spend: Spend) -> None:
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

    async def admit(self, turn: Charged) -> None:
        """Let a model call be made. Raises `BudgetExceeded`."""
        await self._budgets.admit(turn)

    async def spent(self, turn: Charged, spend: Spend) -> None:
        """Enter a call that has no result in the journal."""
        try:
            await self._accounts.spent(turn, spend)
        finally:  # after the store has it: a sum that is read from now on holds it
            self._budgets.used(turn, spend)

    def used(self, turn: Charged, spend: Spend) -> None:
        """Count a call that the journal's transaction has entered."""
        self._budgets.used(turn, spend)


class NoBooks:
    """Books without limits that keep nothing: for steps that stand alone."""

    async def admit(self, turn: Charged) -> None:
        """Let every call be made."""

    async def spent(self, turn: Charged, spend: Spend) -> None:
        """Keep nothing."""

    def used(self, turn: Charged, spend: Spend) -> None:
        """Count nothing."""


NO_BOOKS = NoBooks()


def entry(step: str, made: Answer[Any] | CallFailed, began: float) -> Spend | None:
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
    return Spend(step, made.asked, made.spent, made.cost_usd, round((perf_counter() - began) * 1000), outcome)
