"""Decisions of a task as journalled steps: one that was made, or that failed, is never made again (V-031, V-T04)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic

from phronesis_contracts import ServiceError, TimedOut

from ..domain import LostClaim
from ..ledger.spent import Spent
from ..reasoner import Answer, CallFailed, Value
from ..steps import JournalAway, Steps

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decision(Generic[Value]):
    """What was decided, or why nothing was."""

    value: Value | None
    why: str = ""
    """Code of what went wrong; empty where nothing did."""


@dataclass
class _Used:
    """What one call used."""

    spent: Spent
    cost_usd: float | None = None


async def decided(
    steps: Steps, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]], seconds: float
) -> Decision[Value]:
    """Make a decision within its time, or read what it was. Whatever goes wrong with it is its outcome, and is journalled.

    Args:
        steps: the journalled steps of the turn.
        name: of the step.
        model: what is decided.
        call: makes the call.
        seconds: that it may take, all in all.
    """
    fresh = False

    async def make() -> dict[str, Any]:
        nonlocal fresh
        fresh = True
        return await _made(steps, name, model, call, seconds)

    found = await steps.called(name, purpose(name), make)
    if not fresh:
        steps.count(Spent.model_validate(found["spent"]), found["cost_usd"])
    value = model.model_validate(found["value"]) if found["value"] is not None else None
    return Decision(value, found["why"])


def purpose(name: str) -> str:
    """What a decision's step is called in the measures: `task.evaluate` of `task.evaluate.2`."""
    head, _, last = name.rpartition(".")
    return head if last.isdigit() else name


async def _made(
    steps: Steps, name: str, model: type[Value], call: Callable[[], Awaitable[Answer[Value]]], seconds: float
) -> dict[str, Any]:
    used = _Used(Spent())
    value: Value | None = None
    try:
        answer = await steps.made(f"{name}.call", model, lambda: _bounded(call, seconds, used), label=f"{purpose(name)}.call")
        used.spent, used.cost_usd = answer.spent, answer.cost_usd
        value, why = answer.value, "" if answer.value is not None else "unreadable"
    except (JournalAway, LostClaim):
        raise  # the attempt is over, and nothing is decided
    except ServiceError as error:
        why = error.code
    except Exception as error:
        # A stage that only improves a task may not end it; what broke stands in the log.
        log.exception("the decision %s broke", name)
        why = type(error).__name__
    if why:
        log.warning("the decision %s could not be made: %s", name, why)
    told = value.model_dump(mode="json") if value is not None else None
    return {"value": told, "why": why, "spent": used.spent.model_dump(), "cost_usd": used.cost_usd}


async def _bounded(call: Callable[[], Awaitable[Answer[Value]]], seconds: float, used: _Used) -> Answer[Value]:
    """The call within its time; what it used is noted where it fails."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await call()
    except CallFailed as failed:
        used.spent, used.cost_usd = failed.spent, failed.cost_usd
        raise
    except TimeoutError as error:
        raise CallFailed(TimedOut("it took too long"), Spent()) from error
