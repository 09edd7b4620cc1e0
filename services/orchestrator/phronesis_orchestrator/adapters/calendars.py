"""Users' calendars in Postgres."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from phronesis_bus import Call, audited
from phronesis_contracts import Principal
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Database, write_news

from ..sessions.domain import Calendar

SERVICE = "orchestrator"
_OF = """
SELECT source, url, ics, username, sealed, hours, time_zone, version FROM calendars WHERE tenant = $1 AND user_id = $2"""
_KEEP = """
INSERT INTO calendars (tenant, user_id, source, url, ics, username, sealed, hours, time_zone)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (tenant, user_id) DO UPDATE SET source = excluded.source, url = excluded.url, ics = excluded.ics,
    username = excluded.username, sealed = excluded.sealed, hours = excluded.hours, time_zone = excluded.time_zone,
    version = calendars.version + 1, updated_at = now()
RETURNING version"""


class PostgresCalendars:
    """One row for each user who set a calendar."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, who: Principal) -> Calendar:
        """The caller's calendar, or the one of who never set any."""
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(_OF, who.tenant, who.user)
        return Calendar() if row is None else Calendar(**{**dict(row), "hours": tuple(row["hours"])})

    async def keep(self, call: Call, calendar: Calendar) -> Calendar:
        """Set the caller's calendar, in one transaction with its entry in the audit trail.

        The row is what was asked for, whole; so a repeat needs no key to be known by.
        """
        who = call.who
        async with self._database.transaction(who.tenant) as connection:
            version = await connection.fetchval(
                _KEEP,
                who.tenant,
                who.user,
                calendar.source,
                calendar.url,
                calendar.ics,
                calendar.username,
                calendar.sealed,
                list(calendar.hours),
                calendar.time_zone,
            )
            # Of an address the host alone: the rest of it may be all that keeps strangers out.
            host = urlsplit(calendar.url).hostname if calendar.url else None
            entry = audited(who, "calendar.set", {"source": calendar.source, "host": host, "time_zone": calendar.time_zone})
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
        return replace(calendar, version=version)
