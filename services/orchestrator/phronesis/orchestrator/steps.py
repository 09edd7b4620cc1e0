"""Journalled steps: a step that has a result is never made again, whoever runs the turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from phronesis.bus.tracing import Tracing
from phronesis.contracts import ServiceError
from phronesis.contracts.outside import OutcomeUnknown

from .domain import AlreadyBegun, Claim
from .measures import STEP
from .ports import Journal
from .prices import together
from .reasoner import Answer, CallFailed, Composed, Fault, Routed, Spent, Summarised, Value, step
from .timing import timed

Kept = TypeVar("Kept")
_LOST = "the call was begun before and its answer was lost; whether it had its effect is not known"


class JournalAway(Exception):
    """The journal could not be written: the attempt is over, and the turn goes on where its journal stands.

    It is no `ServiceError`, so that no loop takes it for the failure of the call itself.
    """


class Steps:
    """The steps of one claimed turn."""

    def __init__(self, journal: Journal, claim: Claim, tracing: Tracing) -> None:
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
                known = await _written(self._journal.intend(self._claim, name, {"call": tool}, once=not again))
            except AlreadyBegun:
                known, begun = None, True
            if known is not None:
                outcome.name = "known"
                return known
            result = {"problem": OutcomeUnknown(_LOST).body()} if begun else await call()
            await _written(self._journal.result(self._claim, name, result))
            return result

    async def made(self, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]]) -> Answer[Value]:
        """Make a model call, or read what it gave.

        Args:
            name: of the step, unique in the turn.
            model: what its answer is.
            call: makes the call.
        """
        with timed(self._tracing, STEP, f"step {name}", name) as outcome:
            known = await _written(self._journal.intend(self._claim, name, {"call": name}))
            if known is None:
                token = step.set(f"{self._claim.turn_id}/{name}")
                try:
                    answer = await call()
                except CallFailed as failed:
                    self._count(failed.spent, failed.cost_usd)
                    raise failed.error from failed
                finally:
                    step.reset(token)
                await _written(self._journal.result(self._claim, name, _as_json(answer)))
                outcome.name = "fault" if answer.fault else "ok"
            else:
                answer = _from_json(model, known)
                outcome.name = "known"
        self._count(answer.spent, answer.cost_usd)
        return answer

    def _count(self, spent: Spent, cost_usd: float | None) -> None:
        self.spent = self.spent.plus(spent)
        if spent.model_calls:
            self._costs.append(cost_usd)


async def _written(write: Awaitable[Kept]) -> Kept:
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
