"""The tables of the instructions: what ships, and what each tenant has over it."""

from __future__ import annotations

import logging

from phronesis_bus import audited
from phronesis_contracts import SYSTEM_TENANT, Principal, Role
from phronesis_contracts.instructions import RELEASED, Released
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Database, write_news

from ..domain.agents import AgentContent
from ..domain.library import Overlay, Platform
from ..domain.matrix import Matrix
from .reading import read_overlay, read_platform, read_release
from .rows import migrated
from .shipping import ship_agent, ship_matrix

log = logging.getLogger(__name__)

_LOCK = 7_420_912
_SELF = Principal(tenant=SYSTEM_TENANT, user="instructions", role=Role.ADMIN)


class PostgresStore:
    """The schema `instructions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def release(self, content: AgentContent | Matrix) -> bool:
        """Release content in one transaction with its news; copies that start together wait for one another."""
        async with migrated(), self._database.transaction(SYSTEM_TENANT) as connection:
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
            entry = audited(_SELF, "instructions.release", what)
            await write_news(connection, "instructions", SYSTEM_TENANT, AUDITED["instructions"], entry)
        log.info("released %s %s", content.name, content.version)
        return True

    async def platform(self) -> Platform:
        """What ships, in one statement."""
        return await read_platform(self._database)

    async def overlay(self, tenant: str) -> Overlay:
        """A tenant's own, in one statement."""
        async with migrated(), self._database.connection(tenant) as connection:
            return await read_overlay(connection, tenant)

    async def overlay_at(self, tenant: str, number: int) -> Overlay:
        """A release of a tenant, active or not, without experiments."""
        async with migrated(), self._database.connection(tenant) as connection:
            return Overlay(number, await read_release(connection, tenant, number))

    async def ping(self) -> None:
        """Raise `Unavailable` unless the database answers."""
        await self._database.ping()
