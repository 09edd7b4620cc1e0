"""The table of the nodes' versions: how each changed, when, and by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg

from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.writes import NodeNews, Operation
from phronesis_postgres import Connection, Database

from .nodes import NodeSnapshot
from .ports import Pair, Version

MAX_VERSIONS = 500
"""Versions of one node that are kept."""
_FINDINGS = 1_000

# What was last seen of each field, since the node was born.
_LAST = """
    SELECT DISTINCT ON (v.node_id, field.key) v.node_id, field.key, field.value -> 'new' AS value
    FROM unnest($2::text[], $3::timestamptz[]) AS given (id, born)
    JOIN constitution_versions v ON (v.tenant, v.node_id, v.born) = ($1, given.id, given.born), jsonb_each(v.fields) AS field
    ORDER BY v.node_id, field.key, v.version DESC"""
_SEEN = """
    SELECT v.node_id, v.version FROM unnest($2::text[], $3::timestamptz[], $4::bigint[]) AS given (id, born, version)
    JOIN constitution_versions v ON (v.tenant, v.node_id, v.born, v.version) = ($1, given.id, given.born, given.version)
    WHERE v.fields <> '{}'"""
# A version that was read before it was announced learns from the announcement who made it, and one whose values went with a
# deletion has them again when the node is restored.
_WRITE = """
    INSERT INTO constitution_versions AS v (tenant, node_id, born, version, type, layer, operation, at, actor, changed, fields)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (tenant, node_id, born, version) DO UPDATE SET
        operation = CASE v.actor WHEN '' THEN excluded.operation ELSE v.operation END,
        actor = CASE v.actor WHEN '' THEN excluded.actor ELSE v.actor END,
        changed = CASE v.actor WHEN '' THEN excluded.changed ELSE v.changed END,
        fields = CASE v.fields WHEN '{}' THEN excluded.fields ELSE v.fields END"""
_CUT = """
    DELETE FROM constitution_versions v USING unnest($2::text[]) AS given (id)
    WHERE v.tenant = $1 AND v.node_id = given.id AND (v.born, v.version) < (
        SELECT born, version FROM constitution_versions WHERE tenant = $1 AND node_id = given.id
        ORDER BY born DESC, version DESC OFFSET $3 LIMIT 1
    )"""
_ERASE = "UPDATE constitution_versions SET fields = '{}' WHERE tenant = $1 AND node_id = ANY($2::text[]) AND fields <> '{}'"
_BORN = "SELECT max(born) FROM constitution_versions WHERE tenant = $1 AND node_id = $2"
_OF = """
    SELECT * FROM (
        SELECT * FROM constitution_versions WHERE tenant = $1 AND node_id = $2 ORDER BY born DESC, version DESC LIMIT $3
    ) latest ORDER BY born, version"""
_DRIFTED = f"""
    SELECT * FROM constitution_versions
    WHERE tenant = $1 AND drift > $2 AND ($3::timestamptz IS NULL OR at >= $3) AND layer = ANY($4::text[])
    ORDER BY at DESC LIMIT {_FINDINGS}"""  # noqa: S608
_PAIRS = """
    SELECT one_id, other_id, one.type, one.layer, cosine FROM constitution_pairs p
    JOIN constitution_nodes one ON (one.tenant, one.node_id) = (p.tenant, p.one_id)
    JOIN constitution_nodes other ON (other.tenant, other.node_id) = (p.tenant, p.other_id)
    WHERE p.tenant = $1 AND cosine >= $2 AND one.layer = ANY($3::text[])
        AND one.lifecycle = 'active' AND other.lifecycle = 'active'
    ORDER BY cosine DESC, one_id, other_id LIMIT $4"""


async def write_versions(
    connection: Connection,
    tenant: str,
    read: Sequence[NodeSnapshot],
    news: Mapping[str, Sequence[NodeNews]],
    actor: str,
    now: datetime,
) -> None:
    """Write the versions that were announced, and that which was read, with its values; a repeat changes nothing."""
    where = [tenant, [facts.id for facts in read], [facts.born for facts in read]]
    seen = {
        (row["node_id"], row["version"]) for row in await connection.fetch(_SEEN, *where, [facts.version for facts in read])
    }
    last: dict[str, dict[str, Any]] = {facts.id: {} for facts in read}
    for row in await connection.fetch(_LAST, *where):
        last[row["node_id"]][row["key"]] = row["value"]
    rows = [
        row
        for facts in read
        for row in _rows(tenant, facts, news.get(facts.id, ()), last[facts.id], (facts.id, facts.version) in seen, actor, now)
    ]
    await connection.executemany(_WRITE, rows)
    if long := [facts.id for facts in read if facts.version > MAX_VERSIONS]:
        await connection.execute(_CUT, tenant, long, MAX_VERSIONS - 1)


def _rows(
    tenant: str, facts: NodeSnapshot, news: Sequence[NodeNews], last: Mapping[str, Any], seen: bool, actor: str, now: datetime
) -> list[tuple[object, ...]]:
    by_version = {one.version: one for one in news if one.operation is not Operation.DELETE and one.version <= facts.version}
    fields = {} if seen else _changes(last, facts.content)
    rows: list[tuple[object, ...]] = []
    for version in sorted({*by_version, facts.version}):
        mine, one = version == facts.version, by_version.get(version)
        changed = list(one.changed) if one is not None else sorted(fields)
        operation = one.operation if one is not None else Operation.UPDATE if version > 1 else Operation.CREATE
        values = fields if mine else {}
        key = (tenant, facts.id, facts.born, version, facts.type, facts.layer)
        at, by = facts.changed_at if mine else now, actor if one is not None else ""
        rows.append((*key, operation, at, by, changed, values))
    return rows


def _changes(last: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    names = sorted({*last, *now})
    return {name: {"old": last.get(name), "new": now.get(name)} for name in names if last.get(name) != now.get(name)}


async def erase_versions(
    connection: Connection, tenant: str, ids: Sequence[str], news: Mapping[str, Sequence[NodeNews]], actor: str, now: datetime
) -> None:
    """Take the values out of the history of nodes that are gone, and write down that they went."""
    await connection.execute(_ERASE, tenant, list(ids))
    for id in ids:
        for one in news.get(id, ()):
            if one.operation is Operation.DELETE and (born := await connection.fetchval(_BORN, tenant, id)) is not None:
                key = (tenant, id, born, one.version, one.type, one.layer)
                await connection.execute(_WRITE, *key, one.operation, now, actor, list(one.changed), {})


class NodeHistory:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def versions(self, tenant: str, node_id: str, limit: int) -> list[Version]:
        async with self._database.connection(tenant) as connection:
            return [_version_from_row(row) for row in await connection.fetch(_OF, tenant, node_id, limit)]

    async def drifted(self, tenant: str, since: datetime | None, layers: frozenset[Layer], threshold: float) -> list[Version]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_DRIFTED, tenant, threshold, since, list(layers or Layer))
        return [_version_from_row(row) for row in rows]

    async def pairs(self, tenant: str, threshold: float, layers: frozenset[Layer], limit: int) -> list[Pair]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_PAIRS, tenant, threshold, list(layers or Layer), limit)
        return [Pair(row["one_id"], row["other_id"], row["type"], Layer(row["layer"]), float(row["cosine"])) for row in rows]


def _version_from_row(row: asyncpg.Record) -> Version:
    return Version(
        row["node_id"],
        row["type"],
        Layer(row["layer"]),
        row["version"],
        row["operation"],
        row["at"],
        row["actor"],
        tuple(row["changed"]),
        row["fields"],
        None if row["drift"] is None else float(row["drift"]),
    )
