"""The trace of an answer, put together from what was committed: the turn's row, its record and the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phronesis_contracts.orchestrator import Turn
from phronesis_contracts.traces import MAX_CALLS, MAX_USED, AnswerTrace, FoundGap, ModelCalled, ToolCalled, UsedFact, UsedMemory
from phronesis_contracts.twin import DIAGNOSE_GAPS

from .record import KeptRecord, Question, memories

_DEEPEST = 6
"""Levels of an answer that are looked through for nodes."""


def trace_of(turn: Turn, record: KeptRecord, calls: tuple[ModelCalled, ...], forgotten: frozenset[str]) -> AnswerTrace:
    """The whole trace.

    Args:
        turn: its row.
        record: what was recorded of it.
        calls: its model calls.
        forgotten: ids of memories that have been forgotten since.
    """
    reply, notes, facts = turn.reply, record.notes, facts_of(record)
    plan = notes.get("plan") or ()
    return AnswerTrace(
        turn_id=turn.turn_id,
        agent=turn.agent,
        reasoner=reply.reasoner if reply else "",
        version=record.version,
        release=record.release,
        arms=record.arms,
        plan=tuple(map(str, plan)) if isinstance(plan, list | tuple) else (str(plan),),
        **{name: str(notes[name]) for name in ("mode", "tone", "tier", "intent", "decision") if notes.get(name) is not None},
        stages=record.stages,
        memories=tuple(
            UsedMemory(id=one.id, kind=one.kind, score=one.score, forgotten=one.id in forgotten) for one in memories(record)
        ),
        facts=facts[:MAX_USED],
        gaps=gaps_of(record),
        tool_calls=tool_calls(record),
        model_calls=calls,
        degraded=reply.degraded if reply else (),
        confidence=reply.analysis.confidence if reply and reply.analysis else None,
        cut=record.cut or len(facts) > MAX_USED,
    )


def tool_calls(record: KeptRecord) -> tuple[ToolCalled, ...]:
    """The questions that were tool calls."""
    return tuple(called(one) for one in record.questions if one.tool)[:MAX_CALLS]


def called(question: Question) -> ToolCalled:
    """A question as a trace shows it."""
    outcome = question.problem["code"] if question.problem else "ok"
    name = question.tool or question.subject
    return ToolCalled(step=question.step, name=name, arguments=question.arguments, outcome=outcome, ms=question.ms)


def gaps_of(record: KeptRecord) -> tuple[FoundGap, ...]:
    """The gaps that the graph found."""
    found = [one.answer for one in record.questions if one.subject == DIAGNOSE_GAPS.subject and one.answer]
    gaps = [gap for answer in found for gap in answer.get("gaps", ())]
    return tuple(
        FoundGap(type=str(gap.get("type", "")), node=str(gap.get("question", "")), missing=str(gap.get("missing_step") or ""))
        for gap in gaps[:MAX_USED]
    )


def facts_of(record: KeptRecord) -> tuple[UsedFact, ...]:
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
