"""From what a model said to a plan, a verdict, a score or a report; a broken form costs that decision alone."""

from __future__ import annotations

from typing import Any, TypeVar

from phronesis_contracts import Message

from ..answers import MAX_REPLY, fault_of, read_object, storable, strict_object, valid
from ..reasoner import Fault
from .plan import Plan
from .ports import Criticism, Verdict, Written

PLAN_SHAPE: dict[str, Any] = {
    "title": "string, what the report will be called",
    "kind": "string, what sort of task it is, in at most four words",
    "steps": [
        {
            "id": "string of letters, digits and dashes, once in the plan",
            "description": "string, one sentence",
            "tool": "name of a tool, or null for a step that is worked on with several",
            "arguments": {},
            "depends": ["ids of steps of earlier waves"],
            "wave": "whole number from 1",
        }
    ],
}
"""A plan as the prompt shows it: strict modes know no free `arguments`, so its form is checked here alone."""
REPORT_SHAPE: dict[str, Any] = {"title": "string", "text": "string, Markdown", "used": ["ids of the steps that it rests on"]}
VERDICT_SCHEMA = strict_object(revise={"type": "boolean"}, reason={"type": "string"})
"""JSON Schema of an evaluation between waves (V-025)."""
CRITICISM_SCHEMA = strict_object(score={"type": "number"}, reason={"type": "string"})
"""JSON Schema of a critic's word (V-044)."""
Said = TypeVar("Said", bound=Message)
_LENGTHS = {"title": 300, "kind": 100, "description": 1_000, "reason": 2_000}
"""Characters of a text, by its name; the rest of it is left out."""


def parse_plan(said: str) -> Plan | Fault:
    """The plan, or what is wrong with its form. Whether it can be worked off is looked at elsewhere."""
    return _parsed(Plan, said)


def parse_verdict(said: str) -> Verdict | Fault:
    """Whether to revise, or what is wrong with it."""
    return _parsed(Verdict, said)


def parse_criticism(said: str) -> Criticism | Fault:
    """The score; one that is no number from 0 to 1 is none (V-044)."""
    return _parsed(Criticism, said)


def parse_written(said: str) -> Written | Fault:
    """The report; its charts are made by code alone, so a model gives none."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    text = found.get("text")
    if not isinstance(text, str) or not text.strip():
        return fault_of(said, "text: a text that is not empty")
    if len(text) > MAX_REPLY:
        return fault_of(said, f"text: at most {MAX_REPLY} characters")
    return valid(Written, _tidy({name: found[name] for name in ("title", "text", "used") if name in found}), said)


def _parsed(model: type[Said], said: str) -> Said | Fault:
    found = read_object(said)
    return found if isinstance(found, Fault) else valid(model, _tidy(found), said)


def _tidy(value: Any, name: str = "") -> Any:
    """A value that can be stored, its texts no longer than there is room for. Arguments of tools stay whole."""
    match value:
        case dict():
            return {storable(key): _tidy(one, "" if name == "arguments" else key) for key, one in value.items()}
        case list():
            return [_tidy(one) for one in value]
        case str():
            text = str(storable(value))
            return text.strip()[: _LENGTHS[name]] if name in _LENGTHS else text
        case _:
            return value
