"""Tables of noted changes: what was written of vectors in a transaction, until an index outside Postgres has it too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import asyncpg

from phronesis_bus import sendable
from phronesis_contracts import Event, Message
from phronesis_contracts.memory import ItemKind
from phronesis_postgres import Connection

from ..values import VectorEntry
from .format import pack, unpack

_RETRY = 30.0
"""Seconds after which a change that the index refused is tried again."""

# In one order, so that two writers of the same items wait for each other and never in a circle.
_NOTE = """
    INSERT INTO vector_changes (tenant, item_id, owner, kind, family, embedding, passages)
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bytea[])
        AS given (tenant, id, owner, kind, family, embedding, passages) ORDER BY tenant, id
    ON CONFLICT (tenant, item_id) DO UPDATE SET owner = excluded.owner, kind = excluded.kind, family = excluded.family,
        embedding = excluded.embedding, passages = excluded.passages, due = now()"""
_NOTE_GONE = """
    INSERT INTO vector_changes (tenant, item_id) SELECT $1, id FROM unnest($2::uuid[]) AS id ORDER BY id
    ON CONFLICT (tenant, item_id) DO UPDATE
        SET owner = NULL, kind = NULL, family = NULL, embedding = NULL, passages = NULL, due = now()"""
_HOLD = "INSERT INTO held_news (tenant, subject, body, headers, items) VALUES ($1, $2, $3, $4, $5::uuid[])"
_RELEASE = """
    WITH due AS (
        DELETE FROM held_news WHERE NOT EXISTS (
            SELECT FROM vector_changes WHERE tenant = held_news.tenant AND item_id = ANY(held_news.items)
        ) RETURNING tenant, subject, body, headers
    ) INSERT INTO outbox (tenant, subject, body, headers) SELECT * FROM due"""


class _Entry(Protocol):
    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=_Entry)


@dataclass(frozen=True)
class Changes(Generic[E]):
    """What is to be applied to the index of one tenant."""

    entries: tuple[E, ...]
    gone: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.entries) + len(self.gone)


class ChangeTable(ABC, Generic[E]):
    """Changes, the latest for each thing with a vector. `rows` is a SELECT of them from the table, which it calls `c`."""

    def __init__(self, table: str, key: str, key_type: str, rows: str) -> None:
        self._table, self._key = table, key
        self._named = f"c.tenant = $1 AND c.{key} = ANY($2::{key_type}[])"
        self._rows = rows

    @abstractmethod
    def entry(self, row: asyncpg.Record) -> E | None:
        """The entry that a row says is to be stored; `None` where the thing's vector is to be deleted."""

    async def release_events(self, connection: Connection) -> None:
        """Let events go out that waited for changes which are applied."""

    async def take(self, connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, Changes[E]]:
        """The changes of these things that nobody else holds, by tenant, locked until the transaction ends."""
        # A row that is being applied, or written anew, is locked: whoever holds it will see to it.
        statement = f"{self._rows} WHERE {self._named} AND c.due <= now() FOR UPDATE OF c SKIP LOCKED"
        return self._by_tenant(await connection.fetch(statement, tenant, list(ids)))

    async def take_due(self, connection: Connection, most: int) -> dict[str, Changes[E]]:
        """The changes that have waited longest and that nobody else holds, by tenant, locked until the transaction ends."""
        statement = f"{self._rows} WHERE c.due <= now() ORDER BY c.due LIMIT $1 FOR UPDATE OF c SKIP LOCKED"
        return self._by_tenant(await connection.fetch(statement, most))

    async def waiting(self, connection: Connection, tenant: str, ids: Sequence[str]) -> bool:
        """Whether a change of one of these is left; what the index has just refused is not waited for."""
        statement = f"SELECT EXISTS (SELECT FROM {self._table} c WHERE {self._named} AND due <= now())"  # noqa: S608
        return bool(await connection.fetchval(statement, tenant, list(ids)))

    async def noted(self, connection: Connection, tenant: str, most: int) -> list[str]:
        """The things of a tenant with a change that is left, the latest first."""
        statement = f"""
            SELECT {self._key}::text FROM {self._table} WHERE tenant = $1 AND due <= now() ORDER BY due DESC LIMIT $2"""  # noqa: S608
        return [row[0] for row in await connection.fetch(statement, tenant, most)]

    async def left(self, connection: Connection, began: datetime) -> bool:
        """Whether a change is left that was noted up to then, or that the index refused."""
        statement = f"SELECT EXISTS (SELECT FROM {self._table} WHERE due <= $1 OR due > now())"  # noqa: S608
        return bool(await connection.fetchval(statement, began))

    async def count(self, connection: Connection) -> int:
        return int(await connection.fetchval(f"SELECT count(*) FROM {self._table}"))  # noqa: S608

    async def finish(
        self, connection: Connection, applied: Mapping[str, Changes[E]], refused: Mapping[str, Sequence[str]]
    ) -> None:
        """Remove what was applied, by tenant, and let what the index refused come again later."""
        retry = f"UPDATE {self._table} c SET due = now() + make_interval(secs => $3) WHERE {self._named}"  # noqa: S608
        for tenant, changes in applied.items():
            failed = set(refused.get(tenant, ()))
            ids = (*(entry.id for entry in changes.entries), *changes.gone)
            await self.drop(connection, tenant, [id for id in ids if id not in failed])
            if failed:
                await connection.execute(retry, tenant, list(failed), _RETRY)

    async def drop(self, connection: Connection, tenant: str, ids: Sequence[str]) -> None:
        """Remove the changes of things whose vectors are written past the table; waits for whoever applies them."""
        await connection.execute(f"DELETE FROM {self._table} c WHERE {self._named}", tenant, sorted(ids))  # noqa: S608

    def _by_tenant(self, rows: Sequence[asyncpg.Record]) -> dict[str, Changes[E]]:
        found: dict[str, tuple[list[E], list[str]]] = {}
        for row in rows:
            entries, gone = found.setdefault(row["tenant"], ([], []))
            entry = self.entry(row)
            if entry is None:
                gone.append(str(row[self._key]))
            else:
                entries.append(entry)
        return {tenant: Changes(tuple(entries), tuple(gone)) for tenant, (entries, gone) in found.items()}


class ItemChanges(ChangeTable[VectorEntry]):
    """The table `vector_changes`, of items. It holds their vectors, and events that wait until vectors are gone."""

    def __init__(self) -> None:
        columns = "tenant, item_id, owner, kind, family, embedding, passages"
        super().__init__("vector_changes", "item_id", "uuid", f"SELECT {columns} FROM vector_changes c")  # noqa: S608

    def entry(self, row: asyncpg.Record) -> VectorEntry | None:
        if row["embedding"] is None:
            return None
        dimension = len(row["embedding"]) // 2
        [vector] = unpack(row["embedding"], dimension)
        named = (str(row["item_id"]), row["tenant"], row["owner"], ItemKind(row["kind"]))
        return VectorEntry(*named, vector, row["family"], unpack(row["passages"], dimension))

    async def note(self, connection: Connection, entries: Sequence[VectorEntry]) -> None:
        """Write down that these vectors are to be stored."""
        last = {(e.tenant, e.id): e for e in entries}.values()
        rows = [(e.tenant, e.id, e.owner, e.kind, e.family, pack([e.vector]), pack(e.passages)) for e in last]
        await connection.execute(_NOTE, *map(list, zip(*rows, strict=True)))

    async def note_gone(self, connection: Connection, tenant: str, ids: Sequence[str]) -> None:
        """Write down that the vectors of these items are to be deleted."""
        await connection.execute(_NOTE_GONE, tenant, list(set(ids)))

    async def drop_all(self, connection: Connection) -> None:
        """Remove every change; waits for whoever applies some, and lets nobody begin before the transaction ends."""
        await connection.execute("LOCK TABLE vector_changes IN EXCLUSIVE MODE")
        await connection.execute("DELETE FROM vector_changes")

    async def release_events(self, connection: Connection) -> None:
        await connection.execute(_RELEASE)


async def hold_event(
    connection: Connection, service: str, tenant: str, event: Event[Any], message: Message, items: Sequence[str]
) -> None:
    """Write an event that may go out only when the vectors of these items are gone."""
    row = sendable(service, "", tenant, event, message)
    await connection.execute(_HOLD, row.tenant, row.subject, row.body, dict(row.headers), list(items))
