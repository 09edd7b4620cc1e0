"""How a replay differs from the turn it repeats."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence

from phronesis_contracts.traces import AnswerTrace, ReplaySide, ToolCalled

MOST = 200_000
"""Characters of a diff."""


def side(trace: AnswerTrace) -> ReplaySide:
    """One run in figures."""
    costs = [call.cost_usd for call in trace.model_calls]
    known = [cost for cost in costs if cost is not None]
    return ReplaySide(
        release=trace.release,
        tool_calls=tuple(sorted(map(_told, trace.tool_calls))),
        gaps=tuple(f"{gap.type} {gap.missing}".strip() for gap in trace.gaps),
        model_calls=len(trace.model_calls),
        input_tokens=sum(call.input_tokens for call in trace.model_calls),
        output_tokens=sum(call.output_tokens for call in trace.model_calls),
        cost_usd=round(sum(known), 9) if costs and len(known) == len(costs) else None,
        confidence=trace.confidence,
    )


def diff(before: str, after: str) -> str:
    """Two answers line by line, in the unified form; empty where they are equal."""
    if before == after:
        return ""
    lines = difflib.unified_diff(_lines(before), _lines(after), "the turn", "the replay", lineterm="")
    return "\n".join(lines)[:MOST]


def is_same(answers: tuple[str, str], problems: tuple[str | None, str | None], before: ReplaySide, after: ReplaySide) -> bool:
    """Whether both said the same by the same calls; what the calls cost may differ."""
    counted = {"release", "input_tokens", "output_tokens", "cost_usd"}
    return (
        answers[0] == answers[1]
        and problems[0] == problems[1]
        and before.model_dump(exclude=counted) == after.model_dump(exclude=counted)
    )


def _told(call: ToolCalled) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True, ensure_ascii=False)} {call.outcome}"


def _lines(text: str) -> Sequence[str]:
    return text.splitlines() or [""]
