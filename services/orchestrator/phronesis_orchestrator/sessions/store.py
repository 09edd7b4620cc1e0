"""Users' calendars in Postgres, and the encryption of secrets that are stored (AES-256-GCM)."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from phronesis_bus import Call, audit_entry
from phronesis_contracts import BadRequest, Principal, Unavailable
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Database, write_news

from .calendar import Calendar

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
            entry = audit_entry(who, "calendar.set", {"source": calendar.source, "host": host, "time_zone": calendar.time_zone})
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
        return replace(calendar, version=version)


_NONCE = 12
"""Bytes of the number that each encryption uses once."""


class AesSeal:
    """Encrypts for one owner: what was sealed for another one does not open."""

    def __init__(self, key: SecretStr | None) -> None:
        self._cipher = AESGCM(hashlib.sha256(key.get_secret_value().encode()).digest()) if key else None

    def shut(self, text: str, owner: Principal) -> bytes:
        """The text, encrypted.

        Raises:
            BadRequest: the installation has no key.
        """
        if self._cipher is None:
            raise BadRequest("this installation keeps no passwords: it has no key to encrypt them with", field="password")
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, text.encode(), _owner(owner))

    def open(self, sealed: bytes, owner: Principal) -> str:
        """The text again.

        Raises:
            Unavailable: there is no key, it is another one, or it was sealed for another owner.
        """
        try:
            if self._cipher is not None:
                return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _owner(owner)).decode()
        except (InvalidTag, ValueError) as error:
            raise Unavailable("the calendar's password cannot be read any more; set it anew") from error
        raise Unavailable("the calendar's password cannot be read without the installation's key")


def _owner(owner: Principal) -> bytes:
    return f"{owner.tenant}/{owner.user}".encode()
