"""Prompts: templates filled with a turn, data in blocks that no content can end, within a budget of tokens.

Content that others wrote (message, attachments, history, profile, memory, draft) never enters the system message: it stands in
blocks of the user message, `<<7f3a9c51e0d24b86 memory>> ... <<end 7f3a9c51e0d24b86 memory>>`. The sixteen digits are drawn
after the content is known, and again should it hold them, so that no content can end its block or begin another.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import AnswerForm, ClientRequest
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
    find_wishes,
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
    """A message, with the names of what was attached; with its number where others between it and the next are left out."""
    numbered = {} if past.seq is None else {"message": past.seq}
    attached = {"attached": list(past.attached)} if past.attached else {}
    return Line.json(**numbered, role=past.role, text=past.text, **attached)


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
_SLACK = 16
"""Tokens that joined texts may have more than they have alone."""
_SMALL = 3_000
"""Tokens below which a prompt's tools and rounds give more of their share to its message."""
_SAID_EMPTY = frozenset({"message", "memory"})
"""Blocks that say something where they hold nothing; the others are then left out where there is little room."""
_OF_BOOTSTRAP = 4
"""Where instructions are cut, the agent's general ones keep one part in so many."""
_OF_PROVIDER = 100
"""Tokens that providers of gpt-oss put before a prompt: who the model is, the date, its channels, how hard to think."""
_OF_REPAIR = 8
"""The share of a prompt that a broken answer shown for repair may take is one in so many, and what is wrong with it half."""
_OF_WISHES = 8
"""A client's wishes take at most one part in so many of a prompt."""
CLIENT = "client"
"""The block of a client's wishes."""
_TRIES = 8
"""Times that a prompt is filled, each with less room: joined lines can have some tokens more than they have alone."""
_STATEMENTS = {"memory_empty": "Nothing was found.", "memory_unasked": "Memory was not asked.", "none": "None."}
"""What a block says that has nothing to hold, where the profile has no phrase of that name."""
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
    said = [message for past in dropped for message in past.messages()]
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
        budget: tokens at most.
        mark: the boundary, where blocks that follow share it.
        draft: what was written, where it is looked at again.
    """
    parts = {**prompt_parts(turn), "draft": [Line.of(draft)] if draft else []}
    return _messages(purpose, agent, turn, parts, fault, budget, mark=mark, mode=mode)


def client_messages(
    agent: AgentProfile,
    turn: TurnContext,
    client: ClientRequest,
    memory: AugmentedMemoryContext | None,
    fault: Fault | None,
    budget: int,
) -> list[ChatMessage]:
    """The messages of a call that works with a client's tools, or of its repair, in about `budget` tokens.

    Whatever the client sent stands in blocks: its tools' results, and what it says that the agent said.

    Raises:
        BadTemplate: a prompt is missing, or there is no room for a turn.
    """
    mark = new_mark(turn)
    offered = tuple(client_definitions(client)) if client.offers else ()
    inquiry = Inquiry("", "", offered, mark, client_rounds(client))
    parts = {**prompt_parts(turn), "memory": memory_lines(memory)}
    unfound = "memory_unasked" if memory is None else "memory_empty"
    opened = _messages("client", agent, turn, parts, None, budget // (2 if budget < _SMALL else _OF_OPENING), unfound, mark)
    closed = _closing(agent, inquiry, fault, budget // _OF_REPAIR, "client_repair")
    sized = count(json.dumps(fit_tools(offered, budget)), budget)
    room = budget - sized - prompt_size([*opened, *closed], "client", budget)
    return [*opened, *_rounds(inquiry, room), *closed]


def client_definitions(client: ClientRequest) -> list[dict[str, Any]]:
    """A client's tools as the chat API takes them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": clean(tool.description),
                "parameters": tool.parameters,
                **({"strict": True} if tool.strict else {}),
            },
        }
        for tool in client.tools
    ]


def client_rounds(client: ClientRequest) -> list[tuple[Move, tuple[CallResult, ...]]]:
    """A client's calls as rounds: one without a result is told to have none, and a result of no call is left out."""
    results = {step.result_of: step.text for step in client.steps if step.result_of is not None}
    rounds = []
    for step in client.steps:
        if step.calls:
            calls = tuple(ToolCall(name=call.name, arguments=call.arguments) for call in step.calls)
            told = (results.get(call.id, "(The client sent no result.)") for call in step.calls)
            found = tuple(CallResult(call, text, "rows") for call, text in zip(calls, told, strict=True))
            rounds.append((Move(text="", calls=calls), found))
    return rounds


def form_messages(
    agent: AgentProfile, turn: TurnContext, form: AnswerForm, draft: str, fault: Fault | None, budget: int
) -> list[ChatMessage]:
    """The messages of a call that puts an answer into a client's form, or of its repair. Raises `BadTemplate`."""
    wanted = json.dumps(form.schema_, ensure_ascii=False) if form.schema_ else "Any JSON object."
    mark = new_boundary(_content(turn, prompt_parts(turn)) + draft + wanted)
    block = fence(mark, "form", cut(clean(wanted), budget // _OF_OPENING))
    room = budget - count(block, budget) - _OF_MESSAGE
    system, data, *repair = opening_messages("form", agent, turn, fault, room, mark, draft=draft)
    return [system, {**data, "content": f"{data['content']}\n{block}"}, *repair]


def new_mark(turn: TurnContext) -> str:
    """A boundary that stands nowhere in a turn."""
    return new_boundary(_content(turn, prompt_parts(turn)))


def _content(turn: TurnContext, parts: Parts) -> str:
    said = turn.client.model_dump_json() if turn.client else ""
    return "\n".join([turn.thought.plan, said, *(line.text for lines in parts.values() for line in lines)])


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
    if purpose == "tools" and parts.get("draft") and (proposed := agent.prompts.get("proposal", "").strip()):
        template = f"{template.rstrip()}\n\n{proposed}"
    wished = turn.client.instructions.strip() if turn.client else ""
    if wished and (wishes := find_wishes(agent, purpose)):
        template = f"{template.rstrip()}\n\n{wishes}"
    else:
        wished = ""
    parts = _select_parts(parts, placeholders(template))
    mark = mark or new_boundary(_content(turn, parts))
    plan = turn.thought.plan if "plan" in placeholders(template) else ""
    # The plan has a budget and an order of dropping of its own, so it stands as a whole.
    thought = [render_block(mark, "plan", [clean(plan)], "")] if plan else []
    if wished:
        thought.append(fence(mark, CLIENT, cut(clean(wished), budget // _OF_WISHES)))
    values = {**_values(purpose, agent, turn, mark, parts), "mode": mode, "plan": "(block plan)" if plan else "(none)"}
    ours, step = clean(agent.bootstrap), clean(render(template, values))
    repair = _repair(agent, fault, values, budget // _OF_REPAIR) if fault else []

    def filled(room: int) -> list[ChatMessage]:
        system = "\n\n".join(part for part in (ours, step) if part)
        data = (render_block(mark, part, lines, _empty(agent, part, unfound)) for part, lines in fit_parts(parts, room).items())
        return [{"role": "system", "content": system}, {"role": "user", "content": "\n".join((*data, *thought))}, *repair]

    room = budget - prompt_size(filled(0), purpose, 2 * budget)
    wanted = sum(count(line.text, budget) for line in parts.get("message", ())) + _SLACK
    if room < wanted:
        parts = {part: lines for part, lines in parts.items() if lines or part in _SAID_EMPTY}
        room = budget - prompt_size(filled(0), purpose, 2 * budget)
    if room < wanted:
        # The instructions give way to the message, down to half of the prompt: those of the agent before those of the step.
        allowed = max(budget // 2, count(ours, budget) + count(step, budget) - (wanted - room))
        step_size = min(count(step, allowed), allowed - min(count(ours, allowed), allowed // _OF_BOOTSTRAP))
        ours, step = cut_middle(ours, allowed - step_size), cut_middle(step, step_size)
        room = budget - prompt_size(filled(0), purpose, 2 * budget)
    for _ in range(_TRIES):
        if room <= 0:
            break
        messages = filled(room)
        over = prompt_size(messages, purpose, 2 * budget) - budget
        if over <= 0:
            return messages
        room -= over
    raise BadTemplate(f"{agent.agent}, prompt {purpose!r}: it leaves no room for a turn in {budget} tokens")


_CUT_LINES = "[...]"


def cut_middle(text: str, limit: int) -> str:
    """A text in at most about `limit` tokens: its first and its last lines, since the form of an answer stands at the end."""
    if count(text, limit + 1) <= limit:
        return text
    lines = text.split("\n")
    head, tail = list[str](), list[str]()
    left = limit - count(_CUT_LINES, limit) - 1
    while lines:
        line = lines.pop(-1 if len(tail) <= len(head) else 0)
        size = count(line, limit) + 1
        if size > left:
            if not tail and left > 0:  # not even one line fits
                return cut(line, limit)
            break
        (tail if len(tail) <= len(head) else head).append(line)
        left -= size
    return "\n".join([*head, _CUT_LINES, *reversed(tail)])


def with_keys(messages: Sequence[Mapping[str, Any]], schema: dict[str, Any]) -> list[ChatMessage]:
    """A prompt that lists the keys of its answer at its very end, for endpoints that hold a model to no schema."""
    *before, last = messages
    asked = f"{last['content']}\n\nAnswer with one JSON object with exactly these keys: {keys_of(schema)}"
    return [*map(dict, before), {**last, "content": asked}]


def keys_of(schema: dict[str, Any]) -> str:
    """The form of an answer in short, as a prompt shows it."""
    named = schema.get("$defs", {})
    lists = [f"{name}: {_kind(told, named)}" for name, told in named.items() if "enum" in told]
    return "; ".join((_kind(schema, named), *lists))


def _kind(told: dict[str, Any], named: Mapping[str, Any]) -> str:
    """A schema as a person would write it down; `named`: what its references stand for, of which lists are said once."""
    if "$ref" in told:
        name = told["$ref"].rpartition("/")[2]
        return name if "enum" in named[name] else _kind(named[name], named)
    if "enum" in told:
        return " or ".join(json.dumps(one) for one in told["enum"])
    if "anyOf" in told:
        return " or ".join(_kind(one, named) for one in told["anyOf"])
    kind = told.get("type", "value")
    if kind == "array":
        return f"[{_kind(told.get('items', {}), named)}, ...]"
    if kind == "object" and "properties" in told:
        return "{" + ", ".join(f'"{name}": {_kind(one, named)}' for name, one in told["properties"].items()) + "}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


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
        "schema": json.dumps(SHOWN.get(purpose, {})),
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
        budget: tokens at most.

    Raises:
        BadTemplate: a prompt is missing, or there is no room for a turn.
    """
    opening = budget // (2 if budget < _SMALL else _OF_OPENING)
    opened = opening_messages("tools", agent, turn, None, opening, inquiry.mark, inquiry.mode, inquiry.proposal or None)
    closed = _closing(agent, inquiry, fault, budget // _OF_REPAIR)
    offered = count(json.dumps(fit_tools(inquiry.tools, budget)), budget)
    room = budget - offered - prompt_size([*opened, *closed], "tools", budget)
    return [*opened, *_rounds(inquiry, room), *closed]


_SAID = ("description", "title", "examples")
_DESCRIPTION = 24
"""Tokens of a tool's description where there is little room."""


def fit_tools(tools: Sequence[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """The tools in a form that leaves room for a turn: described more and more briefly, and the last ones left out at last.

    Args:
        budget: tokens of the whole prompt; the tools take a third of it at most, of a long one half.
    """
    limit = budget // 4 if budget < _SMALL else min(budget // 2, max(budget // 3, budget - 8_000))
    found = list(tools)
    for shorter in (lambda one: one, _undescribed, _briefly, _typed):
        found = [shorter(tool) for tool in found]
        if count(json.dumps(found), limit + 1) <= limit:
            return found
    while found and count(json.dumps(found), limit + 1) > limit:
        found.pop()
    return found


def _undescribed(tool: dict[str, Any]) -> dict[str, Any]:
    """Without what is said of single arguments."""

    def bare(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            named = name in ("properties", "$defs")  # there a key is a name and no keyword
            return {
                key: bare(one, key) for key, one in value.items() if named or key not in ("description", "title", "examples")
            }
        return [bare(one) for one in value] if isinstance(value, list) else value

    function = tool["function"]
    return {**tool, "function": {**function, "parameters": bare(function.get("parameters", {}))}}


def _briefly(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    return {**tool, "function": {**function, "description": cut(str(function.get("description", "")), _DESCRIPTION)}}


def _typed(tool: dict[str, Any]) -> dict[str, Any]:
    """With the names and types of its arguments alone."""
    function = tool["function"]
    given = function.get("parameters", {})
    named = {name: {"type": told["type"]} if "type" in told else {} for name, told in given.get("properties", {}).items()}
    parameters = {"type": "object", "properties": named, "required": given.get("required", [])}
    return {**tool, "function": {**function, "parameters": parameters}}


def _closing(
    agent: AgentProfile, inquiry: Inquiry, fault: Fault | None, limit: int, repair: str = "repair"
) -> list[ChatMessage]:
    if fault is not None:
        asked = render(find_template(agent, repair), {"wrong": cut(clean(fault.wrong), limit // 2)})
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
    for begin in range(1, len(shown) + 1):
        if _tokens(messages, room) <= room:
            break
        messages = _write_rounds(inquiry, shown, begin)
    return messages


def _tokens(messages: list[ChatMessage], limit: int) -> int:
    called = sum(count(json.dumps(message.get("tool_calls", "")), limit) for message in messages)
    return called + prompt_size(messages, "tools", limit)


def _write_rounds(inquiry: Inquiry, shown: list[list[CallResult]], begin: int = 0) -> list[ChatMessage]:
    """The rounds as messages, without the oldest where `begin` says so."""
    found: list[ChatMessage] = []
    for number, ((move, _), results) in list(enumerate(zip(inquiry.rounds, shown, strict=True), 1))[begin:]:
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
