"""From what a model wrote to a value: parsed by the schema, never trusted, small slips mended where one thing can be meant."""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Collection
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import from_json

from phronesis_contracts import Message
from phronesis_contracts.answers import DATA_MODES, Mode
from phronesis_contracts.orchestrator import Directive

from ..agents.cognition.thought import CONTENT_WRITER, Tier, parse_tier
from ..tasks.ports import Criticism, Plan, Verdict, WrittenReport, holds_raw_data
from .reasoner import (
    ChosenPlan,
    Classification,
    ComposedReply,
    Draft,
    Fault,
    FormulatedPlan,
    IntentDecision,
    LookAhead,
    ModelSummary,
    Reflection,
    RouteDecision,
    Wishes,
)

_CLOSE = 0.8
"""How like a value of a list another text is, from 0 to 1, to be taken for it."""
_WORD = re.compile(r"[^a-z0-9]+")
_LEAST = 4
"""Characters of a part of a value by which it is known."""


def find_object(text: str) -> str | None:
    """The first object in a text, up to where it is closed, without commas before closing brackets; `None` without one."""
    begin = text.find("{")
    if begin < 0:
        return None
    found: list[str] = []
    depth, quoted, escaped = 0, False, False
    for letter in text[begin:]:
        if quoted:
            quoted, escaped = escaped or letter != '"', letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter in "{[":
            depth += 1
        elif letter in "}]":
            _drop_comma(found)
            depth -= 1
        found.append(letter)
        if depth == 0:
            return "".join(found)
    return None


def _drop_comma(found: list[str]) -> None:
    at = len(found) - 1
    while at >= 0 and found[at].isspace():
        at -= 1
    if at >= 0 and found[at] == ",":
        del found[at]


def nearest(value: object, choices: Collection[str]) -> str | None:
    """The one of a list that a text stands for: itself in other letters, a part of it, or a slip of the pen.

    Returns:
        `None` where none is meant, or more than one may be.
    """
    if not isinstance(value, str):
        return None
    if value in choices:
        return value
    said = _plain(value)
    plain = {_plain(choice): choice for choice in choices}
    if said in plain:
        return plain[said]
    parts = [choice for name, choice in plain.items() if len(said) >= _LEAST and (said in name or name in said)]
    if parts:
        return parts[0] if len(parts) == 1 else None
    close = difflib.get_close_matches(said[:64], plain, n=2, cutoff=_CLOSE)
    return plain[close[0]] if len(close) == 1 else None


def _plain(text: str) -> str:
    return _WORD.sub("_", text[:200].casefold()).strip("_")


log = logging.getLogger(__name__)

MAX_SAID = 200_000
"""Characters of an answer that are looked at."""
MAX_REASONING = 500
"""Characters of a directive's reason that are kept."""
MAX_REPLY = 50_000
"""Characters of a reply; no model that keeps to its limit of tokens comes near it."""
_FENCED = re.compile(r"\A```[A-Za-z]*\s*\n(.*?)\n?\s*```\Z", re.S)
_REPLY = re.compile(r'"user_response"\s*:\s*"((?:[^"\\]|\\.)*)', re.S)
_DECISIONS = ("respond_directly", "query_memory")
TIERS = [tier.value for tier in Tier]
_DIRECTIVES = {directive.value for directive in Directive}
M = TypeVar("M", bound=Message)


def strict_object(**properties: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of an object in the form that strict modes ask for."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


ROUTED_SCHEMA = strict_object(
    thought_process={"type": "string"},
    decision={"type": "string", "enum": ["respond_directly", "query_memory"]},
    key_phrases={"type": "array", "items": {"type": "string"}},
    direct_response={"type": ["string", "null"]},
    tier={"type": "string", "enum": [tier.value for tier in Tier]},
)
"""JSON Schema of the router's answer, in the form that strict modes ask for: all required, nothing else."""
COMPOSED_SCHEMA = strict_object(
    user_response={"type": "string"},
    next_agent_directive={"type": "string", "enum": sorted(_DIRECTIVES)},
    directive_reasoning={"type": "string"},
)
"""JSON Schema of the final answer."""
SUMMARISED_SCHEMA = strict_object(summary={"type": "string"})
"""JSON Schema of a summary of older turns."""


def parse_routed(said: str) -> RouteDecision | Fault:
    """The router's decision, or what is wrong with it. Phrases may be missing and the draft blank."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    if thought := found.pop("thought_process", None):
        log.debug("thought process of the router: %s", thought)  # at no other level
    if found.get("key_phrases") is None:
        found.pop("key_phrases", None)
    found["tier"] = parse_tier(nearest(found.get("tier"), TIERS))
    found["decision"] = nearest(found.get("decision"), _DECISIONS) or found.get("decision")
    draft = found.get("direct_response")
    if isinstance(draft, str) and not draft.strip():
        found["direct_response"] = None
    return validate_answer(RouteDecision, found, said)


def parse_composed(said: str) -> ComposedReply | Fault:
    """The reply, or what is wrong with it. A directive that is missing or unknown costs the directive alone."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    reply = found.get("user_response")
    if isinstance(reply, str):
        found["user_response"] = reply.strip()  # blank is then too short
        if len(reply) > MAX_REPLY:
            return make_fault(said, f"user_response: at most {MAX_REPLY} characters")
    found["next_agent_directive"] = nearest(found.get("next_agent_directive"), _DIRECTIVES)
    if found["next_agent_directive"] is None:
        log.warning("the final answer names no known directive")
    reasoning = found.get("directive_reasoning")
    found["directive_reasoning"] = reasoning[:MAX_REASONING] if isinstance(reasoning, str) else ""
    return validate_answer(ComposedReply, found, said)


def parse_summarised(said: str) -> ModelSummary | Fault:
    """The summary, or what is wrong with it."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    summary = found.get("summary")
    if isinstance(summary, str):
        found["summary"] = summary.strip()  # blank is then too short
    return validate_answer(ModelSummary, found, said)


def salvage(said: str) -> str | None:
    """The `user_response` inside an answer that is no good as a whole; `None` where there is none."""
    found = read_object(said)
    if not isinstance(found, Fault):
        reply = found.get("user_response")
        return _reply(reply) if isinstance(reply, str) else None
    match = _REPLY.search(said[:MAX_SAID])
    if match is None:
        return None
    try:
        return _reply(json.loads(f'"{match[1]}"', strict=False))
    except ValueError:
        return None


def _reply(text: str) -> str | None:
    return str(make_storable(text)).strip()[:MAX_REPLY] or None


def read_object(said: str) -> dict[str, Any] | Fault:
    """The JSON object that an answer is, or that stands in it; or what is wrong with it."""
    text = said[:MAX_SAID].strip()
    if fenced := _FENCED.match(text):
        text = fenced[1]
    try:
        found = _load(text)
    except ValueError as error:
        wrong = f"The answer is not JSON: {error}" if text else "The answer is empty."
        inside = find_object(text)
        if inside is None or inside == text:
            return make_fault(said, wrong)
        try:
            found = _load(inside)
        except ValueError:
            return make_fault(said, wrong)
    return found if isinstance(found, dict) else make_fault(said, "The answer is not a JSON object.")


def _load(text: str) -> Any:
    """Raises `ValueError`: it is no JSON, or a key of an object stands twice."""
    found = from_json(text, allow_inf_nan=False)
    return json.loads(text, object_pairs_hook=_reject_repeated_keys) if isinstance(found, dict) else found


def _reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once each: which of two values counts is not ours to guess."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError("a key stands twice in an object")
        found[key] = [make_storable(one) for one in value] if isinstance(value, list) else make_storable(value)
    return found


def make_storable(value: Any) -> Any:
    """A text without what Postgres and UTF-8 cannot hold: NUL, and halves of surrogate pairs. Other values as they are."""
    return value.replace("\0", "").encode("utf-8", "ignore").decode() if isinstance(value, str) else value


def validate_answer(model: type[M], found: dict[str, Any], said: str) -> M | Fault:
    """What was found as a `model`, or what is wrong with it."""
    try:
        return model.model_validate(found)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:5]
        return make_fault(said, "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults))


def make_fault(said: str, wrong: str) -> Fault:
    """A fault that holds as much of what was said as is looked at."""
    return Fault(make_storable(said[:MAX_SAID]), wrong)


MAX_INSIGHTS = 20
MAX_CHARTS = 12
_LONGEST = 2_000
"""Characters of one insight, of an intent, and of a trace of thought."""
_LETTER = re.compile(r"\s*(?:mode\s*)?([A-J])\s*(?:\Z|[:.)(-])", re.I)
_TEXT = {"type": "string"}
CLASSIFIED_SCHEMA = strict_object(
    mode={"type": "string", "enum": list(get_args(Mode))},
    intent=_TEXT,
    thought_trace=_TEXT,
    answer={"type": ["string", "null"]},
    analysis={"type": "array", "items": _TEXT},
    confidence={"type": "number"},
    tier={"type": "string", "enum": [tier.value for tier in Tier]},
)
"""JSON Schema of the first call: the mode, and for the modes that read no data the answer."""
DRAFT_SHAPE: dict[str, Any] = {
    "memory_process": {"intent": "string", "thought_trace": "string"},
    "answer": "string, Markdown or HTML",
    "analysis": ["string"],
    "visualizations": [{"type": "string", "title": "string", "config": {}, "data": []}],
    "confidence": "number from 0.0 to 1.0",
}
"""The final answer as the prompt shows it. What was read, and the text that read it, code fills in."""


def parse_classified(said: str) -> Classification | Fault:
    """The classification, or what is wrong with it: an unknown mode, or no answer where the mode asks for one at once."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    mode, answer = _mode(found.get("mode")), _limited_text(found.get("answer"), MAX_REPLY)
    if mode not in get_args(Mode):
        return make_fault(said, "mode: one letter from A to J")
    if mode not in DATA_MODES and not answer:
        return make_fault(said, f"answer: mode {mode} is answered at once, so it needs a text")
    told = {
        "mode": mode,
        "intent": _limited_text(found.get("intent"), _LONGEST) or "not stated",
        "thought_trace": _limited_text(found.get("thought_trace"), _LONGEST),
        "answer": "" if mode in DATA_MODES else answer,
        "analysis": _insights(found.get("analysis")),
        "confidence": _confidence(found.get("confidence")),
        "tier": parse_tier(nearest(found.get("tier"), TIERS)),
    }
    return validate_answer(Classification, told, said)


def _mode(given: object) -> object:
    """The letter of a mode, also where its name or a word about it stands beside it."""
    match = _LETTER.match(given) if isinstance(given, str) else None
    return match[1].upper() if match else given


def parse_draft(said: str) -> Draft | Fault:
    """The final answer, or what is wrong with it. Only an answer that is missing or no text is a fault; the rest is filled."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    answer = found.get("answer")
    if not isinstance(answer, str) or not answer.strip():
        return make_fault(said, "answer: a text that is not empty")
    if len(answer) > MAX_REPLY:
        return make_fault(said, f"answer: at most {MAX_REPLY} characters")
    process = found.get("memory_process")
    process = process if isinstance(process, dict) else {}
    charts = found.get("visualizations")
    told = {
        "answer": make_storable(answer).strip(),
        "intent": _limited_text(process.get("intent"), _LONGEST),
        "thought_trace": _limited_text(process.get("thought_trace"), _LONGEST),
        "analysis": _insights(found.get("analysis")),
        "visualizations": [one for one in charts if isinstance(one, dict)][:MAX_CHARTS] if isinstance(charts, list) else [],
        "confidence": _confidence(found.get("confidence")),
    }
    return validate_answer(Draft, told, said)


def _limited_text(value: object, limit: int) -> str:
    return str(make_storable(value)).strip()[:limit] if isinstance(value, str) else ""


def _insights(value: object) -> list[str]:
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [text for one in given if (text := _limited_text(one, _LONGEST))][:MAX_INSIGHTS]


def _confidence(value: object) -> float | None:
    """A number from 0 to 1; anything else is no confidence at all, and is never passed on."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        log.warning("the model gave no confidence between 0 and 1")
        return None
    return float(value)


DECIDED_SCHEMA = strict_object(
    tier={"type": "string", "enum": TIERS},
    branch={"type": "string", "enum": ["action", "conversation"]},
    persona={"type": "string", "enum": ["none", CONTENT_WRITER]},
    topic={"type": "boolean"},
)
"""JSON Schema of the intent call."""
LOOK_AHEAD_SCHEMA = strict_object(know=_TEXT, need=_TEXT, approach={"type": "array", "items": _TEXT}, risk=_TEXT)
"""JSON Schema of the look ahead."""
REFLECTED_SCHEMA = strict_object(score={"type": "number"}, answer={"type": ["string", "null"]})
"""JSON Schema of the look back at a text."""


def parse_decided(said: str) -> IntentDecision | Fault:
    """What the message is, or what is wrong with it."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    tier = parse_tier(nearest(found.get("tier"), TIERS))
    if tier is None:
        return make_fault(said, f"tier: one of {', '.join(TIERS)}")
    branch = nearest(found.get("branch"), ("action", "conversation"))
    if branch is None:
        return make_fault(said, "branch: action or conversation")
    persona = found.get("persona") if found.get("persona") == CONTENT_WRITER else None
    return IntentDecision(tier=tier, action=branch == "action", persona=persona, topic=found.get("topic") is True)


def parse_look_ahead(said: str) -> LookAhead | Fault:
    """The look ahead, or what is wrong with it. A part that is missing is empty; none at all is a fault."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    steps = found.get("approach")
    ahead = LookAhead(
        know=_text(found.get("know")),
        need=_text(found.get("need")),
        approach=tuple(_text(step) for step in steps) if isinstance(steps, list) else (_text(steps),),
        risk=_text(found.get("risk")),
    )
    return ahead if ahead.text() else make_fault(said, "know, need, approach, risk: none is there")


def parse_reflected(said: str) -> Reflection | Fault:
    """The look back, or what is wrong with it. A score that is no number from 0 to 1 is none."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    answer = _text(found.get("answer"))
    if len(answer) > MAX_REPLY:
        return make_fault(said, f"answer: at most {MAX_REPLY} characters")
    score = found.get("score")
    is_score = not isinstance(score, bool) and isinstance(score, int | float) and 0 <= score <= 1
    given: dict[str, Any] = {"score": score if is_score else None, "answer": answer}
    return validate_answer(Reflection, given, said)


def parse_chosen(said: str) -> ChosenPlan | Fault:
    """The kind of a plan with what it is about, or what is wrong with its form."""
    return _parse_with(ChosenPlan, said)


def parse_wishes(said: str) -> Wishes | Fault:
    """The calls that a message asks for, or what is wrong with their form."""
    return _parse_with(Wishes, said)


def parse_formulated(said: str) -> FormulatedPlan | Fault:
    """A plan as it was written, or what is wrong with its form; its content is held against the ontology elsewhere."""
    found = read_object(said)
    return found if isinstance(found, Fault) else FormulatedPlan(plan=_shorten_texts(found))


def _text(value: object) -> str:
    return str(make_storable(value)).strip() if isinstance(value, str) else ""


PLAN_SHAPE: dict[str, Any] = {
    "title": "string, what the report will be called",
    "kind": "string, what sort of task it is, in at most four words",
    "steps": [
        {
            "id": "string of letters, digits and dashes, once in the plan",
            "description": "string, one sentence",
            "tool": "name of a tool, or null",
            "question": "string, or null",
            "arguments": {},
            "each": {"of": "id of an earlier step", "path": "JMESPath of a list", "limit": "whole number, 25 if left out"},
            "when": {
                "of": "id",
                "path": "JMESPath",
                "is": "empty, not_empty, equals or more_than",
                "value": "for the last two",
            },
            "depends": ["ids of steps of earlier waves"],
            "wave": "whole number from 1",
        }
    ],
}
"""A plan as the prompt shows it: strict modes know no free `arguments`, so its form is checked here alone."""
REPORT_SHAPE: dict[str, Any] = {"title": "string", "text": "string, Markdown", "used": ["ids of the steps that it rests on"]}
VERDICT_SCHEMA = strict_object(revise={"type": "boolean"}, reason={"type": "string"})
"""JSON Schema of an evaluation between waves."""
CRITICISM_SCHEMA = strict_object(score={"type": "number"}, reason={"type": "string"})
"""JSON Schema of a critic's word."""
Said = TypeVar("Said", bound=Message)
_LENGTHS = {"title": 300, "kind": 100, "description": 1_000, "reason": 2_000}
"""Characters of a text, by its name; the rest of it is left out."""


def parse_plan(said: str) -> Plan | Fault:
    """The plan, or what is wrong with its form. Whether it can be worked off is looked at elsewhere.

    What a step does not have may be null or an empty text.
    """
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    if isinstance(steps := found.get("steps"), list):
        found["steps"] = [_without_blanks(step) for step in steps]
    return validate_answer(Plan, _shorten_texts(found), said)


def _without_blanks(step: Any) -> Any:
    return (
        {name: value for name, value in step.items() if value is not None and value != ""} if isinstance(step, dict) else step
    )


def parse_verdict(said: str) -> Verdict | Fault:
    """Whether to revise, or what is wrong with it."""
    return _parse_with(Verdict, said)


def parse_criticism(said: str) -> Criticism | Fault:
    """The score; one that is no number from 0 to 1 is none."""
    return _parse_with(Criticism, said)


_ASKS_FOR_DATA = re.compile(r"\b(?:json|code|scripts?|configurations?)\b", re.I)


def parse_report(said: str, goal: str = "") -> WrittenReport | Fault:
    """The report; its charts are made by code alone, so a model gives none.

    Args:
        goal: what was asked for. Data as programs write it is a fault unless it asks for such.
    """
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    text = found.get("text")
    if not isinstance(text, str) or not text.strip():
        return make_fault(said, "text: a text that is not empty")
    if len(text) > MAX_REPLY:
        return make_fault(said, f"text: at most {MAX_REPLY} characters")
    if holds_raw_data(text) and not _ASKS_FOR_DATA.search(goal):
        return make_fault(said, "text: sentences, lists and Markdown tables for people; no JSON and no rows as they were read")
    return validate_answer(
        WrittenReport, _shorten_texts({name: found[name] for name in ("title", "text", "used") if name in found}), said
    )


def _parse_with(model: type[Said], said: str) -> Said | Fault:
    found = read_object(said)
    return found if isinstance(found, Fault) else validate_answer(model, _shorten_texts(found), said)


def _shorten_texts(value: Any, name: str = "") -> Any:
    """A value that can be stored, its texts no longer than there is room for. Arguments of tools stay whole."""
    match value:
        case dict():
            return {make_storable(key): _shorten_texts(one, "" if name == "arguments" else key) for key, one in value.items()}
        case list():
            return [_shorten_texts(one) for one in value]
        case str():
            text = str(make_storable(value))
            return text.strip()[: _LENGTHS[name]] if name in _LENGTHS else text
        case _:
            return value
