"""The bodies of a chat call's answer: the model's text, its tool calls, and what the provider says it used."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from ..answers import storable
from ..inquiry import MAX_CALLS, ToolCall
from ..reasoner import Spent
from .chat_errors import TryFailed

_MOST_TOKENS = 100_000_000
"""More than any call uses: a greater figure is not believed."""
_LONGEST_NAME = 64
"""Characters of a tool's name."""
_LONGEST_ARGUMENTS = 50_000
"""Characters of a call's arguments; longer ones are cut, and so are no JSON any more."""


@dataclass(frozen=True)
class Completion:
    """What was answered."""

    text: str
    spent: Spent
    model: str | None = None
    finish: str | None = None
    calls: tuple[ToolCall, ...] = ()
    """The first tool calls that it asks for."""


class _Function(BaseModel):
    name: str = ""
    arguments: str | dict[str, Any] | None = None


class _Call(BaseModel):
    function: _Function = _Function()


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message = _Message()
    finish_reason: str | None = None


class _Body(BaseModel):
    choices: list[_Choice]
    model: str | None = None


def completion(body: bytes) -> Completion:
    """A completion from the body that carries it. Raises `TryFailed` where it is none."""
    spent = spent_in(body)
    try:
        read = _Body.model_validate_json(body)
    except ValidationError as error:
        raise TryFailed("the language model's answer is no completion", again=True, spent=spent) from error
    choice = read.choices[0] if read.choices else _Choice()
    calls = tuple(_call(call.function) for call in (choice.message.tool_calls or [])[:MAX_CALLS])
    return Completion(choice.message.content or "", spent, read.model, choice.finish_reason, calls)


def spent_in(body: bytes) -> Spent:
    """One call, and the tokens that an answer of whatever kind says it used."""
    try:
        found = from_json(body)
    except ValueError:
        found = None
    usage = found.get("usage") if isinstance(found, dict) else None
    told = usage if isinstance(usage, dict) else {}
    read, written = (told.get(f"{part}_tokens_details") for part in ("prompt", "completion"))
    return Spent(
        model_calls=1,
        input_tokens=_count(told.get("prompt_tokens")),
        output_tokens=_count(told.get("completion_tokens")),
        cached_tokens=_count(read.get("cached_tokens") if isinstance(read, dict) else None),
        reasoning_tokens=_count(written.get("reasoning_tokens") if isinstance(written, dict) else None),
    )


def _count(told: object) -> int:
    return told if isinstance(told, int) and 0 <= told <= _MOST_TOKENS else 0


def stated_in(body: object) -> dict[str, Any]:
    """The provider's error object."""
    error = body.get("error", body) if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def refused(error: dict[str, Any]) -> str | None:
    """What the model said where the provider itself refused it as no JSON, or as a call of a tool it was not offered."""
    if error.get("code") not in ("json_validate_failed", "tool_use_failed"):
        return None
    return str(storable(str(error.get("failed_generation") or ""))) or "(nothing)"


def _call(function: _Function) -> ToolCall:
    given = function.arguments
    arguments = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    return ToolCall(name=storable(function.name)[:_LONGEST_NAME], arguments=storable(arguments)[:_LONGEST_ARGUMENTS])
