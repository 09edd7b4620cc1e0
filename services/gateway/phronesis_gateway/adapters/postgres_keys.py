"""Keys in Postgres, with the news of what became of them in the same transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from phronesis_bus import audited
from phronesis_contracts import Principal, Role
from phronesis_contracts.gateway import KEY_REVOKED, KeyRevoked
from phronesis_contracts.service import AUDITED
from phronesis_gateway.domain import Key
from phronesis_postgres import EVERY_TENANT, Connection, Database, reach, write_news

_COLUMNS = 'id, tenant, "user", role, department, ministry, scopes, prefix, created_at, revoked_at, bus, expires_at'
_INSERT = (
    'INSERT INTO keys (id, tenant, "user", role, department, ministry, scopes, hash, prefix, created_at, bus, expires_at) '
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
)


class PostgresKeys:
    """The table `keys`. Whose a key is, is what it is looked up for: that question is asked of every tenant.

    Args:
        database: the gateway's schema.
        written: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, written: Callable[[], None]) -> None:
        self._database = database
        self._written = written

    async def by_hash(self, hash: bytes) -> Key | None:
        """The key whose secret has this hash, revoked or not."""
        async with self._database.connection(EVERY_TENANT) as connection:
            row = await connection.fetchrow(f"SELECT {_COLUMNS} FROM keys WHERE hash = $1", hash)  # noqa: S608
        return _key(row) if row else None

    async def by_id(self, id: str) -> Key | None:
        """The key with this id, revoked or not."""
        async with self._database.connection(EVERY_TENANT) as connection:
            row = await connection.fetchrow(f"SELECT {_COLUMNS} FROM keys WHERE id = $1", UUID(id))  # noqa: S608
        return _key(row) if row else None

    async def of(self, tenant: str | None, limit: int) -> list[Key]:
        """Keys, newest first, of one tenant or of all."""
        async with self._database.connection(tenant or EVERY_TENANT) as connection:
            rows = await connection.fetch(
                f"SELECT {_COLUMNS} FROM keys WHERE $1::text IS NULL OR tenant = $1 "  # noqa: S608
                "ORDER BY created_at DESC, id LIMIT $2",
                tenant,
                limit,
            )
        return [_key(row) for row in rows]

    async def add(self, key: Key, hash: bytes, by: Principal) -> None:
        """Store a new key that `by` made."""
        async with self._database.transaction(reach(key.tenant, by.tenant)) as connection:
            await connection.execute(_INSERT, *_values(key, hash))
            await _audit(connection, by, "keys.create", key)
        self._written()

    async def add_absent(self, key: Key, hash: bytes, action: str = "keys.bootstrap") -> bool:
        """Store a key unless it is there, and audit it as `action`; returns whether it was stored."""
        async with self._database.transaction(key.tenant) as connection:
            done = await connection.execute(f"{_INSERT} ON CONFLICT DO NOTHING", *_values(key, hash))
            stored = bool(done.endswith(" 1"))
            if stored:
                await _audit(connection, key.principal, action, key)
        self._written()
        return stored

    async def revoke(self, id: str, tenant: str | None, by: Principal) -> Key | None:
        """Revoke a key of one tenant, or of any, and announce it; `None` when there is no such key."""
        async with self._database.transaction(EVERY_TENANT if tenant is None else reach(tenant, by.tenant)) as connection:
            row = await connection.fetchrow(
                f"SELECT {_COLUMNS} FROM keys WHERE id = $1 AND ($2::text IS NULL OR tenant = $2) FOR UPDATE",  # noqa: S608
                UUID(id),
                tenant,
            )
            if row is None or row["revoked_at"] is not None:
                return _key(row) if row else None
            row = await connection.fetchrow(
                f"UPDATE keys SET revoked_at = now() WHERE id = $1 RETURNING {_COLUMNS}",  # noqa: S608
                UUID(id),
            )
            key = _key(row)
            await write_news(connection, "gateway", key.tenant, KEY_REVOKED, KeyRevoked(key=key.id))
            await _audit(connection, by, "keys.revoke", key)
        self._written()
        return key

    async def revoked_of_bus(self) -> list[str]:
        """Ids of the revoked keys of the bus that would be good otherwise."""
        async with self._database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch("SELECT id FROM keys WHERE bus AND revoked_at IS NOT NULL AND expires_at > now()")
        return [str(row["id"]) for row in rows]


async def _audit(connection: Connection, by: Principal, action: str, key: Key) -> None:
    arguments = {"id": key.id, "tenant": key.tenant, "user": key.user, "role": key.role, "scopes": list(key.scopes)}
    await write_news(connection, "gateway", by.tenant, AUDITED["gateway"], audited(by, action, arguments))


def _values(key: Key, hash: bytes) -> tuple[Any, ...]:
    owner = (UUID(key.id), key.tenant, key.user, key.role.value, key.department, key.ministry, list(key.scopes))
    return (*owner, hash, key.prefix, key.created_at, key.bus, key.expires_at)


def _key(row: Any) -> Key:
    return Key(
        id=str(row["id"]),
        tenant=row["tenant"],
        user=row["user"],
        role=Role(row["role"]),
        department=row["department"],
        ministry=row["ministry"],
        scopes=tuple(row["scopes"]),
        prefix=row["prefix"],
        created_at=row["created_at"],
        revoked_at=row["revoked_at"],
        bus=row["bus"],
        expires_at=row["expires_at"],
    )
