"""What came of a tool call: for the model, for the loop, and for the record of the turn."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from phronesis.contracts import Message

from ..inquiry import Result, ToolCall

_DETAIL = 800
"""Characters of a problem that a model is told."""


@dataclass(frozen=True)
class Called:
    """A tool call as the turn's record states it."""

    name: str
    ok: bool
    code: str | None
    """Of the problem; `None` where it went well."""
    ms: int
    """Milliseconds that its owner took; of a call that is known from the journal, those of the time it was made."""


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
    called: Called


def note(call: ToolCall, code: str, detail: str) -> Result:
    """A problem as the model is told it."""
    return Result(call, json.dumps({"error": code, "detail": detail[:_DETAIL]}), "note")


def noted(made: Made, result: Result) -> Outcome:
    """The outcome of a call that was admitted."""
    code = None if made.problem is None else str(made.problem["code"])
    return Outcome(result, Called(made.call.name, code is None, code, made.ms))


def unmade(call: ToolCall, code: str, detail: str) -> Outcome:
    """The outcome of a call that was not admitted."""
    return Outcome(note(call, code, detail), Called(call.name, False, code, 0))
