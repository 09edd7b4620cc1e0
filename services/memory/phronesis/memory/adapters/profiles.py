"""Profiles in Postgres."""

from __future__ import annotations

from collections.abc import Callable

from phronesis.bus import Call, audited
from phronesis.contracts import Principal
from phronesis.contracts.memory import Profile
from phronesis.contracts.service import AUDITED
from phronesis.postgres import Connection, Database, write_news, write_once


class PostgresProfiles:
    """`Profiles` on the table `profiles`.

    Args:
        database: the schema.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database = database
        self._wake = wake

    async def get(self, who: Principal) -> Profile:
        """See `Profiles`."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(
                "SELECT profile, updated_at FROM profiles WHERE tenant = $1 AND user_id = $2", who.tenant, who.user
            )
        return Profile() if row is None else Profile(profile=row["profile"], updated_at=row["updated_at"])

    async def put(self, call: Call, profile: Profile) -> Profile:
        """See `Profiles`."""
        who = call.who

        async def store(connection: Connection) -> Profile:
            at = await connection.fetchval(
                "INSERT INTO profiles (tenant, user_id, profile) VALUES ($1, $2, $3) ON CONFLICT (tenant, user_id)"
                " DO UPDATE SET profile = excluded.profile, updated_at = now() RETURNING updated_at",
                who.tenant,
                who.user,
                profile.profile,
            )
            entry = audited(who, "profile.put", {"fields": sorted(profile.profile)})
            await write_news(connection, "memory", who.tenant, AUDITED["memory"], entry)
            return Profile(profile=profile.profile, updated_at=at)

        stored = await write_once(self._database, call, profile, Profile, store)
        self._wake()
        return stored
