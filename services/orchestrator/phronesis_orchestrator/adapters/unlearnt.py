"""The ended turns that were not learnt from yet: the turns' own rows are the queue."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from phronesis_contracts import Principal
from phronesis_postgres import EVERY_TENANT, Database

from ..learning.domain import EndedTurn

_OPEN = "status = 'completed' AND NOT learnt AND NOT erased AND (learn_after IS NULL OR learn_after < now())"
# One user at a time, whose oldest turn waits longest.
_CLAIM = f"""
WITH ready AS (
    SELECT tenant, user_id FROM turns WHERE {_OPEN} GROUP BY tenant, user_id
    HAVING count(*) >= $1 OR min(ended_at) <= now() - make_interval(secs => $2) ORDER BY min(ended_at) LIMIT 1
), picked AS (
    SELECT turns.id FROM turns JOIN ready USING (tenant, user_id) WHERE {_OPEN}
    ORDER BY turns.created_at LIMIT $1 FOR UPDATE OF turns SKIP LOCKED
)
UPDATE turns SET learn_after = now() + make_interval(secs => $3), learn_attempts = learn_attempts + 1
FROM picked WHERE turns.id = picked.id
RETURNING turns.id, conversation_id, principal, agent, coalesce(request ->> 'text', '') AS said, created_at, learn_attempts,
    (SELECT text FROM messages WHERE turn_id = turns.id AND role = 'user') AS shown,
    (SELECT text FROM messages WHERE turn_id = turns.id AND role = 'assistant') AS reply
"""  # noqa: S608


class PostgresUnlearnt:
    """`Unlearnt` on the table `turns`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, most: int, after: float, lease: float) -> list[EndedTurn]:
        """See `Unlearnt`."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            rows = await connection.fetch(_CLAIM, most, after, lease)
        found = [
            EndedTurn(
                turn_id=str(row["id"]),
                conversation_id=str(row["conversation_id"]),
                who=Principal.model_validate(row["principal"]),
                said=row["said"],
                shown=row["shown"] or "",
                reply=row["reply"] or "",
                at=row["created_at"],
                attempts=row["learn_attempts"],
                agent=row["agent"],
            )
            for row in rows
        ]
        return sorted(found, key=lambda turn: turn.at)

    async def learnt(self, turns: Sequence[EndedTurn]) -> None:
        """See `Unlearnt`."""
        if not turns:
            return
        async with self._database.transaction(turns[0].who.tenant) as connection:
            await connection.execute(
                "UPDATE turns SET learnt = true WHERE id = ANY($1::uuid[])", [UUID(turn.turn_id) for turn in turns]
            )
