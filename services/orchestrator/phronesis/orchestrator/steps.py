"""Journalled steps: a step that has a result is never made again, whoever runs the turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from phronesis.bus.tracing import Tracing
from phronesis.contracts import ServiceError

from .domain import Claim
from .ports import Journal
from .reasoner import Answer, Composed, Fault, Routed, Spent, Value, step

Kept = TypeVar("Kept")


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

    async def routed(self, name: str, call: Callable[[], Awaitable[Answer[Routed]]]) -> Answer[Routed]:
        """Make a router call, or read what it gave."""
        return await self._made(name, Routed, call)

    async def composed(self, name: str, call: Callable[[], Awaitable[Answer[Composed]]]) -> Answer[Composed]:
        """Make a final call, or read what it gave."""
        return await self._made(name, Composed, call)

    async def _made(self, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]]) -> Answer[Value]:
        with self._tracing.span(f"step {name}"):
            known = await _written(self._journal.intend(self._claim, name, {"call": name}))
            if known is None:
                token = step.set(f"{self._claim.turn_id}/{name}")
                try:
                    answer = await call()
                finally:
                    step.reset(token)
                await _written(self._journal.result(self._claim, name, _as_json(answer)))
            else:
                answer = _from_json(model, known)
        self.spent = Spent(
            input_tokens=self.spent.input_tokens + answer.spent.input_tokens,
            output_tokens=self.spent.output_tokens + answer.spent.output_tokens,
            model_calls=self.spent.model_calls + answer.spent.model_calls,
        )
        return answer


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
    }


def _from_json(model: type[Value], known: dict[str, Any]) -> Answer[Value]:
    return Answer(
        value=model.model_validate(known["value"]) if known["value"] else None,
        fault=Fault(**known["fault"]) if known["fault"] else None,
        spent=Spent.model_validate(known["spent"]),
    )
