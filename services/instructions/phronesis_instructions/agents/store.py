"""The table of tenants' own agents: versions that are published, taken back and deleted in one transaction with their event."""

from __future__ import annotations

from collections.abc import Callable

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Conflict, NotFound
from phronesis_contracts.agents import (
    DELETE_AGENT_TOOL,
    MAX_AGENT_VERSIONS,
    MAX_AGENTS,
    PUBLISH_AGENT_TOOL,
    ROLL_BACK_AGENT_TOOL,
    AgentByName,
    AgentDefinition,
    AgentDeleted,
    AgentPublished,
    PublishAgent,
    RollBackAgent,
)
from phronesis_contracts.instructions import RELEASED, Released
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..library.store import migrated_schema, own_agent_from_row
from ..library.texts import OwnAgent
from .definitions import changed_fields, diff_definitions

_LOCK = 7_420_914
_VERSIONS = "SELECT * FROM agent_versions WHERE tenant = $1 AND agent = $2 ORDER BY number DESC"
_INSERT = """
INSERT INTO agent_versions (tenant, agent, number, definition, note, published_by, active) VALUES ($1, $2, $3, $4, $5, $6, true)
"""
_PRUNE = "DELETE FROM agent_versions WHERE tenant = $1 AND agent = $2 AND number <= $3 AND NOT active"
_OTHERS = "SELECT count(*) FROM agent_versions WHERE tenant = $1 AND agent <> $2 AND active"
_RETIRE = "UPDATE agent_versions SET active = false WHERE tenant = $1 AND agent = $2 AND active RETURNING number"
_ACTIVATE = "UPDATE agent_versions SET active = true WHERE tenant = $1 AND agent = $2 AND number = $3"
_PRUNE_DELETED = """
DELETE FROM agent_versions WHERE tenant = $1 AND agent IN (
    SELECT agent FROM agent_versions WHERE tenant = $1 GROUP BY agent HAVING NOT bool_or(active)
    ORDER BY max(created_at) DESC, agent OFFSET $2
)
"""

Check = Callable[[AgentDefinition], None]
"""Raises where a definition cannot be made the active one."""


class PostgresAgents:
    """The agents that tenants made. Every method raises `Unavailable` while the store is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def versions(self, tenant: str, name: str) -> tuple[OwnAgent, ...]:
        """The versions of an agent, the newest first; none of one that there never was."""
        async with migrated_schema(), self._database.connection(tenant) as connection:
            return await _read_versions(connection, tenant, name)

    async def publish(self, call: Call, request: PublishAgent) -> AgentPublished:
        """Make a version of the definition, and make it the active one; nothing where the active one says the same.

        Raises:
            Conflict: the tenant has too many agents.
        """

        async def write(connection: Connection) -> AgentPublished:
            tenant, name, definition = call.who.tenant, request.name, request.definition()
            await _lock(connection, tenant)
            versions = await _read_versions(connection, tenant, name)
            done = plan_publication(versions, definition)
            if not done.changed:
                return done
            if await connection.fetchval(_OTHERS, tenant, name) >= MAX_AGENTS:
                raise Conflict(f"a tenant has at most {MAX_AGENTS} agents of its own; delete one first")
            await connection.execute(_RETIRE, tenant, name)
            kept = definition.model_dump(mode="json", exclude_defaults=True)
            await connection.execute(_INSERT, tenant, name, done.version, kept, request.note, call.who.user)
            await connection.execute(_PRUNE, tenant, name, done.version - MAX_AGENT_VERSIONS)
            await _announce(connection, call, PUBLISH_AGENT_TOOL.name, done.name, version=done.version, changed=done.changed)
            return done

        return await write_once(self._database, call, request, AgentPublished, write)

    async def roll_back(self, call: Call, request: RollBackAgent, check: Check) -> AgentPublished:
        """Make an earlier version the active one, unless it is that already.

        Raises:
            NotFound: there is no such agent, or it has no such version.
            Conflict: there is none before the active one, or the tenant has too many agents.
            ServiceError: what `check` raised.
        """

        async def write(connection: Connection) -> AgentPublished:
            tenant, name = call.who.tenant, request.name
            await _lock(connection, tenant)
            done, wanted = plan_rollback(await _read_versions(connection, tenant, name), request)
            if wanted.active:
                return done
            check(wanted.definition)
            if await connection.fetchval(_OTHERS, tenant, name) >= MAX_AGENTS:
                raise Conflict(f"a tenant has at most {MAX_AGENTS} agents of its own; delete one first")
            await connection.execute(_RETIRE, tenant, name)
            await connection.execute(_ACTIVATE, tenant, name, wanted.number)
            await _announce(connection, call, ROLL_BACK_AGENT_TOOL.name, name, version=wanted.number, changed=done.changed)
            return done

        return await write_once(self._database, call, request, AgentPublished, write)

    async def delete(self, call: Call, request: AgentByName) -> AgentDeleted:
        """Leave no version active. Raises `NotFound`: there never was such an agent."""

        async def write(connection: Connection) -> AgentDeleted:
            tenant, name = call.who.tenant, request.name
            await _lock(connection, tenant)
            number = await connection.fetchval(_RETIRE, tenant, name)
            if number is None:
                if not await _read_versions(connection, tenant, name):
                    raise NotFound("there is no such agent of the tenant's own")
                return AgentDeleted(name=name, deleted=False)
            await connection.execute(_PRUNE_DELETED, tenant, MAX_AGENTS)
            await _announce(connection, call, DELETE_AGENT_TOOL.name, name, version=number)
            return AgentDeleted(name=name, deleted=True)

        return await write_once(self._database, call, request, AgentDeleted, write)


def plan_publication(versions: tuple[OwnAgent, ...], definition: AgentDefinition) -> AgentPublished:
    """What publishing a definition comes to."""
    active = next((one for one in versions if one.active), None)
    before = active.definition if active else None
    changed = changed_fields(before, definition)
    number = active.number if active and not changed else 1 + max((one.number for one in versions), default=0)
    return AgentPublished(
        name=definition.name, version=number, changed=changed, diff=diff_definitions(before, definition) if changed else ""
    )


def plan_rollback(versions: tuple[OwnAgent, ...], request: RollBackAgent) -> tuple[AgentPublished, OwnAgent]:
    """What a rollback comes to, and the version that it makes active. Raises `NotFound`, `Conflict`."""
    if not versions:
        raise NotFound("there is no such agent of the tenant's own")
    active = next((one for one in versions if one.active), None)
    earlier = [one for one in versions if active is None or one.number < active.number]
    if request.version is None and not earlier:
        raise Conflict("there is no version before the active one")
    wanted = earlier[0] if request.version is None else find_version(versions, request.version)
    before = active.definition if active else None
    changed = changed_fields(before, wanted.definition)
    done = AgentPublished(
        name=request.name,
        version=wanted.number,
        changed=changed,
        diff=diff_definitions(before, wanted.definition) if changed else "",
    )
    return done, wanted


def find_version(versions: tuple[OwnAgent, ...], number: int | None) -> OwnAgent:
    """A version by its number, or the active one. Raises `NotFound`."""
    found = next((one for one in versions if (one.active if number is None else one.number == number)), None)
    if found is None:
        if number is None or not versions:
            raise NotFound("there is no such agent")
        raise NotFound(f"the agent has no version {number}", field="version")
    return found


async def _lock(connection: Connection, tenant: str) -> None:
    """Nobody else changes the tenant's agents until the transaction ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", _LOCK, tenant)


async def _read_versions(connection: Connection, tenant: str, name: str) -> tuple[OwnAgent, ...]:
    return tuple(own_agent_from_row(dict(row)) for row in await connection.fetch(_VERSIONS, tenant, name))


async def _announce(connection: Connection, call: Call, action: str, name: str, **what: object) -> None:
    news = Released(tags=(f"agent/{name}",), version=str(what["version"]))
    await write_news(connection, "instructions", call.who.tenant, RELEASED, news)
    entry = audit_entry(call.who, action, {"name": name, **what})
    await write_news(connection, "instructions", call.who.tenant, AUDITED["instructions"], entry)
