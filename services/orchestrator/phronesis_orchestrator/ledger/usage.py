"""What a call to a model used, who was asked, what is looked at before it is made, and what the ledger needs of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from phronesis_contracts import Message, Principal
from phronesis_contracts.ledger import LimitState

admission: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("admission", default=None)
"""Raises `BudgetExceeded` where no model may be called for the turn at hand; asked before each call."""


class ChargedTurn(Protocol):
    """A turn that a call to a model is made for: whose it is, and which limits it counts for."""

    @property
    def turn_id(self) -> str:
        """Its id."""

    @property
    def who(self) -> Principal:
        """Its user."""

    @property
    def agent(self) -> str:
        """The agent that was asked."""


class CallUsage(Message):
    """What one call used."""

    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    cached_tokens: int = 0
    """The part of the input that the provider read from its cache."""
    reasoning_tokens: int = 0
    """The part of the output that the model thought and did not say."""

    def plus(self, other: CallUsage) -> CallUsage:
        """Both together."""
        return CallUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            model_calls=self.model_calls + other.model_calls,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True)
class AskedModel:
    """Which model was asked, and what for."""

    purpose: str
    model: str


@dataclass(frozen=True)
class LedgerEntry:
    step: str
    asked: AskedModel
    spent: CallUsage
    cost_usd: float | None
    """In US dollars; `None` where the price is not known."""
    ms: int
    outcome: str
    """`ok`, `fault`, or the code of the error."""

    @property
    def tokens(self) -> int:
        """Input and output together: what a limit counts."""
        return self.spent.input_tokens + self.spent.output_tokens


class Accounts(Protocol):
    """What the limits need of the ledger's store."""

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        """Enter a call that has no result in the journal; it is not bound to the fence, since the money is gone."""

    async def bearing(self, who: Principal, agent: str) -> tuple[LimitState, ...]:
        """The limits that a call of this user to this agent counts for, with what is used of each."""
