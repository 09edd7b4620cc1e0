"""Prompts: templates filled with a turn, data in blocks that no content can end (D-153), within a budget."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from functools import cache
from typing import Any

from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_tokens import clean, count, cut

from ..conversations.history import PastMessage, PastTurn, Summary
from .reasoner import CallResult, Fault, Inquiry, Move, ToolCall, TurnContext
from .templates import (
    BLOCKS,
    SCHEMAS,
    SHOWN,
    BadTemplate,
    Line,
    Parts,
    find_template,
    fit_parts,
    placeholders,
    render,
    template_with_notice,
)


def new_boundary(content: str, draw: Callable[[], str] = lambda: secrets.token_hex(8)) -> str:
    """A boundary that does not stand in the content."""
    while (mark := draw()) in content:
        continue
    return mark


def render_block(mark: str, name: str, lines: list[str], empty: str) -> str:
    """A block of lines; of what it says where there are none."""
    return "\n".join((f"<<{mark} {name}>>", *(lines or [empty]), f"<<end {mark} {name}>>"))


def fence(mark: str, name: str, text: str) -> str:
    """A text of others as a block; it cannot hold the boundary."""
    return render_block(mark, name, [clean(text.replace(mark, ""))], "")


_NEXT_DOCUMENT = re.compile(r"\n(?=\[(?:document|image|audio): )")


def prompt_parts(turn: TurnContext) -> dict[str, list[Line]]:
    """What every prompt of a turn may show, in the order of its blocks."""
    message = turn.user_text or ("" if turn.media_text else turn.final_input)
    return {
        "profile": [Line.json(**{str(name): value}) for name, value in turn.profile.items()],
        "summary": summary_lines(turn.summary),
        "history": [past_line(past) for past in turn.history],
        "draft": [],
        "memory": [],
        "message": [Line.of(message)] if message else [],
        "attachments": [Line.of(text) for text in _NEXT_DOCUMENT.split(turn.media_text)] if turn.media_text else [],
    }


def past_line(past: PastMessage) -> Line:
    """A message; with its number where others between it and the next are left out."""
    if past.seq is None:
        return Line.json(role=past.role, text=past.text)
    return Line.json(message=past.seq, role=past.role, text=past.text)


def summary_lines(summary: Summary) -> list[Line]:
    """What is left of older turns: who put them in short, and what they said."""
    lines = (
        [Line.json(messages=f"up to {summary.text_through}", shortened_by="model", text=summary.text)] if summary.text else []
    )
    if summary.notes:
        reach = f"{summary.notes[0].seq} to {summary.notes[-1].seq}"
        lines.append(Line.json(messages=reach, shortened_by="rule: single sentences, word for word"))
    return [*lines, *(Line.json(message=note.seq, role=note.role, text=note.text) for note in summary.notes)]


def memory_lines(memory: AugmentedMemoryContext | None) -> list[Line]:
    """One line of JSON for each item, best first; and a last one where a part of memory did not answer."""
    if memory is None:
        return []
    items = sorted((*memory.concepts, *memory.memory_units), key=lambda item: (-item.score, item.hop, item.id))
    lines = [
        Line.json(
            id=item.external_id or item.id,
            kind=item.kind.value,
            title=item.title,
            text=item.text,
            **({"why": item.why} if item.why else {}),
        )
        for item in items
    ]
    return [*lines, Line.json(incomplete=", ".join(memory.degraded))] if memory.degraded and lines else lines


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
    return _messages("router", agent, turn, prompt_parts(turn), fault, budget)


def final_messages(
    agent: AgentProfile,
    turn: TurnContext,
    draft: str | None,
    memory: AugmentedMemoryContext | None,
    fault: Fault | None,
    budget: int,
) -> list[ChatMessage]:
    """The messages of the final call, or of its repair, in at most `budget` tokens. Raises `BadTemplate`."""
    parts = {**prompt_parts(turn), "draft": [Line.of(draft)] if draft else [], "memory": memory_lines(memory)}
    unfound = "memory_unasked" if memory is None else "memory_empty"
    return _messages("final", agent, turn, parts, fault, budget, unfound)


def summarise_messages(
    agent: AgentProfile, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...], budget: int
) -> list[ChatMessage]:
    """The messages of a call that puts older turns in short, in at most `budget` tokens. Raises `BadTemplate`."""
    said = [PastMessage(*one) for past in dropped for one in (("user", past.user), ("assistant", past.reply)) if one[1]]
    parts = {"summary": summary_lines(earlier), "history": [past_line(message) for message in said]}
    return _messages("summarise", agent, turn, parts, None, budget)


def prompt_size(messages: list[ChatMessage], purpose: str, limit: int) -> int:
    """Tokens of a prompt, with what the format and the provider put around it; more than `limit` where it has more."""
    texts = sum(count(message["content"], limit) + _OF_MESSAGE for message in messages)
    return texts + _OF_PROVIDER + (_schema_tokens(purpose) if purpose in SCHEMAS else 0)


def opening_messages(
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
    parts = {**prompt_parts(turn), "draft": [Line.of(draft)] if draft else []}
    return _messages(purpose, agent, turn, parts, fault, budget, mark=mark, mode=mode)


def new_mark(turn: TurnContext) -> str:
    """A boundary that stands nowhere in a turn."""
    return new_boundary(_content(turn, prompt_parts(turn)))


def _content(turn: TurnContext, parts: Parts) -> str:
    return "\n".join([turn.thought.plan, *(line.text for lines in parts.values() for line in lines)])


@cache
def _schema_tokens(purpose: str) -> int:
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
    template = template_with_notice(agent, purpose) if turn.thought.plan else find_template(agent, purpose)
    parts = _select_parts(parts, placeholders(template))
    mark = mark or new_boundary(_content(turn, parts))
    plan = turn.thought.plan if "plan" in placeholders(template) else ""
    # The plan has a budget and an order of dropping of its own, so it stands as a whole (V-112).
    thought = [render_block(mark, "plan", [clean(plan)], "")] if plan else []
    values = {**_values(purpose, agent, turn, mark, parts), "mode": mode, "plan": "(block plan)" if plan else "(none)"}
    system = clean("\n\n".join(part for part in (agent.bootstrap, render(template, values)) if part))  # N-018
    repair = _repair(agent, fault, values, budget // _OF_REPAIR) if fault else []

    def filled(room: int) -> list[ChatMessage]:
        data = (render_block(mark, part, lines, _empty(agent, part, unfound)) for part, lines in fit_parts(parts, room).items())
        return [{"role": "system", "content": system}, {"role": "user", "content": "\n".join((*data, *thought))}, *repair]

    room = budget - prompt_size(filled(0), purpose, budget)
    for _ in range(_TRIES):
        if room <= 0:
            break
        messages = filled(room)
        over = prompt_size(messages, purpose, 2 * budget) - budget
        if over <= 0:
            return messages
        room -= over
    raise BadTemplate(f"{agent.agent}, prompt {purpose!r}: it leaves no room for a turn in {budget} tokens")


def _select_parts(parts: dict[str, list[Line]], named: frozenset[str]) -> dict[str, list[Line]]:
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


_OF_OPENING = 3
"""The opening takes at most one part in so many of the budget."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LEFT_OUT = "(What this call gave was shown before, and is left out here for room.)"
_GIVES_WAY = ("rows", "memories", "note", "instructions")
"""Which results give way first where there is no room for all, the oldest of each kind before the newer."""


def classify_messages(agent: AgentProfile, turn: TurnContext, fault: Fault | None, budget: int) -> list[ChatMessage]:
    """The messages of the first call, or of its repair, in at most `budget` tokens. Raises `BadTemplate`."""
    return opening_messages("classify", agent, turn, fault, budget)


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
    opened = opening_messages("tools", agent, turn, None, budget // _OF_OPENING, inquiry.mark, inquiry.mode)
    closed = _closing(agent, inquiry, fault, budget // _OF_REPAIR)
    offered = count(json.dumps(inquiry.tools), budget)
    room = budget - offered - prompt_size([*opened, *closed], "tools", budget)
    return [*opened, *_rounds(inquiry, room), *closed]


def _closing(agent: AgentProfile, inquiry: Inquiry, fault: Fault | None, limit: int) -> list[ChatMessage]:
    if fault is not None:
        asked = render(find_template(agent, "repair"), {"wrong": cut(clean(fault.wrong), limit // 2)})
        said = cut(clean(fault.said), limit)
        return [{"role": "assistant", "content": said}, {"role": "user", "content": clean(asked)}]
    if inquiry.closing:
        return [{"role": "user", "content": find_template(agent, "closing")}]
    return []


def _rounds(inquiry: Inquiry, room: int) -> list[ChatMessage]:
    shown = [list(results) for _, results in inquiry.rounds]
    messages = _write_rounds(inquiry, shown)
    for kind in _GIVES_WAY:
        for results in shown:
            for at, result in enumerate(results):
                if _tokens(messages, room) <= room:
                    return messages
                if result.kind == kind:
                    results[at] = CallResult(result.call, _LEFT_OUT, kind)
                    messages = _write_rounds(inquiry, shown)
    if _tokens(messages, room) > room:
        raise BadTemplate("the rounds of an inquiry leave no room for its answer")
    return messages


def _tokens(messages: list[ChatMessage], limit: int) -> int:
    called = sum(count(json.dumps(message.get("tool_calls", "")), limit) for message in messages)
    return called + prompt_size(messages, "tools", limit)


def _write_rounds(inquiry: Inquiry, shown: list[list[CallResult]]) -> list[ChatMessage]:
    found: list[ChatMessage] = []
    for number, ((move, _), results) in enumerate(zip(inquiry.rounds, shown, strict=True), 1):
        found += _round(inquiry.mark, number, move, results)
    return found


def _round(mark: str, number: int, move: Move, results: list[CallResult]) -> list[ChatMessage]:
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


def _answer(mark: str, id: str, result: CallResult) -> ChatMessage:
    """A tool's answer. Instructions are ours and stand as they are; everything else is data between boundaries."""
    ours = result.kind == "instructions" or result.text == _LEFT_OUT
    name = result.call.name if result.call and _NAME.fullmatch(result.call.name) else "unknown"
    text = clean(result.text) if ours else fence(mark, name, result.text)
    return {"role": "tool", "tool_call_id": id, "content": text}
