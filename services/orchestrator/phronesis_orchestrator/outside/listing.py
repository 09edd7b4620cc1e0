"""A server's list of tools as it came: parsed, judged and pinned. Everything in it is a stranger's."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phronesis_contracts.faces import LONGEST, legal
from phronesis_contracts.outside import PREFIX, AcceptedTool, InspectedTool, ToolState

from .schemas import Unfit, checked, visible

MOST = 200
"""Tools of one server that are looked at."""
_DESCRIPTION = 4_000
"""Characters of a description."""
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_DIFF = 4_000


@dataclass(frozen=True)
class ToldTool:
    """A tool as its server describes it now."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    pin: str = ""
    reason: str = ""
    """Why it cannot be accepted; empty where it can."""


def whole_name(server: str, tool: str) -> str:
    """The name that a tool of a server is called by."""
    return f"{PREFIX}{server}.{tool}"


def pin(name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """The hash of what a model is told of a tool; another one after a change of a single character."""
    return hashlib.sha256(json.dumps([name, description, parameters], sort_keys=True).encode()).hexdigest()


def parsed(server: str, raw: Sequence[Any]) -> tuple[ToldTool, ...]:
    """The tools of a list, whatever stands in it: each is usable or says why not, and one that has no name is left out.

    Args:
        server: the server's name.
        raw: the members of `tools`, as JSON was parsed.
    """
    named = [one for one in raw[:MOST] if isinstance(one, dict) and isinstance(one.get("name"), str)]
    called = Counter(legal(whole_name(server, one["name"])) for one in named)
    return tuple(_told(server, one, called) for one in named)


def _told(server: str, one: dict[str, Any], called: Counter[str]) -> ToldTool:
    name, description = one["name"], one.get("description") or ""
    whole = whole_name(server, name)
    if not _NAME.fullmatch(name):
        return ToldTool(visible(name)[:64], reason="its name has other characters than letters, digits and _ . / -")
    if len(whole) > LONGEST:
        return ToldTool(name, reason=f"with its server's, its name is over {LONGEST} characters")
    if called[legal(whole)] > 1:
        return ToldTool(name, reason="another tool of the server has the same name, or one that models cannot tell from it")
    if not isinstance(description, str) or len(description) > _DESCRIPTION:
        return ToldTool(name, reason=f"its description is no text of at most {_DESCRIPTION} characters")
    description = visible(description)
    try:
        parameters = checked(one.get("inputSchema"))
    except Unfit as error:
        return ToldTool(name, description, reason=str(error))
    return ToldTool(name, description, parameters, pin(name, description, parameters))


def inspected(tools: Sequence[ToldTool], accepted: Sequence[AcceptedTool]) -> tuple[InspectedTool, ...]:
    """How what a server says now stands to what was accepted; what it no longer has comes last."""
    known = {tool.name: tool for tool in accepted}
    names = {tool.name for tool in tools}
    gone = (InspectedTool(name=name, state=ToolState.GONE) for name in known if name not in names)
    return (*(_inspected(tool, known.get(tool.name)) for tool in tools), *gone)


def _inspected(tool: ToldTool, known: AcceptedTool | None) -> InspectedTool:
    shown = InspectedTool(
        name=tool.name,
        state=ToolState.UNUSABLE,
        description=tool.description,
        parameters=dict(tool.parameters or {}),
        pin=tool.pin,
        reason=tool.reason,
    )
    if tool.reason:
        return shown
    if known is None:
        return shown.model_copy(update={"state": ToolState.NEW})
    if known.pin == tool.pin:
        return shown.model_copy(update={"state": ToolState.ACCEPTED})
    return shown.model_copy(update={"state": ToolState.CHANGED, "diff": _diff(known, tool)})


def _diff(known: AcceptedTool, tool: ToldTool) -> str:
    before, after = _lines(known.description, known.parameters), _lines(tool.description, tool.parameters or {})
    return "\n".join(difflib.unified_diff(before, after, "accepted", "now", lineterm=""))[:_DIFF]


def _lines(description: str, parameters: Mapping[str, Any]) -> list[str]:
    return [*description.splitlines(), *json.dumps(parameters, indent=1, sort_keys=True).splitlines()]
