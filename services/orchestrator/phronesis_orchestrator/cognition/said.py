"""From what a model said to a decision, a look ahead or a reflection; a broken form costs the stage alone."""

from __future__ import annotations

from typing import Any

from ..answers import MAX_REPLY, fault_of, read_object, storable, strict_object, valid
from ..reasoner import Fault
from .thinker import Decided, LookAhead, Reflected
from .thought import CONTENT_WRITER, Tier, named_tier

_TEXT = {"type": "string"}
TIERS = [tier.value for tier in Tier]
DECIDED_SCHEMA = strict_object(
    tier={"type": "string", "enum": TIERS},
    branch={"type": "string", "enum": ["action", "conversation"]},
    persona={"type": "string", "enum": ["none", CONTENT_WRITER]},
    topic={"type": "boolean"},
)
"""JSON Schema of the intent call (V-011)."""
LOOK_AHEAD_SCHEMA = strict_object(know=_TEXT, need=_TEXT, approach={"type": "array", "items": _TEXT}, risk=_TEXT)
"""JSON Schema of the look ahead (V-093)."""
REFLECTED_SCHEMA = strict_object(score={"type": "number"}, answer={"type": ["string", "null"]})
"""JSON Schema of the look back at a text."""


def parse_decided(said: str) -> Decided | Fault:
    """What the message is, or what is wrong with it."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    tier = named_tier(found.get("tier"))
    if tier is None:
        return fault_of(said, f"tier: one of {', '.join(TIERS)}")
    if found.get("branch") not in ("action", "conversation"):
        return fault_of(said, "branch: action or conversation")
    persona = found.get("persona") if found.get("persona") == CONTENT_WRITER else None
    return Decided(tier=tier, action=found["branch"] == "action", persona=persona, topic=found.get("topic") is True)


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
    return ahead if ahead.text() else fault_of(said, "know, need, approach, risk: none is there")


def parse_reflected(said: str) -> Reflected | Fault:
    """The look back, or what is wrong with it. A score that is no number from 0 to 1 is none (V-044)."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    answer = _text(found.get("answer"))
    if len(answer) > MAX_REPLY:
        return fault_of(said, f"answer: at most {MAX_REPLY} characters")
    score = found.get("score")
    is_score = not isinstance(score, bool) and isinstance(score, int | float) and 0 <= score <= 1
    given: dict[str, Any] = {"score": score if is_score else None, "answer": answer}
    return valid(Reflected, given, said)


def _text(value: object) -> str:
    return str(storable(value)).strip() if isinstance(value, str) else ""
