"""What came of tool calls, in Postgres: kept with an episode, counted for each tool, and looked through for errors."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_contracts import Principal
from phronesis_contracts.episodes import AskToolStatistics, MemoryHit, ToolStatistics, ToolUse
from phronesis_contracts.orchestrator import ToolOutcome
from phronesis_postgres import Connection, Database

from ..experience.domain import names_in

_KEEP = """
    INSERT INTO tool_outcomes (episode_id, place, tenant, owner, tool, ok, code, detail, ms, at)
    SELECT id, $2, tenant, owner, $3, $4, $5, $6, $7, coalesce((metadata ->> 'at')::timestamptz, created_at)
    FROM items WHERE id = $1 AND tenant = $8 AND owner = $9"""
_USES = """
    SELECT tool, count(*) AS uses, count(*) FILTER (WHERE ok) AS successes, max(at) AS last_at FROM tool_outcomes
    WHERE tenant = $1 AND owner = $2 AND ($3::text[] = '{}' OR tool = ANY($3::text[]))
    GROUP BY tool ORDER BY uses DESC, tool LIMIT $4"""
# Word by word: of a list of words the planner looks through every failure instead, the longer the fewer name a tool.
_NAMED = """
    SELECT found.*, 1.0 AS score FROM unnest($3::text[]) AS word, LATERAL (
        SELECT episode_id, place, tool, code, detail, at FROM tool_outcomes
        WHERE tenant = $1 AND owner = $2 AND NOT ok AND named = word
        ORDER BY at DESC, episode_id, place LIMIT $4
    ) AS found
    ORDER BY at DESC, episode_id, place LIMIT $4"""
# Any of the question's words counts; the more of them stand close together, the better. They are read once, not for each row.
_WORDED = """
    WITH asked AS MATERIALIZED (SELECT replace(plainto_tsquery('english', $3)::text, '&', '|')::tsquery AS query), newest AS (
        SELECT episode_id, place, tool, code, detail, at, words
        FROM tool_outcomes WHERE tenant = $1 AND owner = $2 AND NOT ok ORDER BY at DESC LIMIT $5
    )
    SELECT episode_id, place, tool, code, detail, at, ts_rank(words, query, 32) AS score FROM newest, asked
    WHERE words @@ query ORDER BY score DESC, at DESC, episode_id, place LIMIT $4"""
_LOOKED_THROUGH = 1_000
"""Failures of one user that are looked through for words: the newest."""


async def keep_outcomes(connection: Connection, tenant: str, owner: str, episode: str, outcomes: Sequence[ToolOutcome]) -> None:
    """Store what came of the tool calls of a turn, in the transaction that stores its episode."""
    rows = [
        (episode, n, _clean(o.name), o.ok, _clean(o.code or ""), _clean(o.detail), o.ms, tenant, owner)
        for n, o in enumerate(outcomes, 1)
    ]
    if rows:
        await connection.executemany(_KEEP, rows)


class PostgresOutcomes:
    """`Outcomes` on the table `tool_outcomes`.

    Args:
        database: the schema.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def statistics(self, who: Principal, asked: AskToolStatistics) -> ToolStatistics:
        """See `Outcomes`."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_USES, who.tenant, who.user, list(asked.tools), asked.limit)
        return ToolStatistics(
            tools=tuple(
                ToolUse(
                    name=row["tool"],
                    uses=row["uses"],
                    successes=row["successes"],
                    rate=row["successes"] / row["uses"],
                    last_at=row["last_at"],
                )
                for row in rows
            )
        )

    async def failures(self, who: Principal, query: str, limit: int) -> list[MemoryHit]:
        """See `Outcomes`."""
        query = _clean(query)
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_NAMED, who.tenant, who.user, names_in(query), limit)
            if not rows:
                rows = await connection.fetch(_WORDED, who.tenant, who.user, query, limit, _LOOKED_THROUGH)
        return [
            MemoryHit(
                id=f"{row['episode_id']}/{row['place']}",
                text=": ".join(part for part in (row["code"], row["detail"]) if part),
                when=row["at"],
                score=float(row["score"]),
                source=row["tool"],
            )
            for row in rows
        ]


def _clean(text: str) -> str:
    return text.replace("\x00", " ").encode(errors="replace").decode()
