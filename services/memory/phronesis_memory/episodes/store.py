"""Episodes, what came of tool calls, and strategies, in Postgres."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Label, OriginKind, Principal, labels_from_row
from phronesis_contracts import episodes as contract
from phronesis_contracts.memory import ItemKind
from phronesis_contracts.orchestrator import ToolOutcome, TurnStatus
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..items.rows import find_tombstones, lock_owner, write_items
from ..ports import VectorIndex
from ..values import LIVE, Audience, Draft, Vector, parse_ids, shorten
from .strategies import is_spent, tool_names

_READ_EPISODES = f"""
    SELECT id, external_id, body, metadata, labels, created_at FROM items
    WHERE tenant = $1 AND owner = $2 AND kind = $3 AND id = ANY($4::uuid[]) AND {LIVE}"""  # noqa: S608
_OUTCOMES = """
    SELECT episode_id, tool, ok, code, detail, ms FROM tool_outcomes
    WHERE tenant = $1 AND owner = $2 AND episode_id = ANY($3::uuid[]) ORDER BY episode_id, place"""


class PostgresEpisodes:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def episodes(self, who: Principal, scores: Mapping[str, float]) -> list[contract.Episode]:
        if not scores:
            return []
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_READ_EPISODES, who.tenant, who.user, ItemKind.EPISODE, list(scores))
            came = await connection.fetch(_OUTCOMES, who.tenant, who.user, list(scores))
        found = {str(row["id"]): row for row in rows}
        tools: dict[str, list[ToolOutcome]] = {}
        for one in came:
            outcome = ToolOutcome(name=one["tool"], ok=one["ok"], code=one["code"] or None, detail=one["detail"], ms=one["ms"])
            tools.setdefault(str(one["episode_id"]), []).append(outcome)
        return [
            _episode_from_row(found[id], score, tuple(tools.get(id, ())), len(found))
            for id, score in scores.items()
            if id in found
        ]


def _episode_from_row(row: Any, score: float, tools: tuple[ToolOutcome, ...], beside: int) -> contract.Episode:
    known = row["metadata"]
    return contract.Episode(
        id=str(row["id"]),
        turn_id=(row["external_id"] or "").removeprefix("turn:"),
        conversation_id=str(known.get("conversation_id", "")),
        agent=str(known.get("agent", "")),
        # What was stored before ends were told apart had ended well.
        outcome=TurnStatus(known.get("outcome", TurnStatus.COMPLETED)),
        code=known.get("code"),
        tier=known.get("tier"),
        task=known.get("task"),
        text=shorten(row["body"], beside),
        labels=labels_from_row(row["labels"]),
        tools=tools,
        at=datetime.fromisoformat(known["at"]) if "at" in known else row["created_at"],
        score=score,
    )


_KEEP_OUTCOMES = """
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


async def write_outcomes(
    connection: Connection, tenant: str, owner: str, episode: str, outcomes: Sequence[ToolOutcome]
) -> None:
    """Store what came of the tool calls of a turn, in the transaction that stores its episode."""
    rows = [
        (episode, n, _clean_detail(o.name), o.ok, _clean_detail(o.code or ""), _clean_detail(o.detail), o.ms, tenant, owner)
        for n, o in enumerate(outcomes, 1)
    ]
    if rows:
        await connection.executemany(_KEEP_OUTCOMES, rows)


class PostgresOutcomes:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def statistics(self, who: Principal, request: contract.AskToolStatistics) -> contract.ToolStatistics:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_USES, who.tenant, who.user, list(request.tools), request.limit)
        return contract.ToolStatistics(
            tools=tuple(
                contract.ToolUse(
                    name=row["tool"],
                    uses=row["uses"],
                    successes=row["successes"],
                    rate=row["successes"] / row["uses"],
                    last_at=row["last_at"],
                )
                for row in rows
            )
        )

    async def failures(self, who: Principal, query: str, limit: int) -> list[contract.MemoryHit]:
        query = _clean_detail(query)
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_NAMED, who.tenant, who.user, tool_names(query), limit)
            if not rows:
                rows = await connection.fetch(_WORDED, who.tenant, who.user, query, limit, _LOOKED_THROUGH)
        return [
            contract.MemoryHit(
                id=f"{row['episode_id']}/{row['place']}",
                text=": ".join(part for part in (row["code"], row["detail"]) if part),
                when=row["at"],
                score=float(row["score"]),
                source=row["tool"],
                labels=(Label(kind=OriginKind.TOOL, name=row["tool"]),),
            )
            for row in rows
        ]


def _clean_detail(text: str) -> str:
    return text.replace("\x00", " ").encode(errors="replace").decode()


SERVICE = "memory"

_KNOWN = "SELECT id FROM items WHERE tenant = $1 AND owner = $2 AND external_id = $3"
_KEEP_STRATEGY = """
    INSERT INTO strategies (item_id, tenant, owner, task_id, approach, avoid, tools_used, score)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""
_READ_STRATEGIES = """
    SELECT id, body, labels, approach, avoid, tools_used, score, uses, wins, created_at
    FROM strategies JOIN items ON id = item_id
    WHERE strategies.tenant = $1 AND strategies.owner = $2 AND NOT retired AND id = ANY($3::uuid[])"""
_HELD = """
    SELECT item_id, uses, wins FROM strategies
    WHERE tenant = $1 AND owner = $2 AND item_id = ANY($3::uuid[]) ORDER BY item_id FOR UPDATE"""
_COUNT = "UPDATE strategies SET uses = $2, wins = $3, retired = $4 WHERE item_id = $1"


class PostgresStrategies:
    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake

    async def record(self, call: Call, request: contract.RecordStrategy, draft: Draft) -> contract.StrategyRecorded:
        async def store(connection: Connection) -> contract.StrategyRecorded:
            return await self._store(connection, call, request, draft)

        done = await write_once(self._database, call, request, contract.StrategyRecorded, store)
        self._wake()
        await self._vectors.settle(call.who.tenant, [done.id] if done.id else [])
        return done

    async def _store(
        self, connection: Connection, call: Call, request: contract.RecordStrategy, draft: Draft
    ) -> contract.StrategyRecorded:
        who = call.who
        await lock_owner(connection, who.tenant, who.user)
        if await find_tombstones(connection, who.tenant, who.user, draft.sources):
            return contract.StrategyRecorded(status=contract.Recording.REFUSED, reason="its conversation was deleted")
        known = await connection.fetchval(_KNOWN, who.tenant, who.user, draft.external_id)
        if known is not None:
            return contract.StrategyRecorded(status=contract.Recording.KNOWN, id=str(known))
        version = int(await connection.fetchval("SELECT nextval('versions')"))
        [done] = await write_items(connection, self._vectors, who.tenant, who.user, version, [draft])
        await connection.execute(
            _KEEP_STRATEGY,
            done.id,
            who.tenant,
            who.user,
            request.task_id,
            request.approach,
            request.avoid,
            list(request.tools_used),
            request.score,
        )
        entry = audit_entry(who, "strategies.record", {"id": done.id, "task_id": request.task_id})
        await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
        return contract.StrategyRecorded(status=contract.Recording.RECORDED, id=done.id)

    async def near(self, who: Principal, goal: Vector, floor: float, most: int) -> list[contract.Strategy]:
        [hits] = await self._vectors.search(Audience(who.tenant, (who.user,), (ItemKind.STRATEGY,)), [goal], most)
        close = {hit.id: hit.cosine for hit in hits if hit.cosine >= floor}
        if not close:
            return []
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_READ_STRATEGIES, who.tenant, who.user, list(close))
        found = {str(row["id"]): row for row in rows}
        return [_strategy_from_row(found[id], cosine) for id, cosine in close.items() if id in found]

    async def settle(self, call: Call, request: contract.StrategyOutcome) -> contract.StrategyStandings:
        who = call.who

        async def count(connection: Connection) -> contract.StrategyStandings:
            rows = await connection.fetch(_HELD, who.tenant, who.user, parse_ids(dict.fromkeys(request.ids)))
            standings = [_standing_from_row(row, request.worked) for row in rows]
            for one in standings:
                await connection.execute(_COUNT, UUID(one.id), one.uses, one.wins, one.retired)
            if standings:
                changed = {"ids": [one.id for one in standings], "worked": request.worked}
                entry = audit_entry(who, "strategies.outcome", changed)
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return contract.StrategyStandings(strategies=tuple(standings))

        done = await write_once(self._database, call, request, contract.StrategyStandings, count)
        self._wake()
        return done


def _standing_from_row(row: Any, worked: bool) -> contract.StrategyStanding:
    uses, wins = row["uses"] + 1, row["wins"] + worked
    return contract.StrategyStanding(id=str(row["item_id"]), uses=uses, wins=wins, retired=is_spent(uses, wins))


def _strategy_from_row(row: Any, cosine: float) -> contract.Strategy:
    return contract.Strategy(
        id=str(row["id"]),
        goal=row["body"],
        approach=row["approach"],
        avoid=row["avoid"],
        tools_used=tuple(row["tools_used"]),
        score=row["score"],
        similarity=cosine,
        uses=row["uses"],
        wins=row["wins"],
        labels=labels_from_row(row["labels"]),
        created_at=row["created_at"],
    )
