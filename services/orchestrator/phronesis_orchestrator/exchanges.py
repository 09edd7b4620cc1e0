"""The messages of an analyst's calls: the opening, then each round's calls with what they gave, within a budget of tokens."""

from __future__ import annotations

import json
import re
from typing import Any

from phronesis_contracts.instructions import AgentProfile
from phronesis_tokens import clean, count, cut

from .fences import fenced
from .inquiry import Inquiry, Move, Result, ToolCall
from .prompts import ChatMessage, fresh_mark, opening, size
from .reasoner import Fault, TurnContext
from .templates import BadTemplate, render, template_of

__all__ = ["classify_messages", "fresh_mark", "inquiry_messages"]

_OF_OPENING = 3
"""The opening takes at most one part in so many of the budget."""
_OF_REPAIR = 8
"""A broken answer that is shown for repair takes at most one part in so many."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LEFT_OUT = "(What this call gave was shown before, and is left out here for room.)"
_GIVES_WAY = ("rows", "memories", "note", "instructions")
"""Which results give way first where there is no room for all, the oldest of each kind before the newer."""


def classify_messages(agent: AgentProfile, turn: TurnContext, fault: Fault | None, budget: int) -> list[ChatMessage]:
    """The messages of the first call, or of its repair, in at most `budget` tokens. Raises `BadTemplate`."""
    return opening("classify", agent, turn, fault, budget)


def inquiry_messages(
    agent: AgentProfile, turn: TurnContext, inquiry: Inquiry, budget: int, fault: Fault | None = None
) -> list[ChatMessage]:
    """The messages of the next call of an inquiry, in about `budget` tokens.

    Args:
        agent: whose prompts.
        turn: the context package.
        inquiry: what was done so far.
        budget: tokens at most.
        fault: the final answer to write again.

    Raises:
        BadTemplate: a prompt is missing, or there is no room for a turn.
    """
    opened = opening("tools", agent, turn, None, budget // _OF_OPENING, inquiry.mark, inquiry.mode)
    closed = _closing(agent, inquiry, fault, budget // _OF_REPAIR)
    offered = count(json.dumps(inquiry.tools), budget)
    room = budget - offered - size([*opened, *closed], "tools", budget)
    return [*opened, *_rounds(inquiry, room), *closed]


def _closing(agent: AgentProfile, inquiry: Inquiry, fault: Fault | None, limit: int) -> list[ChatMessage]:
    if fault is not None:
        asked = render(template_of(agent, "repair"), {"wrong": cut(clean(fault.wrong), limit // 2)})
        said = cut(clean(fault.said), limit)
        return [{"role": "assistant", "content": said}, {"role": "user", "content": clean(asked)}]
    if inquiry.closing:
        return [{"role": "user", "content": template_of(agent, "closing")}]
    return []


def _rounds(inquiry: Inquiry, room: int) -> list[ChatMessage]:
    shown = [list(results) for _, results in inquiry.rounds]
    messages = _written(inquiry, shown)
    for kind in _GIVES_WAY:
        for results in shown:
            for at, result in enumerate(results):
                if _tokens(messages, room) <= room:
                    return messages
                if result.kind == kind:
                    results[at] = Result(result.call, _LEFT_OUT, kind)
                    messages = _written(inquiry, shown)
    if _tokens(messages, room) > room:
        raise BadTemplate("the rounds of an inquiry leave no room for its answer")
    return messages


def _tokens(messages: list[ChatMessage], limit: int) -> int:
    called = sum(count(json.dumps(message.get("tool_calls", "")), limit) for message in messages)
    return called + size(messages, "tools", limit)


def _written(inquiry: Inquiry, shown: list[list[Result]]) -> list[ChatMessage]:
    found: list[ChatMessage] = []
    for number, ((move, _), results) in enumerate(zip(inquiry.rounds, shown, strict=True), 1):
        found += _round(inquiry.mark, number, move, results)
    return found


def _round(mark: str, number: int, move: Move, results: list[Result]) -> list[ChatMessage]:
    said: ChatMessage = {"role": "assistant", "content": clean(move.text)}
    if not move.calls:
        return [said, *({"role": "user", "content": clean(result.text)} for result in results)]
    ids = [f"call_{number}_{at}" for at in range(1, len(move.calls) + 1)]
    said["tool_calls"] = [_call(id, call) for id, call in zip(ids, move.calls, strict=True)]
    return [said, *(_answer(mark, id, result) for id, result in zip(ids, results, strict=True))]


def _call(id: str, call: ToolCall) -> dict[str, Any]:
    """A call as it is shown again: what is no name or no JSON object would make the provider refuse all that follows."""
    try:
        whole = isinstance(json.loads(call.arguments), dict)
    except ValueError:
        whole = False
    name = call.name if _NAME.fullmatch(call.name) else "unknown"
    return {"id": id, "type": "function", "function": {"name": name, "arguments": call.arguments if whole else "{}"}}


def _answer(mark: str, id: str, result: Result) -> ChatMessage:
    """A tool's answer. Instructions are ours and stand as they are; everything else is data between boundaries."""
    ours = result.kind == "instructions" or result.text == _LEFT_OUT
    name = result.call.name if result.call and _NAME.fullmatch(result.call.name) else "unknown"
    text = clean(result.text) if ours else fenced(mark, name, result.text)
    return {"role": "tool", "tool_call_id": id, "content": text}
