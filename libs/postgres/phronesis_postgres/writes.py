"""Idempotent writes: the key of a write stands in the write's own transaction, and a repeat gets the first result."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from phronesis_bus import Call
from phronesis_contracts import KeyReused, Message

from .pool import Connection, Database

Out = TypeVar("Out", bound=Message)


async def write_once(
    database: Database, call: Call, request: Message, output: type[Out], write: Callable[[Connection], Awaitable[Out]]
) -> Out:
    """Run `write` in one transaction, once for each key of the caller's service.

    Args:
        database: the owner's schema, with the table `writes`.
        call: how the request came; without a key the write simply runs.
        request: the arguments; their hash is kept with the key.
        output: the result's model.
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
        digest = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
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
