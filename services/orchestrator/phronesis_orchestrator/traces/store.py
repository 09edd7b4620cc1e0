"""The records of turns in Postgres, and the audit trail."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.answers import TurnForgotten
from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import Audited, SubmitTurn, Turn
from phronesis_postgres import Database

from ..approvals.policy import ApprovalAnswer
from ..conversations.history import MAX_CHARS, NO_SUMMARY, Past, Summary
from ..conversations.store import turns_from_rows
from ..turns.store import turn_from_row
from ..turns.turn import Claim, parse_uuid
from .record import ShownHistory, StoredRecord

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
SELECT seq, role, left(text, $3) AS text FROM messages WHERE conversation_id = $1 AND seq = ANY ($2::bigint[]) ORDER BY seq
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
        """Store an audit entry; a repeat changes nothing."""
        async with self._database.transaction(tenant) as connection:
            await connection.execute(
                "INSERT INTO audit (news_id, tenant, service, who, role, action, outcome, code, arguments) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (news_id) DO NOTHING",
                news_id,
                tenant,
                service,
                entry.who,
                entry.role,
                entry.action,
                entry.outcome,
                entry.code,
                entry.arguments,
            )


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
