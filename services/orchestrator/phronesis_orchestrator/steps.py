"""Journalled steps: a step that has a result is never made again, whoever runs the turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

from phronesis_bus.tracing import Tracing
from phronesis_contracts import ServiceError
from phronesis_contracts.outside import OutcomeUnknown

from .domain import AlreadyBegun, Claim
from .ledger.books import NO_BOOKS, Books, entry
from .ledger.spent import Spent, admission
from .measures import STEP
from .ports import Journal
from .prices import together
from .reasoner import Answer, CallFailed, Composed, Fault, Routed, Summarised, Value, step
from .timing import timed

Kept = TypeVar("Kept")
at_hand: ContextVar[str] = ContextVar("at_hand", default="")
"""Name of the journalled tool call at hand."""
_LOST = "the call was begun before and its answer was lost; whether it had its effect is not known"


class JournalAway(Exception):
    """The journal could not be written: the attempt is over, and the turn goes on where its journal stands.

    It is no `ServiceError`, so that no loop takes it for the failure of the call itself.
    """


class Steps:
    """The steps of one claimed turn."""

    def __init__(self, journal: Journal, claim: Claim, tracing: Tracing, books: Books = NO_BOOKS) -> None:
        self._books = books
        self._journal = journal
        self._claim = claim
        self._tracing = tracing
        self.spent = Spent()
        """What the model calls of the turn used, over all its attempts."""
        self._costs: list[float | None] = []

    @property
    def cost_usd(self) -> float | None:
        """What they cost; `None` where no model was asked, or the price of one is not known."""
        return together(self._costs)

    @property
    def known_usd(self) -> float:
        """What those cost whose price is known."""
        return sum(cost for cost in self._costs if cost is not None)

    def count(self, spent: Spent, cost_usd: float | None) -> None:
        """Count a model call of an earlier attempt that a step of another kind has kept."""
        self._count(spent, cost_usd)

    async def routed(self, name: str, call: Callable[[], Awaitable[Answer[Routed]]]) -> Answer[Routed]:
        """Make a router call, or read what it gave."""
        return await self.made(name, Routed, call)

    async def composed(self, name: str, call: Callable[[], Awaitable[Answer[Composed]]]) -> Answer[Composed]:
        """Make a final call, or read what it gave."""
        return await self.made(name, Composed, call)

    async def summarised(self, name: str, call: Callable[[], Awaitable[Answer[Summarised]]]) -> Answer[Summarised]:
        """Make a call for a summary, or read what it gave."""
        return await self.made(name, Summarised, call)

    async def called(
        self, name: str, tool: str, call: Callable[[], Awaitable[dict[str, Any]]], *, again: bool = True
    ) -> dict[str, Any]:
        """Call a tool, or read what it gave.

        Args:
            name: of the step, unique in the turn.
            tool: its name, for the measures.
            call: makes the call; what it gives must be JSON.
            again: whether it may be made again where an earlier attempt began it and its answer was lost; where it may not, the
                step ends with the problem `outcome_unknown`.
        """
        with timed(self._tracing, STEP, f"step {name}", tool) as outcome:
            begun = False
            try:
                known = await written(self._journal.intend(self._claim, name, {"call": tool}, once=not again))
            except AlreadyBegun:
                known, begun = None, True
            if known is not None:
                outcome.name = "known"
                return known
            token = at_hand.set(name)
            try:
                result = {"problem": OutcomeUnknown(_LOST).body()} if begun else await call()
            finally:
                at_hand.reset(token)
            await written(self._journal.result(self._claim, name, result))
            return result

    async def made(
        self, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]], *, label: str | None = None
    ) -> Answer[Value]:
        """Make a model call, or read what it gave.

        Args:
            name: of the step, unique in the turn.
            model: what its answer is.
            call: makes the call.
            label: what the measures call it, where names are too many for that.
        """
        with timed(self._tracing, STEP, f"step {name}", label or name) as outcome:
            known = await written(self._journal.intend(self._claim, name, {"call": name}))
            if known is None:
                began = perf_counter()
                try:
                    answer = await self._asked(name, call)
                except CallFailed as failed:
                    self._count(failed.spent, failed.cost_usd)
                    await self._lost(name, failed, began)
                    raise failed.error from failed
                spend = entry(name, answer, began)
                await written(self._journal.result(self._claim, name, _as_json(answer), *([spend] if spend else [])))
                if spend:
                    self._books.used(self._claim, spend)
                outcome.name = "fault" if answer.fault else "ok"
            else:
                answer = _from_json(model, known)
                outcome.name = "known"
        self._count(answer.spent, answer.cost_usd)
        return answer

    async def _asked(self, name: str, call: Callable[[], Awaitable[Answer[Value]]]) -> Answer[Value]:
        """Make a call by which the provider sees its step, and the limits its turn."""
        token, admitted = step.set(f"{self._claim.turn_id}/{name}"), admission.set(lambda: self._books.admit(self._claim))
        try:
            return await call()
        finally:
            admission.reset(admitted)
            step.reset(token)

    async def _lost(self, name: str, failed: CallFailed, began: float) -> None:
        """Enter what a call used that gave nothing."""
        if spend := entry(name, failed, began):
            await written(self._books.spent(self._claim, spend))

    def _count(self, spent: Spent, cost_usd: float | None) -> None:
        self.spent = self.spent.plus(spent)
        if spent.model_calls:
            self._costs.append(cost_usd)


async def written(write: Awaitable[Kept]) -> Kept:
    """What the store of the turn answers. Raises `JournalAway` where it cannot."""
    try:
        return await write
    except ServiceError as error:
        raise JournalAway(error.code) from error


def _as_json(answer: Answer[Any]) -> dict[str, Any]:
    return {
        "value": answer.value.model_dump(mode="json") if answer.value else None,
        "fault": {"said": answer.fault.said, "wrong": answer.fault.wrong} if answer.fault else None,
        "spent": answer.spent.model_dump(),
        "cost_usd": answer.cost_usd,
    }


def _from_json(model: type[Value], known: dict[str, Any]) -> Answer[Value]:
    return Answer(
        value=model.model_validate(known["value"]) if known["value"] else None,
        fault=Fault(**known["fault"]) if known["fault"] else None,
        spent=Spent.model_validate(known["spent"]),
        cost_usd=known.get("cost_usd"),
    )
