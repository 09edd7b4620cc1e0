"""The trace of an answer, put together from what was committed, and how a replay differs from its turn."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from phronesis_contracts.answers import (
    MAX_CALLS,
    MAX_USED,
    AnswerTrace,
    FoundGap,
    ModelCalled,
    ReplaySide,
    ToolCalled,
    UsedFact,
    UsedMemory,
)
from phronesis_contracts.orchestrator import Turn
from phronesis_contracts.twin import DIAGNOSE_GAPS

from .record import Question, StoredRecord, list_memories

_NOTES = ("mode", "tone", "tier", "intent", "decision", "planning", "prose")
"""Fields of a trace that a turn noted as they are."""
_DEEPEST = 6
"""Levels of an answer that are looked through for nodes."""


def build_trace(turn: Turn, record: StoredRecord, calls: tuple[ModelCalled, ...], forgotten: frozenset[str]) -> AnswerTrace:
    reply, notes, facts = turn.reply, record.notes, list_used_facts(record)
    plan = notes.get("plan") or ()
    return AnswerTrace(
        turn_id=turn.turn_id,
        agent=turn.agent,
        reasoner=reply.reasoner if reply else "",
        version=record.version,
        release=record.release,
        arms=record.arms,
        plan=tuple(map(str, plan)) if isinstance(plan, list | tuple) else (str(plan),),
        **{name: str(notes[name]) for name in _NOTES if notes.get(name) is not None},
        stages=record.stages,
        memories=tuple(
            UsedMemory(id=one.id, kind=one.kind, score=one.score, forgotten=one.id in forgotten)
            for one in list_memories(record)
        ),
        facts=facts[:MAX_USED],
        gaps=list_gaps(record),
        tool_calls=list_tool_calls(record),
        model_calls=calls,
        degraded=reply.degraded if reply else (),
        confidence=reply.analysis.confidence if reply and reply.analysis else None,
        cut=record.cut or len(facts) > MAX_USED,
    )


def list_tool_calls(record: StoredRecord) -> tuple[ToolCalled, ...]:
    """The questions that were tool calls."""
    return tuple(describe_call(one) for one in record.questions if one.tool)[:MAX_CALLS]


def describe_call(question: Question) -> ToolCalled:
    outcome = question.problem["code"] if question.problem else "ok"
    name = question.tool or question.subject
    return ToolCalled(step=question.step, name=name, arguments=question.arguments, outcome=outcome, ms=question.ms)


def list_gaps(record: StoredRecord) -> tuple[FoundGap, ...]:
    found = [one.answer for one in record.questions if one.subject == DIAGNOSE_GAPS.subject and one.answer]
    gaps = [gap for answer in found for gap in answer.get("gaps", ())]
    return tuple(
        FoundGap(type=str(gap.get("type", "")), node=str(gap.get("question", "")), missing=str(gap.get("missing_step") or ""))
        for gap in gaps[:MAX_USED]
    )


def list_used_facts(record: StoredRecord) -> tuple[UsedFact, ...]:
    """The nodes that the recorded answers of the graph name, each once."""
    answers = [one.answer for one in record.questions if one.answer and one.subject.startswith(("graph.", "memory.v1.const"))]
    facts = dict.fromkeys(fact for answer in answers for fact in _nodes(answer, 0))
    return tuple(UsedFact(id=id, type=type) for id, type in facts)


def _nodes(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        id, type = value.get("id"), value.get("type")
        if isinstance(id, str) and id and not isinstance(type, dict | list):
            yield id, str(type or "")
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _nodes(one, depth + 1)


MOST = 200_000
"""Characters of a diff."""


def replay_side(trace: AnswerTrace) -> ReplaySide:
    """One run in figures."""
    costs = [call.cost_usd for call in trace.model_calls]
    known = [cost for cost in costs if cost is not None]
    return ReplaySide(
        release=trace.release,
        tool_calls=tuple(sorted(map(_call_figures, trace.tool_calls))),
        gaps=tuple(f"{gap.type} {gap.missing}".strip() for gap in trace.gaps),
        model_calls=len(trace.model_calls),
        input_tokens=sum(call.input_tokens for call in trace.model_calls),
        output_tokens=sum(call.output_tokens for call in trace.model_calls),
        cost_usd=round(sum(known), 9) if costs and len(known) == len(costs) else None,
        confidence=trace.confidence,
    )


def diff_answers(before: str, after: str) -> str:
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


def _call_figures(call: ToolCalled) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True, ensure_ascii=False)} {call.outcome}"


def _lines(text: str) -> Sequence[str]:
    return text.splitlines() or [""]
