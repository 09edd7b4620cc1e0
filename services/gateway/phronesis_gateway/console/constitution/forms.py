"""Forms made from the registry: what a type's node may be given, and what somebody filled in, read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import htpy as h

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.constitution.kinds import Kind, NodeType, Property
from phronesis_contracts.constitution.relationships import RELATIONSHIPS
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.orchestrator import Problem
from phronesis_gateway.console.errors import fault

from .pages import frame
from .words import address, spaced, spaced_type

_COMMON = ("title", "summary", "description")
_LONG = frozenset(
    {"summary", "description", "narrative", "statement", "rationale", "reasoning", "content", "pattern", "response"}
)
_GUARDRAIL = "constitution.guardrail"
_INPUTS: dict[Kind, dict[str, str]] = {
    Kind.NUMBER: {"type": "number", "step": "any"},
    Kind.SHARE: {"type": "number", "step": "any", "min": "0", "max": "1"},
    Kind.HOURS: {"type": "number", "step": "any", "min": "0"},
    Kind.PRIORITY: {"type": "number", "step": "1", "min": "1", "max": "5"},
    Kind.ROI: {"type": "number", "step": "any"},
    Kind.DATE: {"type": "text", "placeholder": "2026-11-22, or with a time"},
    Kind.TEXT: {"type": "text"},
}


def create_page(who: Principal, kind: NodeType, key: str, filled: Mapping[str, str], problem: Problem | None) -> h.Element:
    """The form for a new node."""
    inside = [
        h.input(type="hidden", name="key", value=key),
        h.input(type="hidden", name="type", value=kind.name),
    ]
    return frame(who, f"New {spaced(kind.name)}", _fault(problem), _form(address("new"), kind, filled, inside, problem))


def edit_page(
    who: Principal, kind: NodeType, node: ConstitutionNode, filled: Mapping[str, str], problem: Problem | None
) -> h.Element:
    """The form for a node that is there, and the one that joins it to another."""
    inside = [h.input(type="hidden", name="version", value=str(node.version))]
    return frame(
        who,
        f"Change: {node.title}",
        _fault(problem),
        _form(address("edit", node.id), kind, filled, inside, problem),
        _joining(node),
    )


def filled_from(kind: NodeType, node: ConstitutionNode) -> dict[str, str]:
    """What stands in the form of a node."""
    said = node.model_dump(mode="json", by_alias=True)
    return {name: _written(said.get(name)) for name in (*_COMMON, "status", *(one.name for one in kind.properties))}


def given(kind: NodeType, filled: Mapping[str, str], before: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a form says, as a write takes it.

    Args:
        kind: the node's type.
        filled: the form.
        before: what stood in it; what did not change is not written, and what was emptied is removed.

    Raises:
        BadRequest: what should be a number is none.
    """
    said: dict[str, Any] = {}
    for name in (*_COMMON, "status"):
        said[name] = filled.get(name, "").strip() or None
    for one in kind.properties:
        said[one.name] = _read(one, filled.get(one.name, "").strip())
    if before is None:
        said = {name: value for name, value in said.items() if value is not None}
    else:
        said = {name: value for name, value in said.items() if filled.get(name, "").strip() != before.get(name, "")}
    named = [id.strip() for id in filled.get("acknowledge", "").split(",") if id.strip()]
    return said | ({"acknowledge": named} if named else {})


def _read(one: Property, text: str) -> Any:
    if not text:
        return None
    match one.kind:
        case Kind.TEXT | Kind.DATE:
            return text
        case Kind.TEXTS:
            return [line.strip() for line in text.splitlines() if line.strip()]
        case Kind.PRIORITY:
            return int(text) if text.isdigit() else text
    try:
        number = float(text)
    except ValueError as error:
        raise BadRequest(f"{spaced(one.name)} is a number", field=one.name) from error
    return {"total": number} if one.kind is Kind.ROI else number


def _written(value: Any) -> str:
    match value:
        case None:
            return ""
        case {"total": total}:
            return f"{total:g}"
        case list():
            return "\n".join(str(each) for each in value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _form(where: str, kind: NodeType, filled: Mapping[str, str], inside: h.Node, problem: Problem | None) -> h.Element:
    return h.form(".node", method="post", action=where)[
        inside,
        (_field(Property(name), filled.get(name, ""), name == "title") for name in _COMMON),
        _status(kind, filled.get("status", "")),
        (_field(one, filled.get(one.name, ""), False) for one in kind.properties),
        _field(Property("acknowledge"), filled.get("acknowledge", ""), False)
        if problem and problem.code == _GUARDRAIL
        else None,
        h.button(type="submit")["Save"],
    ]


def _field(one: Property, value: str, required: bool) -> h.Fragment:
    id = f"f-{one.name}"
    label = h.label(for_=id)[spaced(one.name).capitalize()]
    if one.name in _LONG or one.kind is Kind.TEXTS:
        hint = "one a line" if one.kind is Kind.TEXTS else None
        return h.fragment[label, h.textarea(f"#{id}", name=one.name, rows="3", maxlength="20000", placeholder=hint)[value]]
    return h.fragment[label, h.input(f"#{id}", _INPUTS[one.kind], name=one.name, value=value, required=required)]


def _status(kind: NodeType, value: str) -> h.Fragment:
    options = (h.option(value=each, selected=each == value)[each] for each in kind.statuses)
    return h.fragment[h.label(for_="f-status")["Status"], h.select("#f-status", name="status")[options]]


def _joining(node: ConstitutionNode) -> h.Element:
    options = (h.option(value=name)[spaced_type(name)] for name in RELATIONSHIPS)
    return h.form(".node", method="post", action=address("join", node.id))[
        h.h2["Join it to another node"],
        h.label(for_="f-relationship")["Relationship"],
        h.select("#f-relationship", name="type")[options],
        h.label(for_="f-to")["Id of the other node"],
        h.input("#f-to", name="to", required=True, maxlength="200"),
        h.button(type="submit")["Join"],
    ]


def _fault(problem: Problem | None) -> h.Element | None:
    return fault(problem) if problem else None
