"""Prompts: an agent's templates filled with a turn, what is not ours set apart as data, all within a budget of tokens.

A template's text becomes the system message, with trusted values in their places. Content that others wrote (the
message, attachments, the history and its summary, the profile, memory, a draft) never enters it: where the template names
such a part, the system message points to a block, and the blocks follow in the user message:

    <<7f3a9c51e0d24b86 memory>>
    {"title": …, "text": …}
    <<end 7f3a9c51e0d24b86 memory>>

The sixteen digits are drawn after the content is known, and drawn again should the content hold them. So no content can
end its own block or begin another, whatever it was made to look like (D-153).
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_tokens import clean, count, cut

from .blocks import memory_lines, parts_of, past_line, summary_lines
from .budget import Line, Parts, fit
from .fences import block, fresh
from .history import PastMessage, PastTurn, Summary
from .reasoner import Fault, TurnContext
from .templates import BLOCKS, SCHEMAS, SHOWN, BadTemplate, noticing, placeholders, render, template_of

_OF_MESSAGE = 4
"""Tokens around a message: its beginning, its role, the beginning of its text, and its end."""
_OF_PROVIDER = 100
"""Tokens that providers of gpt-oss put before a prompt: who the model is, the date, its channels, how hard to think."""
_OF_REPAIR = 8
"""The share of a prompt that a broken answer shown for repair may take is one in so many, and what is wrong with it half."""
_TRIES = 8
"""Times that a prompt is filled, each with less room: joined lines can have some tokens more than they have alone."""
_STATEMENTS = {
    "memory_empty": "Nothing was found.",
    "memory_unasked": "Memory was not asked.",
    "none": "None.",
}
"""What a block says that has nothing to hold, where the profile has no phrase of that name (D-107)."""
_BESIDE = {"history": "summary", "message": "attachments"}
"""Blocks that stand beside another where they hold something."""

ChatMessage = dict[str, Any]


def router_messages(agent: AgentProfile, turn: TurnContext, fault: Fault | None, budget: int) -> list[ChatMessage]:
    """The messages of the router call, or of its repair, in at most `budget` tokens. Raises `BadTemplate`."""
    return _messages("router", agent, turn, parts_of(turn), fault, budget)


def final_messages(
    agent: AgentProfile,
    turn: TurnContext,
    draft: str | None,
    memory: AugmentedMemoryContext | None,
    fault: Fault | None,
    budget: int,
) -> list[ChatMessage]:
    """The messages of the final call, or of its repair, in at most `budget` tokens. Raises `BadTemplate`."""
    parts = {**parts_of(turn), "draft": [Line.of(draft)] if draft else [], "memory": memory_lines(memory)}
    unfound = "memory_unasked" if memory is None else "memory_empty"
    return _messages("final", agent, turn, parts, fault, budget, unfound)


def summarise_messages(
    agent: AgentProfile, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...], budget: int
) -> list[ChatMessage]:
    """The messages of a call that puts older turns in short, in at most `budget` tokens. Raises `BadTemplate`."""
    said = [PastMessage(*one) for past in dropped for one in (("user", past.user), ("assistant", past.reply)) if one[1]]
    parts = {"summary": summary_lines(earlier), "history": [past_line(message) for message in said]}
    return _messages("summarise", agent, turn, parts, None, budget)


def size(messages: list[ChatMessage], purpose: str, limit: int) -> int:
    """Tokens of a prompt, with what the format and the provider put around it; more than `limit` where it has more."""
    texts = sum(count(message["content"], limit) + _OF_MESSAGE for message in messages)
    return texts + _OF_PROVIDER + (_of_schema(purpose) if purpose in SCHEMAS else 0)


def opening(
    purpose: str,
    agent: AgentProfile,
    turn: TurnContext,
    fault: Fault | None,
    budget: int,
    mark: str | None = None,
    mode: str = "",
    draft: str | None = None,
) -> list[ChatMessage]:
    """The first messages of a call: its instructions, and the turn as blocks. Raises `BadTemplate`.

    Args:
        purpose: the name of the prompt.
        agent: whose prompts.
        turn: the context package.
        fault: the earlier answer to repair.
        budget: tokens at most.
        mark: the boundary, where blocks that follow share it.
        mode: the mode that was chosen.
        draft: what was written, where it is looked at again.
    """
    parts = {**parts_of(turn), "draft": [Line.of(draft)] if draft else []}
    return _messages(purpose, agent, turn, parts, fault, budget, mark=mark, mode=mode)


def fresh_mark(turn: TurnContext) -> str:
    """A boundary that stands nowhere in a turn."""
    return fresh(_content(turn, parts_of(turn)))


def _content(turn: TurnContext, parts: Parts) -> str:
    return "\n".join([turn.thought.plan, *(line.text for lines in parts.values() for line in lines)])


@cache
def _of_schema(purpose: str) -> int:
    return count(json.dumps(SCHEMAS[purpose]), 10_000)


def _messages(
    purpose: str,
    agent: AgentProfile,
    turn: TurnContext,
    parts: dict[str, list[Line]],
    fault: Fault | None,
    budget: int,
    unfound: str = "memory_unasked",
    mark: str | None = None,
    mode: str = "",
) -> list[ChatMessage]:
    template = noticing(agent, purpose) if turn.thought.plan else template_of(agent, purpose)
    parts = _wanted(parts, placeholders(template))
    mark = mark or fresh(_content(turn, parts))
    plan = turn.thought.plan if "plan" in placeholders(template) else ""
    # The plan has a budget and an order of dropping of its own, so it stands as a whole (V-112).
    thought = [block(mark, "plan", [clean(plan)], "")] if plan else []
    values = {**_values(purpose, agent, turn, mark, parts), "mode": mode, "plan": "(block plan)" if plan else "(none)"}
    system = clean("\n\n".join(part for part in (agent.bootstrap, render(template, values)) if part))  # N-018
    repair = _repair(agent, fault, values, budget // _OF_REPAIR) if fault else []

    def filled(room: int) -> list[ChatMessage]:
        data = (block(mark, part, lines, _empty(agent, part, unfound)) for part, lines in fit(parts, room).items())
        return [{"role": "system", "content": system}, {"role": "user", "content": "\n".join((*data, *thought))}, *repair]

    room = budget - size(filled(0), purpose, budget)
    for _ in range(_TRIES):
        if room <= 0:
            break
        messages = filled(room)
        over = size(messages, purpose, 2 * budget) - budget
        if over <= 0:
            return messages
        room -= over
    raise BadTemplate(f"{agent.agent}, prompt {purpose!r}: it leaves no room for a turn in {budget} tokens")


def _wanted(parts: dict[str, list[Line]], named: frozenset[str]) -> dict[str, list[Line]]:
    """The parts that a template names, and those beside them that hold something."""
    shown = {"message" if name == "input" else name for name in named & BLOCKS}
    beside = {_BESIDE[name] for name in shown if name in _BESIDE and parts.get(_BESIDE[name])}
    return {part: lines for part, lines in parts.items() if part in shown | beside}


def _values(purpose: str, agent: AgentProfile, turn: TurnContext, mark: str, parts: Parts) -> dict[str, str]:
    """What stands in the places of a template: values, and for each part of data the name of its block."""
    return {
        **{name: f"(block {name})" for name in BLOCKS},
        "input": "(block message, block attachments)" if "attachments" in parts else "(block message)",
        "history": "(block summary, block history)" if "summary" in parts else "(block history)",
        "agent": agent.agent,
        "boundary": mark,
        "directive": turn.directive.value,
        "directive_text": agent.directives.get(turn.directive.value, ""),
        "schema": json.dumps(SHOWN[purpose]),
    }


def _repair(agent: AgentProfile, fault: Fault, values: dict[str, str], limit: int) -> list[ChatMessage]:
    asked = render(agent.prompts.get("repair", ""), {**values, "wrong": cut(clean(fault.wrong), limit // 2)})
    said = cut(clean(fault.said), limit)
    return [{"role": "assistant", "content": said}, {"role": "user", "content": clean(asked)}]


def _empty(agent: AgentProfile, part: str, unfound: str) -> str:
    name = unfound if part == "memory" else "none"
    return clean(agent.phrases.get(name) or _STATEMENTS[name])
