"""What came of a tool call: for the model, for the loop, and for the record of the turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phronesis_contracts import Message
from phronesis_contracts.orchestrator import MAX_DETAIL, ToolOutcome

from ..inquiry import Result, ToolCall

_DETAIL = 800
"""Characters of a problem that a model is told."""
_NAME, _CODE = 200, 100
"""Characters of a name and of a code that are told to the memory."""


@dataclass(frozen=True)
class Made:
    """A call that was admitted: what its owner answered, or the problem in place of an answer."""

    call: ToolCall
    request: Message
    answer: Message | None
    problem: dict[str, Any] | None
    """The body of a `ServiceError`."""
    ms: int


@dataclass(frozen=True)
class Outcome:
    """What came of a call, as the model is told it and as it is noted."""

    result: Result
    called: ToolOutcome


def note(call: ToolCall, code: str, detail: str) -> Result:
    """A problem as the model is told it."""
    return Result(call, json.dumps({"error": code, "detail": detail[:_DETAIL]}), "note")


def noted(made: Made, result: Result, tool: str) -> Outcome:
    """The outcome of a call that was admitted.

    Args:
        made: the call.
        result: what the model is told of it.
        tool: the tool's own name.
    """
    return Outcome(result, called(tool, made.problem, made.ms))


def unmade(call: ToolCall, code: str, detail: str) -> Outcome:
    """The outcome of a call that was not admitted."""
    return Outcome(note(call, code, detail), called(call.name, {"code": code, "detail": detail}, 0))


def called(tool: str, problem: Mapping[str, Any] | None, ms: int) -> ToolOutcome:
    """A call as the turn's end tells it to the memory (V-136, V-138).

    Args:
        tool: the tool's name.
        problem: the body of its error; `None` where it worked.
        ms: milliseconds that its owner took; of a call that is known from the journal, those of the time it was made.
    """
    name = tool[:_NAME]
    if problem is None:
        return ToolOutcome(name=name, ok=True, ms=ms)
    code, detail = str(problem["code"])[:_CODE], str(problem.get("detail", ""))[:MAX_DETAIL]
    return ToolOutcome(name=name, ok=False, code=code, detail=detail, ms=ms)
