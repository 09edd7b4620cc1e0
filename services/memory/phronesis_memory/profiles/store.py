"""Profiles in Postgres."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeAlias

import asyncpg

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Kept, Message, Principal, formed, labels_for_row, labels_from_row
from phronesis_contracts.memory import DeleteProfile, Profile, ProfileChanged
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..values import labels_of_call

Change: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes a new profile of an old one."""

_READ = "SELECT profile, updated_at, version, labels FROM profiles WHERE tenant = $1 AND user_id = $2"
_WRITE = """
    INSERT INTO profiles (tenant, user_id, profile, labels, version) VALUES ($1, $2, $3, $4, nextval('versions'))
    ON CONFLICT (tenant, user_id) DO UPDATE SET profile = excluded.profile, labels = excluded.labels,
        version = excluded.version, updated_at = now() RETURNING version, updated_at"""
_DELETE = "DELETE FROM profiles WHERE tenant = $1 AND user_id = $2"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"


class _WriteReceipt(Message):
    """What is kept of a write with its key: no content, so that a deleted profile is nowhere."""

    version: int = 0
    updated_at: datetime | None = None


class PostgresProfiles:
    """The table `profiles`. Versions come from a sequence, so that no two profiles of a user share one."""

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database, self._wake = database, wake

    async def get(self, who: Principal) -> Profile:
        async with self._database.connection(who.tenant) as connection:
            return _profile_from_row(await connection.fetchrow(_READ, who.tenant, who.user))

    async def change(self, call: Call, request: Kept, version: int | None, change: Change, *, whole: bool = False) -> Profile:
        """Change the caller's profile, once for the call's key.

        Args:
            version: the version to change; whatever it is where `None`.
            change: the new profile of the old one; raises where it may not be.
            whole: whether nothing of the old one stays.

        Raises:
            ProfileChanged: it has another version.
            KeyReused: the key came before with other arguments.
        """
        who = call.who
        made: dict[str, Any] = {}

        async def write(connection: Connection, old: Profile) -> _WriteReceipt:
            made.update(change(old.profile))
            labels = labels_of_call(call, request.labels)
            if old.profile and not whole:
                labels = formed((*old.labels, *labels))
            row = await connection.fetchrow(_WRITE, who.tenant, who.user, made, labels_for_row(labels))
            assert row is not None
            size = len(json.dumps(made, ensure_ascii=False).encode())
            await _write_audit(connection, who, "profile.update", {"fields": len(made), "bytes": size})
            return _WriteReceipt(version=row["version"], updated_at=row["updated_at"])

        return await self._written(call, request, version, write)

    async def delete(self, call: Call, request: DeleteProfile) -> Profile:
        """Delete the caller's profile, once for the call's key. Raises as `change` does."""
        who = call.who

        async def write(connection: Connection, old: Profile) -> _WriteReceipt:
            await connection.execute(_DELETE, who.tenant, who.user)
            await _write_audit(connection, who, "profile.delete", {"fields": len(old.profile)})
            return _WriteReceipt()

        return await self._written(call, request, request.version, write)

    async def _written(
        self,
        call: Call,
        request: Message,
        version: int | None,
        write: Callable[[Connection, Profile], Awaitable[_WriteReceipt]],
    ) -> Profile:
        """Run a write alone on its profile. A repeat of its key is answered with the profile as it is by then."""
        who = call.who

        async def store(connection: Connection) -> _WriteReceipt:
            await connection.execute(_LOCK, f"profile/{who.tenant}/{who.user}")
            old = _profile_from_row(await connection.fetchrow(_READ, who.tenant, who.user))
            if version is not None and version != old.version:
                raise ProfileChanged(f"the profile has version {old.version} by now", field="version")
            return await write(connection, old)

        await write_once(self._database, call, request, _WriteReceipt, store)
        self._wake()
        return await self.get(who)


async def _write_audit(connection: Connection, who: Principal, action: str, counts: dict[str, int]) -> None:
    await write_news(connection, "memory", who.tenant, AUDITED["memory"], audit_entry(who, action, counts))


def _profile_from_row(row: asyncpg.Record | None) -> Profile:
    if row is None:
        return Profile(version=0)
    labels = labels_from_row(row["labels"])
    return Profile(profile=row["profile"], updated_at=row["updated_at"], version=row["version"], labels=labels)
