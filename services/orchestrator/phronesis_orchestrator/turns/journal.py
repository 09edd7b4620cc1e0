"""What the holder of a claim writes down: journalled steps, what model calls used, and how the answer came about."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from phronesis_contracts.instructions import AgentProfile
from phronesis_postgres import Connection, Database

from ..ledger.usage import ChargedTurn, LedgerEntry
from ..traces.record import StoredRecord, join_records, list_memories
from .turn import AlreadyBegun, Claim, LostClaim

_INTEND = """
INSERT INTO journal (turn_id, step, fence, intent)
SELECT id, $2, $3, $4 FROM turns WHERE id = $1 AND fence = $3 AND status = 'running' AND lease_until > now()
ON CONFLICT (turn_id, step) DO UPDATE SET fence = excluded.fence, intents = journal.intents + (journal.result IS NULL)::int
    WHERE journal.fence <= excluded.fence
RETURNING result, intents
"""
_RESULT = """
WITH mine AS (
    UPDATE turns SET idle_claims = 0 WHERE id = $1 AND fence = $3 AND status = 'running' AND lease_until > now() RETURNING id
)
UPDATE journal SET result = $4, result_at = now() FROM mine
WHERE journal.turn_id = mine.id AND journal.step = $2 AND journal.fence = $3 RETURNING true
"""
_ENTER = """
INSERT INTO ledger (tenant, user_id, agent, turn_id, step, purpose, model, outcome, attempts, input_tokens, output_tokens,
                    cached_tokens, reasoning_tokens, cost_usd, ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
"""
_KEEP = """
INSERT INTO traces (turn_id, tenant, user_id, record, memories)
SELECT id, tenant, user_id, $3, $4 FROM turns WHERE id = $1 AND fence = $2 AND status = 'running'
ON CONFLICT (turn_id) DO UPDATE SET record = excluded.record, memories = excluded.memories
"""


class PostgresJournal:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def intend(self, claim: Claim, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        async with self._database.transaction(claim.who.tenant) as connection:
            row = await connection.fetchrow(_INTEND, UUID(claim.turn_id), step, claim.fence, intent)
        if row is None:
            raise LostClaim(claim.turn_id)
        result: dict[str, Any] | None = row["result"]
        if once and result is None and row["intents"] > 1:
            raise AlreadyBegun(step)
        return result

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: LedgerEntry | None = None) -> None:
        async with self._database.transaction(claim.who.tenant) as connection:
            mine = await connection.fetchval(_RESULT, UUID(claim.turn_id), step, claim.fence, result)
            if spend is not None:  # also where the claim is lost: the money is gone
                await enter_spend(connection, claim, spend)
        if not mine:
            raise LostClaim(claim.turn_id)

    async def keep_record(self, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
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


async def enter_spend(connection: Connection, turn: ChargedTurn, spend: LedgerEntry) -> None:
    """Write one entry, in the transaction at hand."""
    await connection.execute(_ENTER, *entry_row(turn, spend))


def entry_row(turn: ChargedTurn, spend: LedgerEntry) -> tuple[object, ...]:
    """The values of one entry, in the order of `_ENTER`."""
    who, asked, spent = turn.who, spend.asked, spend.spent
    called = (spend.step, asked.purpose, asked.model, spend.outcome, spent.model_calls)
    used = (spent.input_tokens, spent.output_tokens, spent.cached_tokens, spent.reasoning_tokens, spend.cost_usd, spend.ms)
    return (who.tenant, who.user, turn.agent, UUID(turn.turn_id), *called, *used)
