"""From what a model said to a value: parsed against the schema, never trusted, never mended by guessing."""

from __future__ import annotations

import json
import logging
import re
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from phronesis_contracts import Message
from phronesis_contracts.orchestrator import Directive

from .cognition.thought import Tier, named_tier
from .reasoner import Composed, Fault, Routed, Summarised

log = logging.getLogger(__name__)

MAX_SAID = 200_000
"""Characters of an answer that are looked at."""
MAX_REASONING = 500
"""Characters of a directive's reason that are kept (D-111)."""
MAX_REPLY = 50_000
"""Characters of a reply; no model that keeps to its limit of tokens comes near it."""
_FENCED = re.compile(r"\A```[A-Za-z]*\s*\n(.*?)\n?\s*```\Z", re.S)
_REPLY = re.compile(r'"user_response"\s*:\s*"((?:[^"\\]|\\.)*)', re.S)
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
"""JSON Schema of the router's answer (D-052, D-054), in the form that strict modes ask for: all required, nothing else."""
COMPOSED_SCHEMA = strict_object(
    user_response={"type": "string"},
    next_agent_directive={"type": "string", "enum": sorted(_DIRECTIVES)},
    directive_reasoning={"type": "string"},
)
"""JSON Schema of the final answer (D-109, D-110)."""
SUMMARISED_SCHEMA = strict_object(summary={"type": "string"})
"""JSON Schema of a summary of older turns."""


def parse_routed(said: str) -> Routed | Fault:
    """The router's decision, or what is wrong with it (D-133). Phrases may be missing and the draft blank (D-135, D-136)."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    if thought := found.pop("thought_process", None):
        log.debug("thought process of the router: %s", thought)  # D-055: at no other level
    if found.get("key_phrases") is None:
        found.pop("key_phrases", None)
    found["tier"] = named_tier(found.get("tier"))
    draft = found.get("direct_response")
    if isinstance(draft, str) and not draft.strip():
        found["direct_response"] = None
    return valid(Routed, found, said)


def parse_composed(said: str) -> Composed | Fault:
    """The reply, or what is wrong with it. A directive that is missing or unknown costs the directive alone (D-141)."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    reply = found.get("user_response")
    if isinstance(reply, str):
        found["user_response"] = reply.strip()  # blank is then too short: D-115
        if len(reply) > MAX_REPLY:
            return fault_of(said, f"user_response: at most {MAX_REPLY} characters")
    directive = found.get("next_agent_directive")
    if not isinstance(directive, str) or directive not in _DIRECTIVES:
        log.warning("the final answer names no known directive")
        found["next_agent_directive"] = None
    reasoning = found.get("directive_reasoning")
    found["directive_reasoning"] = reasoning[:MAX_REASONING] if isinstance(reasoning, str) else ""
    return valid(Composed, found, said)


def parse_summarised(said: str) -> Summarised | Fault:
    """The summary, or what is wrong with it."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    summary = found.get("summary")
    if isinstance(summary, str):
        found["summary"] = summary.strip()  # blank is then too short
    return valid(Summarised, found, said)


def salvage(said: str) -> str | None:
    """The `user_response` inside an answer that is no good as a whole (D-140); `None` where there is none.

    Args:
        said: what the model said: JSON that was cut, or that breaks the schema elsewhere.
    """
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
    return str(storable(text)).strip()[:MAX_REPLY] or None


def read_object(said: str) -> dict[str, Any] | Fault:
    """The JSON object that an answer is, its code fence aside; or what is wrong with it."""
    text = said[:MAX_SAID].strip()
    if fenced := _FENCED.match(text):
        text = fenced[1]
    try:
        found = from_json(text, allow_inf_nan=False)
        if isinstance(found, dict):
            found = json.loads(text, object_pairs_hook=_once)
    except ValueError as error:
        return fault_of(said, f"The answer is not JSON: {error}" if text else "The answer is empty.")
    return found if isinstance(found, dict) else fault_of(said, "The answer is not a JSON object.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once each: which of two values counts is not ours to guess."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError("a key stands twice in an object")
        found[key] = [storable(one) for one in value] if isinstance(value, list) else storable(value)
    return found


def storable(value: Any) -> Any:
    """A text without what Postgres and UTF-8 cannot hold: NUL, and halves of surrogate pairs. Other values as they are."""
    return value.replace("\0", "").encode("utf-8", "ignore").decode() if isinstance(value, str) else value


def valid(model: type[M], found: dict[str, Any], said: str) -> M | Fault:
    """What was found as a `model`, or what is wrong with it."""
    try:
        return model.model_validate(found)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:5]
        return fault_of(said, "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults))


def fault_of(said: str, wrong: str) -> Fault:
    """A fault that holds as much of what was said as is looked at."""
    return Fault(storable(said[:MAX_SAID]), wrong)
