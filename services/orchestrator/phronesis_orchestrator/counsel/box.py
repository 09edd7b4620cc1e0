"""The tools of an agent's list as a model is offered them: by names that its API takes, told in few words."""

from __future__ import annotations

import json
from typing import Any

from phronesis_contracts import Message, Tool
from phronesis_contracts.constitution.lists import VisionNode
from phronesis_contracts.constitution.session import SessionStarted
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.faces import legal, told
from phronesis_tokens import clean, cut

from ..toolbox import Toolbox

_ROOM = 3_000
"""Tokens of one answer that a model is told."""
_SESSION = 5_000
"""The same for the start of a session."""
_LEFT_OUT = {"provenance", "metadata", "createdAt", "updatedAt", "version", "tokenEstimate", "stats"}
"""Members of an answer that a model is not told: a question about them has a tool of its own."""


def toolbox(tools: dict[str, Tool[Any, Any]]) -> Toolbox:
    """The box of a turn.

    Args:
        tools: those at hand, by name.
    """
    return Toolbox({legal(name): tool for name, tool in tools.items()}, (), told)


def shown(answer: Message) -> str:
    """What a tool gave, as the model is told it: JSON, cut to its room."""
    if isinstance(answer, SessionStarted):
        return cut(clean(_session(answer)), _SESSION)
    said = _short(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
    return cut(clean(json.dumps(said, ensure_ascii=False)), _ROOM)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(member) for name, member in value.items() if name not in _LEFT_OUT and member not in ([], {})}
    return [_short(member) for member in value] if isinstance(value, list) else value


def _session(started: SessionStarted) -> str:
    """The start of a session, a node on a line, what is above the foundation first: it gives way last."""
    lines = [_line(node) for node in (*started.vision, *started.foundation)]
    work = started.workload
    room = (
        json.dumps(_short(work.model_dump(mode="json", by_alias=True, exclude_none=True)), ensure_ascii=False) if work else ""
    )
    missing = [f"Could not be loaded: {', '.join(started.warnings)}."] if started.warnings else []
    return "\n".join([*missing, *([f"Workload: {room}"] if room else []), *lines])


def _line(node: ConstitutionNode) -> str:
    said = node.summary or next((str(value) for value in (node.model_extra or {}).values() if isinstance(value, str)), "")
    parents = [f"{one.relationship} {one.id}" for one in (node.parents or ())] if isinstance(node, VisionNode) else []
    return " | ".join(part for part in (node.id, node.type, node.title, said[:200], "; ".join(parents)) if part)
