"""Strategies in Postgres: items whose text is the goal, with what led there in a table beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from phronesis_bus import Call, audited
from phronesis_contracts import Principal
from phronesis_contracts.memory import ItemKind
from phronesis_contracts.service import AUDITED
from phronesis_contracts.strategies import (
    Recording,
    RecordStrategy,
    Strategy,
    StrategyOutcome,
    StrategyRecorded,
    StrategyStanding,
    StrategyStandings,
)
from phronesis_postgres import Connection, Database, write_news, write_once

from ..domain.values import Audience, Draft, Vector
from ..experience.domain import is_spent
from ..ports import VectorIndex
from .forgetting import buried
from .writing import lock, write

SERVICE = "memory"

_KNOWN = "SELECT id FROM items WHERE tenant = $1 AND owner = $2 AND external_id = $3"
_KEEP = """
    INSERT INTO strategies (item_id, tenant, owner, task_id, approach, avoid, tools_used, score)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""
_READ = """
    SELECT id, body, approach, avoid, tools_used, score, uses, wins, created_at FROM strategies JOIN items ON id = item_id
    WHERE strategies.tenant = $1 AND strategies.owner = $2 AND NOT retired AND id = ANY($3::uuid[])"""
_HELD = """
    SELECT item_id, uses, wins FROM strategies
    WHERE tenant = $1 AND owner = $2 AND item_id = ANY($3::uuid[]) ORDER BY item_id FOR UPDATE"""
_COUNT = "UPDATE strategies SET uses = $2, wins = $3, retired = $4 WHERE item_id = $1"


class PostgresStrategies:
    """`Strategies` on the tables `items` and `strategies`.

    Args:
        database: the schema.
        vectors: the index of the goals' vectors.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database = database
        self._vectors = vectors
        self._wake = wake

    async def record(self, call: Call, request: RecordStrategy, draft: Draft) -> StrategyRecorded:
        """See `Strategies`."""

        async def store(connection: Connection) -> StrategyRecorded:
            return await self._store(connection, call, request, draft)

        done = await write_once(self._database, call, request, StrategyRecorded, store)
        self._wake()
        await self._vectors.settle(call.who.tenant, [done.id] if done.id else [])
        return done

    async def _store(self, connection: Connection, call: Call, request: RecordStrategy, draft: Draft) -> StrategyRecorded:
        who = call.who
        await lock(connection, who.tenant, who.user)
        if await buried(connection, who.tenant, who.user, draft.sources):
            return StrategyRecorded(status=Recording.REFUSED, reason="its conversation was deleted")
        known = await connection.fetchval(_KNOWN, who.tenant, who.user, draft.external_id)
        if known is not None:
            return StrategyRecorded(status=Recording.KNOWN, id=str(known))
        version = int(await connection.fetchval("SELECT nextval('versions')"))
        [done] = await write(connection, self._vectors, who.tenant, who.user, version, [draft])
        await connection.execute(
            _KEEP,
            done.id,
            who.tenant,
            who.user,
            request.task_id,
            request.approach,
            request.avoid,
            list(request.tools_used),
            request.score,
        )
        entry = audited(who, "strategies.record", {"id": done.id, "task_id": request.task_id})
        await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
        return StrategyRecorded(status=Recording.RECORDED, id=done.id)

    async def near(self, who: Principal, goal: Vector, floor: float, most: int) -> list[Strategy]:
        """See `Strategies`."""
        [hits] = await self._vectors.search(Audience(who.tenant, (who.user,), (ItemKind.STRATEGY,)), [goal], most)
        close = {hit.id: hit.cosine for hit in hits if hit.cosine >= floor}
        if not close:
            return []
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_READ, who.tenant, who.user, list(close))
        found = {str(row["id"]): row for row in rows}
        return [_strategy(found[id], cosine) for id, cosine in close.items() if id in found]

    async def settle(self, call: Call, request: StrategyOutcome) -> StrategyStandings:
        """See `Strategies`."""
        who = call.who

        async def count(connection: Connection) -> StrategyStandings:
            rows = await connection.fetch(_HELD, who.tenant, who.user, _uuids(request.ids))
            standings = [_standing(row, request.worked) for row in rows]
            for one in standings:
                await connection.execute(_COUNT, UUID(one.id), one.uses, one.wins, one.retired)
            if standings:
                changed = {"ids": [one.id for one in standings], "worked": request.worked}
                entry = audited(who, "strategies.outcome", changed)
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return StrategyStandings(strategies=tuple(standings))

        done = await write_once(self._database, call, request, StrategyStandings, count)
        self._wake()
        return done


def _standing(row: Any, worked: bool) -> StrategyStanding:
    uses, wins = row["uses"] + 1, row["wins"] + worked
    return StrategyStanding(id=str(row["item_id"]), uses=uses, wins=wins, retired=is_spent(uses, wins))


def _strategy(row: Any, cosine: float) -> Strategy:
    return Strategy(
        id=str(row["id"]),
        goal=row["body"],
        approach=row["approach"],
        avoid=row["avoid"],
        tools_used=tuple(row["tools_used"]),
        score=row["score"],
        similarity=cosine,
        uses=row["uses"],
        wins=row["wins"],
        created_at=row["created_at"],
    )


def _uuids(ids: tuple[str, ...]) -> list[UUID]:
    found = []
    for id in dict.fromkeys(ids):
        try:
            found.append(UUID(id))
        except ValueError:
            continue
    return found
