"""The log of retrievals, their ratings, the tenant's own defaults, and topics, in Postgres."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from uuid import UUID

from phronesis_bus import Call, audit_entry
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution.registry import ACCESS, Layer
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from .ports import TopicRun, TopicSummary
from .retrievals import Retrieval, describe_defaults

SERVICE = "memory"
MOST = 200_000
"""Rows of a tenant's log that are kept at most, whatever their age."""

_APPEND = """
    INSERT INTO constitution_retrievals VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    ON CONFLICT DO NOTHING"""
_OLD = "DELETE FROM constitution_retrievals WHERE at < $1"
_MANY = """
    DELETE FROM constitution_retrievals USING (
        SELECT tenant, id FROM (
            SELECT tenant, id, row_number() OVER (PARTITION BY tenant ORDER BY at DESC) AS place FROM constitution_retrievals
        ) numbered WHERE place > $1
    ) surplus WHERE constitution_retrievals.tenant = surplus.tenant AND constitution_retrievals.id = surplus.id"""
_THERE = "SELECT true FROM constitution_retrievals WHERE tenant = $1 AND id = $2 FOR KEY SHARE"
_RATE = """
    INSERT INTO constitution_ratings (tenant, retrieval_id, node_id, rater, relevant) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, retrieval_id, node_id, rater) DO UPDATE SET relevant = excluded.relevant, at = now()"""
_SATISFACTION = """
    SELECT count(*) AS ratings, count(*) FILTER (WHERE relevant) AS good FROM constitution_ratings WHERE tenant = $1"""
_CHANGED = "SELECT name, value FROM constitution_tuning WHERE tenant = $1"
_CHANGE = """
    INSERT INTO constitution_tuning (tenant, name, value) VALUES ($1, $2, $3)
    ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value"""
_BACK = "DELETE FROM constitution_tuning WHERE tenant = $1 AND name = $2"
_TOOLS = """
    SELECT tool, count(*) AS calls, count(*) FILTER (WHERE outcome <> 'ok') AS failed, count(*) FILTER (WHERE cached) AS cached,
        count(*) FILTER (WHERE outcome = 'ok' AND nodes = 0) AS empty,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY milliseconds) AS p50,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY milliseconds) AS p95,
        coalesce(avg(tokens) FILTER (WHERE outcome = 'ok'), 0) AS tokens
    FROM constitution_retrievals WHERE tenant = $1 AND at >= $2 GROUP BY tool ORDER BY tool"""
_LAYERS = """
    SELECT key AS layer, sum(value::integer) AS nodes FROM constitution_retrievals, jsonb_each_text(layers)
    WHERE tenant = $1 AND at >= $2 GROUP BY key ORDER BY key"""
_SESSIONS = """
    SELECT layer, count(DISTINCT (actor, (at AT TIME ZONE 'UTC')::date)) AS sessions
    FROM constitution_retrievals, LATERAL (SELECT '' AS layer UNION ALL SELECT jsonb_object_keys(layers)) read
    WHERE tenant = $1 AND at >= $2 GROUP BY layer"""


class PostgresRetrievals:
    """`Rows` and `Retrievals` on migration 0010's tables. `words`: whether questions' words are kept, or their hash alone."""

    def __init__(self, database: Database, words: bool, wake: Callable[[], None]) -> None:
        self._database, self._words, self._wake = database, words, wake

    async def append(self, rows: Sequence[Retrieval]) -> None:
        for tenant, some in groupby(sorted(rows, key=lambda row: row.tenant), key=lambda row: row.tenant):
            async with self._database.transaction(tenant) as connection:
                await connection.executemany(_APPEND, [self._row(row) for row in some])

    def _row(self, row: Retrieval) -> tuple[object, ...]:
        question = row.question.replace("\0", "") if self._words else None
        return (
            row.tenant,
            UUID(row.id),
            row.at,
            row.tool,
            row.actor,
            question,
            row.question_hash,
            dict(row.arguments),
            row.milliseconds,
            row.outcome,
            row.tokens,
            row.nodes,
            dict(row.layers),
            row.cached,
            list(row.degraded),
        )

    async def prune(self, before: datetime) -> int:
        async with self._database.transaction(EVERY_TENANT) as connection:
            gone = await connection.execute(_OLD, before)
            surplus = await connection.execute(_MANY, MOST)
        return sum(int(done.rpartition(" ")[2]) for done in (gone, surplus))

    async def changed(self, tenant: str) -> dict[str, float]:
        async with self._database.connection(tenant) as connection:
            return await _read_tuning(connection, tenant)

    async def tune(self, call: Call, request: search.TuneRetrieval) -> search.RetrievalTuned:
        who = call.who

        async def work(connection: Connection) -> search.RetrievalTuned:
            for name, given in request.values.items():
                if given is None:
                    await connection.execute(_BACK, who.tenant, name)
                else:
                    await connection.execute(_CHANGE, who.tenant, name, given)
            tuned = describe_defaults(await _read_tuning(connection, who.tenant))
            entry = audit_entry(who, "retrieval.tuning.v1", {"values": dict(request.values)})
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return tuned

        tuned = await write_once(self._database, call, request, search.RetrievalTuned, work)
        self._wake()
        return tuned

    async def rate(self, call: Call, request: search.RateRetrieval) -> search.RetrievalRated:
        who = call.who
        try:
            id = UUID(request.retrieval_id)
        except ValueError as error:
            raise search.NoSuchRetrieval("there is no such retrieval", field="retrievalId") from error

        async def work(connection: Connection) -> search.RetrievalRated:
            if not await connection.fetchval(_THERE, who.tenant, id):
                raise search.NoSuchRetrieval("there is no such retrieval", field="retrievalId")
            await connection.execute(_RATE, who.tenant, id, request.node_id or "", who.user, request.relevant)
            good, ratings = await _read_satisfaction(connection, who.tenant)
            return search.RetrievalRated(satisfaction=good / ratings, ratings=ratings)

        return await write_once(self._database, call, request, search.RetrievalRated, work)

    async def report(self, tenant: str, days: int) -> search.RetrievalReported:
        since = datetime.now(UTC) - timedelta(days=days)
        async with self._database.connection(tenant) as connection:
            tools = await connection.fetch(_TOOLS, tenant, since)
            layers = {row["layer"]: row["nodes"] for row in await connection.fetch(_LAYERS, tenant, since)}
            sessions = {row["layer"]: row["sessions"] for row in await connection.fetch(_SESSIONS, tenant, since)}
            good, ratings = await _read_satisfaction(connection, tenant)
        nodes = sum(layers.values())
        return search.RetrievalReported(
            tools=tuple(_tool_use(dict(row)) for row in tools),
            layers={Layer(layer): round(count / nodes, 4) for layer, count in layers.items()},
            sessions=sessions.get("", 0),
            access=tuple(_layer_access(layer, sessions) for layer in ACCESS),
            satisfaction=good / ratings if ratings else None,
            ratings=ratings,
        )


def _layer_access(layer: Layer, sessions: dict[str, int]) -> search.LayerAccess:
    least, most = ACCESS[layer]
    measured = round(sessions.get(layer, 0) / sessions[""], 4) if sessions else None
    return search.LayerAccess(layer=layer, expected_least=least, expected_most=most, measured=measured)


def _tool_use(row: dict[str, float | str]) -> search.ToolUse:
    return search.ToolUse.model_validate(
        {name: row[name] for name in ("tool", "calls", "failed", "cached", "empty")}
        | {
            "p50_milliseconds": round(float(row["p50"]), 3),
            "p95_milliseconds": round(float(row["p95"]), 3),
            "average_tokens": round(float(row["tokens"]), 1),
        }
    )


async def _read_tuning(connection: Connection, tenant: str) -> dict[str, float]:
    return {row["name"]: row["value"] for row in await connection.fetch(_CHANGED, tenant)}


async def _read_satisfaction(connection: Connection, tenant: str) -> tuple[int, int]:
    row = await connection.fetchrow(_SATISFACTION, tenant)
    assert row is not None
    return row["good"], row["ratings"]


_RUN = "SELECT computed_at, silhouette, unassigned FROM constitution_topic_runs WHERE tenant = $1"
_LISTED = """
    SELECT id, keywords, count(*) AS size, (array_agg(node_id ORDER BY closeness DESC, node_id))[1:$3] AS nearest
    FROM constitution_topics JOIN constitution_topic_nodes member ON member.tenant = $1 AND member.topic_id = id
    WHERE constitution_topics.tenant = $1 AND (cardinality($2::text[]) = 0 OR layer = ANY($2::text[]))
    GROUP BY id, keywords ORDER BY size DESC, id"""
_MEMBERS = """
    SELECT node_id, count(*) OVER () AS total FROM constitution_topic_nodes WHERE tenant = $1 AND topic_id = $2
    ORDER BY closeness DESC, node_id LIMIT $3"""
_ALL = "SELECT topic_id, array_agg(node_id) AS nodes FROM constitution_topic_nodes WHERE tenant = $1 GROUP BY topic_id"
_FORGET = "DELETE FROM constitution_topics WHERE tenant = $1"
_KEEP = "INSERT INTO constitution_topics (tenant, id, keywords) VALUES ($1, $2, $3)"
_KEEP_MEMBERS = """
    INSERT INTO constitution_topic_nodes (tenant, topic_id, node_id, layer, type, closeness)
    SELECT $1, $2, * FROM unnest($3::text[], $4::text[], $5::text[], $6::real[])"""
_KEEP_RUN = """
    INSERT INTO constitution_topic_runs (tenant, computed_at, silhouette, unassigned) VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant) DO UPDATE
    SET computed_at = excluded.computed_at, silhouette = excluded.silhouette, unassigned = excluded.unassigned"""
# Two that replace the topics of one tenant at once: the second waits for the first.
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('constitution-topics ' || $1, 0))"


class PostgresTopics:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self, tenant: str) -> TopicRun | None:
        async with self._database.connection(tenant) as connection:
            row = await connection.fetchrow(_RUN, tenant)
        return TopicRun(row["computed_at"], row["silhouette"], row["unassigned"]) if row else None

    async def listed(self, tenant: str, layers: frozenset[Layer], nearest: int) -> list[TopicSummary]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_LISTED, tenant, sorted(layers), nearest)
        return [TopicSummary(row["id"], tuple(row["keywords"]), row["size"], tuple(row["nearest"])) for row in rows]

    async def members(self, tenant: str, topic_id: str, limit: int) -> tuple[list[str], int] | None:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_MEMBERS, tenant, topic_id, limit)
        return ([row["node_id"] for row in rows], rows[0]["total"]) if rows else None

    async def all(self, tenant: str) -> dict[str, frozenset[str]]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_ALL, tenant)
        return {row["topic_id"]: frozenset(row["nodes"]) for row in rows}

    async def replace(self, tenant: str, run: TopicRun) -> None:
        async with self._database.transaction(tenant) as connection:
            await connection.execute(_ALONE, tenant)
            await connection.execute(_FORGET, tenant)
            for topic in run.topics:
                await connection.execute(_KEEP, tenant, topic.id, list(topic.keywords))
                columns = zip(*((one.id, one.layer, one.type, one.closeness) for one in topic.members), strict=True)
                await connection.execute(_KEEP_MEMBERS, tenant, topic.id, *(list(column) for column in columns))
            await connection.execute(_KEEP_RUN, tenant, run.computed_at, run.silhouette, run.unassigned)
