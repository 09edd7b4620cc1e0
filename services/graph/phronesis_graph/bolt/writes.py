"""What all writes share: turns, first results for repeats, events with the change, and the outbox that the relay reads."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import uuid4
from zlib import crc32

from phronesis_bus import Call, Sendable
from phronesis_contracts import KeyReused, Message

from .driver import Bolt, Transaction
from .schema import LOCKS, NEWS, WRITES

Out = TypeVar("Out", bound=Message)

_TOUCH = f"MERGE (lock:{LOCKS} {{key: $key}}) SET lock.turns = coalesce(lock.turns, 0) + 1"
_COUNTED = f"MATCH (lock:{LOCKS} {{key: $key}}) RETURN coalesce(lock.changes, 0) AS changes"
_COUNT = (
    f"MATCH (lock:{LOCKS} {{key: $key}}) SET lock.changes = coalesce(lock.changes, 0) + $more RETURN lock.changes AS changes"
)
_FIRST = f"MATCH (write:{WRITES} {{key: $key}}) RETURN write.arguments AS arguments, write.result AS result"
_KEEP = f"CREATE (write:{WRITES} {{key: $key, arguments: $arguments, result: $result, at: $at}})"
_ANNOUNCE = f"UNWIND $rows AS row CREATE (news:{NEWS}) SET news = row"

_counter = itertools.count()
SERVICE = "graph"
"""The service's name in events."""


class Turns:
    """Writers of one tenant or owner take turns in this process; between processes the touched node does it.

    A store without locks finds out at commit that two writers met, and one of them starts again: with turns taken
    here that stays rare. The number of locks is fixed, so some strangers wait for each other.
    """

    def __init__(self) -> None:
        self._locks = tuple(asyncio.Lock() for _ in range(64))

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """The turn of `name`, for the length of a block."""
        async with self._locks[crc32(name.encode()) % len(self._locks)]:
            yield


async def take_turn(transaction: Transaction, name: str) -> None:
    """Begin a write of `name`: no two that were begun so both commit on what they read before the other's end."""
    await transaction.rows(_TOUCH, key=name)


async def count_changes(transaction: Transaction, tenant: str, more: int = 0) -> int:
    """How many changes there were of a tenant's constitution, with `more` that are written in this transaction, in its turn."""
    rows = await transaction.rows(_COUNT, key=tenant, more=more) if more else await transaction.rows(_COUNTED, key=tenant)
    return int(rows[0]["changes"]) if rows else 0


async def first_result(transaction: Transaction, call: Call, arguments: str, output: type[Out]) -> Out | None:
    """The result of the write that came before with this call's key, if one did. Raises `KeyReused`."""
    if call.key is None:
        return None
    rows = await transaction.rows(_FIRST, key=_key(call))
    if not rows:
        return None
    if rows[0]["arguments"] != arguments:
        raise KeyReused("this idempotency key was used with other arguments")
    return output.model_validate_json(rows[0]["result"])


async def keep_result(transaction: Transaction, call: Call, arguments: str, result: Message) -> None:
    """Keep the result with the call's key, in the transaction of the write."""
    if call.key is not None:
        kept = result.model_dump_json()
        await transaction.rows(_KEEP, key=_key(call), arguments=arguments, result=kept, at=time.time())


async def write_once(
    bolt: Bolt,
    tenant: str,
    calls: Sequence[Call],
    arguments: str,
    output: type[Out],
    work: Callable[[Transaction], Awaitable[Out]],
    *,
    keep: Callable[[Out], bool] = lambda _: True,
    seconds: float | None = None,
) -> Out:
    """Do `work` in one transaction, unless a repeat of a call has a first result; its result is kept where `keep` says so.

    Raises `KeyReused` (one of the calls' keys came before with other arguments), `Unavailable` (the store is down, or the
    outcome of the commit is not known).
    """

    async def once(transaction: Transaction) -> Out:
        await take_turn(transaction, tenant)
        for call in calls:
            if (first := await first_result(transaction, call, arguments, output)) is not None:
                return first
        result = await work(transaction)
        if keep(result):
            for call in calls:
                await keep_result(transaction, call, arguments, result)
        return result

    return await bolt.write(once, seconds)


def digest(request: str) -> str:
    """What tells two requests apart that come with one key."""
    return hashlib.sha256(request.encode()).hexdigest()


async def write_news(transaction: Transaction, news: Sequence[Sendable]) -> None:
    """Write events to the outbox, in the transaction of the change that they announce."""
    rows = [
        {
            "key": item.id,
            "whose": item.tenant,
            "subject": item.subject,
            "body": item.body.decode(),
            "headers": json.dumps(dict(item.headers)),
        }
        for item in news
    ]
    await transaction.rows(_ANNOUNCE, rows=rows)


def news_id() -> str:
    """An id that sorts by the time it was made."""
    return f"{time.time_ns():020d}-{next(_counter) % 10**6:06d}-{uuid4().hex[:8]}"


def _key(call: Call) -> str:
    # a tenant holds no slash and a user's or service's name holds none, so the parts cannot run into each other
    return f"{call.who.tenant}/{call.service}/{call.key}"


_UNSENT = f"""
MATCH (news:{NEWS}) WHERE news.key > ''
RETURN news.key AS key, news.whose AS whose, news.subject AS subject, news.body AS body, news.headers AS headers
ORDER BY news.key LIMIT $limit
"""
_WAITING = f"MATCH (news:{NEWS}) WHERE news.key > '' RETURN count(news) AS waiting"
_SENT = f"UNWIND $keys AS key MATCH (news:{NEWS} {{key: key}}) DELETE news"


class GraphOutbox:
    """Unsent news. Sent news is deleted."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def unsent(self, limit: int) -> list[Sendable]:

        async def read(transaction: Transaction) -> list[Sendable]:
            rows = await transaction.rows(_UNSENT, limit=limit)
            return [
                Sendable(row["key"], row["whose"], row["subject"], row["body"].encode(), json.loads(row["headers"]))
                for row in rows
            ]

        return await self._bolt.read(read)

    async def waiting(self) -> int:

        async def read(transaction: Transaction) -> int:
            return int((await transaction.rows(_WAITING))[0]["waiting"])

        return await self._bolt.read(read)

    async def sent(self, ids: list[str]) -> None:

        async def delete(transaction: Transaction) -> None:
            await transaction.rows(_SENT, keys=ids)

        await self._bolt.write(delete)
