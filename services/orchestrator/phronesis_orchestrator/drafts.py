"""From what a model said to a classification or a draft: missing parts are empty, what breaks the form is a fault (N-068)."""

from __future__ import annotations

import logging
from typing import Any, get_args

from phronesis_contracts.analysis import DATA_MODES, Mode

from .answers import MAX_REPLY, fault_of, read_object, storable, strict_object, valid
from .cognition.thought import Tier, named_tier
from .inquiry import Classified, Draft
from .reasoner import Fault

log = logging.getLogger(__name__)

MAX_INSIGHTS = 20
MAX_CHARTS = 12
_LONGEST = 2_000
"""Characters of one insight, of an intent, and of a trace of thought."""
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


def parse_classified(said: str) -> Classified | Fault:
    """The classification, or what is wrong with it: an unknown mode, or no answer where the mode asks for one at once."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    mode, answer = found.get("mode"), _text(found.get("answer"), MAX_REPLY)
    if mode not in get_args(Mode):
        return fault_of(said, "mode: one letter from A to J")
    if mode not in DATA_MODES and not answer:
        return fault_of(said, f"answer: mode {mode} is answered at once, so it needs a text")
    told = {
        "mode": mode,
        "intent": _text(found.get("intent"), _LONGEST) or "not stated",
        "thought_trace": _text(found.get("thought_trace"), _LONGEST),
        "answer": "" if mode in DATA_MODES else answer,
        "analysis": _insights(found.get("analysis")),
        "confidence": _confidence(found.get("confidence")),
        "tier": named_tier(found.get("tier")),
    }
    return valid(Classified, told, said)


def parse_draft(said: str) -> Draft | Fault:
    """The final answer, or what is wrong with it. Only an answer that is missing or no text is a fault; the rest is filled."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    answer = found.get("answer")
    if not isinstance(answer, str) or not answer.strip():
        return fault_of(said, "answer: a text that is not empty")
    if len(answer) > MAX_REPLY:
        return fault_of(said, f"answer: at most {MAX_REPLY} characters")
    process = found.get("memory_process")
    process = process if isinstance(process, dict) else {}
    charts = found.get("visualizations")
    told = {
        "answer": storable(answer).strip(),
        "intent": _text(process.get("intent"), _LONGEST),
        "thought_trace": _text(process.get("thought_trace"), _LONGEST),
        "analysis": _insights(found.get("analysis")),
        "visualizations": [one for one in charts if isinstance(one, dict)][:MAX_CHARTS] if isinstance(charts, list) else [],
        "confidence": _confidence(found.get("confidence")),
    }
    return valid(Draft, told, said)


def _text(value: object, limit: int) -> str:
    return str(storable(value)).strip()[:limit] if isinstance(value, str) else ""


def _insights(value: object) -> list[str]:
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [text for one in given if (text := _text(one, _LONGEST))][:MAX_INSIGHTS]


def _confidence(value: object) -> float | None:
    """A number from 0 to 1; anything else is no confidence at all, and is never passed on (N-067)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        log.warning("the model gave no confidence between 0 and 1")
        return None
    return float(value)
