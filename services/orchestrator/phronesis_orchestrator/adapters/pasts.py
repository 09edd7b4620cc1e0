"""The history of a conversation as a turn needs it, and the summary of what is older; never a whole conversation."""

from __future__ import annotations

from collections.abc import Iterable

import asyncpg

from phronesis_contracts.orchestrator import Directive
from phronesis_postgres import Database

from ..history import AGED, MAX_CHARS, WINDOW, Past, PastTurn, Summary
from .intake import uuid_of

# One round trip. Each part is a walk of the messages' primary key, and ends at its limit.
_READ = """
WITH head AS (
    SELECT id, directive, summary, summary_through FROM conversations WHERE id = $1
), newest AS (
    SELECT seq, role, text FROM messages WHERE conversation_id = $1 ORDER BY seq DESC LIMIT $2
), aged AS (
    SELECT seq, role, text FROM messages
    WHERE conversation_id = $1 AND seq > (SELECT summary_through FROM head) AND seq < (SELECT min(seq) FROM newest)
    ORDER BY seq LIMIT $3
), kept AS (
    SELECT seq, role, text FROM messages WHERE conversation_id = $1 AND seq IN (
        SELECT first::bigint + more FROM head, jsonb_array_elements_text(head.summary -> 'kept') AS of (first),
            generate_series(0, 1) AS more
    )
)
SELECT head.directive, head.summary, said.part, said.seq, said.role, left(said.text, $4) AS text
FROM head LEFT JOIN (
    SELECT 'window' AS part, * FROM newest UNION ALL
    SELECT 'aged', * FROM aged UNION ALL
    SELECT 'kept', * FROM kept
) AS said ON true
ORDER BY said.seq
"""
_KEEP = """
UPDATE conversations SET summary = $2, summary_through = $3
WHERE id = $1 AND summary_through < $3 AND deleted_at IS NULL
"""


class Pasts:
    """The part of the conversations' store that reads what a turn needs of the past, and keeps the summary."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recent(self, tenant: str, conversation_id: str) -> Past:
        """The directive in force, the newest turns, and the summary with the turns that it does not cover yet."""
        id = uuid_of(conversation_id, "conversation")
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_READ, id, 2 * WINDOW, 2 * AGED, MAX_CHARS)
        if not rows:
            return Past()
        parts = {part: tuple(turns_of(row for row in rows if row["part"] == part)) for part in ("kept", "aged", "window")}
        return Past(
            directive=Directive(rows[0]["directive"]),
            summary=Summary.model_validate(rows[0]["summary"] or {}),
            kept=parts["kept"],
            aged=parts["aged"],
            window=parts["window"],
        )

    async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
        """Store a summary, unless one that reaches as far is there, or the conversation is gone."""
        async with self._database.transaction(tenant) as connection:
            await connection.execute(
                _KEEP, uuid_of(conversation_id, "conversation"), summary.model_dump(mode="json"), summary.through
            )


def turns_of(rows: Iterable[asyncpg.Record]) -> list[PastTurn]:
    """Messages as turns: each begins with what the user said."""
    turns: list[PastTurn] = []
    for row in rows:
        if row["role"] == "user" or not turns:
            turns.append(PastTurn(row["seq"], "", ""))
        last = turns[-1]
        turns[-1] = PastTurn(last.seq, row["text"], "") if row["role"] == "user" else PastTurn(last.seq, last.user, row["text"])
    return turns
