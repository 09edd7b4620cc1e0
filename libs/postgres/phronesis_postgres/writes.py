"""Writes: the key of a write and the news of it stand in the write's own transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from phronesis_bus import Call, Sendable, sendable
from phronesis_contracts import Event, KeyReused, Message

from .pool import EVERY_TENANT, Connection, Database


class PostgresOutbox:
    """The table `outbox` of one schema, as the relay reads it: of every tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def unsent(self, limit: int) -> list[Sendable]:
        async with self._database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch("SELECT id, tenant, subject, body, headers FROM outbox ORDER BY id LIMIT $1", limit)
        return [Sendable(str(r["id"]), r["tenant"], r["subject"], r["body"], r["headers"]) for r in rows]

    async def waiting(self) -> int:
        async with self._database.connection(EVERY_TENANT) as connection:
            return int(await connection.fetchval("SELECT count(*) FROM outbox"))

    async def sent(self, ids: list[str]) -> None:
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


WRITES_OF_USER = (
    "writes WHERE tenant = $1 AND split_part(key, '/', 2) = $2 AND split_part(key, '/', 1) IN ('http', 'mcp', 'openai')"
)
"""The keys of writes that name a user, as the gateway makes them, in the table `writes`."""
Out = TypeVar("Out", bound=Message)


async def write_once(
    database: Database, call: Call, request: Message, output: type[Out], write: Callable[[Connection], Awaitable[Out]]
) -> Out:
    """Run `write` in one transaction, once for each key of the caller's service.

    Args:
        call: how the request came; without a key the write simply runs.
        request: the arguments; their hash is kept with the key, without where they come from (`labels`): a turn that is run
            again may have read more by then.
        write: does the write on the connection it is given, and returns the result.

    Returns:
        The result, or the first one where this key has been here before.

    Raises:
        KeyReused: the key came before with other arguments.
    """
    who = call.who
    async with database.transaction(who.tenant) as connection:
        if call.key is None:
            return await write(connection)
        digest = hashlib.sha256(request.model_dump_json(exclude={"labels"}).encode()).hexdigest()
        # A second transaction with this key waits here for the first one's end.
        fresh = await connection.fetchval(
            "INSERT INTO writes (tenant, service, key, arguments) VALUES ($1, $2, $3, $4) "
            "ON CONFLICT DO NOTHING RETURNING true",
            who.tenant,
            call.service,
            call.key,
            digest,
        )
        where = "WHERE tenant = $1 AND service = $2 AND key = $3"
        keys = (who.tenant, call.service, call.key)
        if not fresh:
            row = await connection.fetchrow(f"SELECT arguments, result FROM writes {where}", *keys)  # noqa: S608
            assert row is not None
            if row["arguments"] != digest:
                raise KeyReused("this idempotency key was used with other arguments")
            return output.model_validate(row["result"])
        result = await write(connection)
        await connection.execute(
            f"UPDATE writes SET result = $4 {where}",  # noqa: S608
            *keys,
            result.model_dump(mode="json"),
        )
        return result
