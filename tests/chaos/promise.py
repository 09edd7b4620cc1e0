"""The promise, held against the rows: one end for each accepted turn, no write of ours twice, no model call too many."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from .traffic import Sent


@dataclass
class Findings:
    """What a run came to."""

    accepted: int = 0
    ended_with_reply: int = 0
    parked: int = 0
    failed: int = 0
    not_ended: int = 0
    replies_lost: int = 0
    replies_doubled: int = 0
    model_calls: int = 0
    steps: int = 0
    repeated_calls: int = 0
    unexplained_calls: int = 0
    writes_twice: int = 0
    writes_missing: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """Whether the promise was kept."""
        broken = (self.replies_lost, self.replies_doubled, self.unexplained_calls, self.writes_twice, self.not_ended)
        return not any(broken) and self.ended_with_reply >= 0.99 * self.accepted


async def findings(dsn: str, sent: list[Sent], calls: Counter[str]) -> Findings:
    """Hold every accepted turn against the database and the model's own count of calls."""
    accepted = [s for s in sent if s.turn_id]
    connection = await asyncpg.connect(dsn)
    try:
        await _learned(connection, accepted)
        return await _held(connection, accepted, calls)
    finally:
        await connection.close()


async def _held(connection: asyncpg.Connection, accepted: list[Sent], calls: Counter[str]) -> Findings:
    found = Findings(accepted=len(accepted))
    ids = [UUID(s.turn_id) for s in accepted]
    rows = {
        str(r["id"]): r
        for r in await connection.fetch("SELECT id, status, reply FROM orchestrator.turns WHERE id = ANY($1)", ids)
    }
    said = await connection.fetch(
        "SELECT turn_id, role, count(*) AS n FROM orchestrator.messages WHERE turn_id = ANY($1) GROUP BY 1, 2", ids
    )
    answers = {str(r["turn_id"]): r["n"] for r in said if r["role"] == "assistant"}
    for one in accepted:
        row = rows.get(str(one.turn_id))
        status = row["status"] if row else None
        found.ended_with_reply += status == "completed"
        found.parked += status == "parked"
        found.failed += status in ("failed", "cancelled")
        found.not_ended += status in ("queued", "running", "waiting")
        if row is None:
            found.replies_lost += 1
        elif status == "completed":
            n = answers.get(str(one.turn_id), 0)
            found.replies_lost += n == 0 or row["reply"] is None
            found.replies_doubled += n > 1
    await _count_calls(connection, ids, calls, found)
    await _count_writes(connection, accepted, rows, found)
    return found


async def _count_calls(connection: asyncpg.Connection, ids: list[UUID], calls: Counter[str], found: Findings) -> None:
    steps = await connection.fetch("SELECT turn_id, step, intents FROM orchestrator.journal WHERE turn_id = ANY($1)", ids)
    for step in steps:
        made = calls.get(f"{step['turn_id']}/{step['step']}", 0)
        found.steps += 1
        found.model_calls += made
        found.repeated_calls += max(0, made - 1)
        # Each intent that found no result explains one call; a call beyond them was made with its result at hand.
        found.unexplained_calls += max(0, made - step["intents"])


async def _count_writes(connection: asyncpg.Connection, accepted: list[Sent], rows: dict[str, Any], found: Findings) -> None:
    names = [f"turn:{s.turn_id}" for s in accepted]
    kept = await connection.fetch(
        "SELECT external_id, count(*) AS n FROM memory.items WHERE external_id = ANY($1) GROUP BY 1", names
    )
    counts = {r["external_id"]: r["n"] for r in kept}
    for one in accepted:
        n = counts.get(f"turn:{one.turn_id}", 0)
        completed = rows.get(str(one.turn_id), {"status": None})["status"] == "completed"
        found.writes_twice += n > 1
        found.writes_missing += completed and n == 0


async def _learned(connection: asyncpg.Connection, accepted: list[Sent], limit: float = 60) -> None:
    """Wait until memory has followed every end, or the limit is over."""
    names = [f"turn:{s.turn_id}" for s in accepted if s.status == "completed"]
    end = asyncio.get_running_loop().time() + limit
    while asyncio.get_running_loop().time() < end:
        n = await connection.fetchval("SELECT count(DISTINCT external_id) FROM memory.items WHERE external_id = ANY($1)", names)
        if n >= len(set(names)):
            return
        await asyncio.sleep(0.2)
