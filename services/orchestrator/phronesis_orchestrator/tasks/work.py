"""A step without a tool of its own: a model works on it with the tools at hand, in rounds, within the task's budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from phronesis_contracts import ServiceError

from ..exchanges import fresh_mark
from ..inquiry import Inquirer, Inquiry, Move, Result
from ..reasoner import TurnContext
from ..steps import Steps
from .budget import Meter
from .plan import Step
from .ports import Caller, Outcome

MAX_ROUNDS = 6
"""Rounds of one step, the answer counted in."""
MAX_OF_ROUND = 4
"""Calls of one round that are made."""


async def worked(
    steps: Steps, caller: Caller, meter: Meter, reasoner: Inquirer, context: TurnContext, step: Step, offered: tuple[Any, ...]
) -> Outcome:
    """What a step gave.

    Args:
        steps: the journalled steps of the turn.
        caller: makes the calls.
        meter: the budget.
        reasoner: the model.
        context: what the model is told of the turn.
        step: its description is what the model is asked.
        offered: the tools as the chat API takes them.
    """
    asked = replace(context, user_text=step.description, final_input=step.description)
    inquiry = Inquiry("task", step.description, offered, fresh_mark(asked))
    tools: list[str] = []
    for number in range(1, MAX_ROUNDS + 1):
        inquiry.closing = number == MAX_ROUNDS
        if limit := meter.model():
            return Outcome(False, limit.detail, code=limit.code, tools=tuple(tools))
        name = f"task.step.{step.id}.round.{number}"
        try:
            move = (await steps.made(name, Move, lambda: reasoner.proceed(asked, inquiry), label="task.round")).value
        except ServiceError as error:
            return Outcome(False, error.detail, code=error.code, tools=tuple(tools))
        if move is None or not move.calls or inquiry.closing:
            text = move.text.strip() if move is not None else ""
            return Outcome(bool(text), text, {"text": text}, None if text else "no_answer", tuple(tools))
        results = await _called(caller, meter, step, number, move)
        tools += [call.name for call in move.calls[:MAX_OF_ROUND]]
        inquiry.rounds.append((move.model_copy(update={"calls": move.calls[:MAX_OF_ROUND]}), results))
    raise AssertionError("the last round closes")


async def _called(caller: Caller, meter: Meter, step: Step, number: int, move: Move) -> tuple[Result, ...]:
    results = []
    for at, call in enumerate(move.calls[:MAX_OF_ROUND], 1):
        if limit := meter.call():
            results.append(Result(call, limit.detail, "note"))
            continue
        outcome = await caller.call(f"task.step.{step.id}.call.{number}.{at}", call.name, _arguments(call.arguments))
        results.append(Result(call, outcome.text, "rows" if outcome.ok else "note"))
    return tuple(results)


def _arguments(text: str) -> dict[str, Any]:
    try:
        given = from_json(text or "{}", allow_inf_nan=False)
    except ValueError:
        return {"": text[:200]}
    return given if isinstance(given, dict) else {"": text[:200]}
