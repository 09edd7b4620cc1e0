"""Episodes in Postgres: items of their kind, with what came of the turn's tools."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from phronesis_contracts import Principal
from phronesis_contracts.episodes import Episode
from phronesis_contracts.memory import ItemKind
from phronesis_contracts.orchestrator import ToolOutcome, TurnStatus
from phronesis_postgres import Database

from ..domain.limits import cut

_READ = """
    SELECT id, external_id, body, metadata, created_at FROM items
    WHERE tenant = $1 AND owner = $2 AND kind = $3 AND id = ANY($4::uuid[])"""
_OUTCOMES = """
    SELECT episode_id, tool, ok, code, detail, ms FROM tool_outcomes
    WHERE tenant = $1 AND owner = $2 AND episode_id = ANY($3::uuid[]) ORDER BY episode_id, place"""


class PostgresEpisodes:
    """`Episodes` on the tables `items` and `tool_outcomes`.

    Args:
        database: the schema.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def episodes(self, who: Principal, scores: Mapping[str, float]) -> list[Episode]:
        """See `Episodes`."""
        if not scores:
            return []
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_READ, who.tenant, who.user, ItemKind.EPISODE, list(scores))
            came = await connection.fetch(_OUTCOMES, who.tenant, who.user, list(scores))
        found = {str(row["id"]): row for row in rows}
        tools: dict[str, list[ToolOutcome]] = {}
        for one in came:
            outcome = ToolOutcome(name=one["tool"], ok=one["ok"], code=one["code"] or None, detail=one["detail"], ms=one["ms"])
            tools.setdefault(str(one["episode_id"]), []).append(outcome)
        return [_episode(found[id], score, tuple(tools.get(id, ())), len(found)) for id, score in scores.items() if id in found]


def _episode(row: Any, score: float, tools: tuple[ToolOutcome, ...], beside: int) -> Episode:
    known = row["metadata"]
    return Episode(
        id=str(row["id"]),
        turn_id=(row["external_id"] or "").removeprefix("turn:"),
        conversation_id=str(known.get("conversation_id", "")),
        agent=str(known.get("agent", "")),
        # What was stored before ends were told apart had ended well.
        outcome=TurnStatus(known.get("outcome", TurnStatus.COMPLETED)),
        code=known.get("code"),
        tier=known.get("tier"),
        task=known.get("task"),
        text=cut(row["body"], beside),
        tools=tools,
        at=datetime.fromisoformat(known["at"]) if "at" in known else row["created_at"],
        score=score,
    )
