"""Limits on model calls, with a ledger whose reads end when the test says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from phronesis_contracts import BudgetExceeded, Principal
from phronesis_contracts.ledger import LimitState
from phronesis_orchestrator.ledger.books import Budgets
from phronesis_orchestrator.ledger.usage import AskedModel, CallUsage, LedgerEntry

ANN = Principal(tenant="acme", user="ann")


@dataclass(frozen=True)
class Turn:
    turn_id: str = "t-1"
    who: Principal = ANN
    agent: str = "dialogue"


@dataclass
class Slow:
    """A ledger with a limit of 1,000 tokens a day, which reads what stood when it was asked."""

    stored: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def bearing(self, who: Principal, agent: str) -> tuple[LimitState, ...]:
        seen = self.stored
        self.asked.set()
        await self.answer.wait()
        return (LimitState(window="day", tokens=1000, used_tokens=seen, used_usd=0.0),)


def spend(tokens: int) -> LedgerEntry:
    spent = CallUsage(input_tokens=tokens - 10, output_tokens=10, model_calls=1)
    return LedgerEntry("route", AskedModel("router", "small"), spent, 0.0, 7, "ok")


async def test_what_is_used_while_the_store_is_read_counts_towards_the_limit() -> None:
    ledger = Slow(stored=900)
    budgets = Budgets(ledger)  # type: ignore[arg-type]
    admitted = asyncio.create_task(budgets.admit(Turn()))
    async with asyncio.timeout(5):
        await ledger.asked.wait()
        budgets.used(Turn(), spend(100))
        ledger.answer.set()
        with pytest.raises(BudgetExceeded, match="the limit of 1000 tokens a day of the tenant is reached"):
            await admitted
