"""Memories of scopes in Postgres: items whose owner is a room. They are announced to nobody, so that no graph knows them."""

from __future__ import annotations

from collections.abc import Callable

from phronesis_bus import Call, audited
from phronesis_contracts.scoped_memory import ForgetMemory, ForgottenMemory, KeepMemory, KeptMemory, Snippet
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..domain.limits import cut
from ..domain.values import MEMORY, Audience, Draft, Vector
from ..ports import VectorIndex
from .writing import lock, remove, write

SERVICE = "memory"

_ENTER = "SELECT set_config('phronesis.room', $1, true)"
_READ = """
    SELECT id, external_id, body, metadata FROM items WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])"""
_NAMED = "SELECT id FROM items WHERE tenant = $1 AND owner = $2 AND external_id = $3"


class PostgresRooms:
    """`Rooms` on the table `items`. A transaction enters the one room that it reads or writes (migration 0008).

    Args:
        database: the schema.
        vectors: the index of the items' vectors.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database = database
        self._vectors = vectors
        self._wake = wake

    async def near(self, tenant: str, room: str, vector: Vector, limit: int) -> tuple[Snippet, ...]:
        """See `Rooms`."""
        [hits] = await self._vectors.search(Audience(tenant, (room,), (MEMORY,)), [vector], limit)
        if not hits:
            return ()
        async with self._database.connection(tenant) as connection:
            await connection.execute(_ENTER, room)
            rows = await connection.fetch(_READ, tenant, room, [hit.id for hit in hits])
        found = {str(row["id"]): row for row in rows}
        return tuple(
            Snippet(
                key=found[hit.id]["external_id"],
                content=cut(found[hit.id]["body"], len(hits)),
                confidence=found[hit.id]["metadata"]["confidence"],
                score=hit.cosine,
            )
            for hit in hits
            if hit.id in found
        )

    async def keep(self, call: Call, request: KeepMemory, room: str, draft: Draft) -> KeptMemory:
        """See `Rooms`."""
        who = call.who

        async def store(connection: Connection) -> KeptMemory:
            await self._enter(connection, who.tenant, room)
            version = int(await connection.fetchval("SELECT nextval('versions')"))
            [done] = await write(connection, self._vectors, who.tenant, room, version, [draft])
            kept = KeptMemory(id=done.id, status=done.status)
            if kept.status != "unchanged":
                entry = audited(who, "keep_memory", {"scope": request.scope, "id": kept.id})
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return kept

        kept = await write_once(self._database, call, request, KeptMemory, store)
        self._wake()
        await self._vectors.settle(who.tenant, [kept.id])
        return kept

    async def forget(self, call: Call, request: ForgetMemory, room: str) -> ForgottenMemory:
        """See `Rooms`."""
        who = call.who

        async def work(connection: Connection) -> ForgottenMemory:
            await self._enter(connection, who.tenant, room)
            id = await connection.fetchval(_NAMED, who.tenant, room, request.key)
            if id is None:
                return ForgottenMemory()
            await remove(connection, self._vectors, who.tenant, [str(id)])
            entry = audited(who, "forget_memory", {"scope": request.scope, "id": str(id)})
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return ForgottenMemory(id=str(id))

        gone = await write_once(self._database, call, request, ForgottenMemory, work)
        self._wake()
        await self._vectors.settle(who.tenant, [gone.id] if gone.id else [])
        return gone

    async def _enter(self, connection: Connection, tenant: str, room: str) -> None:
        """Go in, and let no other transaction write there until this one ends."""
        await connection.execute(_ENTER, room)
        await lock(connection, tenant, room)
