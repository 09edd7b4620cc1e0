"""The records of turns in Postgres."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.answers import TurnForgotten
from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import SubmitTurn
from phronesis_postgres import Database

from ..approvals.policy import ApprovalAnswer
from ..conversations.history import MAX_CHARS, NO_SUMMARY, Past, Summary
from ..conversations.store import turns_from_rows
from ..turns.ports import RecordedTurn
from ..turns.store import parse_uuid, turn_from_row
from ..turns.turn import Claim
from .record import ShownHistory, StoredRecord, join_records, list_memories

_KEEP = """
INSERT INTO traces (turn_id, tenant, user_id, record, memories)
SELECT id, tenant, user_id, $3, $4 FROM turns WHERE id = $1 AND fence = $2 AND status = 'running'
ON CONFLICT (turn_id) DO UPDATE SET record = excluded.record, memories = excluded.memories
"""
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


class TraceRows:
    """The part of the records that keeps how answers came about."""

    _database: Database

    async def keep_record(self, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
        """Keep what was recorded of a turn."""
        tenant, id = claim.who.tenant, UUID(claim.turn_id)
        async with self._database.transaction(tenant) as connection:
            if claim.attempts > 1 and (known := await connection.fetchval("SELECT record FROM traces WHERE turn_id = $1", id)):
                record = join_records(StoredRecord.model_validate_json(known), record)
            if profile is not None:
                await connection.execute(
                    "INSERT INTO ran_with (tenant, digest, profile) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                    *(tenant, record.profile, profile.model_dump_json()),
                )
            used = sorted({item.id for item in list_memories(record)})
            kept = record.model_dump_json(exclude_defaults=True)
            await connection.execute(_KEEP, id, claim.fence, kept, used)

    async def recorded(self, who: Principal, turn_id: str, *, any_user: bool) -> RecordedTurn:
        """A turn with its record."""
        async with self._database.connection(who.tenant) as connection:
            asked = (parse_uuid(turn_id, "turn"), who.tenant, who.user, any_user)
            row = await connection.fetchrow(_OF, *asked)
            if row is None:
                raise _not_found(await connection.fetchval(_GONE, *asked))
        record = StoredRecord.model_validate_json(row["record"]) if row["record"] is not None else None
        return RecordedTurn(_claim(row), turn_from_row(row), record, frozenset(row["forgotten"] or ()))

    async def ran_with(self, tenant: str, digest: str) -> AgentProfile | None:
        """The profile that an agent ran with."""
        async with self._database.connection(tenant) as connection:
            found = await connection.fetchval("SELECT profile FROM ran_with WHERE tenant = $1 AND digest = $2", tenant, digest)
        return AgentProfile.model_validate_json(found) if found is not None else None

    async def past_of(self, tenant: str, conversation_id: str, remembered: ShownHistory) -> tuple[Past, bool]:
        """The history that a turn was shown."""
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
            directive=remembered.directive, summary=summary, kept=shown["kept"], aged=shown["aged"], window=shown["window"]
        ), stands and whole

    async def answers_of(self, tenant: str, turn_id: str) -> dict[str, ApprovalAnswer]:
        """What people answered when the turn asked them."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_ANSWERS, parse_uuid(turn_id, "turn"), tenant)
        return {row["step"]: ApprovalAnswer(ApprovalStatus(row["status"]), row["digest"], row["note"]) for row in rows}

    async def forgotten(self, tenant: str, user: str, ids: tuple[str, ...]) -> None:
        """Note that memories are gone."""
        async with self._database.transaction(tenant) as connection:
            await connection.execute(_FORGOTTEN, tenant, user, list(ids))


def _not_found(forgotten: list[str] | None) -> NotFound:
    """Why there is nothing of a turn."""
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
