"""What a tool gave, as the model is told it: JSON or text, within the room of its kind."""

from __future__ import annotations

import json
from collections.abc import Iterable

from phronesis_contracts import Message
from phronesis_contracts.cypher import CypherRows
from phronesis_contracts.episodes import MemoryFound
from phronesis_contracts.facts import RecalledFacts
from phronesis_contracts.instructions import InstructionText
from phronesis_contracts.memory import Recalled
from phronesis_contracts.scoped_memory import RecalledMemories
from phronesis_tokens import clean, count, cut

from .outside.offers import OutsideResult

_OF_A_FACT = {"text", "confidence", "valid_from", "valid_to"}
"""What a model is told of a fact."""
_ROOM = {"instructions": 7_000, "rows": 3_000, "memories": 1_500, "note": 400}
"""Tokens of one answer by its kind. A bundle of a mode has about 4500 (N-171)."""


def told(answer: Message) -> tuple[str, str]:
    """The kind of an answer, and its text.

    Args:
        answer: what the tool's owner said.
    """
    match answer:
        case InstructionText():
            missing = f"\n\nNot there: {', '.join(answer.missing)}." if answer.missing else ""
            return "instructions", cut(clean(answer.text + missing), _ROOM["instructions"])
        case RecalledMemories():
            found = [snippet.model_dump(include={"content", "key", "confidence", "score"}) for snippet in answer.snippets]
            return "memories", _array(found, _ROOM["memories"])
        case MemoryFound():
            hits = [hit.model_dump(mode="json", exclude_none=True) for hit in answer.results]
            failed = [{"error": answer.error}] if answer.error else []
            return "memories", _array([*failed, *hits], _ROOM["memories"])
        case Recalled():
            items = [item.model_dump(mode="json", include={"title", "text", "score"}) for item in answer.items]
            return "memories", _array(items, _ROOM["memories"])
        case RecalledFacts():
            facts = [one.fact.model_dump(mode="json", include=_OF_A_FACT, exclude_none=True) for one in answer.facts]
            return "memories", _array(facts, _ROOM["memories"])
        case OutsideResult():
            return "rows", cut(clean(answer.text), _ROOM["rows"])
        case CypherRows():
            notes = [{"warning": warning} for warning in answer.warnings]
            more = [{"note": "there are more rows than these"}] if answer.truncated else []
            return "rows", _array([*answer.rows, *more, *notes], _ROOM["rows"])
    return "note", cut(clean(answer.model_dump_json()), _ROOM["note"])


def _array(items: Iterable[object], room: int) -> str:
    """A JSON array of as many items as there is room for; the last one says how many were left out."""
    lines = [clean(json.dumps(item, ensure_ascii=False, default=str)) for item in items]
    kept: list[str] = []
    left = room
    for line in lines:
        left -= count(line, room) + 2
        if left < 0:
            break
        kept.append(line)
    if len(kept) < len(lines):
        kept.append(json.dumps({"left_out": len(lines) - len(kept)}))
    return f"[{', '.join(kept)}]"
