"""The tables of the instructions: bundles, elements, their history, agents' profiles."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from phronesis.bus import audited
from phronesis.contracts import SYSTEM_TENANT, Principal, Role, Unavailable
from phronesis.contracts.instructions import RELEASED, AgentProfile, Released
from phronesis.contracts.service import AUDITED
from phronesis.postgres import Connection, Database, write_news

from ..domain import AgentContent, replaces

log = logging.getLogger(__name__)

_LOCK = 7_420_912
_SELF = Principal(tenant=SYSTEM_TENANT, user="instructions", role=Role.ADMIN)

_BUNDLE = """
INSERT INTO instruction_bundles AS live (tag, content, version, status, category)
VALUES ($1, $2, $3, 'active', 'agent_prompt')
ON CONFLICT (tag) DO UPDATE SET content = excluded.content, version = excluded.version, status = 'active'
WHERE (live.content, live.status) IS DISTINCT FROM (excluded.content, 'active') RETURNING tag
"""
_ELEMENT = """
INSERT INTO instruction_elements AS live (tag, content, version, status, use_cases)
VALUES ($1, $2, $3, 'active', ARRAY['directive'])
ON CONFLICT (tag) DO UPDATE SET content = excluded.content, version = excluded.version, status = 'active'
WHERE (live.content, live.status) IS DISTINCT FROM (excluded.content, 'active') RETURNING tag
"""
_PROFILE = """
INSERT INTO agent_profiles (agent, version, digest, loop, stages, prompts, directives, phrases)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (agent) DO UPDATE SET version = excluded.version, digest = excluded.digest, loop = excluded.loop,
    stages = excluded.stages, prompts = excluded.prompts, directives = excluded.directives, phrases = excluded.phrases,
    released_at = now()
"""
_ACTIVE = """
SELECT tag, content FROM instruction_bundles WHERE tag = ANY($1) AND status = 'active'
UNION ALL SELECT tag, content FROM instruction_elements WHERE tag = ANY($2) AND status = 'active'
"""


class PostgresStore:
    """The schema `instructions`. Its texts are the platform's own; of a tenant are its news alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def release(self, content: AgentContent) -> bool:
        """Release content in one transaction with its news; copies that start together wait for one another."""
        async with _migrated(), self._database.transaction(SYSTEM_TENANT) as connection:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            last = await connection.fetchrow("SELECT * FROM agent_profiles WHERE agent = $1", content.agent)
            if not replaces(content, None if last is None else (last["version"], last["digest"])):
                return False
            tags = await _write_texts(connection, content)
            if last is not None:
                tags += await _retire(connection, content, last)
            await _write_profile(connection, content)
            tags.append(f"agent/{content.agent}")
            await write_news(
                connection, "instructions", SYSTEM_TENANT, RELEASED, Released(tags=tuple(tags), version=content.version)
            )
            entry = audited(_SELF, "instructions.release", {"agent": content.agent, "version": content.version, "tags": tags})
            await write_news(connection, "instructions", SYSTEM_TENANT, AUDITED["instructions"], entry)
        log.info("released %s %s", content.agent, content.version)
        return True

    async def profile(self, agent: str) -> AgentProfile | None:
        """The agent's profile. Only active rows are served (N-212)."""
        async with _migrated(), self._database.connection(SYSTEM_TENANT) as connection:
            row = await connection.fetchrow("SELECT * FROM agent_profiles WHERE agent = $1", agent)
            if row is None:
                return None
            tagged = (list(row["prompts"].values()), list(row["directives"].values()))
            texts = {text["tag"]: text["content"] for text in await connection.fetch(_ACTIVE, *tagged)}
        if missing := [tag for tags in tagged for tag in tags if tag not in texts]:
            log.error("texts of %s are not active: %s", agent, ", ".join(missing))
            raise Unavailable("the agent's instructions are not all active")
        return AgentProfile(
            agent=row["agent"],
            version=row["version"],
            loop=row["loop"],
            stages=tuple(row["stages"]),
            prompts={purpose: texts[tag] for purpose, tag in row["prompts"].items()},
            directives={name: texts[tag] for name, tag in row["directives"].items()},
            phrases=row["phrases"],
        )

    async def ping(self) -> None:
        """Raise `Unavailable` unless the database answers."""
        await self._database.ping()


@asynccontextmanager
async def _migrated() -> AsyncIterator[None]:
    try:
        yield
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
        raise Unavailable("the instructions' tables are not there yet", retry_after=1) from error


async def _write_texts(connection: Connection, content: AgentContent) -> list[str]:
    """Write the texts; returns the tags of those that changed."""
    changed = []
    for statement, tags, texts in (
        (_BUNDLE, content.prompt_tags(), content.prompts),
        (_ELEMENT, content.directive_tags(), content.directives),
    ):
        for name, tag in tags.items():
            if await connection.fetchval(statement, tag, texts[name], content.version):
                changed.append(tag)
    return changed


async def _retire(connection: Connection, content: AgentContent, last: asyncpg.Record) -> list[str]:
    """Deprecate the texts that the agent had and has no more; returns their tags."""
    prompts = set(last["prompts"].values()) - set(content.prompt_tags().values())
    directives = set(last["directives"].values()) - set(content.directive_tags().values())
    for table, tags in (("instruction_bundles", prompts), ("instruction_elements", directives)):
        await connection.execute(f"UPDATE {table} SET status = 'deprecated' WHERE tag = ANY($1)", list(tags))  # noqa: S608
    return sorted(prompts | directives)


async def _write_profile(connection: Connection, content: AgentContent) -> None:
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
    )
