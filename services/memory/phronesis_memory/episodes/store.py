"""Episodes, what came of tool calls, and strategies, in Postgres."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Conflict, Label, NotFound, OriginKind, Principal, labels_from_row
from phronesis_contracts import episodes as contract
from phronesis_contracts.memory import ItemKind
from phronesis_contracts.orchestrator import ToolOutcome, TurnStatus
from phronesis_contracts.service import AUDITED
from phronesis_contracts.tasks import VerifiedBy
from phronesis_contracts.tools import legal_name
from phronesis_postgres import Connection, Database, write_news, write_once

from ..items.rows import find_tombstones, lock_owner, rewrite_item, write_items
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
    INSERT INTO strategies (item_id, tenant, owner, task_id, approach, avoid, tools_used, score, agent, kind, ontology)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"""
# What the version before counted in `uses` and `wins` was verified by nobody.
_COUNTS = """
    SELECT count(*) FILTER (WHERE accepted) AS accepted, count(*) FILTER (WHERE NOT accepted) AS rejected,
        count(*) FILTER (WHERE strategy_evidence.task_id <> strategies.task_id) AS used,
        count(*) FILTER (WHERE accepted AND strategy_evidence.task_id <> strategies.task_id) AS won, max(at) AS last_at
    FROM strategy_evidence WHERE strategy_evidence.item_id = strategies.item_id"""
_READ_STRATEGIES = f"""
    SELECT id, body, labels, approach, avoid, tools_used, score, agent, strategies.kind, used, won, created_at
    FROM strategies JOIN items ON id = item_id, LATERAL ({_COUNTS}) AS counts
    WHERE strategies.tenant = $1 AND strategies.owner = $2 AND id = ANY($3::uuid[])
        AND NOT retired AND NOT withdrawn AND accepted > 0
        AND (agent = '' OR $4 = '' OR agent = $4)
        AND (strategies.kind = '' OR $5 = '' OR strategies.kind = $5)"""  # noqa: S608
_STATE = """
    CASE WHEN withdrawn OR retired THEN 'retired' WHEN accepted > 0 THEN 'active' ELSE 'unverified' END"""
_KEPT = f"""
    SELECT id, body, labels, created_at, strategies.*, counts.*, {_STATE} AS state
    FROM strategies JOIN items ON id = item_id, LATERAL ({_COUNTS}) AS counts
    WHERE strategies.tenant = $1 AND strategies.owner = $2"""  # noqa: S608
_LIST = f"{_KEPT} AND ($3::text IS NULL OR {_STATE} = $3) ORDER BY created_at DESC, id LIMIT $4"
_GET = f"{_KEPT} AND id = $3"
_EVIDENCE = """
    SELECT task_id, accepted, verified_by, at FROM strategy_evidence
    WHERE tenant = $1 AND owner = $2 AND item_id = $3 ORDER BY at DESC, task_id LIMIT 100"""
_HELD = """
    SELECT item_id FROM strategies
    WHERE tenant = $1 AND owner = $2 AND (item_id = ANY($3::uuid[]) OR task_id = $4) ORDER BY item_id FOR UPDATE"""
_VERIFY = """
    INSERT INTO strategy_evidence (item_id, task_id, tenant, owner, accepted, verified_by) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (item_id, task_id) DO UPDATE SET accepted = excluded.accepted, verified_by = excluded.verified_by, at = now()
    WHERE strategy_evidence.accepted <> excluded.accepted OR strategy_evidence.verified_by <> excluded.verified_by"""
_COUNT = f"SELECT used, won FROM strategies, LATERAL ({_COUNTS}) AS counts WHERE item_id = $1"  # noqa: S608
_STAND = "UPDATE strategies SET uses = $2, wins = $3, retired = $4 WHERE item_id = $1"
_RETIRE = "UPDATE strategies SET withdrawn = $2, retired = retired AND $2 WHERE item_id = $1"
_EDIT = "UPDATE strategies SET approach = $2, avoid = $3, edited_at = now() WHERE item_id = $1"


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
        who, by = call.who, request.verified_by
        assert by is not None, "what nobody has verified is refused before"
        await lock_owner(connection, who.tenant, who.user)
        if await find_tombstones(connection, who.tenant, who.user, draft.sources):
            return contract.StrategyRecorded(status=contract.Recording.REFUSED, reason="its conversation was deleted")
        known = await connection.fetchval(_KNOWN, who.tenant, who.user, draft.external_id)
        if known is not None:
            await _verify(connection, who, [known], request.task_id, by, accepted=True)
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
            request.agent,
            request.kind,
            request.ontology,
        )
        await _verify(connection, who, [UUID(done.id)], request.task_id, by, accepted=True)
        await _audit(connection, who, "strategies.record", {"id": done.id, "task_id": request.task_id, "verified_by": by})
        return contract.StrategyRecorded(status=contract.Recording.RECORDED, id=done.id)

    async def near(
        self, who: Principal, goal: Vector, floor: float, most: int, wanted: contract.RecallStrategies
    ) -> list[contract.Strategy]:
        """The strategies whose goals are near, that are recalled at all, and whose preconditions hold."""
        [hits] = await self._vectors.search(Audience(who.tenant, (who.user,), (ItemKind.STRATEGY,)), [goal], most)
        close = {hit.id: hit.cosine for hit in hits if hit.cosine >= floor}
        if not close:
            return []
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_READ_STRATEGIES, who.tenant, who.user, list(close), wanted.agent, wanted.kind)
        if wanted.tools is not None:
            at_hand = set(map(legal_name, wanted.tools))
            rows = [row for row in rows if at_hand.issuperset(map(legal_name, row["tools_used"]))]
        found = {str(row["id"]): row for row in rows}
        return [_strategy_from_row(found[id], cosine) for id, cosine in close.items() if id in found]

    async def verify(self, call: Call, request: contract.VerifyStrategies) -> contract.StrategyStandings:
        """Count an outcome for the strategies that the task used and for the one that was learnt from it."""
        who, task, by = call.who, request.task_id, request.by

        async def count(connection: Connection) -> contract.StrategyStandings:
            rows = await connection.fetch(_HELD, who.tenant, who.user, parse_ids(dict.fromkeys(request.ids)), task)
            held = [row["item_id"] for row in rows]
            standings = await _verify(connection, who, held, task, by, accepted=request.accepted)
            if standings:
                ids = [one.id for one in standings]
                changed = {"ids": ids, "accepted": request.accepted, "task_id": task, "verified_by": by}
                await _audit(connection, who, "strategies.verify", changed)
            return contract.StrategyStandings(strategies=tuple(standings))

        done = await write_once(self._database, call, request, contract.StrategyStandings, count)
        self._wake()
        return done

    async def list(self, who: Principal, request: contract.ListStrategies) -> contract.KeptStrategies:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_LIST, who.tenant, who.user, request.state, request.limit)
        return contract.KeptStrategies(strategies=tuple(map(_kept_from_row, rows)))

    async def get(self, who: Principal, id: str) -> contract.KeptStrategy:
        """One strategy of the caller with its evidence. Raises `NotFound`."""
        async with self._database.connection(who.tenant) as connection:
            return await _get(connection, who, _parse_strategy(id))

    async def update(
        self, call: Call, request: contract.UpdateStrategy, after: contract.KeptStrategy, draft: Draft | None
    ) -> contract.KeptStrategy:
        """Store a change of the caller's own strategy.

        Args:
            after: the strategy as it was read, with the text that it shall have.
            draft: its goal with its vector, where its text changes.

        Raises:
            NotFound: there is none such.
            Conflict: its text was changed meanwhile.
        """
        who, id = call.who, _parse_strategy(request.strategy_id)

        async def store(connection: Connection) -> contract.StrategyRef:
            await lock_owner(connection, who.tenant, who.user)
            known = await _get(connection, who, id)
            if draft is not None:
                if known.edited_at != after.edited_at:
                    raise Conflict("the strategy was changed meanwhile; read it again")
                version = int(await connection.fetchval("SELECT nextval('versions')"))
                await rewrite_item(connection, self._vectors, who.tenant, who.user, version, str(id), draft)
                await connection.execute(_EDIT, id, after.approach, after.avoid)
            if request.retired is not None:
                await connection.execute(_RETIRE, id, request.retired)
            fields = sorted(request.model_dump(exclude={"strategy_id"}, exclude_none=True))
            await _audit(connection, who, "strategies.update", {"id": str(id), "fields": fields})
            return contract.StrategyRef(strategy_id=str(id))

        # What is kept of a write is its id alone: the text may be forgotten.
        await write_once(self._database, call, request, contract.StrategyRef, store)
        self._wake()
        await self._vectors.settle(who.tenant, [str(id)] if draft is not None else [])
        return await self.get(who, str(id))

    async def retire(self, call: Call, request: contract.StrategyRef) -> contract.KeptStrategy:
        """Recall it no more. A second time changes nothing. Raises `NotFound`."""
        who, id = call.who, _parse_strategy(request.strategy_id)
        async with self._database.transaction(who.tenant) as connection:
            await lock_owner(connection, who.tenant, who.user)
            if (await _get(connection, who, id)).state is not contract.StrategyState.RETIRED:
                await connection.execute(_RETIRE, id, True)
                await _audit(connection, who, "strategies.retire", {"id": str(id)})
        self._wake()
        return await self.get(who, str(id))


async def _audit(connection: Connection, who: Principal, action: str, details: dict[str, Any]) -> None:
    await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], audit_entry(who, action, details))


async def _verify(
    connection: Connection, who: Principal, ids: Sequence[UUID], task_id: str, by: VerifiedBy, *, accepted: bool
) -> list[contract.StrategyStanding]:
    """Enter what was said of a task for each of these strategies; how they stand then."""
    standings = []
    for id in ids:
        await connection.execute(_VERIFY, id, task_id, who.tenant, who.user, accepted, by)
        [counted] = await connection.fetch(_COUNT, id)
        uses, wins = counted["used"], counted["won"]
        one = contract.StrategyStanding(id=str(id), uses=uses, wins=wins, retired=is_spent(uses, wins))
        await connection.execute(_STAND, id, one.uses, one.wins, one.retired)
        standings.append(one)
    return standings


async def _get(connection: Connection, who: Principal, id: UUID) -> contract.KeptStrategy:
    row = await connection.fetchrow(_GET, who.tenant, who.user, id)
    if row is None:
        raise NotFound("no such strategy")
    found = _kept_from_row(row)
    rows = await connection.fetch(_EVIDENCE, who.tenant, who.user, id)
    evidence = tuple(
        contract.StrategyEvidence(
            task_id=one["task_id"],
            accepted=one["accepted"],
            by=one["verified_by"],
            at=one["at"],
            edited_since=found.edited_at is not None and one["at"] < found.edited_at,
        )
        for one in rows
    )
    return found.model_copy(update={"evidence": evidence})


def _parse_strategy(id: str) -> UUID:
    if not (found := parse_ids([id])):
        raise NotFound("no such strategy")
    return found[0]


def _strategy_from_row(row: Any, cosine: float) -> contract.Strategy:
    return contract.Strategy(
        id=str(row["id"]),
        goal=row["body"],
        approach=row["approach"],
        avoid=row["avoid"],
        tools_used=tuple(row["tools_used"]),
        score=row["score"],
        similarity=cosine,
        uses=row["used"],
        wins=row["won"],
        labels=labels_from_row(row["labels"]),
        created_at=row["created_at"],
        agent=row["agent"],
        kind=row["kind"],
    )


def _kept_from_row(row: Any) -> contract.KeptStrategy:
    return contract.KeptStrategy(
        id=str(row["id"]),
        task_id=row["task_id"],
        state=row["state"],
        goal=row["body"],
        approach=row["approach"],
        avoid=row["avoid"],
        tools_used=tuple(row["tools_used"]),
        agent=row["agent"],
        kind=row["kind"],
        ontology=row["ontology"],
        score=row["score"],
        accepted=row["accepted"],
        rejected=row["rejected"],
        last_at=row["last_at"],
        labels=labels_from_row(row["labels"]),
        created_at=row["created_at"],
        edited_at=row["edited_at"],
    )
