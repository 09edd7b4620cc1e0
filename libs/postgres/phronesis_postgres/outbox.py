"""The outbox table of a schema: news written in the transaction of the change that it announces."""

from __future__ import annotations

from typing import Any

from phronesis_bus import Sendable, sendable
from phronesis_contracts import Event, Message

from .pool import Connection, Database
from .tenants import EVERY_TENANT


class PostgresOutbox:
    """The table `outbox` of one schema, as the relay reads it: of every tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def unsent(self, limit: int) -> list[Sendable]:
        """The oldest unsent rows."""
        async with self._database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch("SELECT id, tenant, subject, body, headers FROM outbox ORDER BY id LIMIT $1", limit)
        return [Sendable(str(r["id"]), r["tenant"], r["subject"], r["body"], r["headers"]) for r in rows]

    async def waiting(self) -> int:
        """How many rows are unsent."""
        async with self._database.connection(EVERY_TENANT) as connection:
            return int(await connection.fetchval("SELECT count(*) FROM outbox"))

    async def sent(self, ids: list[str]) -> None:
        """Remove rows that the broker has stored."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            await connection.execute("DELETE FROM outbox WHERE id = ANY($1::bigint[])", [int(id) for id in ids])


async def write_news(connection: Connection, service: str, tenant: str, event: Event[Any], message: Message) -> None:
    """Write `message` to the outbox, in the transaction that `connection` is in."""
    row = sendable(service, "", tenant, event, message)
    await connection.execute(
        "INSERT INTO outbox (tenant, subject, body, headers) VALUES ($1, $2, $3, $4)",
        row.tenant,
        row.subject,
        row.body,
        dict(row.headers),
    )
