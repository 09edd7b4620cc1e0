"""Outside servers in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Conflict, NotFound
from phronesis_contracts.outside import (
    AcceptedTool,
    AcceptTools,
    AddServer,
    JudgeTools,
    OutsideServer,
    ServerRef,
    ServerRemoved,
    SwitchServer,
    UnknownServer,
)
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from .ports import Server

SERVICE = "orchestrator"
MOST = 50
"""Servers of one tenant."""
_SERVERS = """
SELECT name, url, command, header_names, sealed, seconds, enabled, version, created_by FROM outside_servers
WHERE tenant = $1 AND ($2::text IS NULL OR name = $2) ORDER BY name"""
_TOOLS = """
SELECT server, name, description, parameters, pin, risk, idempotent, accepted_by, accepted_at FROM outside_tools
WHERE tenant = $1 AND ($2::text IS NULL OR server = $2) ORDER BY server, name"""
_ADD = """
INSERT INTO outside_servers (tenant, name, url, command, header_names, sealed, seconds, created_by)
SELECT $1, $2, $3, $4, $5, $6, $7, $8 WHERE (SELECT count(*) FROM outside_servers WHERE tenant = $1) < $9
ON CONFLICT DO NOTHING RETURNING true"""
_ACCEPT = """
INSERT INTO outside_tools (tenant, server, name, description, parameters, pin, risk, idempotent, accepted_by, accepted_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (tenant, server, name) DO UPDATE SET description = excluded.description, parameters = excluded.parameters,
    pin = excluded.pin, risk = excluded.risk, idempotent = excluded.idempotent, accepted_by = excluded.accepted_by,
    accepted_at = excluded.accepted_at"""
_JUDGE = "UPDATE outside_tools SET risk = $4, idempotent = $5 WHERE tenant = $1 AND server = $2 AND name = $3 RETURNING true"
_WITHDRAW = "DELETE FROM outside_tools WHERE tenant = $1 AND server = $2 AND name = ANY($3::text[])"
_SWITCH = "UPDATE outside_servers SET enabled = $3, version = version + 1 WHERE tenant = $1 AND name = $2 RETURNING true"
_REMOVE = "DELETE FROM outside_servers WHERE tenant = $1 AND name = $2 RETURNING true"
_LOCK = "SELECT true FROM outside_servers WHERE tenant = $1 AND name = $2 FOR UPDATE"


class PostgresServers:
    """A row for each server, and one for each accepted tool; see `Servers`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, tenant: str) -> tuple[Server, ...]:
        async with self._database.connection(tenant) as connection:
            return await _read(connection, tenant, None)

    async def one(self, tenant: str, name: str) -> Server:
        async with self._database.connection(tenant) as connection:
            return _only(await _read(connection, tenant, name))

    async def add(self, call: Call, request: AddServer, sealed: bytes | None) -> OutsideServer:
        names = sorted(request.secret_headers)
        command = list(request.command) if request.command else None

        async def write(connection: Connection) -> OutsideServer:
            row = (call.who.tenant, request.name, request.url, command, names, sealed, request.seconds, call.who.user, MOST)
            if not await connection.fetchval(_ADD, *row):
                raise Conflict("there is a server of that name, or the tenant has too many", field="name")
            # Of an address the host alone, of a command the program: the rest may hold what is nobody else's business.
            host = urlsplit(request.url).hostname if request.url else None
            details = {"name": request.name, "host": host, "program": command[0] if command else None, "headers": names}
            return await _reply_with_change(connection, call, request.name, "mcp_servers.add", details)

        return await write_once(self._database, call, request, OutsideServer, write)

    async def accept(self, call: Call, request: AcceptTools, tools: Sequence[AcceptedTool]) -> OutsideServer:
        async def write(connection: Connection) -> OutsideServer:
            await _lock(connection, call, request.name)
            for tool in tools:
                stated = (tool.name, tool.description, tool.parameters, tool.pin, int(tool.risk), tool.idempotent)
                row = (call.who.tenant, request.name, *stated, tool.accepted_by, tool.accepted_at)
                await connection.execute(_ACCEPT, *row)
            details = {
                "name": request.name,
                "tools": [f"{tool.name} {tool.risk.name.lower()} {tool.pin[:12]}" for tool in tools],
            }
            return await _reply_with_change(connection, call, request.name, "mcp_servers.accept", details)

        return await write_once(self._database, call, request, OutsideServer, write)

    async def judge(self, call: Call, request: JudgeTools) -> OutsideServer:
        async def write(connection: Connection) -> OutsideServer:
            tenant, name = call.who.tenant, request.name
            await _lock(connection, call, name)
            for tool in request.tools:
                if not await connection.fetchval(_JUDGE, tenant, name, tool.name, int(tool.risk), tool.idempotent):
                    raise NotFound(f"no tool {tool.name} is accepted", field="tools")
            await connection.execute(_WITHDRAW, tenant, name, list(request.withdrawn))
            details = {
                "name": name,
                "tools": [f"{tool.name} {tool.risk.name.lower()}" for tool in request.tools],
                "withdrawn": list(request.withdrawn),
            }
            return await _reply_with_change(connection, call, name, "mcp_servers.judge", details)

        return await write_once(self._database, call, request, OutsideServer, write)

    async def switch(self, call: Call, request: SwitchServer) -> OutsideServer:
        async def write(connection: Connection) -> OutsideServer:
            if not await connection.fetchval(_SWITCH, call.who.tenant, request.name, request.enabled):
                raise UnknownServer("there is no such server")
            return await _reply_with_change(connection, call, request.name, "mcp_servers.switch", request.model_dump())

        return await write_once(self._database, call, request, OutsideServer, write)

    async def remove(self, call: Call, request: ServerRef) -> ServerRemoved:
        async def write(connection: Connection) -> ServerRemoved:
            existed = bool(await connection.fetchval(_REMOVE, call.who.tenant, request.name))
            if existed:
                await _audit(connection, call, "mcp_servers.remove", {"name": request.name})
            return ServerRemoved(name=request.name, existed=existed)

        return await write_once(self._database, call, request, ServerRemoved, write)


async def _read(connection: Connection, tenant: str, name: str | None) -> tuple[Server, ...]:
    rows, tools = await connection.fetch(_SERVERS, tenant, name), await connection.fetch(_TOOLS, tenant, name)
    of: dict[str, list[AcceptedTool]] = {}
    for row in tools:
        stated = dict(row)
        of.setdefault(stated.pop("server"), []).append(AcceptedTool(**stated))
    return tuple(_server(dict(row), of.get(row["name"], [])) for row in rows)


def _server(row: dict[str, Any], tools: list[AcceptedTool]) -> Server:
    command = tuple(row["command"]) if row["command"] is not None else None
    return Server(**{**row, "command": command, "header_names": tuple(row["header_names"]), "tools": tuple(tools)})


def _only(found: tuple[Server, ...]) -> Server:
    if not found:
        raise UnknownServer("there is no such server")
    return found[0]


async def _lock(connection: Connection, call: Call, name: str) -> None:
    if not await connection.fetchval(_LOCK, call.who.tenant, name):
        raise UnknownServer("there is no such server")


async def _reply_with_change(
    connection: Connection, call: Call, name: str, action: str, details: dict[str, Any]
) -> OutsideServer:
    await _audit(connection, call, action, details)
    return _only(await _read(connection, call.who.tenant, name)).to_contract()


async def _audit(connection: Connection, call: Call, action: str, details: dict[str, Any]) -> None:
    await write_news(connection, SERVICE, call.who.tenant, AUDITED[SERVICE], audit_entry(call.who, action, details))
