"""The records of turns in Postgres, the audit trail, and the trace of an answer, put together from what was committed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.answers import (
    MAX_CALLS,
    MAX_USED,
    AnswerTrace,
    FoundGap,
    ModelCalled,
    ReplaySide,
    ToolCalled,
    TurnForgotten,
    UsedFact,
    UsedMemory,
)
from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import Audited, AuditEntry, AuditPage, ListAudit, SubmitTurn, Turn
from phronesis_contracts.twin import DIAGNOSE_GAPS
from phronesis_postgres import Database

from ..approvals.policy import ApprovalAnswer
from ..conversations.history import MAX_CHARS, NO_SUMMARY, Past, Summary
from ..conversations.store import turns_from_rows
from ..turns.store import turn_from_row
from ..turns.turn import Claim, parse_uuid
from .record import Question, ShownHistory, StoredRecord, list_memories

_OF = """
SELECT turns.*, traces.record, traces.forgotten FROM turns LEFT JOIN traces ON traces.turn_id = turns.id
WHERE turns.id = $1 AND turns.tenant = $2 AND ($4 OR turns.user_id = $3) AND NOT turns.erased
"""
_ANSWERS = """
SELECT step, status, digest, note FROM approvals WHERE turn_id = $1 AND tenant = $2 AND status <> 'pending'
"""
_GONE = """
SELECT traces.forgotten FROM turns JOIN traces ON traces.turn_id = turns.id
WHERE turns.id = $1 AND turns.tenant = $2 AND ($4 OR turns.user_id = $3) AND turns.erased
"""
_FORGOTTEN = """
UPDATE traces SET forgotten = ARRAY(
    SELECT DISTINCT gone FROM unnest(traces.forgotten || $3::text[]) AS of (gone) WHERE gone = ANY (traces.memories)
) WHERE tenant = $1 AND user_id = $2 AND memories && $3::text[]
"""
_NAMED = 50
"""Ids of what was forgotten that a refusal names."""
_SAID = """
SELECT seq, role, left(text, $3) AS text, attached, left(btrim(turns.request ->> 'text', E' \\n\\t\\r\\f\\v'), $3) AS typed,
    turns.request -> 'media' AS media
FROM messages LEFT JOIN turns ON turns.id = messages.turn_id
WHERE messages.conversation_id = $1 AND seq = ANY ($2::bigint[]) ORDER BY seq
"""


@dataclass(frozen=True)
class RecordedTurn:
    """A turn as its rows state it, with what was recorded of it."""

    claim: Claim
    turn: Turn
    record: StoredRecord | None
    """`None` where nothing was recorded: it began before there were records, or is not run yet."""
    forgotten: frozenset[str]
    """Ids of the memories it used that have been forgotten since."""


# Locked, so that a deletion that goes on at the moment either waits for the entry, or is seen.
_TURN_STANDS = "SELECT true FROM turns WHERE tenant = $1 AND id = $2::text::uuid AND NOT erased FOR SHARE"

AUDIT_LOOKED = 10_000
"""Entries of the audit trail that one page looks through for a text."""
_AUDIT_CHARS = 400_000
"""Characters of arguments that one page holds."""
_AUDITED = """
SELECT id, at, service, who, role, acted_by, action, outcome, code, arguments FROM audit
WHERE tenant = $1 AND ($2::text IS NULL OR who = $2) AND ($3::text IS NULL OR starts_with(action, $3))
    AND ($4::text IS NULL OR outcome = $4) AND ($5::timestamptz IS NULL OR at >= $5) AND ($6::timestamptz IS NULL OR at < $6)
    AND ($7::bigint IS NULL OR (at, id) < (SELECT at, id FROM audit WHERE id = $7 AND tenant = $1))
ORDER BY at DESC, id DESC"""
_AUDITED_WITH = f"""
SELECT * FROM ({_AUDITED} LIMIT $8) AS looked
WHERE position(lower($9) IN lower(concat_ws(' ', service, who, role, acted_by, action, outcome, code, arguments::text))) > 0
ORDER BY at DESC, id DESC LIMIT $10"""  # noqa: S608


class PostgresTraces:
    """How answers came about, inside one tenant at a time, and the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recorded(self, who: Principal, turn_id: str, *, any_user: bool) -> RecordedTurn:
        """A turn of the caller, or of any user of the tenant. Raises `NotFound`; `TurnForgotten` where its texts are gone."""
        async with self._database.connection(who.tenant) as connection:
            parameters = (parse_uuid(turn_id, "turn"), who.tenant, who.user, any_user)
            row = await connection.fetchrow(_OF, *parameters)
            if row is None:
                raise _not_found(await connection.fetchval(_GONE, *parameters))
        record = StoredRecord.model_validate_json(row["record"]) if row["record"] is not None else None
        return RecordedTurn(_claim(row), turn_from_row(row), record, frozenset(row["forgotten"] or ()))

    async def ran_with(self, tenant: str, digest: str) -> AgentProfile | None:
        async with self._database.connection(tenant) as connection:
            found = await connection.fetchval("SELECT profile FROM ran_with WHERE tenant = $1 AND digest = $2", tenant, digest)
        return AgentProfile.model_validate_json(found) if found is not None else None

    async def past_of(self, tenant: str, conversation_id: str, remembered: ShownHistory) -> tuple[Past, bool]:
        """The history that a turn was shown, and whether all of it is there still."""
        id = parse_uuid(conversation_id, "conversation")
        parts = {name: getattr(remembered, name) for name in ("kept", "aged", "window")}
        numbers = [number + more for seqs in parts.values() for number in seqs for more in (0, 1)]
        async with self._database.connection(tenant) as connection:
            said = await connection.fetch(_SAID, id, numbers, MAX_CHARS)
            stored = await connection.fetchval("SELECT summary FROM conversations WHERE id = $1", id)
        turns = {turn.seq: turn for turn in turns_from_rows(said)}
        summary, stands = _summary(stored, remembered)
        shown = {name: tuple(turns[seq] for seq in seqs if seq in turns) for name, seqs in parts.items()}
        whole = all(len(shown[name]) == len(seqs) for name, seqs in parts.items())
        return Past(
            directive=remembered.directive,
            summary=summary,
            focus=remembered.focus,
            labels=remembered.labels,
            kept=shown["kept"],
            aged=shown["aged"],
            window=shown["window"],
        ), stands and whole

    async def answers_of(self, tenant: str, turn_id: str) -> dict[str, ApprovalAnswer]:
        """What people answered when the turn asked them, by its steps; what nobody has answered is left out."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_ANSWERS, parse_uuid(turn_id, "turn"), tenant)
        return {row["step"]: ApprovalAnswer(ApprovalStatus(row["status"]), row["digest"], row["note"]) for row in rows}

    async def forgotten(self, tenant: str, user: str, ids: tuple[str, ...]) -> None:
        """Note in the records of a user's turns that memories are gone."""
        async with self._database.transaction(tenant) as connection:
            await connection.execute(_FORGOTTEN, tenant, user, list(ids))

    async def audit(self, news_id: str, tenant: str, service: str, entry: Audited) -> None:
        """Store an audit entry; a repeat changes nothing. Of a call whose turn is gone by now, the arguments go with it."""
        async with self._database.transaction(tenant) as connection:
            arguments = entry.arguments
            if "because" in arguments and not await connection.fetchval(_TURN_STANDS, tenant, str(arguments.get("turn_id"))):
                arguments = {name: value for name, value in arguments.items() if name not in ("arguments", "because")}
            await connection.execute(
                "INSERT INTO audit (news_id, tenant, service, who, role, action, outcome, code, arguments, acted_by) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (news_id) DO NOTHING",
                news_id,
                tenant,
                service,
                entry.who,
                entry.role,
                entry.action,
                entry.outcome,
                entry.code,
                arguments,
                entry.acted_by,
            )

    async def audited(self, tenant: str, query: ListAudit) -> AuditPage:
        """A page of the audit trail. For a text a bounded number of entries is looked through, and `next` goes on behind."""
        wanted = (tenant, query.who, query.action, query.outcome, query.since, query.until, query.before)
        async with self._database.connection(tenant) as connection:
            if query.text:
                rows = await connection.fetch(_AUDITED_WITH, *wanted, AUDIT_LOOKED, query.text, query.limit + 1)
            else:
                rows = await connection.fetch(f"{_AUDITED} LIMIT $8", *wanted, query.limit + 1)
            shown = _fitting(rows[: query.limit])
            if len(rows) > len(shown):
                next = shown[-1]["id"]
            elif query.text:
                next = await connection.fetchval(f"{_AUDITED} OFFSET $8 LIMIT 1", *wanted, AUDIT_LOOKED - 1)
            else:
                next = None
        return AuditPage(entries=tuple(AuditEntry(**dict(row)) for row in shown), next=next)


def _fitting(rows: list[asyncpg.Record]) -> list[asyncpg.Record]:
    """The first of these entries, as many as one page holds; one at least."""
    room = _AUDIT_CHARS
    for number, row in enumerate(rows):
        room -= len(json.dumps(row["arguments"]))
        if number and room < 0:
            return rows[:number]
    return rows


def _not_found(forgotten: list[str] | None) -> NotFound:
    if forgotten is None:
        return NotFound("no such turn")
    named = ", ".join(sorted(forgotten)[:_NAMED]) or "what was said in it"
    return TurnForgotten(f"the texts of this turn are gone, since this was forgotten: {named}")


def _summary(stored: dict[str, object] | None, remembered: ShownHistory) -> tuple[Summary, bool]:
    """The summary that the turn was shown, if it is the one that is stored still."""
    if not remembered.summary_through:
        return NO_SUMMARY, True
    summary = Summary.model_validate(stored or {})
    if summary.through == remembered.summary_through:
        return summary, True
    return Summary(through=remembered.summary_through, kept=remembered.kept), False


def _claim(row: asyncpg.Record) -> Claim:
    return Claim(
        turn_id=str(row["id"]),
        conversation_id=str(row["conversation_id"]),
        who=Principal.model_validate(row["principal"]),
        agent=row["agent"],
        request=SubmitTurn.model_validate(row["request"]),
        fence=row["fence"],
        attempts=row["attempts"],
        idle_claims=row["idle_claims"],
        expired=False,
        key_revoked=False,
        created_at=row["created_at"],
        traceparent=row["traceparent"],
        correlation_id=row["correlation_id"],
    )


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
