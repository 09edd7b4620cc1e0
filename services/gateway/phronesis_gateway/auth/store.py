"""Keys in Postgres, with the news of what became of them in the same transaction.

And the first key of a stack, entered from a file.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from phronesis_bus import audit_entry
from phronesis_contracts import Agent, Principal, Role, Unavailable
from phronesis_contracts.principal import ADMINISTRATORS, ELEVATED, find_old_role, translate_old_role
from phronesis_contracts.service import AUDITED, KEY_REVOKED, KeyRevoked
from phronesis_postgres import EVERY_TENANT, Connection, Database, reach_of, write_news

from .keys import ACT_FOR_USERS, OPERATOR, PREFIX_LENGTH, Key, KeyStore, hash_secret, is_secret, narrow_reader

_COLUMNS = (
    'id, tenant, "user", role, access, agents, department, ministry, scopes, prefix, created_at, revoked_at, bus, expires_at, '
    "tools"
)
_INSERT = (
    'INSERT INTO keys (id, tenant, "user", role, access, agents, department, ministry, scopes, hash, prefix, created_at, bus, '
    "expires_at, tools) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
)

_ELEVATED = """
    SELECT EXISTS (SELECT FROM keys WHERE tenant = $1 AND "user" = $2 AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now()) AND (
            access = ANY($3::text[]) OR agents && $4::text[] OR scopes && $5::text[]
            OR (access IS NULL AND role = ANY($3::text[] || $4::text[]))))"""


class PostgresKeys:
    """The table `keys`. Whose a key is, is what it is looked up for: that question is asked of every tenant.

    Args:
        written: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, written: Callable[[], None]) -> None:
        self._database = database
        self._written = written

    async def by_hash(self, hash: bytes) -> Key | None:
        async with self._database.connection(EVERY_TENANT) as connection:
            row = await connection.fetchrow(
                f"SELECT {_COLUMNS} FROM keys WHERE hash = ANY($1::bytea[])",  # noqa: S608
                [hash, _hide(hash)],
            )
        return _key_from_row(row) if row else None

    async def by_id(self, id: str) -> Key | None:
        async with self._database.connection(EVERY_TENANT) as connection:
            row = await connection.fetchrow(f"SELECT {_COLUMNS} FROM keys WHERE id = $1", UUID(id))  # noqa: S608
        return _key_from_row(row) if row else None

    async def of(self, tenant: str | None, limit: int) -> list[Key]:
        """Keys, newest first, of one tenant or of all."""
        async with self._database.connection(tenant or EVERY_TENANT) as connection:
            rows = await connection.fetch(
                f"SELECT {_COLUMNS} FROM keys WHERE $1::text IS NULL OR tenant = $1 "  # noqa: S608
                "ORDER BY created_at DESC, id LIMIT $2",
                tenant,
                limit,
            )
        return [_key_from_row(row) for row in rows]

    async def add(self, key: Key, hash: bytes, by: Principal) -> None:
        async with self._database.transaction(reach_of(key.tenant, by.tenant)) as connection:
            await connection.execute(_INSERT, *_row_of(key, hash))
            await _audit_entry(connection, by, "keys.create", key)
        self._written()

    async def add_absent(self, key: Key, hash: bytes, action: str = "keys.bootstrap") -> bool:
        """Store a key unless it is there, and audit it as `action`; returns whether it was stored."""
        async with self._database.transaction(key.tenant) as connection:
            done = await connection.execute(f"{_INSERT} ON CONFLICT DO NOTHING", *_row_of(key, hash))
            stored = bool(done.endswith(" 1"))
            if stored:
                await _audit_entry(connection, key.principal, action, key)
        self._written()
        return stored

    async def revoke(self, id: str, tenant: str | None, by: Principal) -> Key | None:
        """Revoke a key of one tenant, or of any, and announce it; `None` when there is no such key."""
        async with self._database.transaction(EVERY_TENANT if tenant is None else reach_of(tenant, by.tenant)) as connection:
            row = await connection.fetchrow(
                f"SELECT {_COLUMNS} FROM keys WHERE id = $1 AND ($2::text IS NULL OR tenant = $2) FOR UPDATE",  # noqa: S608
                UUID(id),
                tenant,
            )
            if row is None or row["revoked_at"] is not None:
                return _key_from_row(row) if row else None
            row = await connection.fetchrow(
                f"UPDATE keys SET revoked_at = now() WHERE id = $1 RETURNING {_COLUMNS}",  # noqa: S608
                UUID(id),
            )
            key = _key_from_row(row)
            await write_news(connection, "gateway", key.tenant, KEY_REVOKED, KeyRevoked(key=key.id))
            await _audit_entry(connection, by, "keys.revoke", key)
        self._written()
        return key

    async def is_elevated(self, tenant: str, user: str) -> bool:
        """Whether a user holds a key of an elevated role, or one that runs the platform or acts for others."""
        roles, agents, scopes = sorted(ADMINISTRATORS), sorted(ELEVATED), [OPERATOR, ACT_FOR_USERS]
        async with self._database.connection(tenant) as connection:
            return bool(await connection.fetchval(_ELEVATED, tenant, user, roles, agents, scopes))

    async def revoked_of_bus(self) -> list[str]:
        """Ids of the revoked keys of the bus that would be good otherwise."""
        async with self._database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch("SELECT id FROM keys WHERE bus AND revoked_at IS NOT NULL AND expires_at > now()")
        return [str(row["id"]) for row in rows]


_RENEWED = 60.0
"""Seconds between two times that a session's use is written down: most requests only read."""
_DROP_OVER = """
    DELETE FROM {0} WHERE hash IN (
        SELECT hash FROM {0} WHERE tenant = $1 AND expires_at <= now() LIMIT 1000 FOR UPDATE SKIP LOCKED)"""
_BEGIN_SESSION = """
    INSERT INTO sessions (hash, tenant, "user", key, expires_at) VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))"""
_SESSION = """
    SELECT key, tenant, used_at < now() - make_interval(secs => $3) AS renew FROM sessions
    WHERE hash = $1 AND expires_at > now() AND used_at > now() - make_interval(secs => $2)"""
_OF_SAME_USER = 'DELETE FROM sessions WHERE (tenant, "user") IN (SELECT tenant, "user" FROM sessions WHERE hash = $1)'
_USE_TICKET = """
    INSERT INTO used_tickets (hash, tenant, expires_at) VALUES ($1, $2, to_timestamp($3))
    ON CONFLICT DO NOTHING RETURNING true"""


class PostgresSessions:
    """The tables `sessions` and `used_tickets`. Whose a session is, is what it is looked up for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, hash: bytes, who: Principal, seconds: float) -> None:
        """Keep a session. What is over of its tenant goes with it."""
        assert who.key is not None
        async with self._database.transaction(who.tenant) as connection:
            await connection.execute(_DROP_OVER.format("sessions"), who.tenant)
            await connection.execute(_BEGIN_SESSION, hash, who.tenant, who.user, UUID(who.key), seconds)

    async def key_of(self, hash: bytes, idle: float) -> str | None:
        async with self._database.connection(EVERY_TENANT) as connection:
            row = await connection.fetchrow(_SESSION, hash, idle, min(idle / 2, _RENEWED))
        if row is None:
            return None
        if row["renew"]:
            async with self._database.transaction(row["tenant"]) as connection:
                await connection.execute("UPDATE sessions SET used_at = now() WHERE hash = $1", hash)
        return str(row["key"])

    async def end(self, hash: bytes, *, everywhere: bool) -> None:
        async with self._database.transaction(EVERY_TENANT) as connection:
            await connection.execute(_OF_SAME_USER if everywhere else "DELETE FROM sessions WHERE hash = $1", hash)

    async def use_ticket(self, tenant: str, hash: bytes, expires_at: int) -> bool:
        async with self._database.transaction(tenant) as connection:
            await connection.execute(_DROP_OVER.format("used_tickets"), tenant)
            return bool(await connection.fetchval(_USE_TICKET, hash, tenant, expires_at))


async def _audit_entry(connection: Connection, by: Principal, action: str, key: Key) -> None:
    arguments = {"id": key.id, "tenant": key.tenant, "user": key.user, "role": key.role, "scopes": list(key.scopes)}
    arguments["agents"] = list(key.agents)
    if key.tools is not None:
        arguments["tools"] = list(key.tools)
    if key.expires_at is not None:
        arguments["expires_at"] = key.expires_at.isoformat()
    await write_news(connection, "gateway", by.tenant, AUDITED["gateway"], audit_entry(by, action, arguments))


def _row_of(key: Key, hash: bytes) -> tuple[Any, ...]:
    # `role` is for copies of the version before, which may run beside this one; to them a reader is a member with the scope to
    # read alone.
    old = find_old_role(Role.MEMBER if key.role is Role.READER else key.role, key.agents)
    rights = (old, key.role.value, [agent.value for agent in key.agents])
    owner = (
        UUID(key.id),
        key.tenant,
        key.user,
        *rights,
        key.department,
        key.ministry,
        list(narrow_reader(key.role, key.scopes)),
    )
    if key.tools is not None or (key.expires_at is not None and not key.bus):
        hash = _hide(hash)
    tools = None if key.tools is None else list(key.tools)
    return (*owner, hash, key.prefix, key.created_at, key.bus, key.expires_at, tools)


def _hide(hash: bytes) -> bytes:
    """What stands for the hash of a key that copies of the version before must not find: they would take it for a wider one."""
    return hashlib.sha256(hash).digest()


def _key_from_row(row: Any) -> Key:
    rights = {"role": row["access"], "agents": row["agents"]}
    if row["access"] is None:  # a copy of the version before entered it
        rights = {"agents": ()} | translate_old_role({"role": row["role"]})
    return Key(
        id=str(row["id"]),
        tenant=row["tenant"],
        user=row["user"],
        role=Role(rights["role"]),
        agents=tuple(map(Agent, rights["agents"])),
        department=row["department"],
        ministry=row["ministry"],
        scopes=tuple(row["scopes"]),
        prefix=row["prefix"],
        created_at=row["created_at"],
        revoked_at=row["revoked_at"],
        bus=row["bus"],
        expires_at=row["expires_at"],
        tools=None if row["tools"] is None else tuple(row["tools"]),
    )


log = logging.getLogger(__name__)

_AGAIN = 0.5
_LONGEST = 10.0


def read_first_key(path: Path) -> tuple[Key, bytes]:
    """The key whose secret stands in the file `path`, and the hash of that secret.

    Raises:
        ValueError: the file holds no secret of a key.
        OSError: it cannot be read.
    """
    secret = path.read_text().strip()
    if not is_secret(secret):
        raise ValueError("the file with the first key holds no key")
    key = Key(
        id=str(uuid4()),
        tenant="local",
        user="owner",
        role=Role.OWNER,
        agents=(),
        department=None,
        ministry=None,
        scopes=(OPERATOR,),
        prefix=secret[:PREFIX_LENGTH],
        created_at=datetime.now(UTC),
    )
    return key, hash_secret(secret)


async def store_first_key(store: KeyStore, key: Key, hash: bytes) -> None:
    """Store the first key unless it is there, trying again until the store is."""
    pause = _AGAIN
    while True:
        try:
            if await store.add_absent(key, hash):
                log.info("the first key was entered")
            return
        except Unavailable:
            log.warning("the first key waits for the store")
        except Exception:
            # A schema that is not migrated yet is no reason to give up for good.
            log.exception("the first key could not be entered")
        await asyncio.sleep(pause)
        pause = min(_LONGEST, pause * 2)
