"""An agent's prompt templates: which there are, what each may name, and how one is filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from phronesis_contracts.instructions import AgentProfile

from .answers import COMPOSED_SCHEMA, ROUTED_SCHEMA, SUMMARISED_SCHEMA
from .cognition.said import DECIDED_SCHEMA, LOOK_AHEAD_SCHEMA, REFLECTED_SCHEMA
from .drafts import CLASSIFIED_SCHEMA, DRAFT_SHAPE
from .learning.domain import DRAWN_SCHEMA
from .tasks.said import CRITICISM_SCHEMA, PLAN_SHAPE, REPORT_SHAPE, VERDICT_SCHEMA
from .toolbox import counsels

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
}
"""Prompts that an agent may have: without `summarise` rules alone put older turns in short, without `learn` they alone draw
facts from ended ones, without `intent` they alone say what a message is, and without the others nobody looks ahead, looks back,
is told to look things up first, or is told what was noticed about the message. Where one of the last
four is missing, rules plan the agent's tasks."""
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
SHOWN: Mapping[str, dict[str, Any]] = {
    **SCHEMAS,
    "tools": DRAFT_SHAPE,
    "decompose": PLAN_SHAPE,
    "task_report": REPORT_SHAPE,
}
"""What stands in the place of `{{schema}}`."""

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


def check(agent: AgentProfile) -> None:
    """Check the prompts of a profile, before a turn depends on them.

    Raises:
        BadTemplate: a prompt is missing, or names an unknown placeholder.
    """
    required = OF_LIST if counsels(agent) else OF_LOOP.get(agent.loop, PURPOSES)
    for purpose, known in {**required, **{name: names for name, names in OPTIONAL.items() if name in agent.prompts}}.items():
        if unknown := placeholders(template_of(agent, purpose)) - known:
            raise BadTemplate(f"{agent.agent}, prompt {purpose!r}: unknown placeholders: {', '.join(sorted(unknown))}")


def template_of(agent: AgentProfile, purpose: str) -> str:
    """The template for a purpose. Raises `BadTemplate` where there is none."""
    template = agent.prompts.get(purpose, "")
    if not template.strip():
        raise BadTemplate(f"{agent.agent} has no prompt {purpose!r}")
    return template


def noticing(agent: AgentProfile, purpose: str) -> str:
    """The template for a purpose, with the agent's words for what was noticed about the message behind it.

    They stand in a prompt of their own: a version before this one has no value for `plan`, and would fill no prompt that
    names it. Raises `BadTemplate` where there is no template.
    """
    template, noticed = template_of(agent, purpose), agent.prompts.get("noticed", "").strip()
    if purpose not in _NOTICING or not noticed or "plan" in placeholders(template):
        return template
    return f"{template.rstrip()}\n\n{noticed}"
