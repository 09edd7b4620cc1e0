"""An agent's prompt templates and how one is filled; the budget of a prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from phronesis_contracts.instructions import AgentProfile
from phronesis_tokens import clean, count, cut

from ..agents.tools import uses_allow_list
from ..learning.statements import DRAWN_SCHEMA
from .limits import OPTIONAL_CALLS, OptionalCall
from .parsing import (
    CLASSIFIED_SCHEMA,
    COMPOSED_SCHEMA,
    CRITICISM_SCHEMA,
    DECIDED_SCHEMA,
    DRAFT_SHAPE,
    LOOK_AHEAD_SCHEMA,
    PLAN_SHAPE,
    REFLECTED_SCHEMA,
    REPORT_SHAPE,
    ROUTED_SCHEMA,
    SUMMARISED_SCHEMA,
    VERDICT_SCHEMA,
)

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")

VALUES = frozenset({"agent", "boundary", "directive", "directive_text", "mode", "schema", "wrong"})
"""Placeholders that are replaced by a value of our own."""
BLOCKS = frozenset({"input", "history", "profile", "memory", "draft", "plan"})
"""Placeholders that become a block of data. `input` is the message, with the text of attachments in a block beside it, and
`history` the messages, with the summary of older ones in a block before them. `plan` is what was thought about the message."""
PURPOSES: Mapping[str, frozenset[str]] = {"router": VALUES | BLOCKS, "final": VALUES | BLOCKS, "repair": VALUES}
"""The prompts that an agent of the router loop has, with the placeholders that each may name."""
_CLASSIFY = VALUES | {"input", "history", "profile"}
_WORK = _CLASSIFY | {"plan"}
OF_LOOP: Mapping[str, Mapping[str, frozenset[str]]] = {
    "router": PURPOSES,
    "quick": {"classify": _CLASSIFY, "repair": VALUES},
    "tools": {"classify": _CLASSIFY, "tools": _WORK, "repair": VALUES, "unread": VALUES, "closing": VALUES},
}
"""The prompts that an agent cannot do without, by its loop."""
OF_LIST: Mapping[str, frozenset[str]] = {"tools": _WORK, "repair": VALUES, "closing": VALUES}
"""The same for an agent that works with its allow-list alone."""
OPTIONAL: Mapping[str, frozenset[str]] = {
    "summarise": VALUES | {"history"},
    "learn": VALUES | {"history"},
    "intent": _CLASSIFY,
    "preflight": _WORK,
    "reflect": _WORK | {"draft"},
    "research": frozenset(),
    "noticed": frozenset({"plan"}),
    "decompose": _WORK,
    "evaluate": _WORK,
    "criticise": _WORK | {"draft"},
    "task_report": _WORK,
    "understand": _WORK,
    "formulate": _WORK,
    "proposal": frozenset({"draft"}),
    "client": _WORK | {"memory"},
    "form": _WORK | {"draft"},
    "client_repair": VALUES,
    "client_instructions": frozenset(),
    "wishes": _WORK,
}
"""Prompts that an agent may have: without `summarise` rules alone put older turns in short, without `learn` they alone draw
facts from ended ones, without `intent` they alone say what a message is, and without the others nobody looks ahead, looks back,
is told to look things up first, or is told what was noticed about the message. Where one of the four
of tasks is missing, rules plan the agent's tasks. Without `client` it is offered no tools of a client's, without `form` it
answers in no form of a client's, and without `client_instructions` it is not shown a client's wishes. Without `wishes` nobody
says which calls the user's own words ask for, and a person is asked about each that untrusted text may have led to."""
SCHEMAS: Mapping[str, dict[str, Any]] = {
    "router": ROUTED_SCHEMA,
    "final": COMPOSED_SCHEMA,
    "summarise": SUMMARISED_SCHEMA,
    "classify": CLASSIFIED_SCHEMA,
    "learn": DRAWN_SCHEMA,
    "intent": DECIDED_SCHEMA,
    "preflight": LOOK_AHEAD_SCHEMA,
    "reflect": REFLECTED_SCHEMA,
    "evaluate": VERDICT_SCHEMA,
    "criticise": CRITICISM_SCHEMA,
}
"""What an answer must fit, by purpose; strict modes are sent it."""
SHOWN: Mapping[str, dict[str, Any]] = {**SCHEMAS, "tools": DRAFT_SHAPE, "decompose": PLAN_SHAPE, "task_report": REPORT_SHAPE}
"""What stands in the place of `{{schema}}`."""

_DRAFTED = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "analysis": {"type": "array", "items": {"type": "string"}},
        "confidence": {"type": "number"},
    },
    "required": ["answer"],
}
_WISHED = {
    "type": "object",
    "properties": {
        "calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["tool", "arguments"],
            },
        }
    },
    "required": ["calls"],
}
_TEXT = {"type": "string"}
_LOOKED_UP = {"of": _TEXT, "path": _TEXT}
_PLANNED = {
    "type": "object",
    "properties": {
        "title": _TEXT,
        "kind": _TEXT,
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": _TEXT,
                    "description": _TEXT,
                    "tool": _TEXT,
                    "question": _TEXT,
                    "arguments": {"type": "object"},
                    "each": {"type": "object", "properties": {**_LOOKED_UP, "limit": {"type": "integer"}}, "required": ["of"]},
                    "when": {
                        "type": "object",
                        "properties": {
                            **_LOOKED_UP,
                            "is": {"type": "string", "enum": ["empty", "not_empty", "equals", "more_than"]},
                            "value": {},
                        },
                        "required": ["of", "is"],
                    },
                    "depends": {"type": "array", "items": _TEXT},
                    "wave": {"type": "integer"},
                },
                "required": ["id", "description", "wave"],
            },
        },
    },
    "required": ["title", "steps"],
}
_REPORTED = {
    "type": "object",
    "properties": {"title": _TEXT, "text": _TEXT, "used": {"type": "array", "items": _TEXT}},
    "required": ["title", "text"],
}
FREE_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "tools": _DRAFTED,
    "rewrite": _DRAFTED,
    "client": _DRAFTED,
    "wishes": _WISHED,
    "decompose": _PLANNED,
    "task_report": _REPORTED,
}
"""What an answer of a purpose without a strict schema must fit, for endpoints that take any schema."""

_NOTICING = frozenset({"final", "tools"})
"""Purposes that are told what was noticed."""


class BadTemplate(ValueError):
    """A template is missing, names a placeholder that there is no value for, or leaves no room for a turn."""


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


def check_prompts(agent: AgentProfile) -> None:
    """Check the prompts of a profile, before a turn depends on them.

    Raises:
        BadTemplate: a prompt is missing, or names an unknown placeholder.
    """
    required = OF_LIST if uses_allow_list(agent) else OF_LOOP.get(agent.loop, PURPOSES)
    for purpose, known in {**required, **{name: names for name, names in OPTIONAL.items() if name in agent.prompts}}.items():
        if unknown := placeholders(find_template(agent, purpose)) - known:
            raise BadTemplate(f"{agent.agent}, prompt {purpose!r}: unknown placeholders: {', '.join(sorted(unknown))}")


def without_calls(agent: AgentProfile, made: Collection[OptionalCall]) -> AgentProfile:
    """The profile without the prompts of optional calls that are not made: rules, or nobody, then do what they are for."""
    left_out = OPTIONAL_CALLS - set(made)
    if not left_out & set(agent.prompts):
        return agent
    return agent.model_copy(update={"prompts": {name: text for name, text in agent.prompts.items() if name not in left_out}})


def find_template(agent: AgentProfile, purpose: str) -> str:
    """The template for a purpose. Raises `BadTemplate` where there is none."""
    template = agent.prompts.get(purpose, "")
    if not template.strip():
        raise BadTemplate(f"{agent.agent} has no prompt {purpose!r}")
    return template


_ADVISED = frozenset({"final", "tools", "classify", "client"})
"""Purposes that write what is read, and are shown a client's wishes."""


def find_wishes(agent: AgentProfile, purpose: str) -> str:
    """What a prompt says of the block of a client's wishes; empty where it has none."""
    return agent.prompts.get("client_instructions", "").strip() if purpose in _ADVISED else ""


def template_with_notice(agent: AgentProfile, purpose: str) -> str:
    """The template for a purpose, with the agent's words for what was noticed about the message behind it.

    They stand in a prompt of their own: a version before this one has no value for `plan`, and would fill no prompt that
    names it. Raises `BadTemplate` where there is no template.
    """
    template, noticed = find_template(agent, purpose), agent.prompts.get("noticed", "").strip()
    if purpose not in _NOTICING or not noticed or "plan" in placeholders(template):
        return template
    return f"{template.rstrip()}\n\n{noticed}"


SHARES: dict[str, float] = {
    "history": 0.20,
    "summary": 0.10,
    "attachments": 0.20,
    "message": 0.20,
    "memory": 0.15,
    "draft": 0.05,
    "profile": 0.10,
}
"""The share of the room that each part is sure of, whatever the others hold, in the order in which parts give way.

What a part leaves unused goes to the others, to the last of this list first: so the history is the first to be cut down to
its share, and the profile the last.
"""
SMALL_ROOM = 800
"""Tokens of room below which the message comes before all shares."""
_OF_MESSAGE = 3
"""Quarters of such a room that it may take."""
_NEWEST = frozenset({"history", "summary"})
"""Parts that lose their oldest lines; the others lose their last."""
_EVEN = frozenset({"attachments"})
"""Parts whose lines share alike: one long document does not hide the next."""
_MOST_OF_PART = 3
"""No line of a part that is over its budget takes more than one third of it."""
_LEAST = 24
"""Tokens that are worth showing of a line that is cut."""


@dataclass(frozen=True)
class Line:
    """One line of a part: a text, or the fields of an object that stands there as JSON."""

    text: str
    fields: Mapping[str, Any] | None = None

    @staticmethod
    def of(text: str) -> Line:
        return Line(clean(text))

    @staticmethod
    def json(**fields: Any) -> Line:
        return Line(clean(json.dumps(fields, ensure_ascii=False, default=str)), fields)

    def shortened(self, limit: int) -> Line | None:
        """The line in at most `limit` tokens, a text or the longest field cut with a mark; `None` where that is no use."""
        if count(self.text, limit) <= limit:
            return self
        if self.fields is None:
            text = cut(self.text, limit) if limit >= _LEAST else ""
            return Line(text) if text else None
        texts = {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            for name, value in self.fields.items()
        }
        longest = max(texts, key=lambda name: len(texts[name]))
        room = limit - count(Line.json(**{**self.fields, longest: ""}).text, limit)
        while room >= _LEAST:
            line = Line.json(**{**self.fields, longest: cut(clean(texts[longest]), room)})
            over = count(line.text, 8 * limit) - limit  # quotes and line ends grow when they are written as JSON
            if over <= 0:
                return line
            room -= over
        return None


Parts = Mapping[str, list[Line]]
"""The lines of each part of a prompt."""


def fit_parts(parts: Parts, room: int) -> dict[str, list[str]]:
    """The lines of the parts, made smaller until all together have about `room` tokens.

    A line that is cut ends with a mark, and where lines are left out another says how many.
    """
    needed = {part: _size(lines, room) for part, lines in parts.items()}
    first = min(needed.get("message", 0), _OF_MESSAGE * room // 4) if room < SMALL_ROOM else 0
    rest = room - first
    granted = {part: max(min(needed[part], int(SHARES[part] * rest)), first * (part == "message")) for part in parts}
    left = max(0, room - sum(granted.values()))
    for part in reversed(SHARES):
        if part in parts:
            more = min(needed[part] - granted[part], left)
            granted[part] += more
            left -= more
    return {
        part: [line.text for line in (lines if needed[part] <= granted[part] else _shrink(part, lines, granted[part]))]
        for part, lines in parts.items()
    }


def fit_lines(lines: list[Line], limit: int) -> list[str]:
    """As many of the lines as `limit` tokens hold, the first ones first; long ones are cut before any is left out."""
    return [line.text for line in (lines if _size(lines, limit) <= limit else _shrink("", lines, limit))]


def _size(lines: Iterable[Line], limit: int) -> int:
    """Tokens of lines; more than `limit` where they have more."""
    size = 0
    for line in lines:
        size += count(line.text, limit) + 1
        if size > limit:
            break
    return size


def _shrink(part: str, lines: list[Line], limit: int) -> list[Line]:
    """As many of the lines as `limit` tokens hold, and a line that says how many were left out."""
    note = 0 if len(lines) == 1 else _size([Line.json(left_out=len(lines))], limit)
    newest = part in _NEWEST
    left, kept = limit - note, list[Line]()
    for at, line in enumerate(reversed(lines) if newest else lines):
        most = left // (len(lines) - at) if part in _EVEN else left if len(lines) == 1 else limit // _MOST_OF_PART
        short = line.shortened(min(left, most) - 1)
        if short is None:
            break
        kept.append(short)
        left -= _size([short], limit)
    if newest:
        kept.reverse()
    if len(kept) == len(lines) or note > limit:
        return kept
    missing = Line.json(left_out=len(lines) - len(kept))
    return [missing, *kept] if newest else [*kept, missing]
