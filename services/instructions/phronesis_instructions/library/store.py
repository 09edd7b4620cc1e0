"""Instructions in Postgres.

What ships becomes the live rows, and the library is read in one statement, so that no reader sees half of a release.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Literal

import asyncpg

import phronesis_tokens as tokens
from phronesis_bus import audit_entry
from phronesis_contracts import SYSTEM_TENANT, NotFound, Principal, Role, Unavailable
from phronesis_contracts.agents import AgentDefinition
from phronesis_contracts.instructions import RELEASED, Released
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news

from .content import AgentContent, Matrix
from .texts import Overlay, OwnAgent, Platform, Profile, Running, RunningArm, Text, replaces


@asynccontextmanager
async def migrated_schema() -> AsyncIterator[None]:
    """A block that reads tables of ours. Raises `Unavailable`: they are not there yet, or lack a column."""
    try:
        yield
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError, asyncpg.InvalidSchemaNameError) as error:
        raise Unavailable("the instructions' tables are not there yet", retry_after=1) from error


def text_from_row(row: Mapping[str, Any], kind: Literal["bundle", "element"], *, own: bool = False) -> Text:
    """A text from the columns of its table; what a table has no column for is absent."""
    return Text(
        row["tag"],
        kind,
        row["content"],
        row["version"],
        row["status"],
        row["avg_tokens"] or 0,
        tier=row.get("tier"),
        category=row.get("category"),
        dependencies=tuple(row.get("dependencies") or ()),
        use_cases=tuple(row.get("use_cases") or ()),
        position=row.get("position"),
        own=own,
    )


_PLATFORM = """
SELECT
    (SELECT version FROM releases WHERE tenant = 'system' AND active) AS version,
    (SELECT json_agg(t) FROM (
        SELECT tag, content, avg_tokens, version, status, category FROM instruction_bundles
    ) AS t) AS bundles,
    (SELECT json_agg(t) FROM (
        SELECT tag, content, avg_tokens, version, status, tier, dependencies, use_cases, position FROM instruction_elements
    ) AS t) AS elements,
    (SELECT json_agg(t) FROM (
        SELECT agent, version, loop, stages, prompts, directives, phrases, bootstrap FROM agent_profiles
    ) AS t) AS profiles
"""
_OVERLAY = """
SELECT
    (SELECT number FROM releases WHERE tenant = $1 AND active) AS number,
    (SELECT json_agg(t) FROM release_texts AS t
        WHERE tenant = $1 AND number = (SELECT number FROM releases WHERE tenant = $1 AND active)) AS texts,
    (SELECT json_agg(t ORDER BY started_at, experiment, place) FROM (
        SELECT experiment, arm, place, weight, started_at,
            (SELECT json_object_agg(tag, content) FROM arm_texts AS a
                WHERE a.tenant = $1 AND a.experiment = arms.experiment AND a.arm = arms.arm) AS texts
        FROM experiment_arms AS arms JOIN experiments AS e ON e.tenant = arms.tenant AND e.name = arms.experiment
        WHERE arms.tenant = $1 AND e.status = 'running'
    ) AS t) AS arms,
    (SELECT json_agg(t) FROM agent_versions AS t WHERE tenant = $1 AND active) AS agents
"""
_AGENTS = "SELECT * FROM agent_versions WHERE tenant = $1 AND active"


async def read_platform(database: Database) -> Platform:
    """What ships, as it stands now. Its release is a row of the platform's own tenant, which no other tenant reaches."""
    async with migrated_schema(), database.connection(SYSTEM_TENANT) as connection:
        row = await connection.fetchrow(_PLATFORM)
    assert row is not None
    texts = [text_from_row(one, "bundle") for one in row["bundles"] or ()]
    texts += [text_from_row(one, "element") for one in row["elements"] or ()]
    profiles = {one["agent"]: Profile(**{**one, "stages": tuple(one["stages"])}) for one in row["profiles"] or ()}
    return Platform(row["version"] or "0.0.0", {text.tag: text for text in texts}, profiles)


async def read_overlay(connection: Connection, tenant: str) -> Overlay:
    """A tenant's active release, running experiments and own agents, as they stand now."""
    row = await connection.fetchrow(_OVERLAY, tenant)
    assert row is not None
    return Overlay(
        row["number"] or 0,
        texts_from_rows(row["texts"] or ()),
        _running_from_rows(row["arms"] or ()),
        _agents_from_rows(row["agents"] or ()),
    )


async def read_release(connection: Connection, tenant: str, number: int) -> dict[str, Text]:
    """A release's own texts; those of 0 are none. Raises `NotFound`."""
    if number and not await connection.fetchval("SELECT true FROM releases WHERE tenant = $1 AND number = $2", tenant, number):
        raise NotFound("there is no such release")
    rows = await connection.fetch("SELECT * FROM release_texts WHERE tenant = $1 AND number = $2", tenant, number)
    return texts_from_rows([dict(row) for row in rows])


def texts_from_rows(rows: Any) -> dict[str, Text]:
    """A tenant's own texts by tag, from rows of `release_texts`."""
    return {row["tag"]: text_from_row(row, row["kind"], own=True) for row in rows}


def _agents_from_rows(rows: Any) -> dict[str, OwnAgent]:
    return {row["agent"]: own_agent_from_row(row) for row in rows}


def own_agent_from_row(row: Mapping[str, Any]) -> OwnAgent:
    """A version from its row. Definitions of other versions of the program are read as far as this one knows their fields."""
    known = {name: value for name, value in row["definition"].items() if name in AgentDefinition.model_fields}
    return OwnAgent(
        number=row["number"],
        definition=AgentDefinition.model_validate({"name": row["agent"], **known}),
        by=row["published_by"],
        at=datetime.fromisoformat(at) if isinstance(at := row["created_at"], str) else at,
        note=row["note"],
        active=row["active"],
    )


def _running_from_rows(rows: Any) -> tuple[Running, ...]:
    arms: dict[str, list[RunningArm]] = defaultdict(list)
    for row in rows:
        arms[row["experiment"]].append(RunningArm(row["arm"], row["weight"], row["texts"] or {}))
    return tuple(Running(name, tuple(of_it)) for name, of_it in arms.items())


_KEPT_RELEASES = 100
"""The platform's releases that are kept, without their texts: those are in `instruction_history`."""
_BUNDLE = """
INSERT INTO instruction_bundles AS live (tag, content, version, status, avg_tokens, category)
VALUES ($1, $2, $3, 'active', $4, $5)
ON CONFLICT (tag) DO UPDATE SET content = excluded.content, version = excluded.version, status = 'active',
    avg_tokens = excluded.avg_tokens, category = excluded.category
WHERE (live.content, live.status, live.category) IS DISTINCT FROM (excluded.content, 'active', excluded.category)
RETURNING tag
"""
_ELEMENT = """
INSERT INTO instruction_elements AS live
    (tag, content, version, status, avg_tokens, tier, dependencies, use_cases, position)
VALUES ($1, $2, $3, 'active', $4, $5, $6, $7, $8)
ON CONFLICT (tag) DO UPDATE SET content = excluded.content, version = excluded.version, status = 'active',
    avg_tokens = excluded.avg_tokens, tier = excluded.tier, dependencies = excluded.dependencies,
    use_cases = excluded.use_cases, position = excluded.position
WHERE (live.content, live.status, live.tier, live.dependencies, live.use_cases, live.position)
    IS DISTINCT FROM (excluded.content, 'active', excluded.tier, excluded.dependencies, excluded.use_cases, excluded.position)
RETURNING tag
"""
_PROFILE = """
INSERT INTO agent_profiles (agent, version, digest, loop, stages, prompts, directives, phrases, bootstrap)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (agent) DO UPDATE SET version = excluded.version, digest = excluded.digest, loop = excluded.loop,
    stages = excluded.stages, prompts = excluded.prompts, directives = excluded.directives, phrases = excluded.phrases,
    bootstrap = excluded.bootstrap, released_at = now()
"""
_LAST = "SELECT number, version, digest, tags FROM releases WHERE tenant = $1 AND active"
_RELEASE = """
INSERT INTO releases (tenant, number, version, digest, tags, active, published_by) VALUES ($1, $2, $3, $4, $5, true, $6)
"""


async def ship_matrix(connection: Connection, matrix: Matrix, by: str) -> list[str] | None:
    """Write the matrix; returns the tags of what changed, or `None` where it is not new."""
    last = await connection.fetchrow(_LAST, SYSTEM_TENANT)
    if not replaces(matrix.version, matrix.digest(), None if last is None else (last["version"], last["digest"])):
        return None
    texts = matrix.texts()
    changed = await _write_texts(connection, texts)
    tags = [text.tag for text in texts]
    number = 1
    if last is not None:
        changed += await _retire_texts(connection, set(last["tags"]) - set(tags))
        number = last["number"] + 1
        await connection.execute("UPDATE releases SET active = false WHERE tenant = $1 AND active", SYSTEM_TENANT)
    await connection.execute(_RELEASE, SYSTEM_TENANT, number, matrix.version, matrix.digest(), tags, by)
    await connection.execute("DELETE FROM releases WHERE tenant = $1 AND number <= $2", SYSTEM_TENANT, number - _KEPT_RELEASES)
    return changed


async def ship_agent(connection: Connection, content: AgentContent) -> list[str] | None:
    """Write an agent's texts and its profile; returns the tags of what changed, or `None` where it is not new."""
    last = await connection.fetchrow("SELECT * FROM agent_profiles WHERE agent = $1", content.agent)
    if not replaces(content.version, content.digest(), None if last is None else (last["version"], last["digest"])):
        return None
    texts = _agent_texts(content)
    changed = await _write_texts(connection, texts)
    if last is not None:
        had = {*last["prompts"].values(), *last["directives"].values()}
        changed += await _retire_texts(connection, had - {text.tag for text in texts})
    await connection.execute(
        _PROFILE,
        content.agent,
        content.version,
        content.digest(),
        content.loop,
        list(content.stages),
        content.prompt_tags(),
        content.directive_tags(),
        content.phrases,
        content.bootstrap,
    )
    return [*changed, f"agent/{content.agent}"]


def _agent_texts(content: AgentContent) -> list[Text]:
    def text(tag: str, said: str) -> Text:
        if tag in bundles:
            return Text(tag, "bundle", said, content.version, "active", tokens.count(said), category="agent_prompt")
        return Text(tag, "element", said, content.version, "active", tokens.count(said), tier=1, use_cases=("directive",))

    bundles = {tag: content.prompts[purpose] for purpose, tag in content.prompt_tags().items()}
    directives = {tag: content.directives[name] for name, tag in content.directive_tags().items()}
    return [text(tag, said) for tag, said in {**bundles, **directives}.items()]


async def _write_texts(connection: Connection, texts: Iterable[Text]) -> list[str]:
    changed = []
    for text in texts:
        written = (text.tag, text.content, text.version, text.tokens)
        if text.kind == "bundle":
            tag = await connection.fetchval(_BUNDLE, *written, text.category)
        else:
            more = (list(text.dependencies) or None, list(text.use_cases), text.position)
            tag = await connection.fetchval(_ELEMENT, *written, text.tier, *more)
        if tag:
            changed.append(text.tag)
    return changed


async def _retire_texts(connection: Connection, tags: set[str]) -> list[str]:
    for table in ("instruction_bundles", "instruction_elements"):
        await connection.execute(f"UPDATE {table} SET status = 'deprecated' WHERE tag = ANY($1)", list(tags))  # noqa: S608
    return sorted(tags)


log = logging.getLogger(__name__)

_LOCK = 7_420_912
_SELF = Principal(tenant=SYSTEM_TENANT, user="instructions", role=Role.ADMIN)


class PostgresStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def release(self, content: AgentContent | Matrix) -> bool:
        """Release content in one transaction with its news; copies that start together wait for one another."""
        async with migrated_schema(), self._database.transaction(SYSTEM_TENANT) as connection:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            if isinstance(content, Matrix):
                tags = await ship_matrix(connection, content, _SELF.user)
                what = {"version": content.version, "tags": tags}
            else:
                tags = await ship_agent(connection, content)
                what = {"agent": content.agent, "version": content.version, "tags": tags}
            if tags is None:
                return False
            news = Released(tags=tuple(tags), version=content.version)
            await write_news(connection, "instructions", SYSTEM_TENANT, RELEASED, news)
            entry = audit_entry(_SELF, "instructions.release", what)
            await write_news(connection, "instructions", SYSTEM_TENANT, AUDITED["instructions"], entry)
        log.info("released %s %s", content.name, content.version)
        return True

    async def platform(self) -> Platform:
        return await read_platform(self._database)

    async def overlay(self, tenant: str) -> Overlay:
        async with migrated_schema(), self._database.connection(tenant) as connection:
            return await read_overlay(connection, tenant)

    async def overlay_at(self, tenant: str, number: int) -> Overlay:
        """A release of a tenant, active or not, without experiments; its own agents as they are now."""
        async with migrated_schema(), self._database.connection(tenant) as connection:
            texts = await read_release(connection, tenant, number)
            agents = _agents_from_rows(dict(row) for row in await connection.fetch(_AGENTS, tenant))
        return Overlay(number, texts, agents=agents)

    async def ping(self) -> None:
        await self._database.ping()
