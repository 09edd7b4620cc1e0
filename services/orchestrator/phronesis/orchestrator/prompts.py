"""Prompts: an agent's templates filled with a turn, what is not ours set apart as data, all within a budget of tokens.

A template's text becomes the system message, with trusted values in their places. Content that others wrote (the
message, attachments, the history, the profile, memory, a draft) never enters it: where the template names such a part, the
system message points to a block, and the blocks follow in the user message:

    <<7f3a9c51e0d24b86 memory>>
    {"title": …, "text": …}
    <<end 7f3a9c51e0d24b86 memory>>

The sixteen digits are drawn after the content is known, and drawn again should the content hold them. So no content can
end its own block or begin another, whatever it was made to look like (D-153).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from phronesis.contracts.instructions import AgentProfile
from phronesis.contracts.memory import AugmentedMemoryContext

from .answers import COMPOSED_SCHEMA, ROUTED_SCHEMA
from .budget import Parts, fit
from .reasoner import Fault, TurnContext

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SAID = 8_000
"""Characters of a broken answer that the repair shows."""
_AROUND = 80
"""Characters around a block: its two lines, and what it says when it is empty."""

VALUES = frozenset({"agent", "boundary", "directive", "directive_text", "schema", "wrong"})
"""Placeholders that are replaced by a value of our own."""
BLOCKS = frozenset({"input", "history", "profile", "memory", "draft"})
"""Placeholders that become a block of data. `input` is the message, with the text of attachments in a block beside it."""
PURPOSES: Mapping[str, frozenset[str]] = {"router": VALUES | BLOCKS, "final": VALUES | BLOCKS, "repair": VALUES}
"""The prompts that an agent of the router loop has, with the placeholders that each may name."""
SCHEMAS: Mapping[str, dict[str, Any]] = {"router": ROUTED_SCHEMA, "final": COMPOSED_SCHEMA}
_STATEMENTS = {
    "memory_empty": "Nothing was found.",
    "memory_unasked": "Memory was not asked.",
    "none": "None.",
}
"""What a block says that has nothing to hold, where the profile has no phrase of that name (D-107)."""

ChatMessage = dict[str, str]


class BadTemplate(ValueError):
    """A template is missing, or names a placeholder that there is no value for."""


def placeholders(template: str) -> frozenset[str]:
    """The names between double braces in a template."""
    return frozenset(_PLACEHOLDER.findall(template))


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` by its value, in one pass: braces inside a value stay as they are.

    Raises:
        BadTemplate: the template names a placeholder without a value.
    """
    if unknown := placeholders(template) - set(values):
        raise BadTemplate(f"unknown placeholders: {', '.join(sorted(unknown))}")
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def check(agent: AgentProfile) -> None:
    """Check the prompts of a profile, before a turn depends on them.

    Raises:
        BadTemplate: a prompt is missing, or names an unknown placeholder.
    """
    for purpose, known in PURPOSES.items():
        if not agent.prompts.get(purpose, "").strip():
            raise BadTemplate(f"{agent.agent} has no prompt {purpose!r}")
        if unknown := placeholders(agent.prompts[purpose]) - known:
            raise BadTemplate(f"{agent.agent}, prompt {purpose!r}: unknown placeholders: {', '.join(sorted(unknown))}")


def router_messages(agent: AgentProfile, turn: TurnContext, fault: Fault | None, budget: int) -> list[ChatMessage]:
    """The messages of the router call, or of its repair."""
    return _messages("router", agent, turn, {}, fault, budget)


def final_messages(
    agent: AgentProfile,
    turn: TurnContext,
    draft: str | None,
    memory: AugmentedMemoryContext | None,
    fault: Fault | None,
    budget: int,
) -> list[ChatMessage]:
    """The messages of the final call, or of its repair."""
    more = {"draft": [draft] if draft else [], "memory": _memory_lines(memory)}
    unfound = "memory_unasked" if memory is None else "memory_empty"
    return _messages("final", agent, turn, more, fault, budget, unfound)


def _messages(
    purpose: str,
    agent: AgentProfile,
    turn: TurnContext,
    more: dict[str, list[str]],
    fault: Fault | None,
    budget: int,
    unfound: str = "memory_unasked",
) -> list[ChatMessage]:
    template = agent.prompts.get(purpose, "")
    if not template.strip():
        raise BadTemplate(f"{agent.agent} has no prompt {purpose!r}")
    message = turn.user_text or ("" if turn.media_text else turn.final_input)
    parts: Parts = {
        "profile": [json.dumps(turn.profile, ensure_ascii=False, default=str)] if turn.profile else [],
        "history": [json.dumps({"role": past.role, "text": past.text}, ensure_ascii=False) for past in turn.history],
        **more,
        "message": [message] if message else [],
        "attachments": [turn.media_text] if turn.media_text else [],
    }
    named = placeholders(template)
    wanted = named | ({"message", "attachments"} if "input" in named else set())
    parts = {part: lines for part, lines in parts.items() if part in wanted and (lines or part != "attachments")}
    mark = _mark("\n".join(line for lines in parts.values() for line in lines))
    values = _values(purpose, agent, turn, mark, parts)
    system = render(template, values)
    repair = _repair(agent, fault, values) if fault else []
    fixed = len(system) + sum(len(one["content"]) for one in repair) + _AROUND * len(parts)
    fitted = fit(parts, budget, fixed)
    data = "\n".join(_block(mark, part, lines, _empty(agent, part, unfound)) for part, lines in fitted.items())
    return [{"role": "system", "content": system}, {"role": "user", "content": data}, *repair]


def _values(purpose: str, agent: AgentProfile, turn: TurnContext, mark: str, parts: Parts) -> dict[str, str]:
    """What stands in the places of a template: values, and for each part of data the name of its block."""
    given = "(block message, block attachments)" if "attachments" in parts else "(block message)"
    return {
        **{name: f"(block {name})" for name in BLOCKS},
        "input": given,
        "agent": agent.agent,
        "boundary": mark,
        "directive": turn.directive.value,
        "directive_text": agent.directives.get(turn.directive.value, ""),
        "schema": json.dumps(SCHEMAS[purpose]),
    }


def _repair(agent: AgentProfile, fault: Fault, values: dict[str, str]) -> list[ChatMessage]:
    asked = render(agent.prompts.get("repair", ""), {**values, "wrong": fault.wrong[:2_000]})
    return [{"role": "assistant", "content": fault.said[:_SAID]}, {"role": "user", "content": asked}]


def _memory_lines(memory: AugmentedMemoryContext | None) -> list[str]:
    """One line of JSON for each item, best first; and a last one where a part of memory did not answer."""
    if memory is None:
        return []
    items = sorted((*memory.concepts, *memory.memory_units), key=lambda item: (-item.score, item.hop, item.id))
    lines = [
        {"id": item.external_id or item.id, "kind": item.kind.value, "title": item.title, "text": item.text} for item in items
    ]
    if memory.degraded and lines:
        lines.append({"incomplete": ", ".join(memory.degraded)})
    return [json.dumps(line, ensure_ascii=False) for line in lines]


def _empty(agent: AgentProfile, part: str, unfound: str) -> str:
    name = unfound if part == "memory" else "none"
    return agent.phrases.get(name) or _STATEMENTS[name]


def _mark(content: str, draw: Callable[[], str] = lambda: secrets.token_hex(8)) -> str:
    """A boundary that does not stand in the content."""
    while (mark := draw()) in content:
        continue
    return mark


def _block(mark: str, name: str, lines: list[str], empty: str) -> str:
    return "\n".join((f"<<{mark} {name}>>", *(lines or [empty]), f"<<end {mark} {name}>>"))
