"""The promise, held against the rows: one end for each accepted turn, no write of ours twice, no model call too many."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

import asyncpg

from .conversations import disorders
from .stack import ChaosStack
from .traffic import Note, Sent
from .truth import without
from .writes import Writes, held_writes

# What was read of a turn's attachment: the conversation keeps it. The version before this one kept it in the message itself.
_READ = """
SELECT turns.id AS turn_id, concat(min(messages.text), ' ', string_agg(items.body, ' ')) AS text FROM orchestrator.turns
JOIN orchestrator.messages ON messages.turn_id = turns.id AND messages.role = 'user'
LEFT JOIN memory.items ON items.kind = 'passage' AND items.tenant = turns.tenant AND items.external_id IN (
    SELECT jsonb_array_elements_text(coalesce(request -> 'media', request -> 'currentMessageMedia'))
)
WHERE turns.id = ANY($1) GROUP BY turns.id
"""


@dataclass
class Findings:
    """What a run came to."""

    accepted: int = 0
    ended_with_reply: int = 0
    degraded: int = 0
    """Replies that say that they were made without a part."""
    parked: int = 0
    failed: int = 0
    not_ended: int = 0
    replies_lost: int = 0
    replies_doubled: int = 0
    model_calls: int = 0
    steps: int = 0
    repeated_calls: int = 0
    unexplained_calls: int = 0
    attached: int = 0
    """Replies to turns with an attachment."""
    attachments_named_unread: int = 0
    """Of these, replies that say that it could not be read, or not be kept in the conversation."""
    attachments_lost: int = 0
    """Of these, replies that know nothing of it and do not say so."""
    kinds: Counter[str] = field(default_factory=Counter)
    writes: dict[str, Writes] = field(default_factory=dict)
    disorders: list[str] = field(default_factory=list)
    """What is wrong with the order, the places or the directives of a conversation."""

    @property
    def kept(self) -> bool:
        """Whether the promise was kept."""
        broken = (self.replies_lost, self.replies_doubled, self.unexplained_calls, self.not_ended, self.attachments_lost)
        whole = all(writes.missing == writes.twice == 0 for writes in self.writes.values())
        return not any(broken) and whole and not self.disorders and self.ended_with_reply >= 0.99 * self.accepted

    def plus(self, other: Self) -> Self:
        """This run and another one."""
        both = {name: mine + getattr(other, name) for name, mine in vars(self).items() if name != "writes"}
        return type(self)(**both, writes={name: mine.plus(other.writes[name]) for name, mine in self.writes.items()})


async def findings(
    stack: ChaosStack,
    sent: Sequence[Sent],
    notes: Sequence[Note],
    calls: dict[str, list[float]],
    unknown: frozenset[str] = frozenset(),
) -> Findings:
    """Hold every accepted turn and every stored item against the stores, and the model's own count of calls.

    Args:
        stack: what was run.
        sent: the turns that were handed in.
        notes: the items that were stored.
        calls: when the model was asked for each step.
        unknown: members of a reply that some process of the run does not know, and leaves out.
    """
    connection = await asyncpg.connect(stack.dsn)
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    try:
        accepted = [one for one in sent if one.turn_id]
        found = Findings(accepted=len(accepted), kinds=Counter(one.wish.kind for one in accepted))
        ids = [UUID(one.turn_id) for one in accepted]
        asked = "SELECT id, status, reply FROM orchestrator.turns WHERE id = ANY($1)"
        rows = {str(row["id"]): row for row in await connection.fetch(asked, ids)}
        completed = [one for one in accepted if one.turn_id in rows and rows[one.turn_id]["status"] == "completed"]
        await _count_ends(connection, accepted, rows, found, unknown)
        await _count_calls(connection, ids, calls, found)
        await _count_attachments(connection, completed, rows, found)
        found.disorders = await disorders(connection, accepted)
        found.writes = await held_writes(connection, stack, [str(one.turn_id) for one in completed], notes)
        return found
    finally:
        await connection.close()


async def _count_ends(
    connection: asyncpg.Connection, accepted: list[Sent], rows: dict[str, Any], found: Findings, unknown: frozenset[str]
) -> None:
    said = await connection.fetch(
        "SELECT turn_id, count(*) AS n FROM orchestrator.messages WHERE turn_id = ANY($1) AND role = 'assistant' GROUP BY 1",
        [UUID(one.turn_id) for one in accepted],
    )
    answers = {str(row["turn_id"]): row["n"] for row in said}
    for one in accepted:
        row = rows.get(str(one.turn_id), {"status": "lost", "reply": None})
        status, n = row["status"], answers.get(str(one.turn_id), 0)
        found.parked += status == "parked"
        found.failed += status in ("failed", "cancelled")
        found.not_ended += status in ("queued", "running", "waiting")
        found.replies_doubled += n > 1
        lost = status == "lost" or (status == "completed" and (n == 0 or row["reply"] is None))
        # What the client was told is the reply that stands.
        told, kept = without(one.reply, unknown), without(row["reply"], unknown)
        found.replies_lost += lost or (told is not None and told != kept)
        found.ended_with_reply += status == "completed" and not lost
        found.degraded += bool(row["reply"] and row["reply"].get("degraded"))


async def _count_calls(connection: asyncpg.Connection, ids: list[UUID], calls: dict[str, list[float]], found: Findings) -> None:
    steps = await connection.fetch(
        "SELECT turn_id, step, result_at, attempts FROM orchestrator.journal JOIN orchestrator.turns ON id = turn_id"
        " WHERE turn_id = ANY($1)",
        ids,
    )
    for step in steps:
        made = calls.get(f"{step['turn_id']}/{step['step']}", [])
        known = [at for at in made if step["result_at"] and at > step["result_at"].timestamp()]
        found.steps += 1
        found.model_calls += len(made)
        found.repeated_calls += max(0, len(made) - 1)
        # An attempt may make a call once, and none whose result is at hand.
        found.unexplained_calls += max(0, len(made) - step["attempts"], len(known))


async def _count_attachments(
    connection: asyncpg.Connection, completed: list[Sent], rows: dict[str, Any], found: Findings
) -> None:
    attached = [one for one in completed if one.wish.file]
    texts = {str(row["turn_id"]): row["text"] for row in await connection.fetch(_READ, [UUID(one.turn_id) for one in attached])}
    for one in attached:
        assert one.wish.file is not None
        found.attached += 1
        if {"media", "documents"}.intersection(rows[str(one.turn_id)]["reply"].get("degraded", ())):
            found.attachments_named_unread += 1
        elif one.wish.file.holds not in texts.get(str(one.turn_id), "").lower():
            found.attachments_lost += 1
